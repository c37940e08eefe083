#pragma once

#include <string>
#include <string_view>

#include "base/result.h"
#include "operation/operation.h"

namespace lpp::helperpod {

/// An Operation as the text of one annotation (JSON), so that it survives us. Pure.
Result<std::string> encode_operation(const operation::Operation& operation);

/// Strict about what is there, because people edit annotations; unknown members are ignored, so
/// that another version's record can be read. kInvalid names the member.
Result<operation::Operation> decode_operation(std::string_view text);

}  // namespace lpp::helperpod
