// SPDX-License-Identifier: Apache-2.0
// For tests and measurements: the decode block of ops/decode_block.h in plain loops, in float64
// (the judge) and as a sequential f32 loop (what the promise is measured by), and a session that
// runs it token by token.
#pragma once

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstring>
#include <limits>
#include <map>
#include <string>
#include <vector>

#include "ops/decode_block.h"
#include "session/loaded.h"

namespace pumice::session {

/// Sums in index order, one multiply and one add each.
template <typename T>
class DecodeReference {
 public:
  explicit DecodeReference(const ops::DecodeBlock& block) : block_(block) {
    for (const onnx::Tensor& t : ops::decode_block(block).graph.initializers) {
      if (t.data_type != onnx::DataType::float32) continue;
      std::vector<float> numbers(t.bytes / 4);
      std::memcpy(numbers.data(), t.data, t.bytes);
      weights_[t.name].assign(numbers.begin(), numbers.end());
    }
  }

  /// y of this token after all those before it.
  std::vector<T> step(const std::vector<float>& token) {
    const std::vector<T> x(token.begin(), token.end());
    const auto width = static_cast<size_t>(block_.width());
    const auto size = static_cast<size_t>(block_.size);
    const std::vector<T> qkv = linear(x, "w_qkv", "b_qkv");
    keys_.emplace_back(qkv.begin() + block_.width(), qkv.begin() + 2 * block_.width());
    values_.emplace_back(qkv.begin() + 2 * block_.width(), qkv.end());
    std::vector<T> context(width);
    for (size_t first = 0; first < width; first += size) {  // a head
      std::vector<T> p(keys_.size());
      T most = -std::numeric_limits<T>::infinity(), total = 0;
      for (size_t row = 0; row < p.size(); row++) {
        for (size_t i = 0; i < size; i++) p[row] += qkv[first + i] * keys_[row][first + i];
        p[row] /= weights_.at("root")[0];
        most = std::max(most, p[row]);
      }
      for (T& v : p) total += v = std::exp(v - most);
      for (size_t row = 0; row < p.size(); row++)
        for (size_t i = 0; i < size; i++)
          context[first + i] += p[row] / total * values_[row][first + i];
    }
    std::vector<T> y = linear(context, "w_out", "b_out");
    for (size_t i = 0; i < width; i++) y[i] += x[i];
    return y;
  }

 private:
  std::vector<T> linear(const std::vector<T>& x, const char* w, const char* b) const {
    const std::vector<T>&matrix = weights_.at(w), &bias = weights_.at(b);
    std::vector<T> y(bias.size());
    for (size_t k = 0; k < x.size(); k++)
      for (size_t n = 0; n < y.size(); n++) y[n] += x[k] * matrix[k * y.size() + n];
    for (size_t n = 0; n < y.size(); n++) y[n] += bias[n];
    return y;
  }

  ops::DecodeBlock block_;
  std::map<std::string, std::vector<T>> weights_;
  std::vector<std::vector<T>> keys_, values_;  // a row a token
};

/// The 2-norm of the error against the 2-norm of `want`.
template <typename T>
double row_error(const std::vector<double>& want, const T* have) {
  double off = 0, norm = 0;
  for (size_t i = 0; i < want.size(); i++) {
    const double d = want[i] - static_cast<double>(have[i]);
    off += d * d;
    norm += want[i] * want[i];
  }
  return std::sqrt(off / norm);
}

/// What the f32 precision promises of a row whose sequential f32 loop has this error.
inline double f32_promise(double sequential) { return std::max(2 * sequential, 4e-7); }

/// The block on a device, f32, with a cache that is a state: `rows` tokens fit into the first plan.
class DecodeRun {
 public:
  struct Step {
    double error = 0, sequential = 0;  // against float64: ours, and a sequential f32 loop's
    runtime::Counts counts;            // what this step asked of the device
    uint32_t plans = 0;                // made until now
    double wall_us = 0, device_us = 0;
  };

  DecodeRun(Device device, int64_t rows, const ops::DecodeBlock& block = {})
      : block_(block), exact_(block), sequential_(block), loaded_(device, program(block, rows)) {}

  /// The next token.
  Step step();
  const Loaded& loaded() const { return loaded_; }

 private:
  static Program program(const ops::DecodeBlock& block, int64_t rows) {
    LoadOptions o;
    o.precision = Precision::f32;
    o.live["past"] = rows - 1;  // a token's own row comes on top
    o.state = {{"present_key", "past_key"}, {"present_value", "past_value"}};
    return analyse(ops::decode_block(block), o);
  }

  ops::DecodeBlock block_;
  DecodeReference<double> exact_;
  DecodeReference<float> sequential_;
  Loaded loaded_;
  int64_t token_ = 0;
};

inline DecodeRun::Step DecodeRun::step() {
  std::vector<float> x(static_cast<size_t>(block_.width()));
  for (size_t i = 0; i < x.size(); i++)
    x[i] = static_cast<float>(std::sin(0.7 * static_cast<double>(i) + static_cast<double>(token_)));
  token_++;
  const runtime::Counts before = loaded_.device().counts();
  std::map<std::string, Tensor> out;
  const auto begin = std::chrono::steady_clock::now();
  loaded_.run({{"x", Tensor::wrap(ElementType::f32, {1, 1, block_.width()}, x.data())}}, out,
              false);
  const std::chrono::duration<double, std::micro> took = std::chrono::steady_clock::now() - begin;
  const runtime::Counts after = loaded_.device().counts();
  const std::vector<double> want = exact_.step(x);
  Step s;
  s.error = row_error(want, out.at("y").as<float>());
  s.sequential = row_error(want, sequential_.step(x).data());
  s.counts = {after.kernels - before.kernels, after.recordings - before.recordings,
              after.submits - before.submits, after.recordings_kept};
  s.plans = loaded_.plans();
  s.wall_us = took.count();
  s.device_us = loaded_.run_times().device;
  return s;
}

}  // namespace pumice::session
