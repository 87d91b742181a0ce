// SPDX-License-Identifier: Apache-2.0
// Times map, reduce and rows kernels at the shapes of real models; with --check runs each on the
// interpreter too and compares bits.
//
//   skeleton_bench [--device SPEC] [--check] [--small]
#include <algorithm>
#include <cstdio>
#include <cstring>
#include <functional>

#include "base/check.h"
#include "emit/interp/interp.h"
#include "harness.h"
#include "kernels/contract.h"
#include "kernels/map.h"
#include "kernels/reduce.h"
#include "kernels/rows.h"
#include "view/locate.h"

using namespace pumice;
using namespace pumice::bench;
using kernels::Recipe;
using kernels::Store;
using view::Affine;
using view::ArgumentValue;
using view::Function;
using view::TensorId;
using view::View;

namespace {

struct Tensor {
  DType type{};
  std::vector<int64_t> dims;
  std::vector<uint8_t> bytes;
  bool written = false;
};

class World {
 public:
  View input(DType type, const std::vector<int64_t>& dims) {
    Tensor t{type, dims, {}, false};
    size_t count = 1;
    for (const int64_t d : dims) count *= static_cast<size_t>(d);
    const std::vector<float> values = normal(count, tensors.size() + 1);
    t.bytes.resize(count * size_of(type));
    if (type == DType::f16) {
      const auto half = to_f16(values);
      std::memcpy(t.bytes.data(), half.data(), t.bytes.size());
    } else if (type == DType::f32) {
      std::memcpy(t.bytes.data(), values.data(), t.bytes.size());
    } else {
      std::memcpy(t.bytes.data(), values.data(), std::min(t.bytes.size(), count * 4));
    }
    tensors.push_back(std::move(t));
    return view::access(last(), type, Dims(dims.begin(), dims.end()));
  }
  /// Stores element i of the view at place i of a new dense tensor.
  Store store(const View& v) {
    Tensor t{v.type(), {}, {}, true};
    size_t count = 1;
    std::vector<Affine> place;
    for (size_t i = 0; i < v.rank(); i++) {
      t.dims.push_back(v.dims[i].value());
      count *= static_cast<size_t>(t.dims.back());
      place.push_back(Affine::axis(i));
    }
    t.bytes.resize(count * size_of(v.type()));
    tensors.push_back(std::move(t));
    return {located(v), last(), view::locate(place, strides(last()))};
  }
  View located(const View& v) const {
    return locate(v, [this](TensorId t) { return strides(t); });
  }
  std::vector<Tensor> tensors;

 private:
  TensorId last() const { return static_cast<TensorId>(tensors.size() - 1); }
  std::vector<Dim> strides(TensorId id) const {
    const Tensor& t = tensors[static_cast<size_t>(id)];
    std::vector<Dim> s(t.dims.size(), Dim(1));
    for (size_t i = s.size(); i-- > 1;) s[i - 1] = s[i] * t.dims[i];
    return s;
  }
};

std::vector<uint8_t> block(const Recipe& recipe, const std::function<uint64_t(TensorId)>& address) {
  std::vector<uint8_t> bytes;
  const auto append = [&bytes](const auto& value) {
    bytes.resize((bytes.size() + sizeof(value) - 1) / sizeof(value) * sizeof(value));
    const size_t at = bytes.size();
    bytes.resize(at + sizeof(value));
    std::memcpy(bytes.data() + at, &value, sizeof(value));
  };
  for (const ArgumentValue& a : recipe.launch.arguments) switch (a.kind) {
      case ArgumentValue::Kind::tensor: append(address(a.tensor)); break;
      case ArgumentValue::Kind::word: append(static_cast<uint32_t>(a.dim.value())); break;
      case ArgumentValue::Kind::divisor:
        for (const uint32_t w : kernel::divisor_words(static_cast<uint32_t>(a.dim.value())))
          append(w);
        break;
      case ArgumentValue::Kind::bits: append(a.number); break;
      default: CHECK(false, "an argument that no case here has");
    }
  return bytes;
}

std::array<uint32_t, 3> grid(const Recipe& r) {
  std::array<uint32_t, 3> g{};
  for (size_t i = 0; i < 3; i++) g[i] = static_cast<uint32_t>(r.launch.grid[i].value());
  return g;
}

class Bench {
 public:
  Bench(Harness& harness, bool check) : h_(harness), check_(check) {}

