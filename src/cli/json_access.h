// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "k8s/json_access.h"

namespace lpp::cli {

using k8s::member;
using k8s::number;
using k8s::text;

}  // namespace lpp::cli
