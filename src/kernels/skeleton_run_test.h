// SPDX-License-Identifier: Apache-2.0
// For tests: tensors in host memory, and recipes run over them on the sanitizing interpreter.
#pragma once

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <ctime>
#include <map>
#include <random>
#include <string>
#include <vector>

#include "base/check.h"
#include "base/dtype.h"
#include "emit/interp/interp.h"
#include "kernel/meaning.h"
#include "kernels/launch.h"
#include "view/host.h"
#include "view/locate.h"

namespace pumice::kernels {

struct TestTensor {
  DType type{};
  Dims dims;  // may hold symbols
  std::vector<Dim> strides;
  std::vector<std::byte> bytes;
  bool initialised = true;
};

/// A set of tensors, and values for the symbols of their dims.
class TestWorld {
 public:
  std::map<std::string, int64_t> symbols;
  std::vector<TestTensor> tensors;
  interp::Options options;
  uint32_t most_groups = kMostGroups;  // of a grid's axis; fewer only where a dim of it is live
  uint32_t seed = 1;

  int64_t number(const Dim& d) const { return d.evaluate(symbols).value(); }

  /// Dense in the order of its axes; f gives element i as a double.
  view::View input(DType type, const Dims& dims, const std::function<double(size_t)>& f) {
    add(type, dims, true);
    TestTensor& t = tensors.back();
    const size_t n = t.bytes.size() / size_of(type);
    std::vector<double> values(n);
    for (size_t i = 0; i < n; i++) values[i] = f(i);
    const void* from = values.data();
    if (n == 0) return view::access(id(), type, dims);
    if (type == DType::f64)
      std::memcpy(t.bytes.data(), values.data(), t.bytes.size());
    else
      kernel::evaluate(kernel::Op::cast, DType::f64, type, 0, Numerics{}, &from, t.bytes.data(), n);
    return view::access(id(), type, dims);
  }
  view::View random(DType type, const Dims& dims, double low = -2, double high = 2) {
    std::mt19937 rng(seed++);
    return input(type, dims, [&](size_t) {
      const double u = static_cast<double>(rng()) / 4294967296.0;
      const double v = low + (high - low) * u;
      return is_float(type) ? v : type == DType::b1 ? static_cast<double>(u < 0.5) : std::floor(v);
    });
  }
  /// A result that nobody has written yet.
  view::TensorId output(DType type, const Dims& dims) {
    add(type, dims, false);
    return id();
  }
  view::TensorId id() const { return static_cast<view::TensorId>(tensors.size() - 1); }
  TestTensor& operator[](view::TensorId t) { return tensors[static_cast<uint32_t>(t)]; }
  const TestTensor& operator[](view::TensorId t) const { return tensors[static_cast<uint32_t>(t)]; }

  view::View located(const view::View& v) const {
    return locate(v, [this](view::TensorId t) { return (*this)[t].strides; });
  }
  /// Stores the element at index i of the axes at index i of the tensor.
  Store store(const view::View& value, view::TensorId tensor) const {
    std::vector<view::Affine> place;
    for (size_t i = 0; i < value.rank(); i++) place.push_back(view::Affine::axis(i));
    return store(value, tensor, place);
  }
  Store store(const view::View& value, view::TensorId tensor,
              const std::vector<view::Affine>& place) const {
    return {located(value), tensor, view::locate(place, (*this)[tensor].strides)};
  }

  /// The view's elements by the host's evaluation.
  std::vector<std::byte> expected(const view::View& v) const {
    const std::map<std::string, Dim> numbers(symbols.begin(), symbols.end());
    const view::View known = substitute_symbols(v, numbers);
    return view::evaluate(known, [this](view::TensorId t) -> view::HostTensor {
      std::vector<int64_t> strides;
      for (const Dim& s : (*this)[t].strides) strides.push_back(number(s));
      return {(*this)[t].bytes.data(), strides};
    });
  }
  /// Elements of a tensor as doubles.
  std::vector<double> values(view::TensorId t) const {
    return doubles((*this)[t].type, (*this)[t].bytes);
  }
  static std::vector<double> doubles(DType type, const std::vector<std::byte>& bytes) {
    std::vector<double> out(bytes.size() / size_of(type));
    const void* from = bytes.data();
    if (out.empty()) return out;
    if (type == DType::f64)
      std::memcpy(out.data(), bytes.data(), bytes.size());
    else
      kernel::evaluate(kernel::Op::cast, type, DType::f64, 0, Numerics{}, &from, out.data(),
                       out.size());
    return out;
  }

