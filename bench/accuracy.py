#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""How close whole models come to float64, beside torch on the same GPU.

    accuracy.py --pumice BIN [--device DEVICE] [--seed N] FOLDER...

FOLDER holds a model of bench/zoo (model.onnx and its weights; weights.py makes them) and is named
after it: vit_b, resnet50, mobilenetv2. Prints for each engine the largest error of the outputs
against the largest output, and pumice's error against torch's. The reference is torchvision's model
in float64 with the graph's weights; where torch or the architecture is missing, tests/oracle.
Without a GPU torch runs on the CPU. Exit status 1 where an engine fails; it is named, and why.
"""
import argparse
import pathlib
import subprocess
import sys
import tempfile
import time

import numpy as np
import onnx
from onnx import numpy_helper

try:
    import torch
    from torchvision.models import mobilenet_v2, resnet50, vit_b_16
    ARCHITECTURES = {"vit_b": vit_b_16, "resnet50": resnet50, "mobilenetv2": mobilenet_v2}
except ImportError as error:
    print(f"no torch: {error}", file=sys.stderr)
    torch, ARCHITECTURES = None, {}


def run_pumice(options, model, x, precision):
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        np.save(folder / "x.npy", x)
        done = subprocess.run(
            [options.pumice, "run", model, "--device", options.device, "--precision", precision,
             "--input", f"{options.input}={folder / 'x.npy'}", "--output", folder / "out"],
            capture_output=True, text=True)
        if done.returncode != 0:
            raise RuntimeError(f"exit status {done.returncode}: {done.stderr.strip()}")
        (file,) = (folder / "out").glob("*.npy")
        return np.load(file)


def parameters(graph):
    """torchvision's names and what they hold, from a graph as export.py leaves it: normalisations
    folded into convolutions (NAME.weight_bias), products transposed and without a name, equal
    tensors stored once, zeros as biases left out."""
    held = {t.name: numpy_helper.to_array(t) for t in graph.initializer}
    found = {n.replace(".weight_bias", ".bias"): a for n, a in held.items()}
    found["class_token"] = held.get("expand")
    products = [held[n.input[1]].T for n in graph.node
                if n.op_type == "MatMul" and n.input[1] in held]
    names = ("self_attention.in_proj_weight", "mlp.0.weight", "mlp.3.weight")
    for i, product in enumerate(products):
        found[f"encoder.layers.encoder_layer_{i // 3}.{names[i % 3]}"] = product
    rows = [n for n in graph.node if n.op_type == "LayerNormalization"]
    for i, node in enumerate(rows):
        name = f"encoder.layers.encoder_layer_{i // 2}.ln_{i % 2 + 1}"
        name = "encoder.ln" if node is rows[-1] else name
        found[f"{name}.weight"], found[f"{name}.bias"] = (held[n] for n in node.input[1:3])
    return found


def rebuild(name, graph):
    """The architecture in float64 with the graph's weights; every weight must be found."""
    model = ARCHITECTURES[name]().double().eval()
    for path, part in list(model.named_modules()):
        if isinstance(part, torch.nn.BatchNorm2d):  # folded
            parent, _, own = path.rpartition(".")
            setattr(model.get_submodule(parent), own, torch.nn.Identity())
        elif isinstance(part, torch.nn.Conv2d) and part.bias is None:
            part.bias = torch.nn.Parameter(torch.zeros(part.out_channels, dtype=torch.float64))
    found = parameters(graph)
    with torch.no_grad():
        for path, parameter in model.named_parameters():
            value = found.get(path)
            if value is not None:
                parameter.copy_(torch.from_numpy(np.array(value)).reshape(parameter.shape))
            elif path.endswith("bias"):
                parameter.zero_()
            else:
                raise ValueError(f"the graph has no {path}")
    return model


def run_torch(model, x, dtype, device):
    with torch.no_grad():
        return model.to(device, dtype)(torch.from_numpy(x).to(device, dtype)).double().cpu().numpy()


def by_oracle(model, x, name):
    root = pathlib.Path(__file__).resolve().parent
    sys.path[:0] = [str(root.parent / "tests" / "oracle"), str(root / "oracle")]
    import oracle
    (y,) = oracle.run(onnx.load(model), {name: x}).values()
    return y


def judge(options, folder):
    file = folder / "model.onnx"
    graph = onnx.load(file).graph
    entry = graph.input[0]
    options.input = entry.name
    shape = [d.dim_value or 1 for d in entry.type.tensor_type.shape.dim]
    x = np.random.default_rng(options.seed).standard_normal(shape).astype(np.float32)
    begin = time.time()
    if folder.name in ARCHITECTURES:
        want, source = run_torch(rebuild(folder.name, graph), x, torch.float64, "cpu"), "torch"
    else:
        want, source = by_oracle(file, x, entry.name), "oracle"
    print(f"{folder.name}: float64 by {source} in {time.time() - begin:.1f} s, "
          f"largest output {np.abs(want).max():.4g}")
    engines = {f"pumice {p}": lambda p=p: run_pumice(options, file, x, p) for p in ("f32", "f16")}
    if source == "torch":
        device = "cuda" if torch.cuda.is_available() else "cpu"
        for name, dtype in (("f32", torch.float32), ("f16", torch.float16)):
            engines[f"torch {name}"] = lambda t=dtype: run_torch(
                rebuild(folder.name, graph), x, t, device)
    errors = {}
    for name, engine in engines.items():
        try:
            got = engine().reshape(want.shape)
            errors[name] = np.abs(got - want).max() / np.abs(want).max()
            print(f"  {name}: {errors[name]:.3e}")
        except Exception as error:  # the others are still wanted
            print(f"  {name}: failed: {error}")
    for p in ("f32", "f16"):
        if f"pumice {p}" in errors and f"torch {p}" in errors:
            print(f"  pumice {p} / torch {p}: {errors[f'pumice {p}'] / errors[f'torch {p}']:.2f}")
    return len(errors) == len(engines)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--pumice", required=True, help="the command")
    parser.add_argument("--device", default="vulkan", help="as `pumice run --device`")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("folders", nargs="+", type=pathlib.Path, metavar="FOLDER")
    options = parser.parse_args()
    if torch is not None:
        torch.backends.cuda.matmul.allow_tf32 = torch.backends.cudnn.allow_tf32 = False
    sys.exit(0 if all([judge(options, f.resolve()) for f in options.folders]) else 1)


if __name__ == "__main__":
    main()
