// SPDX-License-Identifier: Apache-2.0
#include "k8s/frame_splitter.h"

#include <doctest/doctest.h>

#include <chrono>
#include <vector>

using lpp::k8s::FrameSplitter;

namespace {

std::vector<std::string> split_in_chunks(const std::string& text, std::size_t size) {
  FrameSplitter splitter;
  std::vector<std::string> lines;
  for (std::size_t i = 0; i < text.size(); i += size) {
    const auto outcome =
        splitter.feed(std::string_view(text).substr(i, size), [&](std::string_view line) {
          lines.emplace_back(line);
          return true;
        });
    CHECK(outcome == FrameSplitter::Outcome::kMore);
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

TEST_CASE("counted frames are the same wherever the chunks begin and end") {
  using namespace std::string_literals;
  // Line ends and zeros mean nothing within a frame; one of no bytes is skipped.
  const std::string bytes =
      "\0\0\0\5a\n\0\nb\0\0\0\0\0\0\1\1"s + "c"s + std::string(256, 'd') + "\0\0\0\4res"s;
  const std::vector<std::string> expected{"a\n\0\nb"s, "c"s + std::string(256, 'd'),
                                          "rest:\0\0\0\4res"s};
  for (std::size_t size = 1; size <= bytes.size(); ++size) {
    CAPTURE(size);
    CHECK(split_in_chunks(bytes, size) == expected);
  }
}

TEST_CASE("a counted frame above the limit is refused before its bytes have come") {
  using namespace std::string_literals;
  const auto ignore = [](std::string_view) { return true; };
  FrameSplitter splitter(8);
  CHECK(splitter.feed("\0\0\0\x08"s + "12345678", ignore) == FrameSplitter::Outcome::kMore);
  CHECK(FrameSplitter(8).feed("\0\0\0\x09"s, ignore) == FrameSplitter::Outcome::kTooLong);
  FrameSplitter chunks(8);
  CHECK(chunks.feed("\0\0"s, ignore) == FrameSplitter::Outcome::kMore);
  CHECK(chunks.feed("\1\0"s, ignore) == FrameSplitter::Outcome::kTooLong);
}

TEST_CASE("a consumer that has enough gets no further line") {
  FrameSplitter splitter;
  int calls = 0;
  const auto stop = [&](std::string_view) {
    ++calls;
    return false;
  };
  CHECK(splitter.feed("a", stop) == FrameSplitter::Outcome::kMore);
  CHECK(splitter.feed("b\nc\nd\n", stop) == FrameSplitter::Outcome::kStopped);
  CHECK(calls == 1);
}

TEST_CASE("a line above the limit is refused as soon as it is") {
  const auto ignore = [](std::string_view) { return true; };
  SUBCASE("in one chunk") {
    FrameSplitter splitter(8);
    CHECK(splitter.feed("12345678\n", ignore) == FrameSplitter::Outcome::kMore);
    CHECK(splitter.feed("123456789\n", ignore) == FrameSplitter::Outcome::kTooLong);
  }
  SUBCASE("over chunks, before its end has come") {
    FrameSplitter splitter(8);
    CHECK(splitter.feed("12345", ignore) == FrameSplitter::Outcome::kMore);
    CHECK(splitter.feed("6789", ignore) == FrameSplitter::Outcome::kTooLong);
  }
  SUBCASE("many short lines are no long one") {
    FrameSplitter splitter(8);
    CHECK(splitter.feed("1234\n1234\n1234\n1234\n", ignore) == FrameSplitter::Outcome::kMore);
  }
}

TEST_CASE("a huge line in small chunks costs time in proportion to its length") {
  const auto seconds_for = [](std::size_t size) {
    FrameSplitter splitter(std::size_t{64} << 20U);
    const std::string chunk(64, 'x');
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
  // Searching the buffer from its start for each of 524288 chunks would look at 8 TB.
  CHECK(seconds_for(std::size_t{32} << 20U) < 60.0);
}
