// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace lpp::testing {

struct MessageHead;

/// What a client asked.
struct HttpRequest {
  std::string method{};
  std::string target{};
  std::string path{};  ///< of the target: still percent-encoded, without the query
  std::vector<std::pair<std::string, std::string>> query{};  ///< decoded
  std::multimap<std::string, std::string> headers{};         ///< names in lower case
  std::string body{};
  bool body_too_large = false;  ///< then it was not read
  int connection = 0;           ///< 1, 2, ... in the order of their arrival
  std::string client_name{};    ///< common name of the client certificate; "" = none
  std::string sni{};

  /// The first line and the headers; empty for anything malformed.
  static std::optional<HttpRequest> parse(const MessageHead& head);

  std::string header(const std::string& lower_case_name) const;
  /// The first value of a query parameter; "" when it is not there.
  std::string param(std::string_view name) const;
  bool has_param(std::string_view name) const;
};

using HttpHeaders = std::vector<std::pair<std::string, std::string>>;

/// One request in the hands of a server's handler: answers whatever that wants, well-formed or not.
/// Used by the handler's thread only.
class Exchange {
 public:
  virtual ~Exchange() = default;

  virtual const HttpRequest& request() const = 0;
  /// Bytes as they are; false when the connection is gone.
  virtual bool send(std::string_view bytes) = 0;
  /// A whole answer, with Content-Length.
  bool respond(int code, std::string_view body,
               const HttpHeaders& headers = {{"Content-Type", "application/json"}});
  /// An answer in chunks, each of which is sent at once.
  bool begin_chunks(int code = 200,
                    const HttpHeaders& headers = {{"Content-Type", "application/json"}});
  bool chunk(std::string_view data);
  bool end_chunks() { return send("0\r\n\r\n"); }

  /// Resets the connection; whatever was not sent is lost.
  virtual void cut() = 0;
  /// True when the client closed the connection or the server stops.
  virtual bool gone() const = 0;
  virtual void wait_for_close() const = 0;
  /// Waits; false when gone() became true meanwhile.
  virtual bool pause(std::chrono::milliseconds time) const = 0;
};

}  // namespace lpp::testing
