// SPDX-License-Identifier: Apache-2.0
// A kubeconfig file: an accepted one leads somewhere, a refused one says where it is wrong. Nothing
// it names is opened or run while it is read.

#include <sys/mman.h>
#include <unistd.h>

#include <string>

#include "k8s/rest_config.h"
#include "property.h"

// NOLINTNEXTLINE(readability-identifier-naming): libFuzzer's name
int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using lpp::fuzz::require;
  static const int fd = ::memfd_create("kubeconfig", 0);
  static const std::string file = "/proc/self/fd/" + std::to_string(fd);
  require(fd >= 0 && ::ftruncate(fd, 0) == 0, "a file can be made");
  require(::pwrite(fd, data, size, 0) == static_cast<ssize_t>(size), "it can be written");
  const auto config = lpp::k8s::load_kubeconfig(file);
  if (!config.ok()) {
    require(config.error().message.find(file) != std::string::npos, "an error names the file");
    return 0;
  }
  require(!config->host.empty(), "there is a host");
  require(config->port > 0 && config->port < 65'536, "the port is one");
  require(config->base_path.empty() || config->base_path.front() == '/', "the prefix is a path");
  for (const char c : config->token) require(c != '\r' && c != '\n', "a token is one line");
  return 0;
}
