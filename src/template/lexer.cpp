// SPDX-License-Identifier: Apache-2.0
#include "template/lexer.h"

#include <map>

#include "template/letters.h"
#include "template/quote.h"

namespace lpp::gotemplate {

namespace {

constexpr std::string_view kLeft = "{{";
constexpr std::string_view kRight = "}}";

bool is_space(int c) { return c == ' ' || c == '\t' || c == '\r' || c == '\n'; }
bool is_digit(int c) { return c >= '0' && c <= '9'; }
bool is_alphanumeric(int c) {
  return c == '_' || is_digit(c) || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
}

bool starts_with(std::string_view text, std::string_view start) {
  return text.substr(0, start.size()) == start;
}

const std::map<std::string_view, TokenType>& keywords() {
  static const std::map<std::string_view, TokenType> words = {{".", TokenType::kDot},
                                                              {"block", TokenType::kBlock},
                                                              {"break", TokenType::kBreak},
                                                              {"continue", TokenType::kContinue},
                                                              {"define", TokenType::kDefine},
                                                              {"else", TokenType::kElse},
                                                              {"end", TokenType::kEnd},
                                                              {"if", TokenType::kIf},
                                                              {"range", TokenType::kRange},
                                                              {"nil", TokenType::kNil},
                                                              {"template", TokenType::kTemplate},
                                                              {"with", TokenType::kWith}};
  return words;
}

class Lexer {
 public:
  explicit Lexer(std::string_view input) : input_(input) {}

  std::vector<Token> run() {
    while (!done_) {
      if (inside_action_) {
        inside_action();
      } else {
        text();
      }
    }
    return std::move(tokens_);
  }

 private:
  static constexpr int kEnd = -1;

  std::string_view rest() const { return input_.substr(position_); }
  int peek() const {
    return position_ < input_.size() ? static_cast<unsigned char>(input_[position_]) : kEnd;
  }
  int next() {
    const int c = peek();
    if (c != kEnd) ++position_;
    return c;
  }
  bool accept(std::string_view valid) {
    if (peek() == kEnd || valid.find(input_[position_]) == std::string_view::npos) return false;
    ++position_;
    return true;
  }
  /// The character ahead if it can be part of a name, else its size 0.
  std::size_t name_part() const {
    const int c = peek();
    if (c < 0x80) return is_alphanumeric(c) ? 1 : 0;
    const Rune rune = decode_rune(rest());
    return is_letter_or_digit(rune.value) ? rune.size : 0;
  }
  void accept_name() {
    while (const std::size_t size = name_part()) position_ += size;
  }
  void accept_run(std::string_view valid) {
    while (accept(valid)) {
    }
  }

  void emit(TokenType type) {
    tokens_.push_back({type, start_, std::string(input_.substr(start_, position_ - start_))});
    start_ = position_;
  }
  void fail(std::string message) {
    tokens_.push_back({TokenType::kError, start_, std::move(message)});
    done_ = true;
  }
  void bad_character(const char* what, std::size_t at) {
    if (at >= input_.size()) return fail(std::string(what) + " U+FFFFFFFFFFFFFFFF");
    const Rune rune = decode_rune(input_.substr(at));
    fail(std::string(what) + " " + unicode_name(rune.value) +
         (rune.value < 0x20 || rune.value == 0x7F ? "" : " '" + encode_rune(rune.value) + "'"));
  }

  static bool has_left_trim(std::string_view text) {
    return text.size() >= 2 && text[0] == '-' && is_space(text[1]);
  }
  static bool has_right_trim(std::string_view text) {
    return text.size() >= 2 && is_space(text[0]) && text[1] == '-';
  }
  bool at_trimmed_right_delim() const {
    return has_right_trim(rest()) && starts_with(rest().substr(2), kRight);
  }
  bool at_right_delim() const { return at_trimmed_right_delim() || starts_with(rest(), kRight); }

  void text() {
    const auto found = rest().find(kLeft);
    if (found == std::string_view::npos) {
      position_ = input_.size();
      if (position_ > start_) emit(TokenType::kText);
      emit(TokenType::kEof);
      done_ = true;
      return;
    }
    if (found > 0) {
      const std::size_t delim = position_ + found;
      position_ = delim;
      if (has_left_trim(input_.substr(delim + kLeft.size()))) {
        while (position_ > start_ && is_space(input_[position_ - 1])) --position_;
      }
      if (position_ > start_) emit(TokenType::kText);
      start_ = position_ = delim;
    }
    left_delim();
  }

  void left_delim() {
    position_ += kLeft.size();
    const std::size_t after_marker = has_left_trim(rest()) ? 2 : 0;
    if (starts_with(rest().substr(after_marker), "/*")) {
      position_ += after_marker;
      start_ = position_;
      return comment();
    }
    emit(TokenType::kLeftDelim);
    inside_action_ = true;
    position_ += after_marker;
    start_ = position_;
    paren_depth_ = 0;
  }

  void comment() {
    const auto end = rest().find("*/", 2);
    if (end == std::string_view::npos) return fail("unclosed comment");
    position_ += end + 2;
    if (!at_right_delim()) return fail("comment ends before closing delimiter");
    skip_right_delim();
    start_ = position_;
  }

  /// Over the delimiter and, if it trims, the white space behind it.
  void skip_right_delim() {
    const bool trims = at_trimmed_right_delim();
    position_ += kRight.size() + (trims ? 2 : 0);
    while (trims && is_space(peek())) ++position_;
  }

