// SPDX-License-Identifier: Apache-2.0
// For tests: a device that is another one, until a test overrides what shall fail.
#pragma once

#include <memory>
#include <utility>

#include "runtime/device.h"

namespace pumice::runtime {

class Forwarding : public Device {
 public:
  explicit Forwarding(std::unique_ptr<Device> inner) : inner_(std::move(inner)) {}
  const DeviceTraits& traits() const override { return inner_->traits(); }
  void set_probed(const Numerics& n, std::vector<MatrixShape> m) override {
    inner_->set_probed(n, std::move(m));
  }
  Code::Format format() const override { return inner_->format(); }
  Buffer alloc(uint64_t bytes, Memory memory, const char* label) override {
    return inner_->alloc(bytes, memory, label);
  }
  void free(Buffer buffer) noexcept override { inner_->free(buffer); }
  uint64_t address(Buffer buffer) const override { return inner_->address(buffer); }
  uint64_t size(Buffer buffer) const override { return inner_->size(buffer); }
  void* mapped(Buffer buffer) const override { return inner_->mapped(buffer); }
  uint64_t allocated() const override { return inner_->allocated(); }
  uint64_t available() const override { return inner_->available(); }
  Kernel load(const Code& code, const KernelInfo& info) override {
    return inner_->load(code, info);
  }
  void unload(Kernel kernel) noexcept override { inner_->unload(kernel); }
  KernelStats stats(Kernel kernel) const override { return inner_->stats(kernel); }
  Recording record(std::span<const Command> commands) override { return inner_->record(commands); }
  void release(Recording recording) noexcept override { inner_->release(recording); }
  void submit(Recording recording) override { inner_->submit(recording); }
  void wait(Recording recording) override { inner_->wait(recording); }
  std::vector<double> timestamps(Recording r) override { return inner_->timestamps(r); }
  std::string save_cache() const override { return inner_->save_cache(); }
  void load_cache(const std::string& bytes) override { inner_->load_cache(bytes); }
  uint64_t live_objects() const override { return inner_->live_objects(); }

 private:
  std::unique_ptr<Device> inner_;
};

}  // namespace pumice::runtime
