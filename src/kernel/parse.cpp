// SPDX-License-Identifier: Apache-2.0
// Text to kernel: the reverse of print.cpp. The text may be anything: whatever is no kernel becomes
// an Error with its line and column, and sizes and nesting are bounded.
#include <bit>
#include <charconv>
#include <unordered_map>

#include "base/check.h"
#include "kernel/immediate.h"
#include "kernel/ir.h"
#include "kernel/verify.h"

namespace pumice::kernel {
namespace {

// Above what verify() allows, so that its own findings can be provoked from text.
constexpr size_t kMaxText = 4u << 20, kMaxInsts = 4 * kMaxInstructions;
constexpr size_t kMaxDeclarations = 4096, kMaxDepth = 4 * kMaxNesting;

struct Token {
  enum class Kind : uint8_t { word, value, string, mark, newline, end } kind = Kind::end;
  std::string_view text;  // of a string: between its quotes, escapes as written
  size_t at = 0;
};

class Lexer {
 public:
  explicit Lexer(std::string_view text) : text_(text) { next(); }

  const Token& peek() const { return token_; }
  Token take() {
    const Token taken = token_;
    next();
    return taken;
  }
  /// Text of the comment that the last newline token ended, without spaces around it.
  std::string_view comment() const { return comment_; }

  uint32_t line(size_t at) const { return position(at).first; }
  template <typename... Args>
  [[noreturn]] void fail_at(size_t at, fmt::format_string<Args...> format, Args&&... args) const {
    const auto [line, column] = position(at);
    fail(ErrorCode::bad_argument, "line {}, column {}: {}", line, column,
         fmt::format(format, std::forward<Args>(args)...));
  }

 private:
  std::pair<uint32_t, size_t> position(size_t at) const {
    while (counted_ < at) {
      if (text_[counted_] == '\n') line_++, line_start_ = counted_ + 1;
      counted_++;
    }
    if (at >= line_start_) return {line_, at - line_start_ + 1};
    uint32_t line = 1;  // behind what was counted: only errors look back
    size_t start = 0;
    for (size_t i = 0; i < at; i++)
      if (text_[i] == '\n') line++, start = i + 1;
    return {line, at - start + 1};
  }

  static bool is_word(char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' ||
           c == '.' || c == '+' || c == '-';
  }

  void next() {
    while (at_ < text_.size() && (text_[at_] == ' ' || text_[at_] == '\t')) at_++;
    const size_t start = at_;
    if (at_ == text_.size()) {
      token_ = {Token::Kind::end, {}, start};
      return;
    }
    const char c = text_[at_];
    auto kind = Token::Kind::mark;
    if (c == '\n' || c == ';') {
      const size_t end = std::min(text_.find('\n', at_), text_.size());
      size_t from = std::min(at_ + (c == ';'), end);
      while (from < end && text_[from] == ' ') from++;
      comment_ = text_.substr(from, end - from);
      at_ = std::min(end + 1, text_.size());
      token_ = {Token::Kind::newline, {}, start};
      return;
    }
    if (c == '"') {
      at_++;
      while (at_ < text_.size() && text_[at_] != '"' && text_[at_] != '\n')
        at_ += text_[at_] == '\\' ? 2 : 1;
      if (at_ >= text_.size() || text_[at_] != '"') fail_at(start, "a string without an end");
      token_ = {Token::Kind::string, text_.substr(start + 1, at_ - start - 1), start};
      at_++;
      return;
    }
    if (is_word(c) || c == '%') {
      kind = c == '%' ? Token::Kind::value : Token::Kind::word;
      at_++;
      while (at_ < text_.size() && is_word(text_[at_])) at_++;
    } else {
      if (std::string_view("{}=,<>").find(c) == std::string_view::npos)
        fail_at(start, "the character {:#04x} has no place here", static_cast<unsigned char>(c));
      at_++;
    }
    token_ = {kind, text_.substr(start, at_ - start), start};
  }

