// SPDX-License-Identifier: Apache-2.0
#include "session/compile.h"

#include <atomic>
#include <exception>
#include <system_error>
#include <thread>

#include "base/check.h"
#include "base/log.h"

namespace pumice::session {
namespace {

std::string key_of(const kernels::Recipe& recipe) { return recipe.family + "\n" + recipe.key; }

}  // namespace

Compiled compile(const kernels::Recipe& recipe, runtime::Code::Format format,
                 const DeviceTraits& traits, spirv::Fma fma) {
  const kernel::Kernel kernel = recipe.build();
  Compiled c;
  c.info.name = kernel.name;
  c.info.workgroup = kernel.workgroup;
  c.info.subgroup = kernel.group;
  c.info.full_subgroups = kernel.group != 0;
  c.info.argument_bytes = (kernel.argument_bytes() + 3) / 4 * 4;
  c.code.format = format;
  switch (format) {
    case runtime::Code::Format::none: break;
    case runtime::Code::Format::kir: c.code.bytes = kernel::print(kernel, true); break;
    case runtime::Code::Format::spirv: c.code.bytes = spirv::emit(kernel, traits, fma); break;
    case runtime::Code::Format::ptx: fail(ErrorCode::refused, "PTX is not made by this build");
  }
  return c;
}

Kernels::~Kernels() {
  for (const auto& [key, loaded] : loaded_) device_.unload(loaded.kernel);
}

void Kernels::load(const std::vector<const kernels::Recipe*>& recipes) {
  std::map<std::string, const kernels::Recipe*> missing;
  for (const kernels::Recipe* r : recipes)
    if (loaded_.count(key_of(*r)) == 0) missing.emplace(key_of(*r), r);
  const std::vector<std::pair<std::string, const kernels::Recipe*>> work(missing.begin(),
                                                                         missing.end());
  std::atomic<size_t> next{0};
  std::exception_ptr error;
  std::atomic<bool> made{false};
  const auto worker = [&] {
    for (size_t i = next++; i < work.size(); i = next++) {
      try {
        const kernels::Recipe& recipe = *work[i].second;
        auto known = cache_.find(recipe);
        const bool fresh = !known;
        if (fresh) known = compile(recipe, device_.format(), device_.traits(), fma_);
        const Compiled& c = *known;
        add(work[i].first, c);
        if (!fresh) continue;
        made = true;
        cache_.keep(recipe, c);
      } catch (...) {
        std::lock_guard lock(mutex_);
        if (error == nullptr) error = std::current_exception();
        next = work.size();
      }
    }
  };
  const size_t count = std::min<size_t>(
      std::max(1u, std::min(16u, std::thread::hardware_concurrency())), work.size());
  {
    std::vector<std::jthread> threads;  // joined at the block's end
    try {
      for (size_t i = 1; i < count; i++) threads.emplace_back(worker);
    } catch (const std::system_error& no_thread) {
      log(LogLevel::info, "kernels are made on {} threads: {}", threads.size() + 1,
          no_thread.what());
    }
    worker();
  }
  if (error != nullptr) std::rethrow_exception(error);
  if (made) save_driver_cache(device_);
}

void Kernels::add(const std::string& key, const Compiled& compiled) {
  const runtime::Kernel kernel = device_.load(compiled.code, compiled.info);
  try {
    Loaded l{compiled.info.name, kernel, device_.stats(kernel)};
    std::lock_guard lock(mutex_);
    loaded_.emplace(key, std::move(l));
  } catch (...) {
    device_.unload(kernel);
    throw;
  }
}

runtime::Kernel Kernels::of(const kernels::Recipe& recipe) {
  const auto it = loaded_.find(key_of(recipe));
  CHECK(it != loaded_.end(), "a kernel of family {} was not loaded", recipe.family);
  return it->second.kernel;
}

std::vector<Kernels::Loaded> Kernels::list() const {
  std::vector<Loaded> all;
  for (const auto& [key, loaded] : loaded_) all.push_back(loaded);
  return all;
}

}  // namespace pumice::session
