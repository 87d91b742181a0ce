// SPDX-License-Identifier: Apache-2.0
#include "runtime/transfer.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "base/check.h"

namespace pumice::runtime {
namespace {

constexpr uint64_t kDownloadChunk = 16u << 20;

uint64_t up_to_4(uint64_t bytes) { return (bytes + 3) / 4 * 4; }

}  // namespace

Uploader::Uploader(Device& device, uint64_t chunk_bytes, uint32_t chunks)
    : device_(device), chunk_bytes_(up_to_4(chunk_bytes)), chunk_count_(chunks) {
  CHECK(chunk_bytes > 0 && chunks > 0, "{} chunks of {} bytes", chunks, chunk_bytes);
}

Uploader::~Uploader() {
  for (Chunk& chunk : chunks_) {
    device_.release(chunk.recording);
    device_.free(chunk.buffer);
  }
}

void Uploader::finish(Chunk& chunk) {
  if (chunk.recording == Recording::none) return;
  device_.wait(chunk.recording);
  device_.release(chunk.recording);
  chunk.recording = Recording::none;
}

Uploader::Chunk& Uploader::chunk_with_room() {
  if (used_ == chunk_bytes_) flush();
  if (current_ == chunks_.size()) {
    chunks_.reserve(chunk_count_);
    chunks_.push_back({device_.alloc(chunk_bytes_, Memory::upload, "upload ring"), {}});
  }
  Chunk& chunk = chunks_[current_];
  finish(chunk);
  return chunk;
}

void Uploader::upload(Buffer destination, uint64_t offset, const void* data, uint64_t bytes) {
  if (offset % 4 != 0) {
    fail(ErrorCode::bad_argument, "upload: the offset {} is no multiple of 4", offset);
  }
  const auto* from = static_cast<const uint8_t*>(data);
  while (bytes > 0) {
    Chunk& chunk = chunk_with_room();
    const uint64_t part = std::min(bytes, chunk_bytes_ - used_);
    auto* to = static_cast<uint8_t*>(device_.mapped(chunk.buffer)) + used_;
    std::memcpy(to, from, part);
    std::memset(to + part, 0, up_to_4(part) - part);
    pending_.push_back(Copy{chunk.buffer, destination, used_, offset, up_to_4(part)});
    used_ += up_to_4(part);
    from += part;
    offset += part;
    bytes -= part;
  }
}

void Uploader::flush() {
  if (pending_.empty()) return;
  // What was recorded is given up where the device refuses it, so that the ring stays usable.
  const std::vector<Command> commands = std::exchange(pending_, {});
  used_ = 0;
  Chunk& chunk = chunks_[current_];
  chunk.recording = device_.record(commands);
  try {
    device_.submit(chunk.recording);
  } catch (const Error&) {
    device_.release(std::exchange(chunk.recording, Recording::none));
    throw;
  }
  current_ = (current_ + 1) % chunk_count_;
}

void Uploader::wait() {
  flush();
  for (Chunk& chunk : chunks_) finish(chunk);
}

void download(Device& device, Buffer source, uint64_t offset, void* data, uint64_t bytes) {
  if (bytes == 0) return;
  struct Staging {
    Device& device;
    Buffer buffer;
    ~Staging() { device.free(buffer); }
  };
  const uint64_t skip = offset % 4;
  const uint64_t span = up_to_4(std::min(skip + bytes, kDownloadChunk));
  Staging staging{device, device.alloc(span, Memory::readback, "download")};
  const auto* mapped = static_cast<const uint8_t*>(device.mapped(staging.buffer));
  auto* to = static_cast<uint8_t*>(data);
  while (bytes > 0) {
    const uint64_t before = offset % 4;
    const uint64_t part = std::min(bytes, span - before);
    const Command copy = Copy{source, staging.buffer, offset - before, 0, up_to_4(before + part)};
    const Recording recording = device.record({&copy, 1});
    struct Release {
      Device& device;
      Recording recording;
      ~Release() { device.release(recording); }
    } release{device, recording};
    device.submit(recording);
    device.wait(recording);
    std::memcpy(to, mapped + before, part);
    to += part;
    offset += part;
    bytes -= part;
  }
}

}  // namespace pumice::runtime