  std::string_view text_, comment_;
  size_t at_ = 0;
  Token token_;
  mutable size_t counted_ = 0, line_start_ = 0;
  mutable uint32_t line_ = 1;
};

std::optional<Op> op_from_name(std::string_view text) {
  static const auto names = [] {
    std::unordered_map<std::string_view, Op> map;
    for (int i = 0; i < kOpCount; i++) map[info(static_cast<Op>(i)).name] = static_cast<Op>(i);
    return map;
  }();
  const auto it = names.find(text);
  if (it == names.end()) return std::nullopt;
  return it->second;
}

template <typename T>
std::optional<T> number_from(std::string_view text, int base = 10) {
  T value{};
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value, base);
  if (error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return value;
}
template <typename T>
std::optional<T> real_from(std::string_view text) {
  T value{};
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return value;
}

// Bits of a constant, or nothing for text that is no number of this type.
std::optional<uint64_t> constant_bits(DType elem, std::string_view text) {
  const size_t width = 8 * size_of(elem);
  const uint64_t mask = width == 64 ? ~uint64_t{0} : (uint64_t{1} << width) - 1;
  if (elem == DType::b1) {
    if (text == "true") return 1;
    if (text == "false") return 0;
    return std::nullopt;
  }
  if (is_unsigned_int(elem)) {
    const auto value = number_from<uint64_t>(text);
    return value && *value <= mask ? value : std::nullopt;
  }
  if (is_signed_int(elem)) {
    const auto value = number_from<int64_t>(text);
    const int64_t bound = static_cast<int64_t>(mask >> 1);
    if (!value || *value > bound || *value < -bound - 1) return std::nullopt;
    return static_cast<uint64_t>(*value) & mask;
  }
  if (text.starts_with("0x")) {
    const auto value = number_from<uint64_t>(text.substr(2), 16);
    return value && *value <= mask ? value : std::nullopt;
  }
  if (elem == DType::f64) {
    const auto value = real_from<double>(text);
    return value ? std::optional(std::bit_cast<uint64_t>(*value)) : std::nullopt;
  }
  const auto value = real_from<float>(text);
  if (!value) return std::nullopt;
  if (elem == DType::f16) return f32_to_f16(*value);
  if (elem == DType::bf16) return f32_to_bf16(*value);
  return std::bit_cast<uint32_t>(*value);
}

class Parser {
 public:
  explicit Parser(std::string_view text) : lexer_(text) {}

  Kernel run() {
    kernel_.locations.emplace_back();
    skip_lines();
    expect_word("kernel");
    kernel_.name = string();
    kernel_.workgroup = field("workgroup");
    kernel_.group = field("group");
    kernel_.placed = accept_word("placed");
    expect_mark("{");
    end_line();
    declarations();
    kernel_.body = block(0);
    expect_mark("}");
    skip_lines();
    if (lexer_.peek().kind != Token::Kind::end) unexpected("the end");
    return std::move(kernel_);
  }

 private:
  using Kind = Token::Kind;

  // ---- tokens

  [[noreturn]] void unexpected(std::string_view wanted) {
    const Token& t = lexer_.peek();
    const std::string found = t.kind == Kind::end       ? "the end"
                              : t.kind == Kind::newline ? "the end of the line"
                              : t.kind == Kind::string
                                  ? std::string("a string")
                                  : fmt::format("\"{}\"", t.text.substr(0, 40));
    lexer_.fail_at(t.at, "found {}, wanted {}", found, wanted);
  }
  bool is_word(std::string_view word) const {
    return lexer_.peek().kind == Kind::word && lexer_.peek().text == word;
  }
  bool is_mark(std::string_view mark) const {
    return lexer_.peek().kind == Kind::mark && lexer_.peek().text == mark;
  }
  bool accept_word(std::string_view word) {
    const bool found = is_word(word);
    if (found) lexer_.take();
    return found;
  }
  bool accept_mark(std::string_view mark) {
    const bool found = is_mark(mark);
    if (found) lexer_.take();
    return found;
  }
  void expect_word(std::string_view word) {
    if (!accept_word(word)) unexpected(fmt::format("\"{}\"", word));
  }
  void expect_mark(std::string_view mark) {
    if (!accept_mark(mark)) unexpected(fmt::format("\"{}\"", mark));
  }
  Token word(std::string_view wanted) {
    if (lexer_.peek().kind != Kind::word) unexpected(wanted);
    return lexer_.take();
  }
  void end_line() {
    if (lexer_.peek().kind != Kind::newline) unexpected("the end of the line");
    lexer_.take();
  }
  void skip_lines() {
    while (lexer_.peek().kind == Kind::newline) lexer_.take();
  }
  uint32_t number() {
    const Token t = word("a number");
    const auto value = number_from<uint32_t>(t.text);
    if (!value) lexer_.fail_at(t.at, "\"{}\" is no u32", t.text.substr(0, 40));
    return *value;
  }
  uint32_t field(std::string_view name) {
    expect_word(name);
    expect_mark("=");
    return number();
  }

