// SPDX-License-Identifier: Apache-2.0
// Runs of a kernel, workgroups, structured control flow, and the switch over instructions.
#include <algorithm>
#include <bit>
#include <cstring>
#include <numeric>
#include <random>

#include "base/check.h"
#include "emit/interp/machine.h"

namespace pumice::interp {

using kernel::BlockId;
using kernel::index;
using kernel::Inst;
using kernel::Op;
using kernel::Type;

Machine::Machine(const Program& program)
    : program_(program),
      lanes_(program.lanes),
      storage_(program.storage_bytes),
      vars_(program.var_bytes),
      var_set_(program.kernel.vars.size()),
      var_full_(program.kernel.vars.size()),
      units_(program.lanes),
      tile_mask_(program.lanes),
      load_mask_(program.lanes),
      products_(program.groups) {
  for (auto& v : var_set_) v.resize(lanes_);
  for (const Step& s : program.fixed) {
    uint32_t* out = at<uint32_t>(s.out);
    if (s.op == Op::constant) {
      constant(s);
    } else {
      for (uint32_t i = 0; i < lanes_; i++)
        out[i] = s.op == Op::lane         ? i
                 : s.op == Op::group_lane ? i % program.group
                                          : i / program.group;
    }
  }
}

void Machine::say(Finding kind, kernel::Id id, uint32_t lane,
                  const std::function<std::string()>& text) {
  if (!reporter_->wanted(kind, id)) return;
  reporter_->add(kind, program_.kernel, id,
                 fmt::format("{}: {} of kernel {} at {}: lane {} of workgroup {},{},{} {}",
                             name(kind), info(program_.kernel[id].op).name, program_.kernel.name,
                             program_.kernel.location(id), lane, id_[0], id_[1], id_[2], text()));
}

void Machine::fill_of_run(std::span<const uint8_t> arguments) {
  for (const Step& s : program_.of_run) {
    const Inst& i = inst(s);
    if (s.op == Op::workgroup_count) {
      std::fill_n(at<uint32_t>(s.out), lanes_, groups_[i.imm[0]]);
      continue;
    }
    const kernel::Argument& a = program_.kernel.arguments[i.imm[0]];
    if (a.type.is_pointer()) {
      PointerValue p;
      std::memcpy(&p.address, arguments.data() + a.offset, 8);
      p.who = i.imm[0] << kArgShift & kArgMask;
      if (a.type.readonly) p.who |= kReadonly;
      if (a.type.restrict_) p.who |= kRestrict;
      *at<PointerValue>(s.out) = p;
    } else {
      const size_t bytes = a.type.bytes();
      for (uint32_t l = 0; l < lanes_; l++)
        std::memcpy(at<std::byte>(s.out) + l * bytes, arguments.data() + a.offset, bytes);
    }
  }
}

Report Machine::run(Memory& memory, std::array<uint32_t, 3> groups,
                    std::span<const uint8_t> arguments, const Options& options) {
  if (arguments.size() < program_.kernel.argument_bytes())
    fail(ErrorCode::bad_argument, "kernel {}: {} bytes of arguments, wanted {}",
         program_.kernel.name, arguments.size(), program_.kernel.argument_bytes());
  memory_ = &memory;
  options_ = options;
  report_ = {};
  groups_ = groups;
  reporter_ = std::make_unique<Reporter>(report_, options.max_findings);
  const Say tell = [this](Finding kind, kernel::Id id, uint32_t lane,
                          const std::function<std::string()>& text) { say(kind, id, lane, text); };
  races_ = std::make_unique<Races>(memory, tell);
  tiles_ = std::make_unique<TileMemory>(program_.kernel, program_.tile_bytes, program_.group, tell);
  if (permuted_with_ != options.permute) ownership_.clear();
  permuted_with_ = options.permute;
  races_->begin_dispatch(lanes_);
  fill_of_run(arguments);
  memory.begin_command(program_.kernel.name);

  uint64_t total = uint64_t{groups[0]} * groups[1] * groups[2];
  std::vector<uint32_t> order = options.workgroups;
  for (const uint32_t n : order)
    CHECK(n < total, "workgroup {} of kernel {}, which has {}", n, program_.kernel.name, total);
  if (!order.empty()) {
    total = order.size();
  } else if (options.shuffle != 0 && total <= 1u << 24) {
    order.resize(total);
    std::iota(order.begin(), order.end(), 0u);
    std::shuffle(order.begin(), order.end(), std::mt19937_64(options.shuffle));
  }
  try {
    for (uint64_t i = 0; i < total; i++) {
      const uint64_t n = order.empty() ? i : order[i];
      workgroup(
          {static_cast<uint32_t>(n % groups[0]), static_cast<uint32_t>(n / groups[0] % groups[1]),
           static_cast<uint32_t>(n / groups[0] / groups[1])},
          static_cast<uint32_t>(n));
    }
  } catch (const Stop&) {  // the finding is in the report
  }
  return std::move(report_);
}

void Machine::workgroup(std::array<uint32_t, 3> id, uint32_t number) {
  id_ = id;
  memory_->begin_workgroup(number);
  races_->begin_workgroup();
  tiles_->begin_workgroup(options_.poison);
  for (const Step& s : program_.of_workgroup)
    std::fill_n(at<uint32_t>(s.out), lanes_, id_[inst(s).imm[0]]);
  for (size_t v = 0; v < var_set_.size(); v++) {
    std::fill(var_set_[v].begin(), var_set_[v].end(), uint8_t{0});
    var_full_[v] = 0;
    const Type& t = program_.kernel.vars[v];
    if (options_.poison)
      std::fill_n(vars_.begin() + program_.var_place[v], program_.bytes_of(t),
                  t.elem == DType::b1 ? std::byte{1} : std::byte{0xff});
  }
  for (auto& p : products_) p.clear();
  masks_used_ = 0;
  std::vector<uint8_t>& all = mask_array(masks_used_++);
  std::fill(all.begin(), all.end(), uint8_t{1});
  block(program_.kernel.body, {all.data(), lanes_, true});
}

std::vector<uint8_t>& Machine::mask_array(size_t number) {
  while (masks_.size() <= number) masks_.emplace_back(lanes_);
  return masks_[number];
}

Mask Machine::narrowed(const Mask& mask, const uint8_t* condition,
                       std::vector<uint8_t>& out) const {
  const uint32_t active = loops().narrow(mask.lane, condition, out.data(), lanes_);
  if (active == mask.active) return mask;
  return {out.data(), active, false};
}

void Machine::block(BlockId id, const Mask& mask) {
  const auto& steps = program_.blocks[index(id)];
  report_.lane_instructions += steps.size() * mask.active;
  // Blocks count too: a loop may have nothing in it.
  if (report_.lane_instructions + ++blocks_run_ > options_.budget) {
    if (const kernel::Id at = steps.empty() ? last_step_ : steps[0].id; at != kernel::Id::none)
      say(Finding::endless, at, mask.first(), [&] {
        return fmt::format("is still at work after {} lane-instructions", options_.budget);
      });
    throw Stop{};
  }
  if (!steps.empty()) last_step_ = steps[0].id;
  for (const Step& s : steps) {
    if (s.loop != nullptr) {  // by far the most frequent
      std::array<const void*, 4> in{at<void>(s.in[0]), at<void>(s.in[1]), at<void>(s.in[2]),
                                    at<void>(s.in[3])};
      if (s.calls == 1) {
        s.loop(in.data(), at<void>(s.out), s.count);
        continue;
      }
      // select of vectors by one condition: component by component
      const size_t bytes = size_of(type(s).elem) * lanes_;
      for (uint32_t c = 0; c < s.calls; c++) {
        in[1] = at<std::byte>(s.in[1]) + c * bytes;
        in[2] = at<std::byte>(s.in[2]) + c * bytes;
        s.loop(in.data(), at<std::byte>(s.out) + c * bytes, s.count);
      }
      continue;
    }
    step(s, mask);
  }
}

void Machine::check_flow(const Step& s, const Mask& mask) {
  if (mask.all) return;
  const kernel::OpFlags& flags = info(s.op).flags;
  if (flags.convergent_workgroup)
    return say(Finding::divergent, s.id, mask.first(), [&] {
      return fmt::format("is here with {} of the workgroup's {} lanes", mask.active, lanes_);
    });
  for (uint32_t g = 0; g < program_.groups; g++) {
    const uint32_t n = count_set(mask.lane + g * program_.group, program_.group);
    if (n != 0 && n != program_.group)
      return say(Finding::divergent, s.id, g * program_.group, [&] {
        return fmt::format("is here with {} of its group's {} lanes", n, program_.group);
      });
  }
}

void Machine::step(const Step& s, const Mask& mask) {
  if (const auto& f = info(s.op).flags; f.convergent_group || f.convergent_workgroup)
    check_flow(s, mask);
  switch (s.op) {
    // Filled in once, or a part of another value.
    case Op::constant:
    case Op::arg:
    case Op::lane:
    case Op::group_lane:
    case Op::group_index:
    case Op::workgroup_id:
    case Op::workgroup_count:
    case Op::extract: return;
    // Run by block().
    case Op::add:
    case Op::sub:
    case Op::mul:
    case Op::div:
    case Op::rem:
    case Op::mulhi:
    case Op::neg:
    case Op::abs:
    case Op::min:
    case Op::max:
    case Op::fma:
    case Op::sqrt:
    case Op::floor:
    case Op::ceil:
    case Op::trunc:
    case Op::round_even:
    case Op::exp2_approx:
    case Op::dot4:
    case Op::bit_and:
    case Op::bit_or:
    case Op::bit_xor:
    case Op::bit_not:
    case Op::popcount:
    case Op::shl:
    case Op::shr:
    case Op::eq:
    case Op::ne:
    case Op::lt:
    case Op::le:
    case Op::select:
    case Op::cast: CHECK(false, "{} has a loop", info(s.op).name); return;
    case Op::bitcast: return bitcast(s);
    case Op::vector: return vector(s);
    case Op::ptr_cast: *at<PointerValue>(s.out) = *at<PointerValue>(s.in[0]); return;
    case Op::ptr_offset: return ptr_offset(s, mask);
    case Op::load: return load(s, mask);
    case Op::load_if: return load_if(s, mask);
    case Op::store: return store(s, mask);
    case Op::atomic: return atomic(s, mask);
    case Op::fence: return fence(s, mask);
    case Op::barrier: return barrier(s, mask);
    case Op::group_barrier:
      return for_groups(mask, [&](uint32_t g, uint32_t) { tiles_->group_barrier(g); });
    case Op::tile_load: return tile_load(s, mask);
    case Op::tile_store: return tile_store(s, mask);
    case Op::tile_atomic: return tile_atomic(s, mask);
    case Op::copy_async: return copy_async(s, mask);
    case Op::copy_commit: return tiles_->commit();
    case Op::copy_wait: return tiles_->wait(inst(s).imm[0]);
    case Op::matrix_fill: return matrix_fill(s, mask);
    case Op::matrix_load:
    case Op::matrix_store: return matrix_in_tile(s, mask);
    case Op::matrix_unpack:
    case Op::matrix_pack:
    case Op::matrix_get:
    case Op::matrix_set: return matrix_lanes(s, mask);
    case Op::matrix_add:
    case Op::matrix_mul:
    case Op::matrix_scale:
    case Op::matrix_convert: return matrix_math(s, mask);
    case Op::mma: return mma(s, mask);
    case Op::mma_wait: return mma_wait(s, mask);
    case Op::shuffle:
    case Op::shuffle_xor: return shuffle(s, mask);
    case Op::group_any:
    case Op::group_all: return group_vote(s, mask);
    case Op::uniform: return group_first(s, mask);
    case Op::var_get: return var_get(s, mask);
    case Op::var_set: return var_set(s, mask);
    case Op::if_: return if_step(s, mask);
    case Op::for_: return for_step(s, mask);
    case Op::while_: return while_step(s, mask);
  }
}

void Machine::barrier(const Step& s, const Mask& mask) {
  if (mask.active == 0) return;
  tiles_->barrier();
  races_->barrier(inst(s).imm[0] != 0);
}

void Machine::fence(const Step& s, const Mask& mask) {
  if (static_cast<kernel::Scope>(inst(s).imm[0]) != kernel::Scope::device) return;
  const auto order = static_cast<kernel::Order>(inst(s).imm[1]);
  for (uint32_t i = 0; i < lanes_; i++)
    if (mask.lane[i] != 0) races_->fence(i, order);
}

void Machine::if_step(const Step& s, const Mask& mask) {
  const uint8_t* condition = at<uint8_t>(s.in[0]);
  const size_t used = masks_used_;
  masks_used_ += 2;
  const Mask then = narrowed(mask, condition, mask_array(used));
  Mask otherwise{nullptr, mask.active - then.active, false};
  if (otherwise.active == mask.active) {
    otherwise = mask;
  } else if (otherwise.active != 0) {
    std::vector<uint8_t>& out = mask_array(used + 1);
    for (uint32_t i = 0; i < lanes_; i++) out[i] = mask.lane[i] & (condition[i] ^ 1);
    otherwise.lane = out.data();
  }
  if (then.active != 0) block(inst(s).blocks[0], then);
  if (otherwise.active != 0) block(inst(s).blocks[1], otherwise);
  masks_used_ = used;
}

void Machine::for_step(const Step& s, const Mask& mask) {
  const uint32_t *begin = at<uint32_t>(s.in[0]), *end = at<uint32_t>(s.in[1]);
  const uint32_t* step = at<uint32_t>(s.in[2]);
  uint32_t* i = at<uint32_t>(s.out);
  const size_t used = masks_used_;
  masks_used_ += 2;
  std::memcpy(i, begin, lanes_ * sizeof(uint32_t));
  Mask now = mask;
  for (;;) {
    std::vector<uint8_t>& below = mask_array(used + 1);
    loops().below(i, end, below.data(), lanes_);
    now = narrowed(now, below.data(), mask_array(used));
    if (now.active == 0) break;
    block(inst(s).blocks[0], now);
    loops().step(i, step, lanes_);
  }
  masks_used_ = used;
}

void Machine::while_step(const Step& s, const Mask& mask) {
  const size_t used = masks_used_;
  masks_used_ += 1;
  Mask now = mask;
  for (;;) {
    block(inst(s).blocks[0], now);
    now = narrowed(now, at<uint8_t>(s.in[0]), mask_array(used));
    if (now.active == 0) break;
    block(inst(s).blocks[1], now);
  }
  masks_used_ = used;
}

// ---- the public face

struct Interpreter::State {
  State(kernel::Kernel k, const DeviceTraits& traits)
      : program(std::move(k), traits), machine(program) {}
  Program program;
  Machine machine;
};

Interpreter::Interpreter(kernel::Kernel kernel, const DeviceTraits& traits)
    : state_(std::make_unique<State>(std::move(kernel), traits)) {}
Interpreter::~Interpreter() = default;
Interpreter::Interpreter(Interpreter&&) noexcept = default;

const kernel::Kernel& Interpreter::kernel() const { return state_->program.kernel; }
uint32_t Interpreter::granule() const { return state_->program.granule; }
uint32_t Interpreter::tile_bytes() const { return state_->program.tile_bytes; }

std::vector<uint64_t> Interpreter::stored(std::span<const uint8_t> arguments) const {
  const kernel::Kernel& k = kernel();
  std::vector<uint64_t> addresses;
  for (const Inst& inst : k.insts) {
    if (inst.op != Op::store && inst.op != Op::atomic) continue;
    // Back to the argument; an offset moves the address, so every argument on the way counts.
    kernel::Id id = inst.operands[0];
    while (k[id].op == Op::ptr_cast || k[id].op == Op::ptr_offset) id = k[id].operands[0];
    const kernel::Argument& a = k.arguments[k[id].imm[0]];
    uint64_t address = 0;
    if (a.offset + 8 <= arguments.size()) std::memcpy(&address, arguments.data() + a.offset, 8);
    addresses.push_back(address);
  }
  std::sort(addresses.begin(), addresses.end());
  addresses.erase(std::unique(addresses.begin(), addresses.end()), addresses.end());
  return addresses;
}

Report Interpreter::run(Memory& memory, std::array<uint32_t, 3> groups,
                        std::span<const uint8_t> arguments, const Options& options) {
  const bool own = !memory.is_open();
  if (own) memory.open(options.checks ? stored(arguments) : std::vector<uint64_t>{}, granule());
  Report report = state_->machine.run(memory, groups, arguments, options);
  if (own) memory.close();
  return report;
}

}  // namespace pumice::interp
