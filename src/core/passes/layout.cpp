// SPDX-License-Identifier: Apache-2.0
// Images are stored channels last: a convolution's reduced axis then ends in consecutive elements,
// and so do its results. Intermediates get the order that those want who read and write them;
// an image whose channels are no multiple of 8 is copied first, filled up with zeros and with its
// pads. Graph inputs and outputs keep their order.
#include <algorithm>
#include <optional>

#include "base/check.h"
#include "core/index.h"
#include "core/passes/passes.h"

namespace pumice::core {
namespace {

using view::Node;

constexpr int64_t kVector = 8;

// The axis of the tensor along which `axis` of the view runs with factor 1.
std::optional<size_t> runs_along(const Node& access, size_t axis) {
  for (size_t i = 0; i < access.axes.size(); i++)
    if (access.axes[i].affine.factor(axis).is(1) && access.axes[i].gathered == nullptr) return i;
  return std::nullopt;
}

class LayoutPass {
 public:
  explicit LayoutPass(Graph& graph) : graph_(graph), index_(graph) {}

  void run() {
    wanted_.resize(graph_.tensors.size());
    for (const Op& op : graph_.ops)
      if (const auto* c = std::get_if<Contract>(&op.work)) ask(op, *c);
    pass_on();
    for (size_t i = 0; i < wanted_.size(); i++)
      if (wanted_[i]) set_fastest(graph_.tensors[i], *wanted_[i]);
    pad_images();
  }

 private:
  static bool is_convolution(const Contract& c) { return c.reduced.size() >= 2; }
  bool is_free(TensorId t) const {
    return graph_[t].role == Tensor::Role::intermediate && !index_.is_shared(t) &&
           graph_[t].dims.size() >= 3;
  }
  void want(TensorId t, size_t axis) {
    auto& w = wanted_[static_cast<size_t>(t)];
    if (is_free(t) && !w) w = axis;
  }

  // What a convolution reads, and what it stores.
  void ask(const Op& op, const Contract& c) {
    if (!is_convolution(c)) return;
    const size_t rank = c.axes.size(), channel = rank + c.reduced.size() - 1;
    const Node& a = *c.a.root;
    if (a.kind != Node::Kind::access) return;
    std::optional<size_t> fastest = runs_along(a, channel);
    if (c.reduced.back().is(1))  // depthwise: the channel is an axis of the result
      for (size_t i = 0; i < rank; i++)
        if (view::depends_on(a, i) && view::depends_on(*c.b.root, i)) fastest = runs_along(a, i);
    if (!fastest) return;
    want(a.tensor, *fastest);
    for (size_t i = 0; i < rank; i++) {
      if (!view::depends_on(*c.b.root, i)) continue;
      for (const Output& o : op.outputs)
        for (size_t t = 0; t < o.place.size(); t++)
          if (o.place[t].factor(i).is(1)) want(o.tensor, t);
    }
  }

  // Tensors without a wish of their own follow what they are made from, and what is made of them.
  void pass_on() {
    for (bool changed = true; changed;) {
      changed = false;
      for (const Op& op : graph_.ops) {
        if (std::holds_alternative<Contract>(op.work) || std::holds_alternative<Attention>(op.work))
          continue;
        for (const View* v : all_views(op))
          for (const Node* n : view::accesses(*v))
            for (const Output& o : op.outputs) {
              changed |= follow(*n, o);
              changed |= lead(o, *n);
            }
      }
    }
  }
  // The output's tensor as the access's one.
  bool follow(const Node& n, const Output& o) {
    const auto& from = wanted_[static_cast<size_t>(n.tensor)];
    if (!from || wanted_[static_cast<size_t>(o.tensor)] || !is_free(o.tensor)) return false;
    const auto axis = axis_of(n.axes[*from].affine, o.value.rank());
    if (!axis) return false;
    for (size_t t = 0; t < o.place.size(); t++)
      if (o.place[t].factor(*axis).is(1)) {
        want(o.tensor, t);
        return true;
      }
    return false;
  }
  bool lead(const Output& o, const Node& n) {
    const auto& to = wanted_[static_cast<size_t>(o.tensor)];
    if (!to || wanted_[static_cast<size_t>(n.tensor)] || !is_free(n.tensor)) return false;
    if (n.axes.size() != o.place.size()) return false;
    const auto axis = axis_of(o.place[*to], o.value.rank());
    if (!axis) return false;
    const auto along = runs_along(n, *axis);
    if (!along) return false;
    want(n.tensor, *along);
    return true;
  }
  static std::optional<size_t> axis_of(const Affine& a, size_t rank) {
    for (size_t i = 0; i < rank; i++)
      if (a.factor(i).is(1)) return i;
    return std::nullopt;
  }

  static void set_fastest(Tensor& t, size_t axis) {
    t.layout.order.clear();
    for (size_t i = 0; i < t.dims.size(); i++)
      if (i != axis) t.layout.order.push_back(static_cast<uint32_t>(i));
    t.layout.order.push_back(static_cast<uint32_t>(axis));
    if (axis + 1 == t.dims.size()) t.layout.order.clear();
  }

  // ---- copies of images with few channels

  // One spatial axis of an image: position * stride + tap * dilation - pad.
  struct Window {
    size_t axis = 0, position = 0, tap = 0;  // of the tensor; of the contraction
    int64_t stride = 1, dilation = 1, pad = 0, taps = 1, positions = 1;
  };
  struct Image {
    size_t channel_axis = 0;      // of the tensor
    int64_t channels = 0;         // that are there
    std::vector<Window> windows;  // outermost first
  };

