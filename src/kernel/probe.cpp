// SPDX-License-Identifier: Apache-2.0
// The probes of arithmetic. Each lane takes three numbers and stores the results of all
// instructions in question; the host computes the same and compares bits.
#include "kernel/probe.h"

#include <bit>
#include <cmath>
#include <limits>

#include "base/check.h"
#include "kernel/builder.h"
#include "pumice/error.h"

namespace pumice::kernel {
namespace {

constexpr uint32_t kCount = 4096, kWorkgroup = 64;
// Numbers from kNormal on may be subnormal or special.
constexpr uint32_t kNormal = 3072, kSpecial = 3968;

// A generator of its own, so that the probes are the same everywhere.
struct Random {
  uint64_t state = 0x9e3779b97f4a7c15u;
  uint32_t next() {
    state = state * 6364136223846793005u + 1442695040888963407u;
    return static_cast<uint32_t>(state >> 32);
  }
  /// A number with a random sign and mantissa and an exponent in low..high.
  double number(int mantissa_bits, int low, int high) {
    const double m =
        1 + std::ldexp(static_cast<double>(next() >> (32 - mantissa_bits)), -mantissa_bits);
    const auto span = static_cast<uint32_t>(high - low + 1);
    const double v = std::ldexp(m, low + static_cast<int>(next() % span));
    return next() % 2 != 0 ? v : -v;
  }
};

struct Triple {
  double a, b, c;
};

/// What a float type is made of, and how to round to it.
struct Kind {
  DType type;
  int mantissa;  // stored bits
  int least;     // exponent of the smallest normal number
  double (*round)(double);
};
double round_f32(double x) { return static_cast<double>(static_cast<float>(x)); }
double round_f16(double x) { return static_cast<double>(f16_to_f32(f64_to_f16(x))); }
double round_f64(double x) { return x; }
constexpr Kind kF32 = {DType::f32, 23, -126, round_f32};
constexpr Kind kF16 = {DType::f16, 10, -14, round_f16};
constexpr Kind kF64 = {DType::f64, 52, -1022, round_f64};

std::vector<Triple> triples(const Kind& k) {
  Random random;
  const int bits = std::min(k.mantissa, 31);
  const int wide = k.type == DType::f16 ? 4 : 30;  // of exponents around 0
  std::vector<Triple> out;
  for (uint32_t i = 0; i < kNormal; i++) {
    Triple t{random.number(bits, -wide, wide), random.number(bits, -wide, wide),
             random.number(bits, -wide, wide)};
    // Sums that cancel, or lie next to the middle of two numbers, tell a fused fma.
    if (i % 3 == 0) t.c = -k.round(t.a * t.b);
    if (i % 3 == 1) t.c = k.round(std::ldexp(t.a * t.b, static_cast<int>(random.next() % 9) - 4));
    out.push_back(t);
  }
  for (uint32_t i = kNormal; i < kSpecial; i++) {
    // Subnormal operands, products and sums.
    Triple t{random.number(bits, k.least - 8, k.least - 1), random.number(bits, -2, 3),
             random.number(bits, k.least - 6, k.least + 2)};
    t.a = k.round(t.a), t.c = k.round(t.c);
    if (i % 2 == 0) {
      t.a = random.number(bits, k.least / 2 - 3, k.least / 2 + 1);
      t.b = random.number(bits, k.least / 2 - 2, k.least / 2 + 1);
    }
    out.push_back(t);
  }
  const double infinity = std::numeric_limits<double>::infinity();
  for (uint32_t i = kSpecial; i < kCount; i++)
    out.push_back({i % 2 != 0 ? infinity : -infinity, random.number(bits, -2, 2), 1});
  return out;
}

// ---- bits of a number in words: f16 in the low half of one, f64 in two

uint32_t words(const Kind& k) { return k.type == DType::f64 ? 2 : 1; }

void put(const Kind& k, double x, std::vector<uint32_t>& out) {
  switch (k.type) {
    case DType::f16: out.push_back(f64_to_f16(x)); break;
    case DType::f32: out.push_back(std::bit_cast<uint32_t>(static_cast<float>(x))); break;
    default: {
      const auto bits = std::bit_cast<uint64_t>(x);
      out.push_back(static_cast<uint32_t>(bits));
      out.push_back(static_cast<uint32_t>(bits >> 32));
    }
  }
}
double get(const Kind& k, const uint32_t* at) {
  switch (k.type) {
    case DType::f16: return static_cast<double>(f16_to_f32(static_cast<uint16_t>(at[0])));
    case DType::f32: return static_cast<double>(std::bit_cast<float>(at[0]));
    default: return std::bit_cast<double>(uint64_t{at[1]} << 32 | at[0]);
  }
}
bool same(double a, double b) {
  return std::bit_cast<uint64_t>(a) == std::bit_cast<uint64_t>(b) ||
         (std::isnan(a) && std::isnan(b));
}

// ---- the kernels

enum Result : uint32_t { kAdd, kMul, kDiv, kSqrt, kFma, kZero, kResults };

Val load_number(const Kind& k, const Ptr& in, const Val& i) {
  if (k.type != DType::f16) {
    const Val x = in.as(k.type).load(i);
    return x;
  }
  const Val word = in.load(i);
  return bitcast(word, Type::number(DType::f16, 2))[0];
}
void store_number(const Kind& k, const Ptr& out, const Val& i, const Val& x) {
  if (k.type != DType::f16)
    out.as(k.type).store(i, x);
  else
    out.store(i, bitcast(vector({x, x}), DType::u32));
}

Probe arithmetic_probe(const Kind& kind) {
  Builder k(fmt::format("probe_{}", name(kind.type)), kWorkgroup);
  const Ptr in = k.pointer("in", DType::u32, {.readonly = true});
  const Ptr out = k.pointer("out", DType::u32);
  const Val i = k.workgroup_id(0) * kWorkgroup + k.lane();
  const Val a = load_number(kind, in, i * 3), b = load_number(kind, in, i * 3 + 1);
  const Val c = load_number(kind, in, i * 3 + 2);
  const auto store = [&](Result r, const Val& x) {
    store_number(kind, out, i * static_cast<uint32_t>(kResults) + static_cast<uint32_t>(r), x);
  };
  store(kAdd, a + c);
  store(kMul, a * b);
  store(kDiv, a / b);
  store(kSqrt, sqrt(abs(c)));
  store(kFma, fma(a, b, c));
  store(kZero, a - a * 0.0);
  Probe probe;
  probe.kernel = k.finish();
  probe.name = probe.kernel.name;
  for (const Triple& t : triples(kind))
    for (const double x : {t.a, t.b, t.c}) put(kind, x, probe.input);
  probe.output_words = size_t{kCount} * kResults * words(kind);
  probe.groups = kCount / kWorkgroup;
  return probe;
}

// f32 that f16 rounds: ties and their neighbours, the largest, and what becomes infinite.
std::vector<float> conversions() {
  Random random;
  std::vector<float> out;
  for (uint32_t i = 0; i < kCount; i++) {
    const auto half = static_cast<uint16_t>(0x400 + random.next() % 0x7800);
    const float x = f16_to_f32(half), ulp = std::ldexp(1.0f, std::ilogb(x) - 10);
    float v = x + ulp * 0.5f;
    if (i % 4 == 1) v = std::nextafter(v, 0.0f);
    if (i % 4 == 2) v = std::nextafter(v, std::numeric_limits<float>::infinity());
    if (i % 4 == 3) v = x;
    out.push_back(i % 8 < 4 ? v : -v);
  }
  return out;
}

Probe conversion_probe() {
  Builder k("probe_f16_conversion", kWorkgroup);
  const Ptr in = k.pointer("in", DType::u32, {.readonly = true});
  const Ptr out = k.pointer("out", DType::u32);
  const Val i = k.workgroup_id(0) * kWorkgroup + k.lane();
  const Val x = in.as(DType::f32).load(i);
  const Val half = cast(x, DType::f16);
  out.as(DType::f32).store(i * 2, cast(half, DType::f32));
  store_number(kF16, out, i * 2 + 1, half);
  Probe probe;
  probe.kernel = k.finish();
  probe.name = probe.kernel.name;
  for (const float v : conversions()) probe.input.push_back(std::bit_cast<uint32_t>(v));
  probe.output_words = size_t{kCount} * 2;
  probe.groups = kCount / kWorkgroup;
  return probe;
}

// ---- what the outputs say

// a * b + c rounded once. In f16 the product is exact in double, whose sum is rounded to odd.
double fused(const Kind& k, const Triple& t) {
  if (k.type == DType::f64) return std::fma(t.a, t.b, t.c);
  if (k.type == DType::f32)
    return static_cast<double>(
        std::fma(static_cast<float>(t.a), static_cast<float>(t.b), static_cast<float>(t.c)));
  const double p = t.a * t.b, sum = p + t.c;
  const double part = sum - p, error = (p - (sum - part)) + (t.c - part);
  double odd = sum;
  if (error != 0 && std::isfinite(sum) && (std::bit_cast<uint64_t>(sum) & 1) == 0)
    odd = std::nextafter(sum, error > 0 ? HUGE_VAL : -HUGE_VAL);
  return k.round(odd);
}

struct Findings {
  bool add = true, mul = true, div = true, sqrt = true, fma = true;  // exact on normal numbers
  bool subnormals = true;                                            // add and multiply keep them
  bool fma_subnormals = true;                                        // so does fma
  bool zero = true;                                                  // inf * 0 is NaN
};

Findings findings(const Kind& k, const ProbeOutput& output) {
  CHECK(output.size() >= size_t{kCount} * kResults * words(k), "output of {} words", output.size());
  const std::vector<Triple> all = triples(k);
  Findings f;
  const double least = std::ldexp(1.0, k.least);
  for (uint32_t i = 0; i < kSpecial; i++) {
    const Triple& t = all[i];
    const auto got = [&](Result r) { return get(k, &output[(i * kResults + r) * words(k)]); };
    const auto normal = [&](double x) { return x == 0 || std::fabs(x) >= least; };
    // A quotient or root of two f16 or f32, rounded to double first, rounds to the same.
    const double add = k.round(t.a + t.c), mul = k.round(t.a * t.b), div = k.round(t.a / t.b);
    const double root = k.round(std::sqrt(std::fabs(t.c))), fma = fused(k, t);
    // Only the first numbers are normal, and so are the results of all but cancellation among them.
    if (i < kNormal) {
      f.add &= same(got(kAdd), add) || !normal(add);
      f.mul &= same(got(kMul), mul) || !normal(mul);
      f.div &= same(got(kDiv), div) || !normal(div) || std::isinf(div);
      f.sqrt &= same(got(kSqrt), root);
      f.fma &= same(got(kFma), fma) || !normal(fma) || fma == 0 || std::isinf(fma);
    } else {
      f.subnormals &= same(got(kAdd), add) && same(got(kMul), mul);
      // An unfused one is told apart by its own test.
      const double unfused = k.round(mul + t.c);
      f.fma_subnormals &= same(got(kFma), fma) || same(got(kFma), unfused);
    }
  }
  for (uint32_t i = kSpecial; i < kCount; i++)
    f.zero &= std::isnan(get(k, &output[(i * kResults + kZero) * words(k)]));
  return f;
}

bool conversions_exact(const ProbeOutput& output) {
  CHECK(output.size() >= size_t{kCount} * 2, "output of {} words", output.size());
  const std::vector<float> x = conversions();
  for (uint32_t i = 0; i < kCount; i++) {
    const uint16_t want = f32_to_f16(x[i]);
    if ((output[2 * i + 1] & 0xffff) != want) return false;
    if (output[2 * i] != std::bit_cast<uint32_t>(f16_to_f32(want))) return false;
  }
  return true;
}

}  // namespace

std::vector<Probe> numerics_probes(const DeviceTraits& traits) {
  std::vector<Probe> probes = {arithmetic_probe(kF32)};
  if (traits.f16) {
    probes.push_back(arithmetic_probe(kF16));
    probes.push_back(conversion_probe());
  }
  if (traits.f64) probes.push_back(arithmetic_probe(kF64));
  return probes;
}

Numerics evaluate_numerics(const DeviceTraits& traits, std::span<const ProbeOutput> outputs) {
  const size_t wanted = 1u + (traits.f16 ? 2 : 0) + (traits.f64 ? 1 : 0);
  CHECK(outputs.size() == wanted, "{} outputs of probes, wanted {}", outputs.size(), wanted);
  Numerics n;
  size_t next = 0;
  const Findings single = findings(kF32, outputs[next++]);
  if (!single.add || !single.mul)
    fail(ErrorCode::refused, "device {}: f32 {} is not exact", traits.name,
         single.add ? "multiplication" : "addition");
  n.fused_fma_f32 = single.fma;
  n.exact_div_f32 = single.div;
  n.exact_sqrt_f32 = single.sqrt;
  n.keeps_subnormals_f32 = single.subnormals;
  n.fma_keeps_subnormals_f32 = single.fma_subnormals;
  n.inf_times_zero_is_nan = single.zero;
  if (traits.f16) {
    const Findings half = findings(kF16, outputs[next++]);
    n.fused_fma_f16 = half.fma;
    n.exact_div_f16 = half.div;
    n.exact_sqrt_f16 = half.sqrt;
    n.keeps_subnormals_f16 = half.subnormals;
    n.convert_f16_exact = conversions_exact(outputs[next++]);
  }
  if (traits.f64) {
    const Findings wide = findings(kF64, outputs[next++]);
    n.exact_div_f64 = wide.div;
    n.exact_sqrt_f64 = wide.sqrt;
  }
  return n;
}

}  // namespace pumice::kernel
