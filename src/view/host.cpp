// SPDX-License-Identifier: Apache-2.0
#include "view/host.h"

#include <cstring>
#include <map>
#include <unordered_map>

#include "base/check.h"
#include "kernel/builder.h"
#include "kernel/meaning.h"

namespace pumice::view {
namespace {

using kernel::Id;
using kernel::Inst;
using kernel::Val;

constexpr size_t kBlock = 4096;       // elements computed at a time
using Array = std::vector<uint64_t>;  // room for kBlock elements of any type, aligned

// The instructions of one function for given types.
struct Expansion {
  kernel::Builder builder{"function", 1};
  std::vector<Id> inputs, order;  // order: the pure instructions that the result needs
  Id result = Id::none;
  std::vector<Array> values;  // by id; only those of `order` hold data
};

class Expansions {
 public:
  Expansion& of(const Node& node) {
    std::vector<DType> key;
    for (const NodeRef& o : node.operands) key.push_back(o->type);
    key.push_back(node.type);
    auto& slot = all_[{node.function, key}];
    if (slot == nullptr) slot = expand(node);
    return *slot;
  }

 private:
  static std::unique_ptr<Expansion> expand(const Node& node) {
    auto e = std::make_unique<Expansion>();
    std::vector<Val> operands;
    for (const NodeRef& o : node.operands) {
      const kernel::Ptr p = e->builder.pointer("x", o->type);
      const Val x = p.load(e->builder.constant(DType::u32, 0));
      operands.push_back(x);
      e->inputs.push_back(x.id());
    }
    e->result = emit(node.function, operands, node.type).id();
    const kernel::Kernel& k = e->builder.kernel();
    std::vector<bool> needed(k.insts.size(), false);
    needed[index(e->result)] = true;
    for (size_t i = k.insts.size(); i-- > 0;)  // operands come before their users
      if (needed[i] && info(k.insts[i].op).flags.pure)
        for (size_t o = 0; o < k.insts[i].operand_count; o++)
          needed[index(k.insts[i].operands[o])] = true;
    e->values.resize(k.insts.size());
    for (size_t i = 0; i < k.insts.size(); i++)
      if (needed[i] && info(k.insts[i].op).flags.pure) e->order.push_back(static_cast<Id>(i));
    return e;
  }
  std::map<std::pair<Function, std::vector<DType>>, std::unique_ptr<Expansion>> all_;
};

void fill(void* out, size_t size, uint64_t bits, size_t count) {
  for (size_t i = 0; i < count; i++)
    std::memcpy(static_cast<std::byte*>(out) + i * size, &bits, size);
}

class Evaluator {
 public:
  Evaluator(const View& view, const Points& points,
            const std::function<HostTensor(TensorId)>& tensor, std::span<const void* const> results)
      : view_(view), points_(points), tensor_(tensor), results_(results) {}

  std::vector<std::byte> run() {
    const size_t size = size_of(view_.type());
    std::vector<std::byte> out(points_.count * size);
    for (begin_ = 0; begin_ < points_.count; begin_ += kBlock) {
      count_ = std::min(kBlock, points_.count - begin_);
      indices_.resize(view_.rank());
      for (std::vector<int64_t>& axis : indices_) axis.resize(count_);
      points_.indices(begin_, indices_);
      done_.clear();
      std::memcpy(out.data() + begin_ * size, node(view_.root), count_ * size);
    }
    return out;
  }

 private:
  std::vector<int64_t> affine(const Affine& a) const {
    std::vector<int64_t> out(count_, a.offset.value());
    for (size_t axis = 0; axis < a.factors.size(); axis++) {
      const int64_t f = a.factors[axis].value();
      if (f == 0) continue;
      for (size_t i = 0; i < count_; i++) out[i] += f * indices_[axis][i];
    }
    return out;
  }

  const void* node(const NodeRef& ref) {
    const auto it = done_.find(ref.get());
    if (it != done_.end()) return it->second.data();
    Array out(kBlock);
    const Node& n = *ref;
    switch (n.kind) {
      case Node::Kind::number: fill(out.data(), size_of(n.type), n.bits, count_); break;
      case Node::Kind::index: {
        const std::vector<int64_t> values = affine(n.affine);
        const void* from = values.data();
        kernel::evaluate(kernel::Op::cast, DType::i64, n.type, 0, Numerics{}, &from, out.data(),
                         count_);
        break;
      }
      case Node::Kind::result: {
        CHECK(n.slot < results_.size(), "result {} has no value on the host", n.slot);
        const size_t size = size_of(n.type);
        std::memcpy(out.data(), static_cast<const std::byte*>(results_[n.slot]) + begin_ * size,
                    count_ * size);
        break;
      }
      case Node::Kind::access: access(n, out.data()); break;
      case Node::Kind::apply: apply(n, out.data()); break;
    }
    return done_.emplace(ref.get(), std::move(out)).first->second.data();
  }

