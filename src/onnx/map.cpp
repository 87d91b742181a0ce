// SPDX-License-Identifier: Apache-2.0
// Memory mapping by the system's calls.
#include "onnx/map.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "base/check.h"

namespace pumice::onnx {
namespace {

class Descriptor {
 public:
  explicit Descriptor(int fd) : fd_(fd) {}
  Descriptor(const Descriptor&) = delete;
  Descriptor& operator=(const Descriptor&) = delete;
  ~Descriptor() {
    if (fd_ >= 0) ::close(fd_);
  }
  int get() const { return fd_; }

 private:
  int fd_;
};

[[noreturn]] void fail_errno(const std::filesystem::path& path, const char* what) {
  const int error = errno;
  fail(ErrorCode::io, "{}: {}: {}", path.string(), what, std::strerror(error));
}

void require_regular(const struct stat& status, const std::filesystem::path& path) {
  if (!S_ISREG(status.st_mode)) {
    fail(ErrorCode::io, "{}: {}, but a regular file is wanted", path.string(),
         S_ISDIR(status.st_mode) ? "is a folder" : "is no regular file");
  }
}

}  // namespace

std::shared_ptr<const MappedFile> MappedFile::open(const std::filesystem::path& path) {
  // Looked at before opening, since opening a pipe or a device can block or act; looked at again
  // after, since the name may have changed hands.
  struct stat status {};
  if (::stat(path.c_str(), &status) != 0) fail_errno(path, "cannot be opened");
  require_regular(status, path);
  const Descriptor fd(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY));
  if (fd.get() < 0) fail_errno(path, "cannot be opened");
  if (::fstat(fd.get(), &status) != 0) fail_errno(path, "cannot be examined");
  require_regular(status, path);
  const auto size = static_cast<size_t>(status.st_size);
  if (size == 0) return std::shared_ptr<const MappedFile>(new MappedFile({}));
  void* address = ::mmap(nullptr, size, PROT_READ, MAP_PRIVATE, fd.get(), 0);
  if (address == MAP_FAILED) fail_errno(path, "cannot be mapped into memory");
  return std::shared_ptr<const MappedFile>(
      new MappedFile({static_cast<const std::byte*>(address), size}));
}

MappedFile::~MappedFile() {
  if (!bytes_.empty()) {
    ::munmap(const_cast<std::byte*>(bytes_.data()), bytes_.size());
  }
}

}  // namespace pumice::onnx
