// SPDX-License-Identifier: Apache-2.0
#pragma once

namespace lpp {

/// Lets go of all code and constants of the program and its libraries: what is used again is mapped
/// again, without a read where the page cache still has it. For when something large has been done
/// for good, such as starting. Thread-safe, and safe while others run the code.
void unmap_idle_code();

}  // namespace lpp