  void run(const std::string& name, World& world, const Recipe& recipe) {
    const kernel::Kernel kernel = recipe.build();
    Harness::Loaded& loaded = h_.load(kernel);
    std::vector<runtime::Buffer> buffers;
    double bytes = 0;
    for (const Tensor& t : world.tensors) {
      buffers.push_back(h_.buffer(t.bytes));
      bytes += static_cast<double>(t.bytes.size());
    }
    runtime::Dispatch d;
    d.kernel = loaded.handle;
    d.groups = grid(recipe);
    d.arguments =
        block(recipe, [&](TensorId t) { return h_.address(buffers[static_cast<size_t>(t)]); });
    d.arguments.resize(kernel.argument_bytes());
    std::string verdict;
    if (check_) {
      h_.run({d});
      verdict = compare(world, recipe, kernel, buffers);
    }
    const std::vector<runtime::Dispatch> many(check_ ? 3 : 200, d);
    const Stats s = h_.time(many);
    fmt::print("{:44} {:8.2f} us ({:.2f}..{:.2f})  {:7.1f} GB/s  grid {}x{}x{}, {} registers {}\n",
               name, s.median, s.low, s.high, bytes / s.median / 1e3, d.groups[0], d.groups[1],
               d.groups[2], loaded.stats.registers, verdict);
    std::fflush(stdout);
    h_.free_buffers();
  }

 private:
  std::string compare(World& world, const Recipe& recipe, const kernel::Kernel& kernel,
                      const std::vector<runtime::Buffer>& buffers) {
    interp::Memory memory;
    std::vector<std::vector<uint8_t>> copies;
    for (const Tensor& t : world.tensors) copies.push_back(t.bytes);
    const auto address = [](TensorId t) { return (static_cast<uint64_t>(t) + 1) << 32; };
    for (size_t i = 0; i < copies.size(); i++)
      memory.add(address(static_cast<TensorId>(i)), copies[i].data(), copies[i].size(), "tensor",
                 !world.tensors[i].written);
    interp::Interpreter interpreter(kernel, h_.traits());
    auto arguments = block(recipe, address);
    arguments.resize(kernel.argument_bytes());
    const auto report = interpreter.run(memory, grid(recipe), arguments);
    if (!report.findings.empty()) return "FINDING " + report.findings[0].text;
    size_t different = 0;
    for (size_t i = 0; i < copies.size(); i++) {
      if (!world.tensors[i].written) continue;
      std::vector<uint8_t> device(copies[i].size());
      h_.read(buffers[i], device.data(), device.size());
      for (size_t b = 0; b < device.size(); b++) different += device[b] != copies[i][b] ? 1 : 0;
    }
    return different == 0 ? "same bits" : fmt::format("DIFFERENT in {} bytes", different);
  }

