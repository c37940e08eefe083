// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string_view>

namespace lpp {

/// Says, while it lives, for which namespace this thread works, so that what is shared by all of
/// them (API calls, Events, log lines) can be shared out without each layer passing it on. "" = for
/// nobody in particular. Ends in the reverse order of its begin, on its thread; the text must
/// outlive it.
class OnBehalfOf {
 public:
  explicit OnBehalfOf(std::string_view ns) : outer_(t_current) { t_current = ns; }
  ~OnBehalfOf() { t_current = outer_; }
  OnBehalfOf(const OnBehalfOf&) = delete;
  OnBehalfOf& operator=(const OnBehalfOf&) = delete;

  static std::string_view current() { return t_current; }

 private:
  static inline thread_local std::string_view t_current{};
  const std::string_view outer_;
};

}  // namespace lpp
