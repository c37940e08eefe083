// SPDX-License-Identifier: Apache-2.0
// Runs a fuzz target on the files of folders: its corpus, without libFuzzer.

#include <filesystem>
#include <iostream>
#include <string>

#include "harness/file_text.h"
#include "property.h"

int main(int argc, char** argv) {
  std::size_t count = 0;
  for (int i = 1; i < argc; ++i) {
    for (const auto& entry : std::filesystem::directory_iterator(argv[i])) {
      const std::string input = lpp::testing::text_of(entry.path());
      std::cerr << entry.path().filename().string() << '\n';  // the last one is the one that fails
      (void)LLVMFuzzerTestOneInput(reinterpret_cast<const std::uint8_t*>(input.data()),
                                   input.size());
      ++count;
    }
  }
  std::cout << count << " inputs\n";
  return count == 0 ? 1 : 0;
}
