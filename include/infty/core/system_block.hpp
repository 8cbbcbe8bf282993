// SPDX-License-Identifier: MIT
#pragma once

#include <cstddef>
#include <new>

#if defined(__linux__)
#include <sys/mman.h>
#endif

namespace infty::detail {

/// Bytes of a large page of the common processors. A block that has several of them is asked for in
/// such pages: the table of pages then has a 512th of the entries for it, and its first use as many
/// faults.
inline constexpr std::size_t large_page = std::size_t{1} << 21;

/// The alignment of a block of so many bytes, of which smaller ones have `least`.
inline std::align_val_t block_alignment(std::size_t bytes, std::size_t least) {
  return std::align_val_t(bytes >= 2 * large_page ? large_page : least);
}

/// Takes a block from the system, in large pages where it is of several and the system has them
/// for who asks (Linux: transparent huge pages, `always` or `madvise`). No more than a block's own
/// bytes are in such pages, its last ones in small ones; null if there is no memory.
inline void* take_system_block(std::size_t bytes, std::size_t alignment) noexcept {
  void* const block = ::operator new(bytes, block_alignment(bytes, alignment), std::nothrow);
#if defined(__linux__)
  // What the kernel answers does not matter: the block is as good in small pages.
  if (block && bytes >= 2 * large_page)
    static_cast<void>(::madvise(block, bytes / large_page * large_page, MADV_HUGEPAGE));
#endif
  return block;
}

/// Gives a block of `take_system_block` back.
inline void give_system_block(void* block, std::size_t bytes, std::size_t alignment) noexcept {
  ::operator delete(block, block_alignment(bytes, alignment));
}

}  // namespace infty::detail
