// SPDX-License-Identifier: Apache-2.0
#include "base/sealed_file.h"

#include <fmt/format.h>
#include <unistd.h>

#include <atomic>
#include <fstream>

#include "base/hash.h"
#include "base/knobs.h"
#include "base/log.h"
#include "pumice/error.h"

namespace pumice {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view kMagic = "pumice01";
constexpr size_t kHash = 32;  // digits
constexpr uint64_t kMostBytes = uint64_t{256} << 20;

}  // namespace

std::string sealed(std::string_view bytes) {
  return std::string(kMagic) + hash_of(bytes).hex() + std::string(bytes);
}

std::optional<std::string> unsealed(std::string_view bytes) {
  if (bytes.size() < kMagic.size() + kHash || !bytes.starts_with(kMagic)) return std::nullopt;
  const std::string_view rest = bytes.substr(kMagic.size() + kHash);
  if (hash_of(rest).hex() != bytes.substr(kMagic.size(), kHash)) return std::nullopt;
  return std::string(rest);
}

fs::path cache_place(std::string_view name) {
  try {
    return cache_folder() / name;
  } catch (const Error& error) {
    log(LogLevel::info, "cache: nothing is kept: {}", error.message());
    return {};
  }
}

std::string read_cached(const fs::path& file) {
  std::error_code error;
  const uint64_t size = fs::file_size(file, error);
  if (error || size > kMostBytes) return {};
  std::ifstream in(file, std::ios::binary);
  std::string bytes(size, '\0');
  in.read(bytes.data(), static_cast<std::streamsize>(size));
  return in ? bytes : std::string();
}

bool write_cached(const fs::path& file, std::string_view bytes) {
  static std::atomic<uint32_t> counter{0};
  std::error_code error;
  fs::create_directories(file.parent_path(), error);
  fs::path aside = file;
  aside += fmt::format(".{}.{}", getpid(), counter++);
  std::ofstream out(aside, std::ios::binary);
  out.write(bytes.data(), static_cast<std::streamsize>(bytes.size()));
  out.close();
  if (out) fs::rename(aside, file, error);
  if (out && !error) return true;
  log(LogLevel::info, "cache: cannot write {}", file.string());
  fs::remove(aside, error);
  return false;
}

}  // namespace pumice
