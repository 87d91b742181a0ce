// SPDX-License-Identifier: Apache-2.0
// Device traits as JSON. One list of members serves writer and reader, so they cannot drift apart.
// The reader takes no member for granted: a traits file decides what kernels are selected, so a
// missing, misspelt or out-of-range member is an error rather than a default.
#include "base/traits.h"

#include <fmt/format.h>

#include <cmath>
#include <limits>
#include <nlohmann/json.hpp>
#include <set>
#include <type_traits>

#include "base/check.h"

namespace pumice {
namespace {

using Json = nlohmann::ordered_json;  // keeps the order of the members

// ---- the members, once ----

template <typename Shape, typename Visit>
void visit_matrix(Shape& s, Visit visit) {
  visit("m", s.m);
  visit("n", s.n);
  visit("k", s.k);
  visit("a", s.a);
  visit("b", s.b);
  visit("c", s.c);
  visit("lanes", s.lanes);
  visit("map_a", s.map_a);
  visit("map_b", s.map_b);
  visit("map_c", s.map_c);
}

template <typename N, typename Visit>
void visit_numerics(N& n, Visit visit) {
  visit("fused_fma_f32", n.fused_fma_f32);
  visit("fused_fma_f16", n.fused_fma_f16);
  visit("exact_div_f32", n.exact_div_f32);
  visit("exact_sqrt_f32", n.exact_sqrt_f32);
  visit("exact_div_f16", n.exact_div_f16);
  visit("exact_sqrt_f16", n.exact_sqrt_f16);
  visit("exact_div_f64", n.exact_div_f64);
  visit("exact_sqrt_f64", n.exact_sqrt_f64);
  visit("fma_keeps_subnormals_f32", n.fma_keeps_subnormals_f32);
  visit("keeps_subnormals_f32", n.keeps_subnormals_f32);
  visit("keeps_subnormals_f16", n.keeps_subnormals_f16);
  visit("convert_f16_exact", n.convert_f16_exact);
  visit("inf_times_zero_is_nan", n.inf_times_zero_is_nan);
}

template <typename Traits, typename Visit>
void visit_traits(Traits& t, Visit visit) {
  visit("name", t.name);
  visit("driver", t.driver);
  visit("architecture", t.architecture);
  visit("api", t.api);
  visit("vendor_id", t.vendor_id);
  visit("device_id", t.device_id);
  visit("software", t.software);
  visit("i8", t.i8);
  visit("i16", t.i16);
  visit("i64", t.i64);
  visit("f16", t.f16);
  visit("f64", t.f64);
  visit("bf16", t.bf16);
  visit("dot4", t.dot4);
  visit("atomic_i64", t.atomic_i64);
  visit("cores", t.cores);
  visit("shared_bytes", t.shared_bytes);
  visit("shared_bytes_per_core", t.shared_bytes_per_core);
  visit("max_workgroup", t.max_workgroup);
  visit("max_groups", t.max_groups);
  visit("push_bytes", t.push_bytes);
  visit("subgroup", t.subgroup);
  visit("subgroup_min", t.subgroup_min);
  visit("subgroup_max", t.subgroup_max);
  visit("subgroup_size_control", t.subgroup_size_control);
  visit("memory_bytes", t.memory_bytes);
  visit("max_allocation", t.max_allocation);
  visit("bandwidth", t.bandwidth);
  visit("timestamp_ns", t.timestamp_ns);
  visit("rounding_rte", t.rounding_rte);
  visit("preserve_nan_inf", t.preserve_nan_inf);
  visit("denorm_preserve", t.denorm_preserve);
  visit("matrices", t.matrices);
  visit("numerics", t.numerics);
}

// ---- writing ----

// A map that is not known is left out, not written as an empty list.
bool left_out(const std::vector<uint16_t>& map) { return map.empty(); }
template <typename T>
bool left_out(const T&) {
  return false;
}

struct Writer {
  template <typename T>
  static Json value(const T& v) {
    if constexpr (std::is_same_v<T, DType>) {
      return std::string(name(v));
    } else if constexpr (std::is_same_v<T, Numerics>) {
      Json object = Json::object();
      visit_numerics(v, Writer{object});
      return object;
    } else if constexpr (std::is_same_v<T, MatrixShape>) {
      Json object = Json::object();
      visit_matrix(v, Writer{object});
      return object;
    } else if constexpr (std::is_same_v<T, std::vector<MatrixShape>>) {
      Json list = Json::array();
      for (const MatrixShape& shape : v) list.push_back(value(shape));
      return list;
    } else {
      return Json(v);
    }
  }
  template <typename T>
  void operator()(const char* key, const T& v) const {
    if (!left_out(v)) object[key] = value(v);
  }
  Json& object;
};

// Two spaces a level; lists of numbers stay on one line (a fragment map has hundreds).
void print(const Json& json, const std::string& indent, std::string& out) {
  const bool nested = json.is_array() && !json.empty() && json[0].is_structured();
  if (!json.is_object() && !nested) {
    out += json.dump(-1, ' ', false, Json::error_handler_t::replace);
    return;
  }
  const std::string inner = indent + "  ";
  out += json.is_object() ? "{" : "[";
  const char* separator = "\n";
  for (const auto& item : json.items()) {
    out += separator + inner;
    if (json.is_object()) out += Json(item.key()).dump() + ": ";
    print(item.value(), inner, out);
    separator = ",\n";
  }
  out += "\n" + indent + (json.is_object() ? "}" : "]");
}

// ---- reading ----

template <typename T>
inline constexpr bool kIsShortList = std::is_same_v<T, std::vector<uint16_t>>;

std::string text_of(const Json& json) {
  std::string text = json.dump(-1, ' ', false, Json::error_handler_t::replace);
  if (text.size() > 40) text = text.substr(0, 37) + "...";
  return text;
}

[[noreturn]] void wrong(const std::string& where, const Json& found, std::string_view wanted) {
  fail(ErrorCode::bad_argument, "traits: {}: found {}, wanted {}", where, text_of(found), wanted);
}

struct Reader {
  const Json& object;
  std::string path;  // "" or "numerics." and the like
  std::set<std::string>& seen;