  void right_delim() {
    const bool trims = at_trimmed_right_delim();
    if (trims) position_ += 2;
    start_ = position_;
    position_ += kRight.size();
    emit(TokenType::kRightDelim);
    while (trims && is_space(peek())) ++position_;
    start_ = position_;
    inside_action_ = false;
  }

  void inside_action() {
    if (at_right_delim()) {
      if (paren_depth_ > 0) return fail("unclosed left paren");
      return right_delim();
    }
    const int c = next();
    switch (c) {
      case kEnd: return fail("unclosed action");
      case ' ':
      case '\t':
      case '\r':
      case '\n': return space();
      case '=': return emit(TokenType::kAssign);
      case ':':
        if (next() != '=') return fail("expected :=");
        return emit(TokenType::kDeclare);
      case '|': return emit(TokenType::kPipe);
      case '"': return quoted('"', "unterminated quoted string", TokenType::kString);
      case '\'': return quoted('\'', "unterminated character constant", TokenType::kCharConstant);
      case '`': return raw_quoted();
      case '$': return field_or_variable(TokenType::kVariable);
      case '(': ++paren_depth_; return emit(TokenType::kLeftParen);
      case ')':
        if (--paren_depth_ < 0) return fail("unexpected right paren");
        return emit(TokenType::kRightParen);
      default: return word_or_number(c);
    }
  }

  void word_or_number(int c) {
    if (c == '.' && position_ < input_.size() && !is_digit(peek())) {
      return field_or_variable(TokenType::kField);
    }
    if (c == '.' || c == '+' || c == '-' || is_digit(c)) {
      --position_;
      return number();
    }
    --position_;
    if (name_part() > 0) return identifier();
    ++position_;
    if (c >= 0x20 && c < 0x7F) return emit(TokenType::kChar);
    bad_character("unrecognized character in action:", position_ - 1);
  }

  void space() {
    while (is_space(peek())) ++position_;
    // The last of the spaces may belong to a closing delimiter that trims.
    --position_;
    const bool trimmed = at_trimmed_right_delim();
    if (!trimmed) ++position_;
    if (position_ == start_) return right_delim();
    emit(TokenType::kSpace);
  }

  bool at_terminator() const {
    const int c = peek();
    return c == kEnd || is_space(c) || c == '.' || c == ',' || c == '|' || c == ':' || c == ')' ||
           c == '(' || starts_with(rest(), kRight);
  }

  void identifier() {
    accept_name();
    if (!at_terminator()) return bad_character("bad character", position_);
    const std::string_view word = input_.substr(start_, position_ - start_);
    if (const auto it = keywords().find(word); it != keywords().end()) return emit(it->second);
    emit(word == "true" || word == "false" ? TokenType::kBool : TokenType::kIdentifier);
  }

  void field_or_variable(TokenType type) {
    if (at_terminator()) {
      return emit(type == TokenType::kVariable ? TokenType::kVariable : TokenType::kDot);
    }
    accept_name();
    if (!at_terminator()) return bad_character("bad character", position_);
    emit(type);
  }

  void quoted(char quotes, const char* unterminated, TokenType type) {
    while (true) {
      const int c = next();
      if (c == quotes) return emit(type);
      if (c == kEnd || c == '\n') return fail(unterminated);
      if (c == '\\') {
        const int escaped = next();
        if (escaped == kEnd || escaped == '\n') return fail(unterminated);
      }
    }
  }

  void raw_quoted() {
    while (true) {
      const int c = next();
      if (c == '`') return emit(TokenType::kRawString);
      if (c == kEnd) return fail("unterminated raw quoted string");
    }
  }

  void number() {
    if (!scan_number()) return bad_number();
    if (peek() == '+' || peek() == '-') {
      if (!scan_number() || input_[position_ - 1] != 'i') return bad_number();
      return emit(TokenType::kComplex);
    }
    emit(TokenType::kNumber);
  }

  void bad_number() {
    fail("bad number syntax: " + quote(input_.substr(start_, position_ - start_)));
  }

  bool scan_number() {
    accept("+-");
    std::string_view digits = "0123456789_";
    bool decimal = true;
    bool hexadecimal = false;
    if (accept("0")) {
      if (accept("xX")) {
        digits = "0123456789abcdefABCDEF_";
        decimal = false;
        hexadecimal = true;
      } else if (accept("oO")) {
        digits = "01234567_";
        decimal = false;
      } else if (accept("bB")) {
        digits = "01_";
        decimal = false;
      }
    }
    accept_run(digits);
    if (accept(".")) accept_run(digits);
    if ((decimal && accept("eE")) || (hexadecimal && accept("pP"))) {
      accept("+-");
      accept_run("0123456789_");
    }
    accept("i");
    const std::size_t size = name_part();
    position_ += size;
    return size == 0;
  }

  const std::string_view input_;
  std::size_t position_ = 0;
  std::size_t start_ = 0;
  int paren_depth_ = 0;
  bool inside_action_ = false;
  bool done_ = false;
  std::vector<Token> tokens_;
};

}  // namespace

std::vector<Token> lex(std::string_view input) { return Lexer(input).run(); }

std::string describe(const Token& token) {
  if (token.type == TokenType::kEof) return "EOF";
  if (token.type == TokenType::kError) return token.text;
  if (token.type >= TokenType::kDot) return "<" + token.text + ">";
  if (token.text.size() <= 10) return quote(token.text);
  std::string_view rest = token.text;
  std::size_t size = 0;
  for (int i = 0; i < 10 && size < rest.size(); ++i) size += decode_rune(rest.substr(size)).size;
  return quote(rest.substr(0, size)) + "...";
}

}  // namespace lpp::gotemplate
