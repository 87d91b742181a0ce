// SPDX-License-Identifier: Apache-2.0
#include "emit/interp/program.h"

#include <algorithm>
#include <bit>
#include <map>
#include <queue>

#include "base/check.h"
#include "emit/interp/who.h"

namespace pumice::interp {

using kernel::BlockId;
using kernel::Id;
using kernel::index;
using kernel::Inst;
using kernel::Op;
using kernel::Type;

namespace {

// Values that do not change while a workgroup runs are filled in once, not where they stand.
enum class Given : uint8_t { no, fixed, of_run, of_workgroup };
Given given(Op op) {
  if (op == Op::constant || op == Op::lane || op == Op::group_lane || op == Op::group_index)
    return Given::fixed;
  if (op == Op::arg || op == Op::workgroup_count) return Given::of_run;
  return op == Op::workgroup_id ? Given::of_workgroup : Given::no;
}

}  // namespace

Program::Program(kernel::Kernel source, const DeviceTraits& device)
    : kernel(std::move(source)), traits(device) {
  CHECK(kernel.placed, "kernel {} is not placed", kernel.name);
  lanes = kernel.workgroup;
  CHECK(lanes < kLaneMask, "kernel {} has {} invocations", kernel.name, lanes);
  group = kernel.group == 0 ? lanes : kernel.group;
  groups = lanes / group;
  if (!kernel.tiles.empty() && kernel.tiles[0].row_bytes == 0) kernel::layout_tiles(kernel, 16);
  for (const kernel::Tile& t : kernel.tiles)
    tile_bytes = std::max(tile_bytes, (t.offset + t.rows * t.row_bytes + 15) / 16 * 16);
  for (const Type& t : kernel.vars) {
    var_place.push_back(static_cast<uint32_t>(var_bytes));
    var_bytes += (bytes_of(t) + 63) / 64 * 64;
  }
  for (const Inst& inst : kernel.insts)
    if (inst.op == Op::store || inst.op == Op::atomic)
      granule = std::min(granule, kernel[inst.operands[0]].type.bytes());

  values_.resize(kernel.insts.size());
  walk(kernel.body);
  place_values();
  blocks.resize(kernel.blocks.size());
  for (size_t b = 0; b < kernel.blocks.size(); b++)
    for (const Id id : kernel.blocks[b]) {
      const Step step = step_of(id);
      switch (given(step.op)) {
        case Given::no: blocks[b].push_back(step); break;
        case Given::fixed: fixed.push_back(step); break;
        case Given::of_run: of_run.push_back(step); break;
        case Given::of_workgroup: of_workgroup.push_back(step); break;
      }
    }
}

size_t Program::bytes_of(const Type& type) const {
  if (type.is_pointer()) return sizeof(PointerValue);
  if (type.is_matrix()) return size_of(type.elem) * type.rows * type.columns * groups;
  return type.kind == Type::Kind::none ? 0 : size_t{type.bytes()} * lanes;
}

void Program::use(Id id) {
  const Id root = values_[index(id)].root;
  CHECK(root != Id::none, "kernel {}: a value is used before it stands", kernel.name);
  Value& v = values_[index(root)];
  v.end = std::max(v.end, now_);
  // Defined outside a loop that uses it: needed again in the loop's next turn.
  if (loops_.size() > v.depth) carried_.emplace_back(root, loops_[v.depth]);
}

void Program::define(Id id) {
  const Inst& inst = kernel[id];
  Value& v = values_[index(id)];
  if (inst.op == Op::extract ||
      (inst.op == Op::bitcast &&
       size_of(inst.type.elem) == size_of(kernel[inst.operands[0]].type.elem))) {
    const Value& source = values_[index(inst.operands[0])];
    v.root = source.root;
    v.offset = source.offset;
    if (inst.op == Op::extract)
      v.offset += static_cast<uint32_t>(inst.imm[0] * size_of(inst.type.elem) * lanes);
    return;
  }
  v.root = id;
  v.begin = v.end = now_;
  v.depth = static_cast<uint32_t>(loops_.size());
  defined_.push_back(id);
}

void Program::walk(BlockId block) {
  for (const Id id : kernel.blocks[index(block)]) {
    now_++;
    const Inst& inst = kernel[id];
    if (inst.op != Op::while_)
      for (size_t k = 0; k < inst.operand_count; k++) use(inst.operands[k]);
    if (inst.op == Op::if_) {
      walk(inst.blocks[0]);
      walk(inst.blocks[1]);
      continue;
    }
    if (inst.op != Op::for_ && inst.op != Op::while_) {
      if (inst.type.kind != Type::Kind::none) define(id);
      continue;
    }
    if (inst.op == Op::for_) define(id);
    const auto number = static_cast<uint32_t>(loop_end_.size());
    loop_end_.push_back(0);
    loops_.push_back(number);
    now_++;
    if (inst.op == Op::for_) {
      for (size_t k = 0; k < inst.operand_count; k++) use(inst.operands[k]);
      use(id);
    }
    walk(inst.blocks[0]);
    if (inst.op == Op::while_) {
      now_++;
      use(inst.operands[0]);
      walk(inst.blocks[1]);
    }
    loops_.pop_back();
    loop_end_[number] = ++now_;
  }
}

// May the result lie where an operand lies that dies here? Only a loop over elements of one size.
bool Program::in_place(const Inst& inst) const {
  if (!kernel::is_elementwise(inst.op) || inst.op == Op::bitcast) return false;
  for (size_t k = 0; k < inst.operand_count; k++) {
    const Type& root = kernel[values_[index(inst.operands[k])].root].type;
    if (bytes_of(root) == bytes_of(inst.type) && size_of(root.elem) != size_of(inst.type.elem))
      return false;
  }
  return true;
}

// Places are handed out in the order of definition and come back when the value is dead; a place
// is reused for a value of the same number of bytes.
void Program::place_values() {
  for (const auto& [id, loop] : carried_)
    values_[index(id)].end = std::max(values_[index(id)].end, loop_end_[loop]);
  using Dies = std::pair<uint32_t, Id>;
  std::priority_queue<Dies, std::vector<Dies>, std::greater<>> alive;
  std::map<size_t, std::vector<uint32_t>> vacant;
  for (const Id id : defined_) {
    Value& v = values_[index(id)];
    const Inst& inst = kernel[id];
    const uint32_t dead = in_place(inst) ? v.begin + 1 : v.begin;
    while (!alive.empty() && alive.top().first < dead) {
      const Id old = alive.top().second;
      vacant[bytes_of(kernel[old].type)].push_back(values_[index(old)].place);
      alive.pop();
    }
    const size_t bytes = bytes_of(inst.type);
    auto& places = vacant[bytes];
    if (given(inst.op) == Given::no && !places.empty()) {
      v.place = places.back();
      places.pop_back();
    } else {
      v.place = static_cast<uint32_t>(storage_bytes);
      storage_bytes += (bytes + 63) / 64 * 64;
    }
    if (given(inst.op) == Given::no) alive.emplace(v.end, id);
  }
}

uint32_t Program::place(Id id) const {
  const Value& v = values_[index(id)];
  return values_[index(v.root)].place + v.offset;
}

Step Program::step_of(Id id) const {
  const Inst& inst = kernel[id];
  Step s;
  s.op = inst.op;
  s.id = id;
  if (inst.type.kind != Type::Kind::none) s.out = place(id);
  for (size_t k = 0; k < inst.operand_count; k++) s.in[k] = place(inst.operands[k]);
  if (!kernel::is_elementwise(inst.op)) return s;
  const Type& operand = kernel[inst.operands[inst.op == Op::select ? 1 : 0]].type;
  if (inst.op == Op::bitcast) return s;  // of equal sizes: an alias; others: rearranged by lane
  s.loop = kernel::find_loop(inst.op, operand.elem, inst.type.elem, inst.imm[0], traits.numerics);
  CHECK(s.loop != nullptr, "kernel {}: {} has no meaning on {}", kernel.name, info(inst.op).name,
        kernel::to_string(operand));
  s.count = lanes * inst.type.width;
  if (inst.op == Op::select && kernel[inst.operands[0]].type.width != inst.type.width) {
    s.calls = inst.type.width;
    s.count = lanes;
  }
  return s;
}

}  // namespace pumice::interp
