// SPDX-License-Identifier: Apache-2.0
// The walk over a graph's operators that makes steps of them.
#pragma once

#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "core/index.h"
#include "select/matrix.h"
#include "select/select.h"
#include "view/locate.h"

namespace pumice::select {

class Selector {
 public:
  Selector(core::Graph& graph, const DeviceTraits& traits, const Options& options)
      : graph_(graph), traits_(traits), options_(options) {}
  std::vector<Step> run();

 private:
  void operator()(const core::Op& op, const core::Map& map);
  void operator()(const core::Op& op, const core::Reduce& reduce);
  void operator()(const core::Op& op, const core::Rows& rows);
  void operator()(const core::Op& op, const core::Contract& contract);
  void operator()(const core::Op& op, const core::Attention& attention);

  view::View located(const view::View& x) const;
  kernels::Store store(const core::Output& output) const;
  std::vector<kernels::Store> stores(const core::Op& op) const;
  /// A step that reads and writes what the operator does.
  void add(const core::Op& op, kernels::Recipe recipe, double flops);
  /// The same where what it computes was changed.
  void add(const core::Op& op, const core::Work& work, kernels::Recipe recipe, double flops);
  void add(Step step);
  core::Contract with_wide_weights(const core::Op& op, const core::Contract& c);
  void find_varying();
  bool is_varying(core::TensorId tensor) const;
  /// A new tensor that holds the view, made by a map.
  core::TensorId store(const std::string& name, const view::View& value);
  core::TensorId add_tensor(const std::string& name, DType type, const Dims& dims);
  core::TensorId add_constant(const std::string& name, float number, int64_t count);
  /// At least `count` zeros.
  core::TensorId zeros(int64_t count);

  // ---- contractions on matrix units (matrix.cpp)
  void plan_matrices();
  std::optional<MatrixContract> plan_matrix(const core::Op& op, const core::Contract& c);
  void plan_epilogue(const core::Op& op, const core::Contract& c, MatrixContract& m);
  void store_apart(const core::Op& op, const core::Contract& c, const view::View& value,
                   MatrixContract& m);
  void share_tiles();
  struct Packed {
    core::TensorId packed = core::TensorId::none, scales = core::TensorId::none;
    int64_t plane = 0;  // vectors between the planes
  };
  Packed pack(const core::Op& op, const MatrixContract& m);
  std::pair<core::TensorId, int64_t> column_vector(const core::Op& op, const MatrixContract& m,
                                                   const view::View& x);
  void add_matrix(const core::Op& op, const core::Contract& c, MatrixContract m);

  // ---- largest magnitudes (maxima.cpp)
  void plan_maxima();
  MaximaNeed need_of(const core::Contract& c, const ContractForm& f) const;
  core::TensorId maxima_of(core::TensorId tensor, MaximaNeed need, const core::Index& index,
                           int depth);
  core::TensorId add_maxima(core::TensorId of, const MaximaNeed& need);
  bool leaves_maxima(const MatrixContract& m, core::TensorId tensor, const MaximaNeed& need) const;
  bool leaves_maxima(const core::Op& op, const core::Rows& rows, core::TensorId tensor,
                     const MaximaNeed& need) const;
  bool leaves_maxima(const core::Op& op, const core::Attention& attention, core::TensorId tensor,
                     const MaximaNeed& need) const;
  core::TensorId picks_from(const core::Op& op, const MaximaNeed& need) const;
  static std::optional<float> bound(const core::Op& op);
  void add_reductions(const std::vector<core::TensorId>& tensors);
  void reduce_maxima(core::TensorId tensor, const MaximaNeed& need);

  core::Graph& graph_;
  const DeviceTraits& traits_;
  const Options options_;
  std::vector<Step> steps_;
  std::set<core::TensorId> varying_;  // that runs write
  size_t current_ = 0;                // number of the operator that is being visited

  const MatrixShape* shape_ = nullptr;
  std::vector<std::optional<MatrixContract>> matrices_;  // by operator
  std::map<std::string, Packed> packed_;
  std::map<core::TensorId, std::vector<MaximaNeed>> needs_;
  std::map<size_t, core::TensorId> left_maxima_;  // by operator
  core::TensorId zeros_ = core::TensorId::none;
};

/// Elements; 0 where a dim is open.
double count(const Dims& dims);

}  // namespace pumice::select