  // The image that a convolution reads, where all of its sizes are known.
  std::optional<Image> image_of(const Contract& c) const {
    if (c.a.root->kind != Node::Kind::access || c.reduced.size() < 2) return std::nullopt;
    const Node& a = *c.a.root;
    if (a.bits != 0) return std::nullopt;  // a pad that is not zero
    const size_t rank = c.axes.size(), spatial = c.reduced.size() - 1;
    for (const Dim& d : c.a.dims)
      if (!d.known()) return std::nullopt;
    const auto channel = runs_along(a, rank + spatial);
    if (!channel || !(a.axes[*channel].extent == c.reduced.back())) return std::nullopt;
    Image image{*channel, c.reduced.back().value(), {}};
    for (size_t s = 0; s < spatial; s++) {
      Window w;
      w.tap = rank + s;
      w.taps = c.reduced[s].value();
      size_t found = 0;
      for (size_t t = 0; t < a.axes.size(); t++) {
        const Affine& index = a.axes[t].affine;
        const bool by_tap = !index.factor(w.tap).is(0);
        // A window of one tap shows by its place alone.
        const size_t position = rank - spatial + s;
        if (!by_tap && !(w.taps == 1 && !index.factor(position).is(0))) continue;
        found++;
        w.axis = t;
        w.position = position;
        for (size_t i = 0; i < index.factors.size(); i++)
          if (i != w.tap && i != position && !index.factors[i].is(0)) return std::nullopt;
        w.dilation = by_tap ? index.factor(w.tap).value() : 1;
        w.positions = c.axes[position].value();
        w.stride = index.factor(position).is(0) ? 1 : index.factor(position).value();
        w.pad = -index.offset.value();
        if (w.stride < 1 || w.dilation < 1 || w.pad < 0) return std::nullopt;
      }
      if (found != 1) return std::nullopt;
      image.windows.push_back(w);
    }
    return image;
  }

  void pad_images() {
    std::vector<Op> ops;
    for (Op& op : graph_.ops) {
      auto* c = std::get_if<Contract>(&op.work);
      if (c != nullptr && is_convolution(*c) && !c->reduced.back().is(1))
        if (const auto image = image_of(*c); image && image->channels % kVector != 0)
          ops.push_back(copied(*c, *image));
      ops.push_back(std::move(op));
    }
    graph_.ops = std::move(ops);
  }

  // Channels and taps of a row to read so that rows of taps lie in whole vectors: the fewest
  // elements.
  static std::pair<int64_t, int64_t> filled(const Image& image) {
    const Window& x = image.windows.back();
    std::pair<int64_t, int64_t> best{(image.channels + kVector - 1) / kVector * kVector, x.taps};
    if (x.dilation != 1) return best;
    for (int64_t c = image.channels; c < kVector; c++) {
      int64_t taps = x.taps;
      while (taps * c % kVector != 0) taps++;
      if (x.stride * c % kVector == 0 && taps * c < best.first * best.second) best = {c, taps};
    }
    return best;
  }

  // Makes the contraction read a copy: channels last, filled up with zeros, with its pads, so that
  // no index lies outside.
  Op copied(Contract& c, const Image& image) {
    const Node& a = *c.a.root;
    const Tensor source = graph_[a.tensor];
    const auto [channels, taps] = filled(image);
    Tensor t;
    t.name = source.name + ".image";
    t.type = source.type;
    t.dims = source.dims;
    t.dims[image.channel_axis] = channels;
    std::vector<Dim> before(source.dims.size(), Dim(0));
    for (const Window& w : image.windows) {
      const bool last = &w == &image.windows.back();
      const int64_t count = last ? taps : w.taps;
      int64_t extent = (w.positions - 1) * w.stride + (count - 1) * w.dilation + 1;
      while (last && extent * channels % kVector != 0) extent++;
      t.dims[w.axis] = extent;
      before[w.axis] = w.pad;
    }
    set_fastest(t, image.channel_axis);
    const auto id = static_cast<TensorId>(graph_.tensors.size());
    const View whole = view::access(a.tensor, source.type, source.dims);
    Op op;
    op.name = t.name;
    op.work = Map{t.dims};
    Output out{view::pad(whole, before, t.dims, 0), id, {}};
    for (size_t i = 0; i < t.dims.size(); i++) out.place.push_back(Affine::axis(i));
    op.outputs.push_back(std::move(out));
    read_copy(c, image, id, t.dims, channels, taps);
    graph_.tensors.push_back(std::move(t));
    return op;
  }

  // The other operand is zero where there was nothing.
  static void read_copy(Contract& c, const Image& image, TensorId copy, const Dims& dims,
                        int64_t channels, int64_t taps) {
    Node a = *c.a.root;
    a.tensor = copy;
    for (size_t i = 0; i < a.axes.size(); i++) a.axes[i].extent = dims[i];
    for (const Window& w : image.windows) {
      a.axes[w.axis].affine.offset = 0;
      a.axes[w.axis].guarded = false;
      // A tap that was alone had no factor.
      auto& factors = a.axes[w.axis].affine.factors;
      if (factors.size() <= w.tap) factors.resize(w.tap + 1);
      factors[w.tap] = w.dilation;
    }
    c.reduced.back() = channels;
    c.reduced[c.reduced.size() - 2] = taps;
    Dims all = c.axes;
    all.insert(all.end(), c.reduced.begin(), c.reduced.end());
    c.a = {std::make_shared<const Node>(std::move(a)), all};
    std::vector<Affine> same;
    for (size_t i = 0; i < all.size(); i++) same.push_back(Affine::axis(i));
    c.b = view::remap(c.b, same, all, true, 0);
  }

  Graph& graph_;
  Index index_;
  std::vector<std::optional<size_t>> wanted_;  // the fastest axis
};

}  // namespace

void layout(Graph& graph) { LayoutPass(graph).run(); }

}  // namespace pumice::core
