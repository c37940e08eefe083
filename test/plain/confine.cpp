// SPDX-License-Identifier: Apache-2.0
// lpp-confine PROGRAM [ARGUMENT]...: runs the program as Docker and Podman run theirs by default,
// as far as that matters to sandboxes: root keeps the few capabilities that both leave it, and a
// filter refuses new namespaces and all that mounts. For one run of the tests; it protects nothing.

#include <linux/audit.h>
#include <linux/capability.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sched.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <vector>

namespace {

constexpr std::uint32_t kNamespaces = CLONE_NEWNS | CLONE_NEWCGROUP | CLONE_NEWUTS | CLONE_NEWIPC |
                                      CLONE_NEWUSER | CLONE_NEWPID | CLONE_NEWNET;
constexpr std::array kRefused = {SYS_mount,    SYS_umount2,   SYS_pivot_root, SYS_setns,
                                 SYS_unshare,  SYS_open_tree, SYS_move_mount, SYS_fsopen,
                                 SYS_fsconfig, SYS_fsmount,   SYS_fspick,     SYS_mount_setattr};

constexpr std::array kCapabilities = {
    CAP_CHOWN,   CAP_DAC_OVERRIDE, CAP_FOWNER,          CAP_FSETID,
    CAP_KILL,    CAP_SETGID,       CAP_SETUID,          CAP_SETPCAP,
    CAP_SETFCAP, CAP_SYS_CHROOT,   CAP_NET_BIND_SERVICE};

int failed(const char* what) {
  std::fprintf(stderr, "lpp-confine: %s: %s\n", what,
               std::strerror(errno));  // NOLINT(concurrency-mt-unsafe): one thread
  return 125;
}

/// The system calls of this architecture; a program of another one does as it likes.
std::vector<sock_filter> make_filter() {
  const auto load = [](std::size_t offset) {
    return sock_filter(BPF_STMT(BPF_LD | BPF_W | BPF_ABS, static_cast<std::uint32_t>(offset)));
  };
  const auto answer = [](std::uint32_t what) {
    return sock_filter(BPF_STMT(BPF_RET | BPF_K, what));
  };
  const auto unless = [](std::uint32_t value, std::uint8_t skip) {
    return sock_filter(BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, value, 0, skip));
  };
  std::vector<sock_filter> filter{load(offsetof(seccomp_data, nr))};
  for (const long number : kRefused) {
    filter.push_back(unless(static_cast<std::uint32_t>(number), 1));
    filter.push_back(answer(SECCOMP_RET_ERRNO | EPERM));
  }
  // Its flags are in memory: libraries fall back to clone().
  filter.push_back(unless(SYS_clone3, 1));
  filter.push_back(answer(SECCOMP_RET_ERRNO | ENOSYS));
  filter.push_back(unless(SYS_clone, 3));
  filter.push_back(load(offsetof(seccomp_data, args)));  // the lower half of the flags
  filter.push_back(BPF_JUMP(BPF_JMP | BPF_JSET | BPF_K, kNamespaces, 0, 1));
  filter.push_back(answer(SECCOMP_RET_ERRNO | EPERM));
  filter.push_back(answer(SECCOMP_RET_ALLOW));
  return filter;
}

bool keep_capabilities() {
  std::uint64_t keep = 0;
  for (const int capability : kCapabilities) keep |= std::uint64_t{1} << capability;
  for (unsigned long i = 0; i < 64; ++i) {  // those that the kernel does not know fail
    if ((keep >> i & 1) == 0) prctl(PR_CAPBSET_DROP, i, 0, 0, 0);
  }
  __user_cap_header_struct header{.version = _LINUX_CAPABILITY_VERSION_3, .pid = 0};
  std::array<__user_cap_data_struct, 2> sets{};
  if (syscall(SYS_capget, &header, sets.data()) != 0) return false;
  for (std::size_t half = 0; half < sets.size(); ++half) {
    sets.at(half).effective &= static_cast<std::uint32_t>(keep >> (32 * half));
    sets.at(half).permitted = sets.at(half).effective;
    sets.at(half).inheritable = 0;
  }
  return syscall(SYS_capset, &header, sets.data()) == 0;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 2) {
    std::fprintf(stderr, "usage: lpp-confine PROGRAM [ARGUMENT]...\n");
    return 2;
  }
  // Root sets the filter by its capability, so that sudo and its like go on working.
  if (geteuid() != 0 && prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0) return failed("no_new_privs");
  std::vector<sock_filter> filter = make_filter();
  const sock_fprog program{static_cast<unsigned short>(filter.size()), filter.data()};
  if (syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, 0, &program) != 0) return failed("seccomp");
  if (geteuid() == 0 && !keep_capabilities()) return failed("capabilities");
  execvp(argv[1], argv + 1);
  return failed(argv[1]);
}