  std::string string() {
    if (lexer_.peek().kind != Kind::string) unexpected("a string");
    const Token t = lexer_.take();
    if (t.text.size() > 1000) lexer_.fail_at(t.at, "a string of more than 1000 characters");
    std::string out;
    for (size_t i = 0; i < t.text.size(); i++) {
      if (t.text[i] != '\\') {
        out += t.text[i];
        continue;
      }
      const char c = t.text[++i];
      if (c == '"' || c == '\\') {
        out += c;
        continue;
      }
      const auto byte = c == 'x' && i + 2 < t.text.size()
                            ? number_from<uint8_t>(t.text.substr(i + 1, 2), 16)
                            : std::nullopt;
      if (!byte) lexer_.fail_at(t.at + 1 + i, "an escape that is none of \\\\, \\\", \\xHH");
      out += static_cast<char>(*byte);
      i += 2;
    }
    return out;
  }

  // ---- types

  DType elem() {
    const Token t = word("a type");
    const auto type = dtype_from_name(t.text);
    if (!type) lexer_.fail_at(t.at, "\"{}\" is no element type", t.text.substr(0, 40));
    return *type;
  }

  Type number_type() {
    Token t = word("a type");
    int width = 1;
    if (t.text.ends_with("x2") || t.text.ends_with("x4")) {
      width = t.text.back() - '0';
      t.text.remove_suffix(2);
    }
    const auto type = dtype_from_name(t.text);
    if (!type) lexer_.fail_at(t.at, "\"{}\" is no type", t.text.substr(0, 40));
    return Type::number(*type, width);
  }

  Type matrix_type() {
    const Token use = word("a, b or accumulator");
    if (use.text != "a" && use.text != "b" && use.text != "accumulator")
      lexer_.fail_at(use.at, "\"{}\" is no use of a matrix", use.text.substr(0, 40));
    const Token shape = word("rows x columns");
    const size_t x = shape.text.find('x');
    const auto rows = number_from<uint16_t>(shape.text.substr(0, x));
    const auto columns = number_from<uint16_t>(
        x == std::string_view::npos ? std::string_view() : shape.text.substr(x + 1));
    if (!rows || !columns)
      lexer_.fail_at(shape.at, "\"{}\" is no shape of a matrix", shape.text.substr(0, 40));
    const auto which = use.text == "a"   ? MatrixUse::a
                       : use.text == "b" ? MatrixUse::b
                                         : MatrixUse::accumulator;
    return Type::matrix(which, *rows, *columns, elem());
  }

  Type type() {
    if (accept_word("matrix")) {
      expect_mark("<");
      const Type matrix = matrix_type();
      expect_mark(">");
      return matrix;
    }
    if (!accept_word("ptr")) return number_type();
    expect_mark("<");
    const bool readonly = accept_word("readonly"), restrict = accept_word("restrict");
    Type pointer = number_type();
    pointer.kind = Type::Kind::pointer;
    pointer.readonly = readonly;
    pointer.restrict_ = restrict;
    expect_mark(">");
    return pointer;
  }

  // ---- declarations

  void declarations() {
    for (size_t count = 0;; count++) {
      skip_lines();
      if (count == kMaxDeclarations)
        lexer_.fail_at(lexer_.peek().at, "more than {} declarations", kMaxDeclarations);
      if (accept_word("argument")) {
        Argument a{string(), type(), 0};
        a.offset = field("offset");
        kernel_.arguments.push_back(std::move(a));
      } else if (accept_word("tile")) {
        Tile t;
        t.name = string();
        t.elem = elem();
        t.rows = field("rows"), t.columns = field("columns"), t.overlay = field("overlay");
        t.row_bytes = field("row_bytes"), t.offset = field("offset");
        kernel_.tiles.push_back(std::move(t));
      } else if (accept_word("var")) {
        kernel_.vars.push_back(type());
      } else {
        return;
      }
      end_line();
    }
  }

  // ---- statements

  BlockId block(size_t depth) {
    if (depth > kMaxDepth)
      lexer_.fail_at(lexer_.peek().at, "blocks nested deeper than {}", kMaxDepth);
    const auto id = static_cast<BlockId>(kernel_.blocks.size());
    kernel_.blocks.emplace_back();
    for (skip_lines(); !is_mark("}"); skip_lines()) instruction(id, depth);
    return id;
  }

  uint32_t value_number() {
    if (lexer_.peek().kind != Kind::value) unexpected("a value (%N)");
    const Token t = lexer_.take();
    const auto value = number_from<uint32_t>(t.text.substr(1));
    if (!value) lexer_.fail_at(t.at, "\"{}\" is no value (%N)", t.text.substr(0, 40));
    return *value;
  }
  Id operand() {
    const size_t at = lexer_.peek().at;
    const uint32_t number = value_number();
    const auto it = values_.find(number);
    if (it == values_.end()) lexer_.fail_at(at, "%{} is not defined above", number);
    return it->second;
  }
  void add_operand(Inst& inst) {
    if (inst.operand_count == kMaxOperands)
      lexer_.fail_at(lexer_.peek().at, "more than {} operands", kMaxOperands);
    const Id id = operand();
    inst.operands[inst.operand_count++] = id;
  }

