// SPDX-License-Identifier: Apache-2.0
// Bytes between host memory and a device's buffers, through mapped buffers.
#pragma once

#include <cstdint>
#include <vector>

#include "runtime/device.h"

namespace pumice::runtime {

/// A ring of mapped chunks: while the device copies one, the host fills the next. Chunks are made
/// when they are first needed and given back by the destructor, which waits. For one thread.
class Uploader {
 public:
  explicit Uploader(Device& device, uint64_t chunk_bytes = 16u << 20, uint32_t chunks = 3);
  ~Uploader();
  Uploader(const Uploader&) = delete;
  Uploader& operator=(const Uploader&) = delete;

  /// Copies `bytes` bytes to `offset` of `destination`; `data` is free for reuse at return. The
  /// offset is a multiple of 4. Bytes that do not fill a last word are filled up with zeros.
  /// Arrives when a recording submitted after flush() starts, or flush() and wait() return.
  void upload(Buffer destination, uint64_t offset, const void* data, uint64_t bytes);
  /// Starts the copies that are not started yet.
  void flush();
  /// flush(), and until all has arrived.
  void wait();

 private:
  struct Chunk {
    Buffer buffer{};
    Recording recording{};  // alive while its copies run
  };
  Chunk& chunk_with_room();
  void finish(Chunk& chunk);

  Device& device_;
  const uint64_t chunk_bytes_;
  const uint32_t chunk_count_;
  std::vector<Chunk> chunks_;
  uint32_t current_ = 0;
  uint64_t used_ = 0;  // bytes of the current chunk
  std::vector<Command> pending_;
};

/// Reads `bytes` bytes at `offset` of `source` into `data`; waits. For set-up, tests and tools: it
/// makes its mapped buffer anew each time.
void download(Device& device, Buffer source, uint64_t offset, void* data, uint64_t bytes);

}  // namespace pumice::runtime