  template <typename T>
  void operator()(const char* key, T& v) const {
    seen.insert(key);
    const auto found = object.find(key);
    if (found == object.end()) {
      if constexpr (kIsShortList<T>) return;
      fail(ErrorCode::bad_argument, "traits: {}{}: the member is missing", path, key);
    }
    read(*found, path + key, v);
  }

  static void read(const Json& json, const std::string& where, std::string& v) {
    if (!json.is_string()) wrong(where, json, "a string");
    v = json.get<std::string>();
  }
  static void read(const Json& json, const std::string& where, bool& v) {
    if (!json.is_boolean()) wrong(where, json, "true or false");
    v = json.get<bool>();
  }
  static void read(const Json& json, const std::string& where, double& v) {
    if (!json.is_number() || !(json.get<double>() >= 0) || !std::isfinite(json.get<double>()))
      wrong(where, json, "a number that is not negative");
    v = json.get<double>();
  }
  static void read(const Json& json, const std::string& where, DType& v) {
    const auto type = json.is_string() ? dtype_from_name(json.get<std::string>()) : std::nullopt;
    if (!type) wrong(where, json, "the name of an element type");
    v = *type;
  }
  template <typename T>
  requires std::is_unsigned_v<T>
  static void read(const Json& json, const std::string& where, T& v) {
    if (!json.is_number_unsigned() || json.get<uint64_t>() > std::numeric_limits<T>::max())
      wrong(where, json,
            fmt::format("an integer from 0 to {}", uint64_t{std::numeric_limits<T>::max()}));
    v = json.get<T>();
  }
  static void read(const Json& json, const std::string& where, uint32_t (&v)[3]) {
    if (!json.is_array() || json.size() != 3) wrong(where, json, "a list of three integers");
    for (size_t i = 0; i < 3; i++) read(json[i], fmt::format("{}[{}]", where, i), v[i]);
  }
  template <typename T>
  static void read(const Json& json, const std::string& where, std::vector<T>& v) {
    if (!json.is_array()) wrong(where, json, "a list");
    v.assign(json.size(), T{});
    for (size_t i = 0; i < json.size(); i++) read(json[i], fmt::format("{}[{}]", where, i), v[i]);
  }
  static void read(const Json& json, const std::string& where, Numerics& v) {
    members(json, where, [&](const Reader& reader) { visit_numerics(v, reader); });
  }
  static void read(const Json& json, const std::string& where, MatrixShape& v) {
    members(json, where, [&](const Reader& reader) { visit_matrix(v, reader); });
  }

