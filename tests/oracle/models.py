# SPDX-License-Identifier: Apache-2.0
"""Whole models through the command and through the oracle.

    models.py PUMICE [DEVICE]    (DEVICE: as `pumice run --device`, by default vulkan)

Runs a trained network (ppocr2-cls) on seeded inputs at f32, f16 and exact, in .npy files, and
compares each output with the float64 reference. Exit status 1 where an error is above its bound,
77 where the network or a Vulkan device is missing.
"""

import os
import pathlib
import subprocess
import sys
import tempfile

import numpy as np
import onnx

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
import oracle  # noqa: E402

SHAPE = (1, 3, 48, 192)
# The largest error allowed, against the largest number of the output.
BOUNDS = {"f32": 2e-6, "exact": 2e-6, "f16": 2e-2}


def skip(text):
    print(f"skipped: {text}")
    sys.exit(77)


def run(pumice, device, model, folder, precision):
    """The output of the command for the input in folder/x.npy."""
    out = folder / precision
    dims = [f"--dim=x.{a}={n}" for a, n in enumerate(SHAPE) if a != 1]
    subprocess.run([pumice, "run", model, "--device", device, *dims, "--precision", precision,
                    "--input", f"x={folder / 'x.npy'}", "--output", out], check=True)
    files = list(out.glob("*.npy"))
    assert len(files) == 1, files
    return np.load(files[0])


def main(pumice, device="vulkan"):
    model = pathlib.Path(os.environ.get("PUMICE_TEST_MODELS", "/nowhere")) / "ppocr2-cls.onnx"
    if not model.exists():
        skip("needs ppocr2-cls.onnx in PUMICE_TEST_MODELS (./dev path models)")
    doctor = subprocess.run([pumice, "doctor"], capture_output=True, text=True)
    if device == "vulkan" and doctor.returncode != 0:
        skip(doctor.stdout.strip().splitlines()[-1])
    failed = False
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        for seed in (1, 2):
            x = np.random.default_rng(seed).uniform(-1, 1, SHAPE).astype(np.float32)
            np.save(folder / "x.npy", x)
            (want,) = oracle.run(onnx.load(model), {"x": x}).values()
            for precision, bound in BOUNDS.items():
                got = run(pumice, device, model, folder, precision)
                if got.shape != want.shape:
                    sys.exit(f"shape {got.shape}, wanted {want.shape}")
                error = np.max(np.abs(got - want)) / np.max(np.abs(want))
                good = error <= bound  # false for NaN
                failed |= not good
                print(f"ppocr2-cls, seed {seed}, {precision}: error {error:.2e}"
                      + ("" if good else f", above {bound:.0e}"))
    sys.exit(1 if failed else 0)


if __name__ == "__main__":
    main(*sys.argv[1:])
