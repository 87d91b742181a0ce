// SPDX-License-Identifier: Apache-2.0
#include "session/cache.h"

#include <elf.h>
#include <link.h>
#include <unistd.h>

#include <atomic>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <sstream>

#include "base/knobs.h"
#include "base/log.h"
#include "pumice/error.h"

namespace pumice::session {
namespace {

namespace fs = std::filesystem;

constexpr char kMagic[8] = {'p', 'u', 'm', 'i', 'c', 'e', '0', '1'};
constexpr size_t kMostBytes = size_t{256} << 20;

std::string read_file(const fs::path& path) {
  std::ifstream in(path, std::ios::binary | std::ios::ate);
  if (!in) return {};
  const auto size = static_cast<size_t>(in.tellg());
  if (size > kMostBytes) return {};
  std::string bytes(size, '\0');
  in.seekg(0);
  in.read(bytes.data(), static_cast<std::streamsize>(size));
  return in ? bytes : std::string();
}

// Beside its place first, so that nobody reads half a file.
void write_file(const fs::path& path, const std::string& bytes) {
  static std::atomic<uint32_t> counter{0};
  std::error_code error;
  fs::create_directories(path.parent_path(), error);
  fs::path aside = path;
  aside += fmt::format(".{}.{}", getpid(), counter++);
  {
    std::ofstream out(aside, std::ios::binary);
    out.write(bytes.data(), static_cast<std::streamsize>(bytes.size()));
    out.close();
    if (!out) {
      log(LogLevel::info, "cache: cannot write {}", path.string());
      fs::remove(aside, error);
      return;
    }
  }
  fs::rename(aside, path, error);
  if (error) fs::remove(aside, error);
}

// Magic, hash of the rest, the rest.
std::string sealed(const std::string& payload) {
  const std::string hash = hash_of(payload).hex();
  return std::string(kMagic, sizeof kMagic) + hash + payload;
}
std::optional<std::string> unsealed(const std::string& bytes) {
  constexpr size_t kHash = 32, kHead = sizeof kMagic + kHash;
  if (bytes.size() < kHead || std::memcmp(bytes.data(), kMagic, sizeof kMagic) != 0)
    return std::nullopt;
  std::string payload = bytes.substr(kHead);
  if (hash_of(payload).hex() != bytes.substr(sizeof kMagic, kHash)) return std::nullopt;
  return payload;
}

void append(std::string& out, uint32_t word) {
  for (int i = 0; i < 4; i++) out += static_cast<char>(word >> (8 * i) & 255);
}
void append(std::string& out, const std::string& text) {
  append(out, static_cast<uint32_t>(text.size()));
  out += text;
}

class Reader {
 public:
  explicit Reader(const std::string& bytes) : bytes_(bytes) {}
  uint32_t word() {
    if (at_ + 4 > bytes_.size()) return fail_now();
    uint32_t w = 0;
    for (int i = 0; i < 4; i++) w |= uint32_t{static_cast<uint8_t>(bytes_[at_++])} << (8 * i);
    return w;
  }
  std::string text() {
    const uint32_t size = word();
    if (failed_ || size > bytes_.size() - at_) {
      fail_now();
      return {};
    }
    at_ += size;
    return bytes_.substr(at_ - size, size);
  }
  bool whole() const { return !failed_ && at_ == bytes_.size(); }

