// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "helperpod/schema.h"

namespace lpp::helperpod {

/// What a helper pod template may hold: a list of what is allowed (rule B6.8). What is
/// known to give a helper pod more than its task needs is refused; everything else is unknown.
extern const Schema kPodSchema;

}  // namespace lpp::helperpod
