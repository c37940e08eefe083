// SPDX-License-Identifier: Apache-2.0
// A helper program for volumes: volume-helper -p DIRECTORY -s BYTES -m MODE -a create|delete
//
// Both may be run again after a crash. It ignores the size, and VOL_USER, VOL_GROUP and VOL_PERM.
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <filesystem>
#include <iostream>
#include <string>
#include <system_error>

namespace fs = std::filesystem;

namespace {

int fail(const std::string& what, const std::error_code& why) {
  std::cerr << "volume-helper: " << what << ": " << why.message() << "\n";
  return 1;
}

int create_volume(const fs::path& directory) {
  umask(0);
  if (mkdir(directory.c_str(), 0777) == 0) return 0;
  const std::error_code why(errno, std::generic_category());
  // A link in its place is not followed: what it points to is not this volume.
  if (fs::symlink_status(directory).type() == fs::file_type::directory) return 0;
  return fail("cannot make " + directory.string(), why);
}

int remove_volume(const fs::path& directory) {
  std::error_code why;
  fs::remove_all(directory, why);  // removes links in it, not what they point to
  return why ? fail("cannot remove " + directory.string(), why) : 0;
}

}  // namespace

int main(int argc, char** argv) {
  fs::path directory;
  std::string action;
  for (int option = 0; (option = getopt(argc, argv, "p:s:m:a:")) != -1;) {
    if (option == 'p') directory = optarg;
    if (option == 'a') action = optarg;
  }
  if (directory.is_absolute() && action == "create") return create_volume(directory);
  if (directory.is_absolute() && action == "delete") return remove_volume(directory);
  std::cerr << "usage: volume-helper -p DIRECTORY -s BYTES -m MODE -a create|delete\n";
  return 2;
}
