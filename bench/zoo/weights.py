#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Makes the weights of a graph whose large tensors are external data that is not there.

    weights.py FOLDER [--seed N]      FOLDER holds model.onnx; writes the files that it names

The numbers depend on name, shape and seed alone, so they are the same on every machine. Matrices and
filters are normal with deviation sqrt(2 / fan-in) (He et al. 2015), so that activations keep their
size; vectors that scale (names or shapes like a normalisation's) are near 1, biases near 0, and
running variances positive. The models compute, but their answers mean nothing.
"""
import argparse
import hashlib
import math
import pathlib

import numpy as np
import onnx


def values(name: str, shape: list[int], seed: int) -> np.ndarray:
    digest = hashlib.sha256(f"{seed} {name} {shape}".encode()).digest()
    rng = np.random.Generator(np.random.PCG64(int.from_bytes(digest[:8], "little")))
    count = math.prod(shape)
    normal = rng.standard_normal(count, dtype=np.float32).reshape(shape)
    lower = name.lower()
    if len(shape) >= 2:
        # Conv filters are [out, in, ...]; products with a constant right side are [in, out].
        fan_in = math.prod(shape[1:]) if len(shape) > 2 else shape[0]
        return normal * np.float32(math.sqrt(2 / fan_in))
    if "var" in lower:
        return np.abs(normal) * np.float32(0.1) + 1
    if "bias" in lower or "mean" in lower:
        return normal * np.float32(0.02)
    return normal * np.float32(0.02) + 1


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("folder", type=pathlib.Path)
    parser.add_argument("--seed", type=int, default=1)
    arguments = parser.parse_args()
    model = onnx.load(arguments.folder / "model.onnx", load_external_data=False)
    files: dict[str, bytearray] = {}
    for tensor in model.graph.initializer:
        if tensor.data_location != onnx.TensorProto.EXTERNAL:
            continue
        place = {e.key: e.value for e in tensor.external_data}
        offset, length = int(place.get("offset", 0)), int(place["length"])
        dtype = onnx.helper.tensor_dtype_to_np_dtype(tensor.data_type)
        numbers = values(tensor.name, list(tensor.dims), arguments.seed).astype(dtype).tobytes()
        if len(numbers) != length:
            raise SystemExit(f"{tensor.name}: {length} bytes in the file, {len(numbers)} by shape")
        content = files.setdefault(place["location"], bytearray())
        if len(content) < offset + length:
            content.extend(bytes(offset + length - len(content)))
        content[offset : offset + length] = numbers
    for location, content in files.items():
        (arguments.folder / location).write_bytes(content)
        print(f"{location}: {len(content) / 1e6:.1f} MB")


if __name__ == "__main__":
    main()