  // Reads the members of an object by `visit`, then refuses the ones that nobody asked for.
  template <typename Visit>
  static void members(const Json& json, const std::string& where, Visit visit) {
    if (!json.is_object()) wrong(where.empty() ? "the file" : where, json, "an object");
    std::set<std::string> seen;
    const std::string prefix = where.empty() ? "" : where + ".";
    visit(Reader{json, prefix, seen});
    for (const auto& item : json.items())
      if (!seen.contains(item.key()))
        fail(ErrorCode::bad_argument, "traits: {}{}: no member has this name", prefix, item.key());
  }
};

// ---- what every user of traits may rely on ----

void require(bool ok, std::string_view where, std::string_view rule) {
  if (!ok) fail(ErrorCode::bad_argument, "traits: {}: {}", where, rule);
}

bool is_power_of_two(uint32_t v) { return v != 0 && (v & (v - 1)) == 0; }

void check_map(const std::vector<uint16_t>& map, uint32_t elements, uint32_t lanes,
               const std::string& where) {
  require(map.size() % lanes == 0, where, "the length must be a multiple of the lanes");
  require(map.empty() || map.size() >= elements, where, "an element of the matrix has no lane");
  for (const uint16_t element : map)
    require(element < elements, where, fmt::format("{} is outside the matrix", element));
}

void check_traits(const DeviceTraits& t) {
  require(t.cores > 0, "cores", "must not be 0");
  require(t.max_workgroup > 0, "max_workgroup", "must not be 0");
  for (const uint32_t groups : t.max_groups) require(groups > 0, "max_groups", "must not be 0");
  require(is_power_of_two(t.subgroup), "subgroup", "must be a power of two");
  require(is_power_of_two(t.subgroup_min), "subgroup_min", "must be a power of two");
  require(is_power_of_two(t.subgroup_max), "subgroup_max", "must be a power of two");
  require(t.subgroup_min <= t.subgroup && t.subgroup <= t.subgroup_max, "subgroup",
          "must lie between subgroup_min and subgroup_max");
  for (size_t i = 0; i < t.matrices.size(); i++) {
    const MatrixShape& s = t.matrices[i];
    const std::string where = fmt::format("matrices[{}]", i);
    require(s.m > 0 && s.n > 0 && s.k > 0 && s.lanes > 0, where, "a size is 0");
    check_map(s.map_a, uint32_t{s.m} * s.k, s.lanes, where + ".map_a");
    check_map(s.map_b, uint32_t{s.k} * s.n, s.lanes, where + ".map_b");
    check_map(s.map_c, uint32_t{s.m} * s.n, s.lanes, where + ".map_c");
  }
}

}  // namespace

bool DeviceTraits::has(DType type) const {
  switch (type) {
    case DType::b1:
    case DType::i32:
    case DType::u32:
    case DType::f32: return true;
    case DType::i8:
    case DType::u8: return i8;
    case DType::i16:
    case DType::u16: return i16;
    case DType::i64:
    case DType::u64: return i64;
    case DType::f16: return f16;
    case DType::bf16: return bf16;
    case DType::f64: return f64;
  }
  return false;
}

const MatrixShape* DeviceTraits::matrix(DType a, DType b, DType c) const {
  for (const MatrixShape& shape : matrices)
    if (shape.a == a && shape.b == b && shape.c == c) return &shape;
  return nullptr;
}

std::string to_json(const DeviceTraits& traits) {
  Json object = Json::object();
  visit_traits(traits, Writer{object});
  std::string out;
  print(object, "", out);
  return out + "\n";
}

DeviceTraits traits_from_json(const std::string& text) {
  Json json;
  try {
    json = Json::parse(text);
  } catch (const Json::exception& e) {
    fail(ErrorCode::bad_argument, "traits: the file is not JSON ({})", e.what());
  }
  // What `pumice devices --json` writes: a list of devices with their traits.
  if (json.is_array() && !json.empty()) json = Json(json[0]);
  if (json.is_object() && json.contains("traits")) json = Json(json["traits"]);
  DeviceTraits traits;
  Reader::members(json, "", [&](const Reader& reader) { visit_traits(traits, reader); });
  check_traits(traits);
  return traits;
}

DeviceTraits interpreter_traits() {
  DeviceTraits t;
  t.name = "interpreter";
  t.driver = "pumice";
  t.architecture = "interp";
  t.api = "interp";
  t.software = true;
  t.i8 = t.i16 = t.i64 = t.f16 = t.f64 = t.bf16 = t.dot4 = t.atomic_i64 = true;
  t.shared_bytes = 48 * 1024;
  t.shared_bytes_per_core = 48 * 1024;
  t.max_workgroup = 1024;
  t.subgroup = 32;
  t.subgroup_min = 4;
  t.subgroup_max = 64;
  t.subgroup_size_control = true;
  t.memory_bytes = uint64_t{8} << 30;
  t.max_allocation = uint64_t{4} << 30;
  t.timestamp_ns = 1;
  t.rounding_rte = t.preserve_nan_inf = t.denorm_preserve = 16 | 32 | 64;
  const auto add = [&](DType a, DType b, DType c) {
    t.matrices.push_back(MatrixShape{16, 16, 16, a, b, c, 32, {}, {}, {}});
  };
  add(DType::f16, DType::f16, DType::f32);
  add(DType::f16, DType::f16, DType::f16);
  add(DType::bf16, DType::bf16, DType::f32);
  add(DType::i8, DType::i8, DType::i32);
  add(DType::u8, DType::u8, DType::u32);
  return t;
}

}  // namespace pumice
