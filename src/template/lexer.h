// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace lpp::gotemplate {

enum class TokenType {
  kError,  // text is the message
  kBool,
  kChar,  // a printable character; grab bag for ","
  kCharConstant,
  kComplex,
  kAssign,
  kDeclare,
  kEof,
  kField,
  kIdentifier,
  kLeftDelim,
  kLeftParen,
  kNumber,
  kPipe,
  kRawString,
  kRightDelim,
  kRightParen,
  kSpace,
  kString,
  kText,
  kVariable,
  kDot,
  // Keywords from here on.
  kBlock,
  kBreak,
  kContinue,
  kDefine,
  kElse,
  kEnd,
  kIf,
  kNil,
  kRange,
  kTemplate,
  kWith,
};

struct Token {
  TokenType type = TokenType::kEof;
  std::size_t position = 0;
  std::string text{};
};

/// Splits a template into tokens; the last one is kEof or kError. After the lexer of Go's
/// text/template/parse (BSD-style licence); comments give no token, and names may have letters and
/// digits beyond ASCII, see letters.h.
std::vector<Token> lex(std::string_view input);

/// A token in messages: "EOF", <keyword> or a short quotation.
std::string describe(const Token& token);

}  // namespace lpp::gotemplate
