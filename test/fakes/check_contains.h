// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <doctest/doctest.h>

#include <string>

/// CHECK that the part is in the text; shows both when it is not.
#define CHECK_CONTAINS(text, part)                                                        \
  ([](const std::string& lpp_text, const std::string& lpp_part) {                         \
    const bool is_there = lpp_text.find(lpp_part) != std::string::npos;                   \
    CHECK_MESSAGE(is_there, #text << ": \"" << lpp_part << "\" is not in: " << lpp_text); \
  }(std::string(text), std::string(part)))
