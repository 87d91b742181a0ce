// SPDX-License-Identifier: Apache-2.0
#include "session/cache.h"

#include <elf.h>
#include <link.h>

#include <cstring>
#include <filesystem>

#include "base/log.h"
#include "base/sealed_file.h"
#include "pumice/error.h"

namespace pumice::session {
namespace {

namespace fs = std::filesystem;

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

fs::path driver_file(const runtime::Device& device) {
  const DeviceTraits& t = device.traits();
  const fs::path folder = cache_place("pipelines");
  if (folder.empty()) return {};
  return folder / hash_of(t.api + "\n" + t.name + "\n" + t.driver).hex();
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
    folder_ = cache_place("recipes").string();
}

std::string RecipeCache::file(const kernels::Recipe& recipe) const {
  const Hash h =
      Hasher().add(device_.hi).add(device_.lo).add(recipe.family).add(recipe.key).finish();
  return (fs::path(folder_) / h.hex().substr(0, 2) / h.hex()).string();
}

std::optional<Compiled> RecipeCache::find(const kernels::Recipe& recipe) const {
  if (folder_.empty()) return std::nullopt;
  const auto payload = unsealed(read_cached(file(recipe)));
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
  write_cached(file(recipe), sealed(out));
}

// The bytes are sealed by the device.
void load_driver_cache(runtime::Device& device) {
  const fs::path path = driver_file(device);
  if (path.empty()) return;
  try {
    if (const std::string bytes = read_cached(path); !bytes.empty()) device.load_cache(bytes);
  } catch (const Error& error) {
    log(LogLevel::warn, "cache: the driver does not take {}: {}", path.string(), error.message());
  }
}

void save_driver_cache(const runtime::Device& device) {
  const fs::path path = driver_file(device);
  if (path.empty()) return;
  try {
    if (const std::string bytes = device.save_cache(); !bytes.empty()) write_cached(path, bytes);
  } catch (const Error& error) {
    log(LogLevel::warn, "cache: the driver gives nothing to keep: {}", error.message());
  }
}

}  // namespace pumice::session
