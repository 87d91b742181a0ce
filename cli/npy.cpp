// SPDX-License-Identifier: Apache-2.0
#include "npy.h"

#include <cstring>
#include <fstream>
#include <string>

#include "pumice/error.h"

namespace pumice::cli {
namespace {

constexpr char kMagic[] = "\x93NUMPY";
constexpr uint32_t kMostHeader = 1u << 20;

struct Descr {
  const char* text;
  ElementType type;
};
const Descr kDescrs[] = {
    {"|b1", ElementType::boolean}, {"|i1", ElementType::i8},  {"|u1", ElementType::u8},
    {"<i2", ElementType::i16},     {"<i4", ElementType::i32}, {"<i8", ElementType::i64},
    {"<u2", ElementType::u16},     {"<u4", ElementType::u32}, {"<u8", ElementType::u64},
    {"<f2", ElementType::f16},     {"<f4", ElementType::f32}, {"<f8", ElementType::f64},
};

[[noreturn]] void bad(const std::filesystem::path& path, const std::string& what) {
  throw Error(ErrorCode::bad_argument, path.string() + ": " + what);
}

// What stands after 'key': in the header.
std::string field(const std::filesystem::path& path, const std::string& header,
                  const std::string& key) {
  const size_t at = header.find("'" + key + "':");
  if (at == std::string::npos) bad(path, "the header has no " + key);
  const size_t begin = header.find_first_not_of(' ', at + key.size() + 3);
  if (begin == std::string::npos) bad(path, "the header ends early");
  return header.substr(begin);
}

std::vector<int64_t> shape_of(const std::filesystem::path& path, const std::string& text) {
  if (text[0] != '(') bad(path, "the header's shape is no tuple");
  std::vector<int64_t> dims;
  size_t i = 1;
  while (i < text.size() && text[i] != ')') {
    if (text[i] == ' ' || text[i] == ',') {
      i++;
      continue;
    }
    int64_t d = 0;
    const size_t begin = i;
    for (; i < text.size() && text[i] >= '0' && text[i] <= '9' && i - begin < 18; i++)
      d = d * 10 + (text[i] - '0');
    if (i == begin) bad(path, "the header's shape is no list of numbers");
    dims.push_back(d);
  }
  return dims;
}

}  // namespace

Tensor read_npy(const std::filesystem::path& path) {
  std::ifstream in(path, std::ios::binary);
  char head[8];
  if (!in.read(head, 8)) throw Error(ErrorCode::io, "cannot read " + path.string());
  if (std::memcmp(head, kMagic, 6) != 0) bad(path, "it is no .npy file");
  uint32_t length = 0;
  unsigned char size[4] = {};
  const int size_bytes = head[6] == 1 ? 2 : 4;
  in.read(reinterpret_cast<char*>(size), size_bytes);
  for (int i = size_bytes; i-- > 0;) length = length << 8 | size[i];
  if (!in || length > kMostHeader) bad(path, "its header is damaged");
  std::string header(length, ' ');
  if (!in.read(header.data(), length)) bad(path, "the header ends early");
  if (field(path, header, "fortran_order").rfind("False", 0) != 0)
    bad(path, "it is in Fortran order, wanted C order");
  const std::string descr = field(path, header, "descr");
  for (const Descr& d : kDescrs) {
    if (descr.compare(1, 3, d.text) != 0) continue;
    const std::vector<int64_t> dims = shape_of(path, field(path, header, "shape"));
    const Tensor outline = Tensor::wrap(d.type, dims, nullptr);
    const auto begin = static_cast<uint64_t>(in.tellg());
    if (std::filesystem::file_size(path) - begin < outline.bytes)
      bad(path, "it ends before its " + std::to_string(outline.bytes) + " bytes of elements");
    Tensor t = Tensor::make(d.type, dims);
    in.read(reinterpret_cast<char*>(t.data), static_cast<std::streamsize>(t.bytes));
    if (!in) throw Error(ErrorCode::io, "cannot read " + path.string());
    return t;
  }
  bad(path, "its element type " + descr.substr(0, 5) + " is not served");
}

void write_npy(const std::filesystem::path& path, const Tensor& tensor) {
  std::string descr = "<u2";
  for (const Descr& d : kDescrs)
    if (d.type == tensor.type) descr = d.text;
  std::string header = "{'descr': '" + descr + "', 'fortran_order': False, 'shape': (";
  for (const int64_t d : tensor.dims) header += std::to_string(d) + ", ";
  header += "), }";
  while ((header.size() + 11) % 64 != 0) header += ' ';
  header += '\n';
  std::ofstream out(path, std::ios::binary);
  out.write(kMagic, 6);
  const auto length = static_cast<uint16_t>(header.size());
  const char rest[] = {1, 0, static_cast<char>(length & 0xff), static_cast<char>(length >> 8)};
  out.write(rest, 4);
  out << header;
  out.write(reinterpret_cast<const char*>(tensor.data), static_cast<std::streamsize>(tensor.bytes));
  out.close();
  if (!out) throw Error(ErrorCode::io, "cannot write " + path.string());
}

}  // namespace pumice::cli
