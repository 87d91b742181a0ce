# SPDX-License-Identifier: Apache-2.0
"""Each operator of operators.py against plain loops over its definition."""

import itertools
import math
import pathlib
import sys
import unittest

import numpy as np
from onnx import TensorProto, helper
from onnx.reference import ReferenceEvaluator

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
import operators  # noqa: E402


def evaluate(op_type, inputs, opset=18, outputs=1, **attributes):
    """Runs one node through ReferenceEvaluator with our classes."""
    names = [f"x{i}" for i in range(len(inputs))]
    results = [f"y{i}" for i in range(outputs)]
    graph = helper.make_graph(
        [helper.make_node(op_type, names, results, **attributes)], "g",
        [helper.make_tensor_value_info(n, TensorProto.DOUBLE, None) for n in names],
        [helper.make_tensor_value_info(r, TensorProto.DOUBLE, None) for r in results])
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)])
    values = ReferenceEvaluator(model, new_ops=operators.for_opset(opset)).run(
        None, dict(zip(names, inputs)))
    return values[0] if outputs == 1 else values


def data(*shape, seed=0):
    return np.random.default_rng(seed).standard_normal(shape)


def cells(shape):
    return itertools.product(*map(range, shape))


def loop_conv(x, w, b, strides, dilations, begins, outs, group):
    """y[n, m, o] = b[m] + sum over c, k of w[m, c, k] * x[n, group's c, o * s + k * d - p]."""
    y = np.zeros((x.shape[0], w.shape[0], *outs))
    per_m, per_c = w.shape[0] // group, w.shape[1]
    for n, m, *o in cells(y.shape):
        total = b[m]
        for c, *k in cells(w.shape[1:]):
            at = [i * s + j * d - p for i, s, j, d, p in zip(o, strides, k, dilations, begins)]
            if all(0 <= i < size for i, size in zip(at, x.shape[2:])):
                total += w[(m, c, *k)] * x[(n, m // per_m * per_c + c, *at)]
        y[(n, m, *o)] = total
    return y


def loop_pool(x, kernel, strides, dilations, begins, outs, reduce):
    """`reduce` gets the values of a window that lie in the input, and the window's places."""
    y = np.zeros((*x.shape[:2], *outs))
    for n, c, *o in cells(y.shape):
        places = [[i * s + j * d - p for i, s, j, d, p in zip(o, strides, k, dilations, begins)]
                  for k in cells(kernel)]
        inside = [x[(n, c, *at)] for at in places
                  if all(0 <= i < size for i, size in zip(at, x.shape[2:]))]
        y[(n, c, *o)] = reduce(inside, places)
    return y


class TestConv(unittest.TestCase):
    def check(self, x, w, strides, dilations, begins, outs, group, **attributes):
        b = data(w.shape[0], seed=9)
        got = evaluate("Conv", [x, w, b], strides=strides, dilations=dilations, group=group,
                       **attributes)
        want = loop_conv(x, w, b, strides, dilations, begins, outs, group)
        self.assertEqual(got.shape, want.shape)
        np.testing.assert_allclose(got, want, rtol=1e-12, atol=1e-12)

    def test_two_dimensions(self):
        self.check(data(2, 3, 7, 6), data(4, 3, 3, 2), [2, 1], [1, 2], [1, 0], [4, 5], 1,
                   pads=[1, 0, 1, 1])

    def test_groups(self):
        self.check(data(1, 4, 5, 5), data(6, 2, 3, 3), [1, 1], [1, 1], [1, 1], [5, 5], 2,
                   pads=[1, 1, 1, 1])

    def test_depthwise(self):
        self.check(data(2, 3, 6, 5), data(3, 1, 3, 3), [2, 2], [1, 1], [1, 1], [3, 3], 3,
                   pads=[1, 1, 1, 1])
        self.check(data(1, 2, 6, 5), data(6, 1, 3, 2), [1, 1], [1, 1], [0, 0], [4, 4], 2)

    def test_one_and_three_dimensions(self):
        self.check(data(1, 2, 9), data(3, 2, 4), [2], [1], [0], [3], 1)
        self.check(data(1, 2, 4, 3, 5), data(2, 2, 2, 3, 2), [1, 1, 2], [1, 1, 1], [0, 1, 0],
                   [3, 3, 2], 1, pads=[0, 1, 0, 0, 1, 0])

    def test_same(self):
        # 6 wide, stride 2, kernel 3: one pad in all, at the end for UPPER.
        self.check(data(1, 2, 6), data(2, 2, 3), [2], [1], [0], [3], 1, auto_pad="SAME_UPPER")
        self.check(data(1, 2, 6), data(2, 2, 3), [2], [1], [1], [3], 1, auto_pad="SAME_LOWER")
        self.check(data(1, 2, 6), data(2, 2, 3), [2], [1], [0], [2], 1, auto_pad="VALID")


class TestConvTranspose(unittest.TestCase):
    def check(self, x, w, strides, dilations, begins, outs, group, **attributes):
        m = w.shape[1] * group
        b = data(m, seed=9)
        want = np.zeros((x.shape[0], m, *outs)) + b.reshape((-1,) + (1,) * len(outs))
        per_c = x.shape[1] // group
        for n, c, *i in cells(x.shape):
            for j, *k in cells(w.shape[1:]):
                at = [a * s + q * d - p for a, s, q, d, p in zip(i, strides, k, dilations, begins)]
                if all(0 <= a < size for a, size in zip(at, outs)):
                    want[(n, c // per_c * w.shape[1] + j, *at)] += x[(n, c, *i)] * w[(c, j, *k)]
        got = evaluate("ConvTranspose", [x, w, b], strides=strides, dilations=dilations,
                       group=group, **attributes)
        self.assertEqual(got.shape, want.shape)
        np.testing.assert_allclose(got, want, rtol=1e-12, atol=1e-12)

    def test_plain(self):
        self.check(data(2, 3, 4, 3), data(3, 2, 3, 2), [2, 1], [1, 2], [1, 0], [8, 5], 1,
                   pads=[1, 0, 0, 0])

    def test_groups(self):
        self.check(data(1, 4, 3, 3), data(4, 2, 3, 3), [2, 2], [1, 1], [1, 1], [6, 6], 2,
                   pads=[1, 1, 1, 1], output_padding=[1, 1])

    def test_same_and_output_shape(self):
        # Full size 7, wanted 6: one place is cut, at the end for UPPER, else at the beginning.
        self.check(data(1, 1, 3), data(1, 1, 3), [2], [1], [0], [6], 1, auto_pad="SAME_UPPER")
        self.check(data(1, 1, 3), data(1, 1, 3), [2], [1], [1], [6], 1, auto_pad="SAME_LOWER")
        self.check(data(1, 1, 3), data(1, 1, 3), [2], [1], [1], [6], 1, output_shape=[6])


class TestPools(unittest.TestCase):
    def test_max_with_uneven_pads(self):
        x = data(2, 3, 6, 5) - 5  # negative: a pad of zeros would win
        got = evaluate("MaxPool", [x], kernel_shape=[3, 2], strides=[2, 2], pads=[0, 0, 2, 1])
        want = loop_pool(x, [3, 2], [2, 2], [1, 1], [0, 0], [3, 3], lambda v, _: max(v))
        np.testing.assert_array_equal(got, want)

    def test_max_dilated_and_ceil(self):
        x = data(1, 2, 8)
        got = evaluate("MaxPool", [x], kernel_shape=[2], strides=[3], dilations=[3], ceil_mode=1)
        # ceil((8 - 4) / 3) + 1 = 3; the third window begins at 6 and reaches beyond the end.
        want = loop_pool(x, [2], [3], [3], [0], [3], lambda v, _: max(v))
        np.testing.assert_array_equal(got, want)

    def test_max_ceil_drops_a_window_beyond_the_input(self):
        x = data(1, 1, 4)
        got = evaluate("MaxPool", [x], kernel_shape=[1], strides=[3], pads=[0, 1], ceil_mode=1)
        self.assertEqual(got.shape, (1, 1, 2))

    def test_max_of_int8_and_same(self):
        x = np.arange(-60, -40, dtype=np.int8).reshape(1, 1, 4, 5)
        got = evaluate("MaxPool", [x], kernel_shape=[3, 3], auto_pad="SAME_LOWER")
        self.assertEqual(got.dtype, np.int8)
        want = loop_pool(x, [3, 3], [1, 1], [1, 1], [1, 1], [4, 5], lambda v, _: max(v))
        np.testing.assert_array_equal(got, want)

    def test_max_refuses_indices(self):
        with self.assertRaises(NotImplementedError):
            evaluate("MaxPool", [data(1, 1, 4)], outputs=2, kernel_shape=[2])

    def test_average_same(self):
        x = data(1, 2, 5, 4)
        for auto_pad, begins in (("SAME_UPPER", [0, 0]), ("SAME_LOWER", [0, 1])):
            got = evaluate("AveragePool", [x], kernel_shape=[3, 3], strides=[2, 2],
                           auto_pad=auto_pad)
            # 5 rows: two pads, one each side; 4 columns: one pad.
            want = loop_pool(x, [3, 3], [2, 2], [1, 1], [1, begins[1]], [3, 2],
                             lambda v, _: sum(v) / len(v))
            np.testing.assert_allclose(got, want, rtol=1e-12)

    def test_average_counts_pads_but_not_the_extra_of_ceil(self):
        x = data(1, 1, 6)
        got = evaluate("AveragePool", [x], kernel_shape=[3], strides=[3], pads=[1, 0],
                       count_include_pad=1, ceil_mode=1)
        # Places -1 .. 5 exist with the pad: windows (-1 0 1), (2 3 4), (5 6 7).
        want = loop_pool(x, [3], [3], [1], [1], [3],
                         lambda v, at: sum(v) / sum(-1 <= a[0] < 6 for a in at))
        np.testing.assert_allclose(got, want, rtol=1e-12)

    def test_global_max(self):
        x = data(2, 3, 7)
        got = evaluate("GlobalMaxPool", [x])
        self.assertEqual(got.shape, (2, 3, 1))
        self.assertEqual(got[1, 2, 0], max(x[1, 2]))


class TestNormalisations(unittest.TestCase):
    def test_batch(self):
        x, scale, bias, mean = data(2, 3, 2, 2), data(3), data(3, seed=1), data(3, seed=2)
        variance = np.abs(data(3, seed=3))
        for opset in (7, 9, 15):
            got = evaluate("BatchNormalization", [x, scale, bias, mean, variance], opset=opset,
                           epsilon=0.25)
            for n, c, *i in cells(x.shape):
                want = (x[(n, c, *i)] - mean[c]) / math.sqrt(variance[c] + 0.25) * scale[c]
                self.assertAlmostEqual(got[(n, c, *i)], want + bias[c], places=12)
        with self.assertRaises(NotImplementedError):
            evaluate("BatchNormalization", [x, scale, bias, mean, variance], training_mode=1)

    def test_layer(self):
        x, scale, bias = data(2, 3, 4), data(3, 4, seed=1), data(3, 4, seed=2)
        y, mean, inverse = evaluate("LayerNormalization", [x, scale, bias], outputs=3, axis=1,
                                    epsilon=0.5)
        for n in range(2):
            row = [x[n, i, j] for i, j in cells((3, 4))]
            m = sum(row) / 12
            v = sum((e - m) ** 2 for e in row) / 12
            self.assertAlmostEqual(mean[n, 0, 0], m, places=12)
            self.assertAlmostEqual(inverse[n, 0, 0], 1 / math.sqrt(v + 0.5), places=12)
            for i, j in cells((3, 4)):
                want = (x[n, i, j] - m) / math.sqrt(v + 0.5) * scale[i, j] + bias[i, j]
                self.assertAlmostEqual(y[n, i, j], want, places=12)

    def test_layer_is_double_whatever_stash_type_says(self):
        x = 1e4 + 1e-2 * data(1, 64)
        got = evaluate("LayerNormalization", [x, np.ones(64)], stash_type=1, epsilon=0.0)
        self.assertAlmostEqual(float(np.std(got)), 1, places=9)

    def test_softmax_before_13(self):
        x = data(2, 3, 4)
        for axis, rows in ((None, 2), (1, 2), (2, 6), (-1, 6), (0, 1)):
            attributes = {} if axis is None else {"axis": axis}
            got = evaluate("Softmax", [x], opset=11, **attributes).reshape(rows, -1)
            logs = evaluate("LogSoftmax", [x], opset=11, **attributes).reshape(rows, -1)
            flat = x.reshape(rows, -1)
            for r in range(rows):
                total = sum(math.exp(v) for v in flat[r])
                for i, v in enumerate(flat[r]):
                    self.assertAlmostEqual(got[r, i], math.exp(v) / total, places=12)
                    self.assertAlmostEqual(logs[r, i], v - math.log(total), places=12)

    def test_softmax_from_13_on_is_over_one_axis(self):
        x = data(2, 3, 4)
        np.testing.assert_allclose(evaluate("Softmax", [x], axis=1).sum(axis=1), np.ones((2, 4)))


if __name__ == "__main__":
    unittest.main()
