// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "app/subjects.h"

namespace lpp::app {

/// The text of /statusz: how this process stands, for people. Everything is read when it is asked
/// for; lists are cut, so that the page stays readable and small. Thread-safe.
std::string status_page(const Subjects& subjects);

}  // namespace lpp::app