 private:
  uint32_t fail_now() {
    failed_ = true;
    return 0;
  }
  const std::string& bytes_;
  size_t at_ = 0;
  bool failed_ = false;
};

// The build id of the object (program or library) that holds this function.
int find_build_id(dl_phdr_info* info, size_t, void* to) {
  const auto here = reinterpret_cast<uintptr_t>(&find_build_id);
  bool inside = false;
  for (int i = 0; i < info->dlpi_phnum; i++) {
    const auto& h = info->dlpi_phdr[i];
    const uintptr_t begin = info->dlpi_addr + h.p_vaddr;
    inside |= h.p_type == PT_LOAD && here >= begin && here < begin + h.p_memsz;
  }
  if (!inside) return 0;
  for (int i = 0; i < info->dlpi_phnum; i++) {
    const auto& h = info->dlpi_phdr[i];
    if (h.p_type != PT_NOTE) continue;
    const auto* at = reinterpret_cast<const uint8_t*>(info->dlpi_addr + h.p_vaddr);
    const uint8_t* end = at + h.p_memsz;
    while (at + sizeof(ElfW(Nhdr)) <= end) {
      ElfW(Nhdr) note;
      std::memcpy(&note, at, sizeof note);
      const uint8_t* name = at + sizeof note;
      const uint8_t* data = name + (note.n_namesz + 3) / 4 * 4;
      if (note.n_type == NT_GNU_BUILD_ID && note.n_namesz == 4 && std::memcmp(name, "GNU", 4) == 0)
        for (uint32_t k = 0; k < note.n_descsz; k++)
          *static_cast<std::string*>(to) += fmt::format("{:02x}", data[k]);
      at = data + (note.n_descsz + 3) / 4 * 4;
    }
  }
  return 1;
}

std::string cache_path(const char* name) {
  try {
    return (cache_folder() / name).string();
  } catch (const Error&) {
    return {};
  }
}

fs::path driver_file(const runtime::Device& device) {
  const DeviceTraits& t = device.traits();
  const std::string folder = cache_path("pipelines");
  if (folder.empty()) return {};
  return fs::path(folder) / hash_of(t.api + "\n" + t.name + "\n" + t.driver).hex();
}

}  // namespace

std::string build_id() {
  static const std::string id = [] {
    std::string text;
    dl_iterate_phdr(find_build_id, &text);
    return text;
  }();
  return id;
}

RecipeCache::RecipeCache(const DeviceTraits& traits, runtime::Code::Format format, spirv::Fma fma)
    : format_(format),
      device_(hash_of(to_json(traits) + build_id() + (fma == spirv::Fma::fused ? "\nfused" : ""))) {
  // The interpreter's text is as soon made as read.
  if (!build_id().empty() && format == runtime::Code::Format::spirv)
    folder_ = cache_path("recipes");
}

std::string RecipeCache::file(const kernels::Recipe& recipe) const {
  const Hash h =
      Hasher().add(device_.hi).add(device_.lo).add(recipe.family).add(recipe.key).finish();
  return (fs::path(folder_) / h.hex().substr(0, 2) / h.hex()).string();
}

std::optional<Compiled> RecipeCache::find(const kernels::Recipe& recipe) const {
  if (folder_.empty()) return std::nullopt;
  const auto payload = unsealed(read_file(file(recipe)));
  if (!payload) return std::nullopt;
  Reader in(*payload);
  // The recipe itself stands in the entry: equal hashes are not taken for equal recipes.
  if (in.text() != recipe.family || in.text() != recipe.key) return std::nullopt;
  Compiled c;
  c.info.name = in.text();
  c.info.workgroup = in.word();
  c.info.subgroup = in.word();
  c.info.full_subgroups = in.word() != 0;
  c.info.argument_bytes = in.word();
  c.code.format = format_;
  c.code.bytes = in.text();
  return in.whole() ? std::optional(std::move(c)) : std::nullopt;
}

void RecipeCache::keep(const kernels::Recipe& recipe, const Compiled& compiled) const {
  if (folder_.empty()) return;
  std::string out;
  append(out, recipe.family);
  append(out, recipe.key);
  append(out, compiled.info.name);
  append(out, compiled.info.workgroup);
  append(out, compiled.info.subgroup);
  append(out, compiled.info.full_subgroups ? 1u : 0u);
  append(out, compiled.info.argument_bytes);
  append(out, compiled.code.bytes);
  write_file(file(recipe), sealed(out));
}

void load_driver_cache(runtime::Device& device) {
  const fs::path path = driver_file(device);
  if (path.empty()) return;
  if (const auto bytes = unsealed(read_file(path)); bytes && !bytes->empty())
    device.load_cache(*bytes);
}

void save_driver_cache(const runtime::Device& device) {
  const fs::path path = driver_file(device);
  const std::string bytes = path.empty() ? std::string() : device.save_cache();
  if (!bytes.empty()) write_file(path, sealed(bytes));
}

}  // namespace pumice::session
