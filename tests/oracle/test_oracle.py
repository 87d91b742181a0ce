# SPDX-License-Identifier: Apache-2.0
"""The way to float64: every place where a float32 can hide, and what is said when one stays."""

import pathlib
import subprocess
import sys
import tempfile
import unittest

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE))
import oracle  # noqa: E402

FLOAT = TensorProto.FLOAT


def value(name, shape=None, dtype=FLOAT):
    return helper.make_tensor_value_info(name, dtype, shape)


def model_of(nodes, inputs=("x",), outputs=("y",), initializers=(), opset=18, functions=()):
    graph = helper.make_graph(nodes, "g", [value(n) for n in inputs], [value(n) for n in outputs],
                              [numpy_helper.from_array(a, n) for n, a in initializers])
    imports = [helper.make_opsetid("", opset), helper.make_opsetid("local", 1)]
    return helper.make_model(graph, opset_imports=imports, functions=functions)


THIRD = np.float32(1) / np.float32(3)  # a float32; its square is none


class TestFloat64(unittest.TestCase):
    def check(self, model, want, x=THIRD):
        got = oracle.run(model, {"x": np.float32(x)})["y"]
        self.assertEqual(got.dtype, np.float64)
        np.testing.assert_allclose(got, want, rtol=1e-15)

    def test_initializer(self):
        square = np.float64(THIRD) ** 2
        self.assertNotEqual(square, np.float64(THIRD * THIRD))
        self.check(model_of([helper.make_node("Mul", ["x", "w"], ["y"])],
                            initializers=[("w", THIRD)]), square)

    def test_f16_and_bf16(self):
        w = np.float16(0.1)
        self.check(model_of([helper.make_node("Cast", ["w"], ["v"], to=FLOAT),
                             helper.make_node("Mul", ["x", "v"], ["y"])],
                            initializers=[("w", w)]), np.float64(w) * np.float64(THIRD))
        model = model_of([helper.make_node("Mul", ["x", "w"], ["y"])])
        model.graph.initializer.append(helper.make_tensor("w", TensorProto.BFLOAT16, [], [1.5]))
        self.check(model, 1.5 * np.float64(THIRD))

    def test_constants(self):
        for attributes in ({"value": numpy_helper.from_array(THIRD)}, {"value_float": THIRD},
                           {"value_floats": [THIRD]}):
            self.check(model_of([helper.make_node("Constant", [], ["w"], **attributes),
                                 helper.make_node("Mul", ["x", "w"], ["y"])]),
                       np.float64(THIRD) ** 2)

    def test_integers_stay(self):
        model = model_of([helper.make_node("Constant", [], ["k"], value_ints=[3]),
                          helper.make_node("Cast", ["k"], ["w"], to=FLOAT),
                          helper.make_node("Mul", ["x", "w"], ["y"])])
        self.check(model, 3 * np.float64(THIRD))

    def test_casts_do_not_round(self):
        self.check(model_of([helper.make_node("Mul", ["x", "x"], ["s"]),
                             helper.make_node("Cast", ["s"], ["h"], to=TensorProto.FLOAT16),
                             helper.make_node("Cast", ["h"], ["y"], to=FLOAT)]),
                   np.float64(THIRD) ** 2)
        # To integers and back they do what they say.
        self.check(model_of([helper.make_node("Cast", ["x"], ["i"], to=TensorProto.INT64),
                             helper.make_node("Cast", ["i"], ["y"], to=FLOAT)]), 2, x=2.75)

    def test_constant_of_shape(self):
        for attributes in ({}, {"value": numpy_helper.from_array(np.float32([0]))}):
            self.check(model_of([helper.make_node("Constant", [], ["n"], value_ints=[1]),
                                 helper.make_node("ConstantOfShape", ["n"], ["w"], **attributes),
                                 helper.make_node("Add", ["w", "x"], ["y"])]), np.float64(THIRD))

    def test_subgraphs(self):
        then = helper.make_graph([helper.make_node("Mul", ["x", "w"], ["t"])], "then", [],
                                 [value("t")], [numpy_helper.from_array(THIRD, "w")])
        other = helper.make_graph([helper.make_node("Constant", [], ["e"], value_float=1.0)],
                                  "else", [], [value("e")])
        model = model_of([helper.make_node("Constant", [], ["z"], value_float=0.0),
                          helper.make_node("Greater", ["x", "z"], ["c"]),
                          helper.make_node("If", ["c"], ["y"], then_branch=then,
                                           else_branch=other)])
        self.check(model, np.float64(THIRD) ** 2)
        self.check(model, 1, x=-1)

    def test_functions(self):
        function = helper.make_function(
            "local", "Scaled", ["a"], ["b"],
            [helper.make_node("Constant", [], ["w"], value_float=THIRD),
             helper.make_node("Mul", ["a", "w"], ["b"])], [helper.make_opsetid("", 18)])
        self.check(model_of([helper.make_node("Scaled", ["x"], ["y"], domain="local")],
                            functions=[function]), np.float64(THIRD) ** 2)

    def test_value_types(self):
        wide = oracle.to_float64(model_of([helper.make_node("Abs", ["x"], ["y"])]))
        self.assertEqual(wide.graph.output[0].type.tensor_type.elem_type, TensorProto.DOUBLE)
        sequence = helper.make_sequence_type_proto(helper.make_tensor_type_proto(FLOAT, None))
        oracle.widen_type(sequence)
        self.assertEqual(sequence.sequence_type.elem_type.tensor_type.elem_type,
                         TensorProto.DOUBLE)

    def test_the_model_given_is_left_alone(self):
        model = model_of([helper.make_node("Mul", ["x", "w"], ["y"])], initializers=[("w", THIRD)])
        before = model.SerializeToString()
        oracle.run(model, {"x": THIRD})
        self.assertEqual(model.SerializeToString(), before)

    def test_less_than_float64_is_an_error(self):
        model = model_of([helper.make_node("RandomUniform", [], ["y"], shape=[1])])
        with self.assertRaisesRegex(ValueError, "RandomUniform computed 'y' in float32"):
            oracle.run(model, {"x": THIRD})

    def test_wrong_names(self):
        model = model_of([helper.make_node("Abs", ["x"], ["y"])])
        with self.assertRaisesRegex(ValueError, r"inputs are \['x'\], but the data has \['z'\]"):
            oracle.run(model, {"z": THIRD})
        with self.assertRaisesRegex(ValueError, r"no values \['q'\]"):
            oracle.run(model, {"x": THIRD}, ["q"])

    def test_softmax_goes_by_the_models_opset(self):
        x = np.arange(6, dtype=np.float32).reshape(1, 2, 3)
        for opset, axes in ((11, (1, 2)), (13, 2)):
            model = model_of([helper.make_node("Softmax", ["x"], ["y"])], opset=opset)
            sums = oracle.run(model, {"x": x})["y"].sum(axis=axes)
            np.testing.assert_allclose(sums, np.ones_like(sums), rtol=1e-12)

    def test_command_line(self):
        with tempfile.TemporaryDirectory() as name:
            folder = pathlib.Path(name)
            onnx.save(model_of([helper.make_node("Mul", ["x", "x"], ["s"]),
                                helper.make_node("Neg", ["s"], ["y"])]), folder / "m.onnx")
            np.savez(folder / "in.npz", x=THIRD)
            subprocess.run([sys.executable, HERE / "oracle.py", folder / "m.onnx",
                            folder / "in.npz", folder / "out.npz", "--only", "s", "y"], check=True)
            with np.load(folder / "out.npz") as out:
                self.assertEqual(sorted(out), ["s", "y"])
                self.assertEqual(out["y"], -np.float64(THIRD) ** 2)


if __name__ == "__main__":
    unittest.main()
