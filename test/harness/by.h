// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <doctest/doctest.h>

namespace lpp::testing {

/// What does the daemon's operations: helper pods, the second executor, which only tests have, or
/// an agent on each node.
enum class By { kHelperPods, kDirectories, kAgents };

/// The test case is run with each of them: its body has a `By` named `by`.
#define LPP_EXECUTORS_TEST_CASE(name) LPP_EXECUTORS_TEST_CASE_AS(name, DOCTEST_ANONYMOUS(lpp_case_))
#define LPP_EXECUTORS_TEST_CASE_AS(name, function)                                  \
  static void function(By by);                                                      \
  TEST_CASE(name ", by helper pods") { function(By::kHelperPods); }                 \
  TEST_CASE(name ", by directories of the process") { function(By::kDirectories); } \
  static void function(By by)
/// The same with agents as well: of what nobody on a node has begun they keep no record, and their
/// work cannot be held in the middle.
#define LPP_ALL_EXECUTORS_TEST_CASE(name) \
  LPP_ALL_EXECUTORS_TEST_CASE_AS(name, DOCTEST_ANONYMOUS(lpp_case_))
#define LPP_ALL_EXECUTORS_TEST_CASE_AS(name, function)                              \
  static void function(By by);                                                      \
  TEST_CASE(name ", by helper pods") { function(By::kHelperPods); }                 \
  TEST_CASE(name ", by directories of the process") { function(By::kDirectories); } \
  TEST_CASE(name ", by agents") { function(By::kAgents); }                          \
  static void function(By by)
/// With what users have: helper pods, and agents.
#define LPP_PODS_AND_AGENTS_TEST_CASE(name) \
  LPP_PODS_AND_AGENTS_TEST_CASE_AS(name, DOCTEST_ANONYMOUS(lpp_case_))
#define LPP_PODS_AND_AGENTS_TEST_CASE_AS(name, function)            \
  static void function(By by);                                      \
  TEST_CASE(name ", by helper pods") { function(By::kHelperPods); } \
  TEST_CASE(name ", by agents") { function(By::kAgents); }          \
  static void function(By by)

}  // namespace lpp::testing
