// SPDX-License-Identifier: Apache-2.0
#include "template/template.h"

#include "template/evaluator.h"
#include "template/failure.h"
#include "template/parser.h"
#include "text/place.h"

namespace lpp::gotemplate {

namespace {

/// A pattern is a line or two; what is longer is a mistake.
constexpr std::size_t kMaxPattern = 64UL * 1024;

Error error_at(const std::string& name, std::string_view source, const Failure& failure) {
  const text::Place place = text::place_at(source, failure.position);
  return invalid(name + ":" + std::to_string(place.line) + ":" + std::to_string(place.column) +
                 ": " + failure.message);
}

}  // namespace

Result<Template> Template::parse(std::string_view text, std::string_view name) {
  const std::string label(name);
  if (text.size() > kMaxPattern) return invalid(label + ": the pattern is longer than 64 KiB");
  try {
    return Template(std::make_shared<const Tree>(gotemplate::parse(label, std::string(text))));
  } catch (const Failure& failure) {
    return error_at(label, text, failure);
  }
}

Result<std::string> Template::render(const Object& data) const {
  try {
    return evaluate(*tree_, data);
  } catch (const Failure& failure) {
    return error_at(tree_->name, tree_->text, failure);
  }
}

}  // namespace lpp::gotemplate
