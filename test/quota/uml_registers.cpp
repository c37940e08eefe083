// SPDX-License-Identifier: Apache-2.0
// Preloaded into Debian's user-mode Linux kernel (6.1), which saves 2,696 bytes of a process's
// floating point registers, as much as processors up to AVX-512 have. Those with AMX have more, and
// the machine's kernel takes all or nothing (EFAULT): the rest, which no program here uses, is
// added.

#include <dlfcn.h>
#include <elf.h>
#include <sys/ptrace.h>
#include <sys/types.h>
#include <sys/uio.h>

#include <array>
#include <cstdarg>
#include <cstddef>
#include <cstdlib>
#include <cstring>

namespace {

using Ptrace = long (*)(__ptrace_request, pid_t, void*, void*);

Ptrace next() {
  static const auto found = reinterpret_cast<Ptrace>(::dlsym(RTLD_NEXT, "ptrace"));
  if (found == nullptr) std::abort();
  return found;
}

/// How many bytes the machine's kernel wants; 0: it does not tell.
std::size_t whole_size(pid_t pid, void* kind, iovec whole) {
  static std::size_t size = 0;
  if (size == 0 && next()(PTRACE_GETREGSET, pid, kind, &whole) == 0) {
    size = whole.iov_len;
    std::memset(whole.iov_base, 0, size);
  }
  return size;
}

long set_registers(pid_t pid, void* kind, iovec* some) {
  // Not on the stack, which is a small one; this kernel is never in here twice. Nothing is decided
  // by errno: its signal handlers change it.
  alignas(64) static std::array<char, 65536> all;
  iovec whole{all.data(), all.size()};
  whole.iov_len = whole_size(pid, kind, whole);
  if (whole.iov_len <= some->iov_len) return next()(PTRACE_SETREGSET, pid, kind, some);
  std::memcpy(all.data(), some->iov_base, some->iov_len);
  return next()(PTRACE_SETREGSET, pid, kind, &whole);
}

}  // namespace

extern "C" long ptrace(__ptrace_request request, ...) noexcept {
  va_list arguments;
  va_start(arguments, request);
  const auto pid = va_arg(arguments, pid_t);
  void* const address = va_arg(arguments, void*);
  void* const data = va_arg(arguments, void*);
  va_end(arguments);
  const bool of_all = address == reinterpret_cast<void*>(NT_X86_XSTATE);
  if (request == PTRACE_SETREGSET && of_all) {
    return set_registers(pid, address, static_cast<iovec*>(data));
  }
  return next()(request, pid, address, data);
}