  /// Builds the recipe, fills the argument block and runs it; expects no findings.
  void run(const Recipe& recipe) {
    const kernel::Kernel kernel = recipe.build();
    interp::Interpreter interpreter(kernel, interpreter_traits());
    interp::Memory memory;
    constexpr uint64_t kApart = uint64_t{1} << 32;
    for (size_t i = 0; i < tensors.size(); i++) {
      tensors[i].bytes.resize(tensors[i].bytes.size());
      memory.add((i + 1) * kApart, tensors[i].bytes.data(), tensors[i].bytes.size(),
                 fmt::format("t{}", i), tensors[i].initialised);
    }
    std::vector<std::vector<uint32_t>> buffers;
    for (const Dim& b : recipe.buffers)
      buffers.emplace_back(static_cast<size_t>(number(b) + 3) / 4, 0u);
    for (size_t i = 0; i < buffers.size(); i++)
      memory.add((i + 100) * kApart, buffers[i].data(), buffers[i].size() * 4, "buffer", true);
    std::vector<uint32_t> dims;
    std::vector<uint8_t> block;
    const auto append = [&block](const auto& value) {
      block.resize((block.size() + sizeof(value) - 1) / sizeof(value) * sizeof(value));
      const size_t at = block.size();
      block.resize(at + sizeof(value));
      std::memcpy(block.data() + at, &value, sizeof(value));
    };
    using Kind = view::ArgumentValue::Kind;
    for (const view::ArgumentValue& a : recipe.launch.arguments) {
      const auto word = [&] { return static_cast<uint32_t>(number(a.dim)); };
      switch (a.kind) {
        case Kind::tensor: append((static_cast<uint64_t>(a.tensor) + 1) * kApart); break;
        case Kind::buffer: append((uint64_t{a.number} + 100) * kApart); break;
        case Kind::dims: append(uint64_t{99} * kApart); break;
        case Kind::word: append(word()); break;
        case Kind::divisor:
          for (const uint32_t w : kernel::divisor_words(std::max(word(), 1u))) append(w);
          break;
        case Kind::slot:
          append(static_cast<uint32_t>(dims.size()));
          dims.push_back(word());
          break;
        case Kind::slots:
          append(static_cast<uint32_t>(dims.size()));
          for (const uint32_t w : kernel::divisor_words(std::max(word(), 1u))) dims.push_back(w);
          break;
        case Kind::bits: append(a.number); break;
      }
    }
    dims.push_back(0);
    memory.add(99 * kApart, dims.data(), dims.size() * 4, "dims", true);
    ASSERT_EQ((block.size() + 3) / 4 * 4, kernel.argument_bytes());
    std::array<uint32_t, 3> grid{};
    for (size_t i = 0; i < 3; i++) {
      grid[i] = static_cast<uint32_t>(number(recipe.launch.grid[i]));
      ASSERT_LE(grid[i], kMostGroups);
      grid[i] = std::min(grid[i], most_groups);
      if (grid[i] == 0) return;
    }
    const std::clock_t start = std::clock();
    const interp::Report report = interpreter.run(memory, grid, block, options);
    cpu_seconds = static_cast<double>(std::clock() - start) / CLOCKS_PER_SEC;
    lane_instructions = report.lane_instructions;
    for (const interp::FindingText& f : report.findings)
      ADD_FAILURE() << f.location << ": " << f.text << " (" << f.count << " times)\n" << recipe.key;
    for (const auto& buffer : buffers)
      for (const uint32_t w : buffer) ASSERT_EQ(w, 0u) << "a buffer is not zero after the launch";
  }
  uint64_t lane_instructions = 0;  // of the last run
  double cpu_seconds = 0;

 private:
  void add(DType type, const Dims& dims, bool initialised) {
    TestTensor t;
    t.type = type;
    t.dims = dims;
    t.strides.assign(dims.size(), Dim(1));
    for (size_t i = dims.size(); i-- > 1;) t.strides[i - 1] = t.strides[i] * dims[i];
    t.bytes.resize(static_cast<size_t>(number(product(dims))) * size_of(type));
    t.initialised = initialised;
    tensors.push_back(std::move(t));
  }
};

}  // namespace pumice::kernels
