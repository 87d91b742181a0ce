// SPDX-License-Identifier: Apache-2.0
// Which lane holds which element of a matrix: a tile holds each element's number, digit by digit
// (every element type holds 0 to 63 exactly), and each lane stores what it finds in its fragment.
#include <array>

#include "base/check.h"
#include "kernel/builder.h"
#include "kernel/probe.h"

namespace pumice::kernel {
namespace {

constexpr uint32_t kDigitBits = 6, kDigits = 3;

struct Part {
  MatrixUse use;
  uint32_t rows, columns, lanes;
  DType elem;
  uint32_t per_lane() const { return rows * columns / lanes; }
};

std::array<Part, 3> parts(const MatrixShape& s) {
  return {{{MatrixUse::a, s.m, s.k, s.lanes, s.a},
           {MatrixUse::b, s.k, s.n, s.lanes, s.b},
           {MatrixUse::accumulator, s.m, s.n, s.lanes, s.c}}};
}

Probe map_probe(const Part& f) {
  CHECK(f.lanes >= 1 && f.rows * f.columns % f.lanes == 0 &&
            f.rows * f.columns <= 1u << (kDigits * kDigitBits),
        "a matrix of {}x{} held by {} lanes", f.rows, f.columns, f.lanes);
  Builder k(fmt::format("probe_map_{}_{}x{}", static_cast<int>(f.use), f.rows, f.columns), f.lanes,
            f.lanes);
  k.pointer("in", DType::u32, {.readonly = true});
  const Ptr out = k.pointer("out", DType::u32);
  // Rows of a multiple of 16 bytes, written in words.
  const auto bytes = static_cast<uint32_t>(size_of(f.elem));
  const uint32_t pitch = (f.columns * bytes + 15) / 16 * 16 / bytes;
  const uint32_t step = bytes < 4 ? 4 / bytes : 1;
  const uint32_t words = pitch / step;
  const TileRef tile = k.tile("numbers", f.rows, pitch, f.elem);
  for (uint32_t digit = 0; digit < kDigits; digit++) {
    if (digit > 0) k.barrier();
    k.for_(k.lane(), f.rows * words, f.lanes, [&](Val i) {
      const Val row = i / words, column = i % words * step;
      const auto number = [&](uint32_t j) {
        return cast(
            ((row * f.columns + column + j) >> (digit * kDigitBits)) & ((1u << kDigitBits) - 1),
            f.elem);
      };
      if (step == 1)
        tile.store(row, column, number(0));
      else if (step == 2)
        tile.store(row, column, vector({number(0), number(1)}));
      else
        tile.store(row, column, vector({number(0), number(1), number(2), number(3)}));
    });
    k.barrier();
    const Val m = tile.matrix(f.use, static_cast<int>(f.rows), static_cast<int>(f.columns), 0, 0);
    for (uint32_t i = 0; i < f.per_lane(); i++)
      out.store(k.lane() * (kDigits * f.per_lane()) + (i * kDigits + digit),
                cast(matrix_get(m, static_cast<int>(i)), DType::u32));
  }
  Probe probe;
  probe.kernel = k.finish();
  probe.name = probe.kernel.name;
  probe.output_words = size_t{kDigits} * f.rows * f.columns;
  return probe;
}

std::vector<uint16_t> map_of(const Part& f, const ProbeOutput& output) {
  const uint32_t count = f.rows * f.columns;
  CHECK(output.size() >= size_t{kDigits} * count, "output of {} words", output.size());
  std::vector<uint16_t> map;
  std::vector<bool> held(count);
  for (uint32_t i = 0; i < count; i++) {
    uint32_t number = 0;
    for (uint32_t digit = 0; digit < kDigits; digit++)
      number |= output[i * kDigits + digit] << (digit * kDigitBits);
    if (number >= count || held[number]) return {};
    held[number] = true;
    map.push_back(static_cast<uint16_t>(number));
  }
  return map;
}

}  // namespace

std::vector<Probe> map_probes(const DeviceTraits& traits) {
  std::vector<Probe> probes;
  for (const MatrixShape& shape : traits.matrices)
    for (const Part& f : parts(shape)) probes.push_back(map_probe(f));
  return probes;
}

std::vector<MatrixShape> evaluate_maps(const DeviceTraits& traits,
                                       std::span<const ProbeOutput> outputs) {
  CHECK(outputs.size() == 3 * traits.matrices.size(), "{} outputs for {} shapes", outputs.size(),
        traits.matrices.size());
  std::vector<MatrixShape> shapes = traits.matrices;
  for (size_t i = 0; i < shapes.size(); i++) {
    const std::array<Part, 3> f = parts(shapes[i]);
    shapes[i].map_a = map_of(f[0], outputs[3 * i]);
    shapes[i].map_b = map_of(f[1], outputs[3 * i + 1]);
    shapes[i].map_c = map_of(f[2], outputs[3 * i + 2]);
  }
  return shapes;
}

}  // namespace pumice::kernel
