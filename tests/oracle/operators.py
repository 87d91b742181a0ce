# SPDX-License-Identifier: Apache-2.0
"""Operators in float64 that onnx.reference computes wrongly, in float32, or too slowly.

Each stands here with what is wrong with the original. They are written from the operators'
definitions with numpy alone, any rank, any dtype; test_operators.py checks each against plain
loops. `for_opset` gives the list for ReferenceEvaluator(new_ops=...).
"""

import itertools
import math

import numpy as np
from onnx.reference.op_run import OpRun


def f32(value):
    """A default of the standard, as the float32 that an attribute would hold."""
    return float(np.float32(value))


def per_axis(values, rank, default):
    return [default] * rank if values is None else [int(v) for v in values]


def pads_of(auto_pad, pads, sizes, effective, strides):
    """Begin and end pads of each axis. `effective`: extent of the dilated kernel."""
    rank = len(sizes)
    if auto_pad in (None, "", "NOTSET"):
        flat = per_axis(pads, 2 * rank, 0)
        return flat[:rank], flat[rank:]
    if auto_pad == "VALID":
        return [0] * rank, [0] * rank
    begins, ends = [], []
    for size, extent, stride in zip(sizes, effective, strides):
        total = max((math.ceil(size / stride) - 1) * stride + extent - size, 0)
        small, large = total // 2, total - total // 2
        begins.append(small if auto_pad == "SAME_UPPER" else large)
        ends.append(large if auto_pad == "SAME_UPPER" else small)
    return begins, ends


def windows(x, kernel, strides, dilations, outs):
    """A view [N, C, *outs, *kernel] of x[N, C, *padded], which must be large enough."""
    space = x.strides[2:]
    return np.lib.stride_tricks.as_strided(
        x,
        (*x.shape[:2], *outs, *kernel),
        (*x.strides[:2], *(s * t for s, t in zip(space, strides)),
         *(s * d for s, d in zip(space, dilations))),
        writeable=False)


class Pooling:
    """Geometry that MaxPool and AveragePool share: an output size, and x padded to serve it."""

    def __init__(self, x, kernel, strides, dilations, pads, auto_pad, ceil_mode):
        rank = len(kernel)
        self.kernel = [int(k) for k in kernel]
        self.strides = per_axis(strides, rank, 1)
        self.dilations = per_axis(dilations, rank, 1)
        extents = [(k - 1) * d + 1 for k, d in zip(self.kernel, self.dilations)]
        sizes = x.shape[2:]
        self.begins, self.ends = pads_of(auto_pad, pads, sizes, extents, self.strides)
        self.outs, self.extra = [], []
        for i in range(rank):
            padded = sizes[i] + self.begins[i] + self.ends[i]
            steps = (padded - extents[i]) / self.strides[i]
            out = (math.ceil(steps) if ceil_mode else math.floor(steps)) + 1
            # A window that would begin beyond the input and its first pad is dropped.
            if ceil_mode and (out - 1) * self.strides[i] >= sizes[i] + self.begins[i]:
                out -= 1
            self.outs.append(out)
            self.extra.append(max((out - 1) * self.strides[i] + extents[i] - padded, 0))

    def view(self, x, pad_value, extra_value):
        around = [(0, 0), (0, 0)]
        x = np.pad(x, around + list(zip(self.begins, self.ends)), constant_values=pad_value)
        x = np.pad(x, around + [(0, e) for e in self.extra], constant_values=extra_value)
        return windows(x, self.kernel, self.strides, self.dilations, self.outs)

    def axes(self):
        return tuple(range(-len(self.kernel), 0))


