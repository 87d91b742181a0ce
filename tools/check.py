# SPDX-License-Identifier: Apache-2.0
"""check.py [--fix]: the rules that a compiler does not check. `./dev check` runs it.

Each rule counts as one; the last line is `N passed, N failed, N skipped`. --fix formats the sources
and writes the generated parts of the pages anew.
"""

import os
import pathlib
import re
import shutil
import subprocess
import sys

FIX = "--fix" in sys.argv[1:]
SOFT_LINES, HARD_LINES = 500, 1000

# The folders of src/ that a folder may include, beside itself. Tests, and headers for tests (they
# include googletest), may include anything: they judge their folder with the interpreter.
BASE, KERNEL, VIEW = {"base"}, {"base", "kernel"}, {"base", "kernel", "view"}
GRAPH = VIEW | {"onnx"}
CORE = VIEW | {"graph"}
SELECT = VIEW | {"core", "kernels", "graph"}
MAY_INCLUDE = {
    "base": set(),
    "kernel": BASE,
    "emit": KERNEL,
    "emit/spirv": KERNEL | {"emit"},
    "emit/ptx": KERNEL | {"emit"},
    "emit/interp": KERNEL | {"emit"},
    "view": KERNEL,
    "kernels": VIEW,
    "onnx": BASE,
    "graph": GRAPH,
    "core": CORE,
    "ops": GRAPH | {"graph", "core"},
    "select": SELECT,
    "runtime": BASE | {"runtime/null", "runtime/interp", "runtime/vulkan", "runtime/cuda"},
    "runtime/null": BASE | {"runtime"},
    "runtime/interp": BASE | {"runtime", "kernel", "emit", "emit/interp"},
    "runtime/vulkan": BASE | {"runtime"},
    "runtime/cuda": BASE | {"runtime"},
    "plan": SELECT | {"select", "runtime"},
    "cli": {"base"},
}
EVERYTHING = {"session"}  # stands on top
# Libraries that one folder alone knows.
OWNERS = {
    r"vulkan/": {"runtime/vulkan"},
    r"protozero/": {"onnx"},
    r"CLI/": {"cli"},
    r"cuda(\.h|_)": {"runtime/cuda"},
}
NO_NAMES = {"utils", "util", "common", "misc", "helpers"}

# Written in parts, so that this file does not hold them.
UNWANTED = [re.compile(p) for p in (
    r"\bpyp" r"i\.org", r"python" r"hosted\.org", r"deb\.deb" r"ian\.org", r"crates" r"\.io",
    r"(?<![\w.~$}])/wo" r"rk/", r"(?<![\w.])/ro" r"ot/", r"(?<![\w.])/ho" r"me/\w", r"/opt/whe" r"els",
    r"\bissues? ?#" r"?\d", r"\bissues sh" r"ow\b")]


class Failures(list):
    def add(self, where, text):
        self.append(f"{where}: {text}")


class Skip(Exception):
    pass


def run(*command, **options):
    return subprocess.run(command, text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                          **options)


def list_files():
    out = run("git", "-c", "safe.directory=*", "ls-files", "-co", "--exclude-standard")
    if out.returncode != 0:
        raise SystemExit(f"check: git cannot list the files ({out.stdout.strip()})")
    return sorted(p for line in out.stdout.splitlines() if (p := pathlib.Path(line)).is_file())


FILES = list_files()
CPP = [f for f in FILES if f.suffix in (".h", ".cpp") and f.parts[0] not in ("testdata",)]


def text_of(path):
    try:
        return path.read_text()
    except UnicodeDecodeError:
        return None  # a picture, weights


def check_format(bad):
    tool = shutil.which("clang-format-14")
    if tool is None:
        raise Skip("clang-format-14 is not installed")
    if FIX:
        run(tool, "-i", *map(str, CPP))
    for start in range(0, len(CPP), 100):
        out = run(tool, "--dry-run", "-Werror", *map(str, CPP[start:start + 100])).stdout
        for name in sorted(set(re.findall(r"^(\S+?):\d+:\d+: error:", out, re.M))):
            bad.add(name, "is not formatted; ./dev check --fix does it")


def folder_of(relative):
    """The longest folder of the table that holds a path below src/."""
    parts = relative.parent.parts
    for length in range(len(parts), 0, -1):
        name = "/".join(parts[:length])
        if name in MAY_INCLUDE or name in EVERYTHING:
            return name
    return None


