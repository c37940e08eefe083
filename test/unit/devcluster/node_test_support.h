// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <doctest/doctest.h>

#include <chrono>
#include <functional>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>

#include "devcluster/apiserver/registry.h"
#include "devcluster/node/sandbox.h"
#include "devcluster/runtime/wait.h"
#include "harness/temp_dir.h"

/// Helpers for the tests of the nodes and controllers.
namespace lpp::devcluster::testing {

using lpp::testing::TempDir;

/// The machine's sandbox tools of one kind, or the reason why there are none.
inline const Result<SandboxTools>& sandbox_tools(SandboxKind kind) {
  static const Result<SandboxTools> bwrap = find_sandbox_tools(SandboxKind::kBubblewrap);
  static const Result<SandboxTools> proot = find_sandbox_tools(SandboxKind::kProot);
  return kind == SandboxKind::kBubblewrap ? bwrap : proot;
}

/// A decorator of a test case: skips it where no sandbox of the kind can be had, and says why.
struct NeedsSandbox {
  explicit NeedsSandbox(SandboxKind kind, bool read_only = false, bool root = false)
      : tools(sandbox_tools(kind)), needs_read_only(read_only), needs_root(root) {}
  void fill(doctest::detail::TestCase& test) const {
    test.m_skip = true;
    if (!tools.ok()) {
      test.m_description = tools.error().message.c_str();
    } else if (needs_read_only && !tools->read_only) {
      test.m_description = "this kernel has no Landlock";
    } else if (needs_root && !tools->root) {
      test.m_description = "not here: root in a sandbox";
    } else {
      test.m_skip = false;
    }
  }
  const Result<SandboxTools>& tools;
  const bool needs_read_only;
  const bool needs_root;
};

constexpr std::chrono::seconds kDeadline{60};

/// Waits with a deadline that only a failing test reaches.
inline bool wait_for(const Registry& registry, const ObjectRef& ref,
                     const std::function<bool(const nlohmann::json*)>& condition) {
  return devcluster::wait_for(registry, ref, condition, kDeadline);
}

}  // namespace lpp::devcluster::testing
