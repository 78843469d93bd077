#include "scenarios/commands/keep_memory.h"

#include <malloc.h>

namespace slipway {

void keep_freed_memory() {
#ifdef M_MMAP_MAX
  constexpr int lent_at_once = 64 << 20;  // bytes
  mallopt(M_MMAP_MAX, 0);                 // no block is given back by itself
  mallopt(M_TRIM_THRESHOLD, -1);          // nor is the end of the heap
  mallopt(M_TOP_PAD, lent_at_once);
#endif
}

void give_back_freed_memory() {
#ifdef M_MMAP_MAX
  malloc_trim(0);
#endif
}

}  // namespace slipway
