// SPDX-License-Identifier: Apache-2.0
// Files of the cache folder: whole and undamaged, or not there. They start with a hash of the rest;
// they are written aside and renamed, so several processes may share the folder.
#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <string_view>

namespace pumice {

/// The bytes behind a mark of ours and their hash; and back, none where anything was changed.
std::string sealed(std::string_view bytes);
std::optional<std::string> unsealed(std::string_view bytes);

/// A place in the cache folder; empty where there is no such folder (see cache_folder()).
std::filesystem::path cache_place(std::string_view name);

/// All bytes of a file; "" where it cannot be read, or is larger than any of ours.
std::string read_cached(const std::filesystem::path& file);
/// Puts the bytes there, and makes the folders. False, with a line in the log, where that fails;
/// then the file is as it was.
bool write_cached(const std::filesystem::path& file, std::string_view bytes);

}  // namespace pumice
