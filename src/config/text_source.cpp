// SPDX-License-Identifier: Apache-2.0
#include "config/text_source.h"

#include <utility>

#include "config/file_source.h"

namespace lpp::config {

namespace {

class InlineSource final : public TextSource {
 public:
  InlineSource(std::string name, std::string text)
      : name_(std::move(name)), text_(std::move(text)) {}

  void start(Observer observer) override { observer(text_); }
  void stop() override {}
  const std::string& name() const override { return name_; }

 private:
  const std::string name_;
  const std::string text_;
};

}  // namespace

bool same_text(const Result<std::string>& a, const Result<std::string>& b) {
  if (a.ok() != b.ok()) return false;
  return a.ok() ? *a == *b : a.error().message == b.error().message;
}

std::unique_ptr<TextSource> make_inline_source(std::string name, std::string text) {
  return std::make_unique<InlineSource>(std::move(name), std::move(text));
}

std::unique_ptr<TextSource> make_file_source(std::string file, Clock& clock) {
  return std::make_unique<FileSource>(std::move(file), clock, FileSource::Options{});
}

}  // namespace lpp::config
