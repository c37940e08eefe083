// SPDX-License-Identifier: Apache-2.0
#include "base/memory.h"

#include <link.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cstdint>

namespace lpp {

namespace {

int unmap_segments(dl_phdr_info* object, std::size_t /*size*/, void* /*data*/) {
  const auto page = static_cast<std::uintptr_t>(::sysconf(_SC_PAGESIZE));
  for (int i = 0; i < object->dlpi_phnum; ++i) {
    const auto& segment = object->dlpi_phdr[i];
    // What may be written is not in the file as it is in memory, relocations least of all.
    if (segment.p_type != PT_LOAD || (segment.p_flags & PF_W) != 0) continue;
    const std::uintptr_t begin = (object->dlpi_addr + segment.p_vaddr) / page * page;
    const std::uintptr_t end = object->dlpi_addr + segment.p_vaddr + segment.p_memsz;
    // A failure leaves it mapped.
    // NOLINTNEXTLINE(performance-no-int-to-ptr): the loader gives addresses as numbers
    (void)::madvise(reinterpret_cast<void*>(begin), end - begin, MADV_DONTNEED);
  }
  return 0;
}

}  // namespace

void unmap_idle_code() { ::dl_iterate_phdr(&unmap_segments, nullptr); }

}  // namespace lpp
