// SPDX-License-Identifier: Apache-2.0
// Places and names as text for error messages.
#include "onnx/place.h"

namespace pumice::onnx {

std::string Place::text() const {
  std::string out = above_ ? above_->text() : std::string();
  if (!out.empty()) out += '.';
  out += name_;
  if (index_) out += fmt::format("[{}]", *index_);
  return out;
}

std::string shown(std::string_view text) {
  constexpr size_t kLimit = 80;
  std::string out = "'";
  for (size_t i = 0; i < text.size(); ++i) {
    const auto c = static_cast<unsigned char>(text[i]);
    const bool continuation = (c & 0xc0u) == 0x80u;
    if (i >= kLimit && !continuation) {
      out += "...";
      break;
    }
    if (c < 0x20 || c == 0x7f) {
      out += fmt::format("\\x{:02x}", c);
    } else {
      out += text[i];
    }
  }
  return out += '\'';
}

bool valid_utf8(std::string_view text) {
  size_t i = 0;
  while (i < text.size()) {
    const auto lead = static_cast<unsigned char>(text[i++]);
    if (lead < 0x80) continue;
    const size_t more = lead >= 0xf0 ? 3 : lead >= 0xe0 ? 2 : 1;
    if (lead < 0xc2 || lead > 0xf4 || text.size() - i < more) return false;
    uint32_t point = lead & (0x3fu >> more);
    for (size_t k = 0; k < more; ++k) {
      const auto c = static_cast<unsigned char>(text[i++]);
      if ((c & 0xc0u) != 0x80u) return false;
      point = point << 6 | (c & 0x3fu);
    }
    const uint32_t least = more == 3 ? 0x10000u : more == 2 ? 0x800u : 0x80u;
    if (point < least || point > 0x10ffffu || (point >= 0xd800u && point <= 0xdfffu)) return false;
  }
  return true;
}

}  // namespace pumice::onnx