  void access(const Node& n, void* out) {
    const HostTensor tensor = tensor_(n.tensor);
    CHECK(tensor.strides.size() == n.axes.size(), "a tensor of {} axes is read by {} indices",
          tensor.strides.size(), n.axes.size());
    std::vector<int64_t> address(count_, 0);
    std::vector<bool> valid(count_, true);
    for (size_t a = 0; a < n.axes.size(); a++) {
      const AxisIndex& axis = n.axes[a];
      const int64_t extent = axis.extent.value();
      std::vector<int64_t> i = affine(axis.affine);
      if (axis.gathered != nullptr) {
        const void* from = node(axis.gathered);
        std::vector<int64_t> more(count_);
        kernel::evaluate(kernel::Op::cast, axis.gathered->type, DType::i64, 0, Numerics{}, &from,
                         more.data(), count_);
        for (size_t e = 0; e < count_; e++) i[e] += more[e];
      }
      for (size_t e = 0; e < count_; e++) {
        if (axis.gathered != nullptr && !axis.guarded) {
          if (i[e] < 0) i[e] += extent;
          i[e] = std::max<int64_t>(0, std::min(i[e], extent - 1));
        }
        const bool inside = i[e] >= 0 && i[e] < extent;
        CHECK(inside || axis.guarded, "index {} of axis {} with {} elements", i[e], a, extent);
        valid[e] = valid[e] && inside;
        address[e] += i[e] * tensor.strides[a];
      }
    }
    const size_t size = size_of(n.type);
    for (size_t e = 0; e < count_; e++)
      std::memcpy(static_cast<std::byte*>(out) + e * size,
                  valid[e] ? static_cast<const std::byte*>(tensor.bytes) +
                                 address[e] * static_cast<int64_t>(size)
                           : static_cast<const void*>(&n.bits),
                  size);
  }

  void apply(const Node& n, void* out) {
    Expansion& e = expansions_.of(n);
    const kernel::Kernel& k = e.builder.kernel();
    std::unordered_map<Id, const void*> inputs;
    for (size_t i = 0; i < e.inputs.size(); i++) inputs[e.inputs[i]] = node(n.operands[i]);
    const auto value = [&](Id id) -> const void* {
      const auto it = inputs.find(id);
      return it != inputs.end() ? it->second : e.values[index(id)].data();
    };
    for (const Id id : e.order) {
      const Inst& inst = k[id];
      Array& to = e.values[index(id)];
      if (inst.op == kernel::Op::arg) continue;
      if (to.empty()) {
        to.resize(kBlock);
        if (inst.op == kernel::Op::constant)
          fill(to.data(), size_of(inst.type.elem), inst.bits, kBlock);
      }
      if (inst.op == kernel::Op::constant) continue;
      const void* from[kernel::kMaxOperands];
      for (size_t i = 0; i < inst.operand_count; i++) from[i] = value(inst.operands[i]);
      const size_t typed = inst.op == kernel::Op::select ? 1 : 0;
      kernel::evaluate(inst.op, k[inst.operands[typed]].type.elem, inst.type.elem, inst.imm[0],
                       Numerics{}, from, to.data(), count_);
    }
    std::memcpy(out, value(e.result), count_ * size_of(n.type));
  }

  const View& view_;
  const Points& points_;
  const std::function<HostTensor(TensorId)>& tensor_;
  const std::span<const void* const> results_;
  size_t begin_ = 0, count_ = 0;  // of the block's elements
  std::vector<std::vector<int64_t>> indices_;
  std::unordered_map<const Node*, Array> done_;
  Expansions expansions_;
};

}  // namespace

std::vector<int64_t> dense_strides(const std::vector<int64_t>& extents) {
  std::vector<int64_t> strides(extents.size(), 1);
  for (size_t i = extents.size(); i-- > 1;) strides[i - 1] = strides[i] * extents[i];
  return strides;
}

std::vector<std::byte> evaluate(const View& view,
                                const std::function<HostTensor(TensorId)>& tensor) {
  std::vector<size_t> extents;
  size_t total = 1;
  for (const Dim& d : view.dims) {
    extents.push_back(static_cast<size_t>(d.value()));
    total *= extents.back();
  }
  const auto row_major = [&](size_t begin, std::vector<std::vector<int64_t>>& indices) {
    if (extents.empty()) return;
    for (size_t i = 0; i < indices[0].size(); i++) {
      size_t rest = begin + i;
      for (size_t a = extents.size(); a-- > 0;) {
        indices[a][i] = static_cast<int64_t>(rest % extents[a]);
        rest /= extents[a];
      }
    }
  };
  return evaluate(view, {total, row_major}, tensor);
}

std::vector<std::byte> evaluate(const View& view, const Points& points,
                                const std::function<HostTensor(TensorId)>& tensor,
                                std::span<const void* const> results) {
  return Evaluator(view, points, tensor, results).run();
}

}  // namespace pumice::view
