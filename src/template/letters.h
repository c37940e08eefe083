// SPDX-License-Identifier: Apache-2.0
#pragma once

namespace lpp::gotemplate {

/// Whether Go takes a character beyond ASCII for a letter or a digit. Pure.
bool is_letter_or_digit(char32_t rune);

}  // namespace lpp::gotemplate
