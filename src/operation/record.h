// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>

#include "base/result.h"
#include "operation/operation.h"

namespace lpp::operation {

/// An Operation as a text (JSON), so that it survives us: of an annotation, or in a file. Pure.
Result<std::string> encode_operation(const Operation& operation);

/// Strict about what is there, because people edit annotations; unknown members are ignored, so
/// that another version's record can be read. kInvalid names the member.
Result<Operation> decode_operation(std::string_view text);

}  // namespace lpp::operation
