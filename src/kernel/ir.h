// SPDX-License-Identifier: Apache-2.0
// The typed IR of a kernel: what the builder writes, the verifier checks, passes rewrite and
// emitters print. Values are 32-bit handles into one array; control flow is structured (blocks of
// statements). docs/kernel-ir.md explains it in prose.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/dtype.h"
#include "base/hash.h"
#include "base/traits.h"

namespace pumice::kernel {

enum class Op : uint8_t {
#define PUMICE_OP(name, signature, flags, doc) name,
#include "kernel/ops.def"
#undef PUMICE_OP
};
inline constexpr int kOpCount = 0
#define PUMICE_OP(name, signature, flags, doc) +1
#include "kernel/ops.def"
#undef PUMICE_OP
    ;

enum class Signature : uint8_t {
  nullary,
  un_n,
  un_f,
  un_i,
  un_ib,
  bin_n,
  bin_i,
  bin_ib,
  bin_hi,
  fma,
  shift,
  cmp,
  select,
  cast,
  bitcast,
  own
};

/// Flags of a row of ops.def.
struct OpFlags {
  bool pure = false, commutes = false, rounds = false, effect = false, reads = false;
  bool convergent_group = false, convergent_workgroup = false;
};
struct OpInfo {
  std::string_view name;
  Signature signature;
  OpFlags flags;
  std::string_view doc;
};
const OpInfo& info(Op op);

enum class Scope : uint8_t { group, workgroup, device };
enum class Order : uint8_t { acquire, release, acquire_release };
enum class AtomicKind : uint8_t { add, min, max, and_, or_, xor_, exchange, compare_exchange };

/// Type of a value. `number`: a scalar (width 1) or vector (2, 4). `matrix`: held by a group.
/// `pointer`: uniform base address of elements of (elem, width).
struct Type {
  enum class Kind : uint8_t { none, number, matrix, pointer } kind = Kind::none;
  DType elem = DType::u32;
  uint8_t width = 1;                         // number, pointer: components of an element
  MatrixUse use = MatrixUse::a;              // matrix
  uint16_t rows = 0, columns = 0;            // matrix
  bool readonly = false, restrict_ = false;  // pointer
  bool operator==(const Type&) const = default;

  static Type number(DType elem, int width = 1) {
    return {Kind::number, elem, static_cast<uint8_t>(width), {}, 0, 0, false, false};
  }
  static Type matrix(MatrixUse use, int rows, int columns, DType elem) {
    return {Kind::matrix, elem, 1, use, static_cast<uint16_t>(rows), static_cast<uint16_t>(columns),
            false,        false};
  }
  bool is_number() const { return kind == Kind::number; }
  bool is_scalar() const { return kind == Kind::number && width == 1; }
  bool is_matrix() const { return kind == Kind::matrix; }
  bool is_pointer() const { return kind == Kind::pointer; }
  /// Bytes of a number, or of the element that a pointer points at.
  uint32_t bytes() const { return static_cast<uint32_t>(size_of(elem)) * width; }
};
std::string to_string(
    const Type& type);  // "f32", "u32x4", "ptr<readonly f16x4>", "matrix<a 16x16 f16>"

enum class Id : uint32_t { none = 0xffffffffu };
enum class BlockId : uint32_t { none = 0xffffffffu };
constexpr uint32_t index(Id id) { return static_cast<uint32_t>(id); }
constexpr uint32_t index(BlockId id) { return static_cast<uint32_t>(id); }

inline constexpr int kMaxOperands = 8;

struct Inst {
  Op op{};
  uint8_t operand_count = 0;
  Type type;                                // of the result; Kind::none if there is none
  std::array<Id, kMaxOperands> operands{};  // first operand_count are used
  std::array<uint32_t, 5> imm{};            // see ops.def
  uint64_t bits = 0;                        // constant: the number, as the type's bits
  std::array<BlockId, 2> blocks{BlockId::none, BlockId::none};
  uint32_t location = 0;  // index into Kernel::locations
};

/// A kernel argument. The argument block holds them in order, each aligned to its size
/// (pointers are 8 bytes).
struct Argument {
  std::string name;
  Type type;  // scalar number of 4 or 8 bytes, or pointer
  uint32_t offset = 0;
};

/// Shared memory of a workgroup: rows x columns elements. Tiles of different phases (`overlay`)
/// share bytes: a kernel uses one phase after another with a barrier between; 0 = lives always.
struct Tile {
  std::string name;
  uint32_t rows = 0, columns = 0;
  DType elem{};
  uint32_t overlay = 0;
  /// Row stride and start in bytes: set by layout_tiles() for a target; 0 before.
  uint32_t row_bytes = 0, offset = 0;
};

struct Kernel {
  std::string name;
  uint32_t workgroup = 1;  // invocations (one dimension)
  uint32_t group = 0;      // lanes of a group; 0: the kernel does not speak of groups
  std::vector<Argument> arguments;
  std::vector<Tile> tiles;
  std::vector<Type> vars;
  std::vector<Inst> insts;
  std::vector<std::vector<Id>> blocks;  // statements in order; after placement pure values too
  BlockId body = BlockId::none;
  std::vector<std::string> locations;  // "file:line" of the kernel's text; not part of the hash
  /// True once every value stands in a block before its uses (pass `place`).
  bool placed = false;

  const Inst& operator[](Id id) const { return insts[index(id)]; }
  Inst& operator[](Id id) { return insts[index(id)]; }
  uint32_t argument_bytes() const;
  const std::string& location(Id id) const { return locations[insts[index(id)].location]; }
};

/// Lays tiles out in shared memory: rows that matrices are loaded
/// from or stored to get `pad` bytes more (bank conflicts), overlays share bytes; returns the bytes
/// in all. The caller compares them with the device's limit.
uint32_t layout_tiles(Kernel& kernel, uint32_t pad);

/// Text form; parse(print(k)) gives the same text again. Values are numbered as they stand, so
/// the text is the same whatever order the builder made them in. `locations`: each line ends with
/// "; file:line" of the kernel's text. A broken kernel can be printed too.
std::string print(const Kernel& kernel, bool locations = false);
/// "%5": the name of a value in print()'s text.
std::string printed_name(const Kernel& kernel, Id id);
/// Throws Error(bad_argument) with line and column for text that is none. The kernel that comes
/// back has unique ids and values defined above their uses, but may break every other rule.
Kernel parse(std::string_view text);
/// Hash of the placed kernel's text without locations.
Hash hash_of(const Kernel& kernel);

}  // namespace pumice::kernel
