// SPDX-License-Identifier: Apache-2.0
// A node's agent that stands still before a step of its work. The file that STOPPING_AGENT_ORDER
// names says when: a word, and the number of the call that changes something on the disk, counted
// since the word is another one. It goes on when the file is gone; without it nothing is counted.
// The calls stand in the file of that name with ".calls", a line each.

#include <array>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>
#include <string_view>
#include <thread>
#include <variant>

#include "app/agent_process.h"
#include "app/flag_table.h"
#include "app/signals.h"
#include "base/sync.h"

namespace {

using lpp::MutexLock;

bool is_change(std::string_view call) {
  constexpr std::array kChanges{"create",   "write", "mkdirat", "renameat2", "renameat",
                                "unlinkat", "rmdir", "fchown",  "fchmod",    "fsetxattr"};
  for (const char* change : kChanges) {
    if (call == change) return true;
  }
  return false;
}

class StoppingKernel final : public lpp::node::Kernel {
 public:
  explicit StoppingKernel(std::string order) : order_(std::move(order)) {}

 protected:
  int before(const char* call) override {
    if (!is_change(call)) return 0;
    MutexLock lock(mutex_);
    std::string word;
    int at = 0;
    if (!(std::ifstream(order_) >> word >> at)) return 0;
    if (word != word_) count_ = 0;
    word_ = word;
    ++count_;
    std::ofstream(order_ + ".calls", std::ios::app) << call << "\n";
    while (count_ == at && std::filesystem::exists(order_)) {
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
    return 0;
  }

 private:
  const std::string order_;
  lpp::Mutex mutex_;
  std::string word_ LPP_GUARDED_BY(mutex_);
  int count_ LPP_GUARDED_BY(mutex_) = 0;
};

}  // namespace

int main(int argc, char** argv) {
  lpp::app::block_signals();
  const auto invocation = lpp::app::parse_command_line(argc, argv);
  const auto* options = std::get_if<lpp::app::AgentOptions>(&invocation);
  // NOLINTNEXTLINE(concurrency-mt-unsafe): no other thread runs yet
  const char* order = std::getenv("STOPPING_AGENT_ORDER");
  if (options == nullptr || order == nullptr) {
    std::fputs("only agent, with STOPPING_AGENT_ORDER\n", stderr);
    return 2;
  }
  StoppingKernel kernel(order);
  return lpp::app::run_agent_until_signal(*options, kernel);
}
