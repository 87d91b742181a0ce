#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Exports the zoo's architectures with torch: export.py FOLDER NAME...

Needs torch, torchvision and onnxscript. Writes FOLDER/NAME/model.onnx with its large tensors in
weights.bin beside it. graphs/ holds such graphs without weights.bin (weights.py makes one).
"""
import pathlib
import sys

import torch
import torchvision

MODELS = {
    "mobilenetv2": torchvision.models.mobilenet_v2,
    "resnet50": torchvision.models.resnet50,
    "vit_b": torchvision.models.vit_b_16,
}


def settled(model: torch.nn.Module) -> torch.nn.Module:
    """BatchNormalization's statistics from random pictures, so that values keep their size."""
    for part in model.modules():
        if isinstance(part, torch.nn.BatchNorm2d):
            part.momentum = None
    model.train()
    with torch.no_grad():
        for _ in range(2):
            model(torch.randn(4, 3, 224, 224))
    return model.eval()


def main() -> None:
    folder, names = pathlib.Path(sys.argv[1]), sys.argv[2:]
    for name in names:
        torch.manual_seed(0)
        model = settled(MODELS[name]())
        if name == "vit_b":  # zeros as built: all logits would be 0
            torch.nn.init.normal_(model.heads.head.weight, std=0.02)
        target = folder / name
        target.mkdir(parents=True, exist_ok=True)
        torch.onnx.export(
            model,
            (torch.randn(1, 3, 224, 224),),
            str(target / "model.onnx"),
            input_names=["input"],
            output_names=["logits"],
            opset_version=18,
            dynamo=True,
            external_data=True,
        )
        print(name, "exported")


if __name__ == "__main__":
    main()