  Harness& h_;
  bool check_;
};

void maps(Bench& bench, int64_t part) {
  const auto params = kernels::MapParams{};
  const auto map = [&](const std::string& name, World& world, const View& v) {
    const Store s = world.store(v);
    bench.run(name, world, kernels::map(v.dims, {s}, params));
  };
  const auto shape = [](const View& v) { return text(v.dims); };
  {
    World w;
    const View x = w.input(DType::f32, {16384 / part, 1024}),
               y = w.input(DType::f32, {16384 / part, 1024});
    map("add f32 " + shape(x), w, view::apply(Function::add, {x, y}));
  }
  {
    World w;
    const View x = w.input(DType::f32, {197, 3072 / part}), y = w.input(DType::f32, {3072 / part});
    map("gelu(x + bias) f32 " + shape(x), w,
        view::apply(Function::gelu, {view::apply(Function::add, {x, y})}));
  }
  {
    World w;
    const View x = w.input(DType::f16, {4096 / part, 4096}),
               y = w.input(DType::f16, {4096 / part, 1});
    map("mul f16 by a column " + shape(x), w, view::apply(Function::mul, {x, y}));
  }
  {
    World w;
    const View x = w.input(DType::f32, {197, 12, 64});
    const size_t axes[] = {1, 0, 2};
    map("heads f32 " + shape(x), w, permute(x, axes));
  }
  for (const DType type : {DType::f32, DType::f16}) {
    World w;
    const View x = w.input(type, {4096 / part, 4096 / part});
    const size_t axes[] = {1, 0};
    map(fmt::format("transpose {} {}", name(type), shape(x)), w, permute(x, axes));
  }
  {
    World w;
    const View x = w.input(DType::f32, {8 / std::min<int64_t>(part, 8), 64, 112, 112});
    const size_t axes[] = {0, 2, 3, 1};
    map("to channels last f32 " + shape(x), w, permute(x, axes));
  }
  {
    World w;
    const View x = w.input(DType::f32, {64, 113, 111});
    const Dim before[] = {0, 1, 1};
    map("pad f32 " + shape(x), w, pad(x, before, {64, 115, 113}, 0));
  }
}

void reductions(Bench& bench, int64_t part) {
  using Kind = kernels::ReduceTask::Kind;
  const auto reduce = [&](const std::string& name, World& world, const View& v, size_t axes,
                          Kind kind) {
    kernels::ReduceTask task;
    task.kind = kind;
    task.input = world.located(v);
    task.axes.assign(v.dims.begin(), v.dims.begin() + static_cast<ptrdiff_t>(axes));
    task.reduced.assign(v.dims.begin() + static_cast<ptrdiff_t>(axes), v.dims.end());
    task.stores = {world.store(view::result(v.type(), task.axes))};
    bench.run(name + " " + text(v.dims), world, kernels::reduce(task, {}));
  };
  World a, b, c, d, e, f;
  const size_t swap[] = {1, 0};
  reduce("sum of 49 f32", a, a.input(DType::f32, {2048, 49}), 1, Kind::sum);
  reduce("sum across 49 f32", b, permute(b.input(DType::f32, {49, 2048}), swap), 1, Kind::sum);
  reduce("sum of rows f32", c, c.input(DType::f32, {4096 / part, 4096}), 1, Kind::sum);
  reduce("sum of columns f32", d, permute(d.input(DType::f32, {4096 / part, 4096}), swap), 1,
         Kind::sum);
  reduce("sum of all f32", e, e.input(DType::f32, {1000000 / part}), 0, Kind::sum);
  const View image = f.input(DType::f32, {112, 112, 64});
  const Affine window[] = {Affine::axis(0, 2, -1) + Affine::axis(3),
                           Affine::axis(1, 2, -1) + Affine::axis(4), Affine::axis(2)};
  reduce("max pool 3x3 f32", f, remap(image, window, {56, 56, 64, 3, 3}, true, 0xff800000u), 3,
         Kind::max);
}

void all_rows(Bench& bench, int64_t part, uint32_t group) {
  using Kind = kernels::RowsTask::Kind;
  const auto rows = [&](const std::string& name, DType type, std::vector<int64_t> dims, Kind kind) {
    World w;
    const View x = w.input(type, dims);
    kernels::RowsTask task;
    task.kind = kind;
    task.input = w.located(x);
    task.axes.assign(x.dims.begin(), x.dims.end() - 1);
    task.row = x.dims.back();
    task.epsilon = 1e-5;
    View y = view::result(type, x.dims);
    if (kind == Kind::normalize || kind == Kind::rms) {
      y = view::apply(Function::mul, {y, w.input(type, {dims.back()})});
      if (kind == Kind::normalize)
        y = view::apply(Function::add, {y, w.input(type, {dims.back()})});
    }
    task.stores = {w.store(y)};
    bench.run(fmt::format("{} {} {} group {}", name, pumice::name(type), text(x.dims), group), w,
              kernels::rows(task, {group}));
  };
  rows("layer norm", DType::f32, {197, 768}, Kind::normalize);
  rows("layer norm", DType::f16, {512, 1024}, Kind::normalize);
  rows("rms", DType::f16, {4096 / part, 4096}, Kind::rms);
  rows("rms", DType::f32, {1, 2048}, Kind::rms);
  rows("softmax", DType::f32, {12, 197, 197}, Kind::softmax);
  rows("softmax", DType::f32, {1024 / part, 1024}, Kind::softmax);
  rows("log softmax", DType::f32, {1, 32000}, Kind::log_softmax);
}

}  // namespace

int main(int argc, char** argv) {
  std::string device = "vulkan";
  bool check = false;
  int64_t part = 1;
  for (int i = 1; i < argc; i++) {
    const std::string a = argv[i];
    if (a == "--device" && i + 1 < argc)
      device = argv[++i];
    else if (a == "--check")
      check = true;
    else if (a == "--small")
      part = 32;
    else
      return std::fprintf(stderr, "skeleton_bench: unknown argument %s\n", a.c_str()), 64;
  }
  try {
    Harness h(device);
    fmt::print("{}\n", h.traits().name);
    if (!check)
      for (const MatrixShape& m : h.traits().matrices)
        if (m.m == 16 && m.n == 16 && m.k == 16 && m.a == DType::f16 && m.c == DType::f32) {
          kernels::ContractParams p;
          p.bm = p.bn = 128, p.bk = 64, p.warp_m = p.warp_n = 64, p.sets = 1, p.passes = 2;
          p.packed_b = false;
          h.prepare_warm_up(kernels::contract(p, m), 128);
          break;
        }
    Bench bench(h, check);
    all_rows(bench, part, kernels::rows_params(h.traits()).group);
    if (kernels::rows_params(h.traits()).group != 0) all_rows(bench, part, 0);
    maps(bench, part);
    reductions(bench, part);
  } catch (const Error& e) {
    std::fprintf(stderr, "skeleton_bench: %s\n", e.what());
    return 1;
  }
  return 0;
}
