#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The reference for whole models: an ONNX graph turned to float64 and run by onnx.reference.

    oracle.py MODEL INPUTS.npz OUTPUTS.npz [--only NAME...]

Float initializers, constants, casts, value types and inputs become float64, in subgraphs and
functions too, so that the answer has no rounding of float32 in it; integers stay as they are.
Operators that onnx.reference computes wrongly are replaced (operators.py). Needs numpy and onnx.
"""

import argparse
import sys

import numpy as np
import onnx
from onnx import AttributeProto, TensorProto, numpy_helper
from onnx.reference import ReferenceEvaluator

sys.path.insert(0, str(__import__("pathlib").Path(__file__).resolve().parent))
import operators  # noqa: E402

FLOATS = (TensorProto.FLOAT, TensorProto.FLOAT16, TensorProto.BFLOAT16)
# Attributes that name an element type, by operator.
TYPE_ATTRIBUTES = {"Cast": "to", "EyeLike": "dtype", "Range": "stash_type"}


def widen_tensor(tensor):
    if tensor.data_type in FLOATS:
        wide = numpy_helper.from_array(
            numpy_helper.to_array(tensor).astype(np.float64), tensor.name)
        tensor.CopyFrom(wide)


def widen_type(value_type):
    kind = value_type.WhichOneof("value")
    if kind in ("tensor_type", "sparse_tensor_type"):
        tensor = getattr(value_type, kind)
        if tensor.elem_type in FLOATS:
            tensor.elem_type = TensorProto.DOUBLE
    elif kind in ("sequence_type", "optional_type"):
        widen_type(getattr(value_type, kind).elem_type)
    elif kind == "map_type":
        widen_type(value_type.map_type.value_type)


def widen_constant(node):
    """value_float(s) stand for float32 tensors; a tensor says its type itself."""
    for a in node.attribute:
        if a.name == "value_float":
            value = np.array(a.f, np.float64)
        elif a.name == "value_floats":
            value = np.array(a.floats, np.float64)
        else:
            continue
        a.Clear()
        a.name, a.type = "value", AttributeProto.TENSOR
        a.t.CopyFrom(numpy_helper.from_array(value))


def widen_node(node):
    if node.op_type == "Constant":
        widen_constant(node)
    if node.op_type == "ConstantOfShape" and not node.attribute:
        node.attribute.add(name="value", type=AttributeProto.TENSOR,
                           t=numpy_helper.from_array(np.zeros(1, np.float64)))
    for a in node.attribute:
        if a.name == TYPE_ATTRIBUTES.get(node.op_type) and a.i in FLOATS:
            a.i = TensorProto.DOUBLE
        widen_tensor(a.t)
        for t in a.tensors:
            widen_tensor(t)
        if a.type == AttributeProto.GRAPH:
            widen_graph(a.g)
        for g in a.graphs:
            widen_graph(g)


def widen_graph(graph):
    for tensor in graph.initializer:
        widen_tensor(tensor)
    for info in [*graph.input, *graph.output, *graph.value_info]:
        widen_type(info.type)
    for node in graph.node:
        widen_node(node)


def to_float64(model):
    """A copy of the model in which every float tensor is float64."""
    wide = onnx.ModelProto()
    wide.CopyFrom(model)
    widen_graph(wide.graph)
    for function in wide.functions:
        for node in function.node:
            widen_node(node)
    return wide


def widen_array(array):
    array = np.asarray(array)
    # ml_dtypes' bfloat16 is of kind V.
    is_float = array.dtype.kind == "f" or array.dtype.name == "bfloat16"
    return array.astype(np.float64) if is_float else array


def run(model, inputs, only=None):
    """Runs an onnx.ModelProto (weights loaded) in float64; returns {output name: array}.

    `inputs`: {name: array}; float arrays are widened. `only`: names of the outputs, or of values
    inside the graph, that are wanted; without it the graph's outputs.
    Raises ValueError for inputs that do not fit, and for an operator that computed in less than
    float64 all the same (it then needs a class in operators.py).
    """
    initialized = {t.name for t in model.graph.initializer}
    wanted = [i.name for i in model.graph.input if i.name not in initialized]
    missing = [n for n in wanted if n not in inputs]
    known = {i.name for i in model.graph.input}
    if missing or not set(inputs) <= known:
        raise ValueError(f"the model's inputs are {wanted}, but the data has {list(inputs)}")
    opset = max([o.version for o in model.opset_import if o.domain in ("", "ai.onnx")], default=1)
    evaluator = ReferenceEvaluator(to_float64(model), new_ops=operators.for_opset(opset))
    feeds = {name: widen_array(array) for name, array in inputs.items()}
    with np.errstate(all="ignore"):
        results = evaluator.run(None, feeds, intermediate=True)
    for node in model.graph.node:
        for name in node.output:
            dtype = getattr(results.get(name), "dtype", None)
            if dtype is not None and dtype.kind == "f" and dtype != np.float64:
                raise ValueError(f"{node.op_type} computed {name!r} in {dtype}, not in float64")
    names = only or [o.name for o in model.graph.output]
    unknown = [n for n in names if n not in results]
    if unknown:
        raise ValueError(f"the graph has no values {unknown}")
    return {name: results[name] for name in names}


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("model", help="an ONNX file, its external data beside it")
    parser.add_argument("inputs", help="a .npz with an array for each input")
    parser.add_argument("outputs", help="the .npz to write")
    parser.add_argument("--only", nargs="+", metavar="NAME", help="values wanted")
    options = parser.parse_args()
    with np.load(options.inputs) as inputs:
        outputs = run(onnx.load(options.model), dict(inputs), options.only)
    np.savez(options.outputs, **outputs)


if __name__ == "__main__":
    main()