  void immediate(Inst& inst) {
    const Token t = word("an immediate");
    const auto imms = immediates(inst.op);
    size_t i = 0;
    while (i < imms.size() && imms[i].name != t.text) i++;
    if (i == imms.size())
      lexer_.fail_at(t.at, "{} has no immediate \"{}\"", info(inst.op).name, t.text.substr(0, 40));
    if (imms[i].kind == ImmKind::flag && !is_mark("=")) {
      inst.imm[i] = 1;
      return;
    }
    expect_mark("=");
    if (lexer_.peek().kind == Kind::word)
      if (const auto value = value_from_name(imms[i].kind, lexer_.peek().text)) {
        inst.imm[i] = *value;
        lexer_.take();
        return;
      }
    inst.imm[i] = number();
  }

  void constant(Inst& inst) {
    const Token t = word("a number");
    const auto bits = inst.type.is_number() ? constant_bits(inst.type.elem, t.text) : std::nullopt;
    if (!bits) lexer_.fail_at(t.at, "\"{}\" is no {}", t.text.substr(0, 40), to_string(inst.type));
    inst.bits = *bits;
  }

  // The rest of the instruction's first line.
  void finish_line(Inst& inst, size_t at) {
    if (lexer_.peek().kind != Kind::newline) unexpected("the end of the line");
    const std::string_view comment = lexer_.comment();
    inst.location = static_cast<uint32_t>(kernel_.locations.size());
    kernel_.locations.push_back(comment.empty() ? fmt::format("line {}", lexer_.line(at))
                                                : std::string(comment.substr(0, 1000)));
    lexer_.take();
  }

  void instruction(BlockId home, size_t depth) {
    const size_t at = lexer_.peek().at;
    if (kernel_.insts.size() == kMaxInsts)
      lexer_.fail_at(at, "more than {} instructions", kMaxInsts);
    const bool has_result = lexer_.peek().kind == Kind::value;
    const uint32_t result = has_result ? value_number() : 0;
    if (has_result && values_.contains(result)) lexer_.fail_at(at, "%{} is defined twice", result);
    if (has_result) expect_mark("=");
    const Token name = word("an instruction");
    const auto op = op_from_name(name.text);
    if (!op) lexer_.fail_at(name.at, "no instruction is called \"{}\"", name.text.substr(0, 40));
    Inst inst;
    inst.op = *op;
    if (has_result) inst.type = type();
    if (*op == Op::constant) constant(inst);
    if (lexer_.peek().kind == Kind::value && *op != Op::while_) {
      do add_operand(inst);
      while (accept_mark(","));
    }
    while (lexer_.peek().kind == Kind::word) immediate(inst);
    const bool control = *op == Op::if_ || *op == Op::for_ || *op == Op::while_;
    if (control) expect_mark("{");
    finish_line(inst, at);

    const auto id = static_cast<Id>(kernel_.insts.size());
    kernel_.insts.push_back(inst);
    if (has_result) values_[result] = id;
    if (kernel_.placed || !info(*op).flags.pure) kernel_.blocks[index(home)].push_back(id);
    if (control) blocks_of(id, depth);
  }

  void blocks_of(Id id, size_t depth) {
    const Op op = kernel_[id].op;
    const BlockId first = block(depth + 1);
    kernel_[id].blocks[0] = first;
    expect_mark("}");
    if (op == Op::while_) {
      expect_word("do");
      add_operand(kernel_[id]);
    }
    if (op == Op::while_ || (op == Op::if_ && accept_word("else"))) {
      expect_mark("{");
      end_line();
      const BlockId second = block(depth + 1);
      kernel_[id].blocks[1] = second;
      expect_mark("}");
    } else if (op == Op::if_) {
      kernel_[id].blocks[1] = static_cast<BlockId>(kernel_.blocks.size());
      kernel_.blocks.emplace_back();
    }
    end_line();
  }

  Lexer lexer_;
  Kernel kernel_;
  std::unordered_map<uint32_t, Id> values_;
};

}  // namespace

Kernel parse(std::string_view text) {
  if (text.size() > kMaxText)
    fail(ErrorCode::bad_argument, "a kernel's text of {} bytes, at most {} are read", text.size(),
         kMaxText);
  return Parser(text).run();
}

}  // namespace pumice::kernel
