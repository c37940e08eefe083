#include "k8s/line_splitter.h"

#include <doctest/doctest.h>

#include <chrono>
#include <vector>

using lpp::k8s::LineSplitter;

namespace {

std::vector<std::string> split_in_chunks(const std::string& text, std::size_t size) {
  LineSplitter splitter;
  std::vector<std::string> lines;
  for (std::size_t i = 0; i < text.size(); i += size) {
    const auto outcome =
        splitter.feed(std::string_view(text).substr(i, size), [&](std::string_view line) {
          lines.emplace_back(line);
          return true;
        });
    CHECK(outcome == LineSplitter::Outcome::kMore);
  }
  lines.push_back("rest:" + std::string(splitter.rest()));
  return lines;
}

}  // namespace

TEST_CASE("lines are the same wherever the chunks begin and end") {
  const std::string text =
      "{\"a\":1}\n\n{\"b\":\"\xc3\xa4\xf0\x9f\x98\x80\"}\r\n\nlong long line\nrest";
  const std::vector<std::string> expected{"{\"a\":1}", "{\"b\":\"\xc3\xa4\xf0\x9f\x98\x80\"}\r",
                                          "long long line", "rest:rest"};
  for (std::size_t size = 1; size <= text.size(); ++size) {
    CAPTURE(size);
    CHECK(split_in_chunks(text, size) == expected);
  }
}

TEST_CASE("a consumer that has enough gets no further line") {
  LineSplitter splitter;
  int calls = 0;
  const auto stop = [&](std::string_view) {
    ++calls;
    return false;
  };
  CHECK(splitter.feed("a", stop) == LineSplitter::Outcome::kMore);
  CHECK(splitter.feed("b\nc\nd\n", stop) == LineSplitter::Outcome::kStopped);
  CHECK(calls == 1);
}

TEST_CASE("a line above the limit is refused as soon as it is") {
  const auto ignore = [](std::string_view) { return true; };
  SUBCASE("in one chunk") {
    LineSplitter splitter(8);
    CHECK(splitter.feed("12345678\n", ignore) == LineSplitter::Outcome::kMore);
    CHECK(splitter.feed("123456789\n", ignore) == LineSplitter::Outcome::kTooLong);
  }
  SUBCASE("over chunks, before its end has come") {
    LineSplitter splitter(8);
    CHECK(splitter.feed("12345", ignore) == LineSplitter::Outcome::kMore);
    CHECK(splitter.feed("6789", ignore) == LineSplitter::Outcome::kTooLong);
  }
  SUBCASE("many short lines are no long one") {
    LineSplitter splitter(8);
    CHECK(splitter.feed("1234\n1234\n1234\n1234\n", ignore) == LineSplitter::Outcome::kMore);
  }
}

TEST_CASE("a huge line in small chunks costs time in proportion to its length") {
  const auto seconds_for = [](std::size_t size) {
    LineSplitter splitter;
    const std::string chunk(4096, 'x');
    std::size_t seen = 0;
    const auto begin = std::chrono::steady_clock::now();
    for (std::size_t i = 0; i < size; i += chunk.size()) {
      (void)splitter.feed(chunk, [](std::string_view) { return true; });
    }
    (void)splitter.feed("\n", [&](std::string_view line) {
      seen = line.size();
      return true;
    });
    CHECK(seen == size);
    return std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
  };
  // Searching the buffer from its start for each of 8192 chunks would look at 130 GB.
  CHECK(seconds_for(std::size_t{32} << 20U) < 5.0);
}