class Conv(OpRun):
    """The original is too slow for whole models."""

    def _run(self, x, w, b=None, auto_pad=None, dilations=None, group=None, kernel_shape=None,
             pads=None, strides=None):
        group = 1 if group is None else int(group)
        kernel, rank = w.shape[2:], w.ndim - 2
        strides = per_axis(strides, rank, 1)
        dilations = per_axis(dilations, rank, 1)
        extents = [(k - 1) * d + 1 for k, d in zip(kernel, dilations)]
        begins, ends = pads_of(auto_pad, pads, x.shape[2:], extents, strides)
        outs = [(s + p + q - e) // t + 1
                for s, p, q, e, t in zip(x.shape[2:], begins, ends, extents, strides)]
        x = np.pad(x, [(0, 0), (0, 0), *zip(begins, ends)])
        view = windows(x, kernel, strides, dilations, outs)
        n, m, per_group = x.shape[0], w.shape[0], w.shape[1]
        if per_group == 1:  # depthwise: a sum over the taps
            repeat = m // group
            y = np.zeros((n, m, *outs), x.dtype)
            for tap in itertools.product(*map(range, kernel)):
                column = w[(slice(None), 0, *tap)].reshape((m,) + (1,) * rank)
                y += column * np.repeat(view[(..., *tap)], repeat, axis=1)
        else:
            # [N, G, C/G, *outs, *kernel] -> [N, G, C/G * kernel, outs]
            view = view.reshape((n, group, per_group, *outs, *kernel))
            order = (0, 1, 2, *range(3 + rank, 3 + 2 * rank), *range(3, 3 + rank))
            taps = per_group * math.prod(kernel)
            columns = view.transpose(order).reshape((n, group, taps, math.prod(outs)))
            y = np.matmul(w.reshape((group, m // group, taps)), columns).reshape((n, m, *outs))
        if b is not None:
            y = y + b.reshape((-1,) + (1,) * rank)
        return (y,)


class ConvTranspose(OpRun):
    """The original is wrong for several groups."""

    def _run(self, x, w, b=None, auto_pad=None, dilations=None, group=None, kernel_shape=None,
             output_padding=None, output_shape=None, pads=None, strides=None):
        group = 1 if group is None else int(group)
        kernel, rank, sizes = w.shape[2:], w.ndim - 2, x.shape[2:]
        strides = per_axis(strides, rank, 1)
        dilations = per_axis(dilations, rank, 1)
        more = per_axis(output_padding, rank, 0)
        full = [t * (s - 1) + p + (k - 1) * d + 1
                for t, s, p, k, d in zip(strides, sizes, more, kernel, dilations)]
        same = auto_pad in ("SAME_UPPER", "SAME_LOWER")
        if same and output_shape is None:
            output_shape = [s * t for s, t in zip(sizes, strides)]
        if output_shape is None:
            begins, ends = pads_of(auto_pad, pads, sizes, full, strides)
        else:
            totals = [max(f - int(o), 0) for f, o in zip(full, output_shape[-rank:])]
            small, large = [t // 2 for t in totals], [t - t // 2 for t in totals]
            begins, ends = (small, large) if auto_pad == "SAME_UPPER" else (large, small)
            full = [max(f, int(o)) for f, o in zip(full, output_shape[-rank:])]
        n, c, m = x.shape[0], x.shape[1], w.shape[1]
        rows = x.reshape((n, group, c // group, -1))
        weights = w.reshape((group, c // group, m, *kernel))
        y = np.zeros((n, group * m, *full), x.dtype)
        for tap in itertools.product(*map(range, kernel)):
            part = np.matmul(weights[(..., *tap)].transpose(0, 2, 1), rows)
            place = tuple(slice(k * d, k * d + t * (s - 1) + 1, t)
                          for k, d, t, s in zip(tap, dilations, strides, sizes))
            y[(slice(None), slice(None), *place)] += part.reshape((n, group * m, *sizes))
        y = y[(..., *(slice(p, f - q) for p, q, f in zip(begins, ends, full)))]
        if b is not None:
            y = y + b.reshape((-1,) + (1,) * rank)
        return (y,)


class MaxPool(OpRun):
    """The original is wrong for pads that differ between begin and end."""

    def _run(self, x, auto_pad=None, ceil_mode=None, dilations=None, kernel_shape=None, pads=None,
             storage_order=None, strides=None):
        if len(self.onnx_node.output) > 1:
            raise NotImplementedError("MaxPool with Indices is not written here")
        pool = Pooling(x, kernel_shape, strides, dilations, pads, auto_pad, ceil_mode)
        least = -np.inf if x.dtype.kind == "f" else np.iinfo(x.dtype).min
        return (pool.view(x, least, least).max(axis=pool.axes()),)


class AveragePool(OpRun):
    """The original is wrong with SAME_UPPER and SAME_LOWER."""

    def _run(self, x, auto_pad=None, ceil_mode=None, count_include_pad=None, dilations=None,
             kernel_shape=None, pads=None, strides=None):
        pool = Pooling(x, kernel_shape, strides, dilations, pads, auto_pad, ceil_mode)
        ones = np.ones((1, 1, *x.shape[2:]), x.dtype)
        count = pool.view(ones, 1 if count_include_pad else 0, 0).sum(axis=pool.axes())
        return (pool.view(x, 0, 0).sum(axis=pool.axes()) / count,)


class GlobalMaxPool(OpRun):
    """The original drops an axis of a 3-D tensor."""

    def _run(self, x):
        return (x.max(axis=tuple(range(2, x.ndim)), keepdims=True),)


class BatchNormalization(OpRun):
    """The original of opset 9 normalises with the batch's own statistics."""

    def _run(self, x, scale, bias, mean, variance, epsilon=None, momentum=None, spatial=None,
             training_mode=None):
        if training_mode or (spatial is not None and not spatial):
            raise NotImplementedError("BatchNormalization in training, or not spatial")
        epsilon = f32(1e-5) if epsilon is None else epsilon
        shape = (-1,) + (1,) * (x.ndim - 2)
        factor = scale / np.sqrt(variance + epsilon)
        return ((x - mean.reshape(shape)) * factor.reshape(shape) + bias.reshape(shape),)


class LayerNormalization(OpRun):
    """The original ignores stash_type."""

    def _run(self, x, scale, bias=None, axis=None, epsilon=None, stash_type=None):
        axis = (-1 if axis is None else axis) % x.ndim
        epsilon = f32(1e-5) if epsilon is None else epsilon
        axes = tuple(range(axis, x.ndim))
        mean = x.mean(axis=axes, keepdims=True)
        centred = x - mean
        inverse = 1 / np.sqrt((centred * centred).mean(axis=axes, keepdims=True) + epsilon)
        y = centred * inverse * scale
        if bias is not None:
            y = y + bias
        return (y, mean, inverse)[: len(self.onnx_node.output)]


def attribute(node, name, default):
    """An integer attribute as the node states it; the evaluator fills in the newest default."""
    for a in node.attribute:
        if a.name == name:
            return a.i
    return default


def softmax_before_13(node, x):
    """Before opset 13 softmax ran over all axes from `axis` on, as one."""
    axis = attribute(node, "axis", 1)
    axis = axis + x.ndim if axis < 0 else axis
    rows = x.reshape((math.prod(x.shape[:axis]), -1))
    return rows - rows.max(axis=1, keepdims=True)


class SoftmaxBefore13(OpRun):
    """The original normalises over one axis, with the default of opset 13."""

    def _run(self, x, axis=None):
        powers = np.exp(softmax_before_13(self.onnx_node, x))
        return ((powers / powers.sum(axis=1, keepdims=True)).reshape(x.shape),)


class LogSoftmaxBefore13(OpRun):
    """As Softmax."""

    def _run(self, x, axis=None):
        shifted = softmax_before_13(self.onnx_node, x)
        logs = shifted - np.log(np.exp(shifted).sum(axis=1, keepdims=True))
        return (logs.reshape(x.shape),)


def for_opset(opset):
    """The classes that replace onnx.reference's own in a model of this opset."""
    classes = [Conv, ConvTranspose, MaxPool, AveragePool, GlobalMaxPool, BatchNormalization,
               LayerNormalization]
    if opset < 13:
        classes += [type("Softmax", (SoftmaxBefore13,), {}),
                    type("LogSoftmax", (LogSoftmaxBefore13,), {})]
    return classes