def check_arrows(bad):
    for path in CPP:
        text = path.read_text()
        if path.parts[0] != "src" or path.stem.endswith("_test") or "#include <gtest/" in text:
            continue
        folder = folder_of(path.relative_to("src"))
        if folder is None:
            bad.add(path, "the folder is not in tools/check.py's table of includes")
            continue
        for number, line in enumerate(text.splitlines(), 1):
            found = re.match(r'\s*#\s*include\s*(["<])([^">]+)[">]', line)
            if not found:
                continue
            target = found[2]
            for pattern, owners in OWNERS.items():
                if re.match(pattern, target) and folder not in owners:
                    bad.add(f"{path}:{number}", f"{target} is known to {', '.join(owners)} alone")
            if found[1] == "<" or target.startswith("pumice/"):
                continue
            other = folder_of(pathlib.Path(target))
            if other is None or not (pathlib.Path("src") / target).exists():
                bad.add(f"{path}:{number}", f"{target} is no file below src/")
            elif other != folder and folder not in EVERYTHING and other not in MAY_INCLUDE[folder]:
                bad.add(f"{path}:{number}", f"{folder} must not include {other}")


def check_sizes(bad):
    allowed = {}
    for line in pathlib.Path("tools/size_exceptions.txt").read_text().splitlines():
        if line.strip() and not line.startswith("#"):
            name, _, reason = line.partition(" ")
            allowed[name] = reason
            if not reason or not pathlib.Path(name).exists():
                bad.add("tools/size_exceptions.txt", f"{name} is gone or has no reason")
    for path in FILES:
        if path.suffix not in (".h", ".cpp", ".py", ".sh", ".def") and path.name != "dev":
            continue
        lines = path.read_text().count("\n")
        if lines > HARD_LINES and str(path) not in allowed:
            bad.add(path, f"has {lines} lines, the limit is {HARD_LINES}")
        elif lines > SOFT_LINES:
            print(f"  note: {path} has {lines} lines (aim: under {SOFT_LINES})")


def check_names(bad):
    for path in FILES:
        if path.stem in NO_NAMES or path.stem.removesuffix("_test") in NO_NAMES:
            bad.add(path, "a file's name says what is in it")
        code = path.suffix in (".h", ".cpp", ".py", ".sh", ".def")
        if code and "SPDX-License-Identifier: Apache-2.0" not in (text_of(path) or "")[:200]:
            bad.add(path, "the first line must be the SPDX licence line")


def check_words(bad):
    for path in FILES:
        for number, line in enumerate((text_of(path) or "").splitlines(), 1):
            for pattern in UNWANTED:
                if found := pattern.search(line):
                    bad.add(f"{path}:{number}", f"the text {found[0]!r} must not stand in the repository")


def check_headers(bad):
    out = run("ninja", "-C", "build", "-k", "0", "pumice_headers")
    if out.returncode != 0:
        for line in out.stdout.splitlines():
            if "error:" in line:
                bad.append(line)
        if not bad:
            bad.append(out.stdout[-2000:])


GENERATED = re.compile(r"(<!-- generated by (\w+) -->\n)(.*?)(<!-- end of generated -->)", re.S)


def check_generated(bad):
    """A page holds `<!-- generated by PROGRAM -->` ... `<!-- end of generated -->`; what stands
    between is what build/PROGRAM prints."""
    for page in FILES:
        if page.suffix != ".md":
            continue
        text = page.read_text()

        def fresh(match):
            program = pathlib.Path("build") / match[2]
            if not program.exists():
                bad.add(page, f"{program} is not built")
                return match[0]
            out = subprocess.run([program], text=True, stdout=subprocess.PIPE, check=True).stdout
            return match[1] + out + match[4]

        new = GENERATED.sub(fresh, text)
        if new != text and FIX:
            page.write_text(new)
        elif new != text:
            bad.add(page, "a generated part is stale; ./dev check --fix writes it anew")


def check_shell(bad):
    if shutil.which("shellcheck") is None:
        raise Skip("shellcheck is not installed")
    scripts = [str(f) for f in FILES if (text_of(f) or "").startswith("#!/bin/bash")
               or f.suffix == ".sh"]
    out = run("shellcheck", "-f", "gcc", *scripts)
    bad.extend(line for line in out.stdout.splitlines() if line)


def check_python(bad):
    for path in FILES:
        if path.suffix == ".py":
            try:
                compile(path.read_text(), str(path), "exec")
            except SyntaxError as error:
                bad.add(path, str(error))


RULES = {
    "format": check_format,
    "include rules": check_arrows,
    "file sizes": check_sizes,
    "file names and licence lines": check_names,
    "unwanted words": check_words,
    "headers compile alone": check_headers,
    "generated pages": check_generated,
    "shell scripts": check_shell,
    "python scripts": check_python,
}


def main():
    passed = failed = skipped = 0
    for name, rule in RULES.items():
        bad = Failures()
        try:
            rule(bad)
        except Skip as reason:
            if os.environ.get("CI") != "true":
                print(f"skipped: {name}: {reason}")
                skipped += 1
                continue
            bad.append(f"skipped, which CI does not allow: {reason}")
        for text in bad:
            print(f"  {text}")
        print(f"{'FAILED' if bad else 'ok'}: {name}", flush=True)
        failed += bool(bad)
        passed += not bad
    print(f"{passed} passed, {failed} failed, {skipped} skipped")
    sys.exit(1 if failed else 0)


main()
