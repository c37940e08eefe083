// SPDX-License-Identifier: Apache-2.0
// Answers that are not 2xx: any body becomes an Error that is bounded and has a message. The first
// line is the status code.

#include <charconv>

#include "k8s/api_client.h"
#include "property.h"

// NOLINTNEXTLINE(readability-identifier-naming): libFuzzer's name
int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using lpp::fuzz::require;
  auto text = lpp::fuzz::text_of(data, size);
  const auto code = lpp::fuzz::take_line(text);
  lpp::k8s::Response response{.status = 500, .body = std::string(text)};
  (void)std::from_chars(code.data(), code.data() + code.size(), response.status);
  if (response.status / 100 == 2) return 0;
  for (const char* type : {"application/json", "text/plain", "text/html", ""}) {
    response.content_type = type;
    const lpp::Error error = lpp::k8s::error_from_response(response);
    require(!error.message.empty(), "an error has a message");
    require(error.message.size() < 16'384, "a message is bounded");
    require(!error.retry_after || error.retry_after->count() >= 0, "no wait is negative");
  }
  return 0;
}
