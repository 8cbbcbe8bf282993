// SPDX-License-Identifier: MIT
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdlib>
#include <new>

#if defined(__CUDACC__)
#pragma nv_diag_suppress 20011, 20014  // nvcc takes these operators for the device's, too
#endif

/// Counts every call of operator new of the program. Include it in one file of a program only: it
/// replaces the global operators.
namespace infty::tests {

inline std::atomic<std::size_t> new_calls{0};

inline void* counted_new(std::size_t bytes, std::size_t alignment) {
  ++new_calls;
  const std::size_t rounded = (bytes + alignment - 1) / alignment * alignment;
  if (void* const block = std::aligned_alloc(alignment, rounded == 0 ? alignment : rounded))
    return block;
  throw std::bad_alloc();
}

}  // namespace infty::tests

// Inlined, GCC would see malloc() meet operator delete, or operator new meet free(), and warn.
[[gnu::noinline]] void* operator new(std::size_t bytes) {
  return infty::tests::counted_new(bytes, alignof(std::max_align_t));
}
[[gnu::noinline]] void* operator new(std::size_t bytes, std::align_val_t alignment) {
  return infty::tests::counted_new(bytes, static_cast<std::size_t>(alignment));
}
[[gnu::noinline]] void* operator new(std::size_t bytes, const std::nothrow_t&) noexcept {
  try {
    return operator new(bytes);
  } catch (const std::bad_alloc&) {
    return nullptr;
  }
}
[[gnu::noinline]] void operator delete(void* block) noexcept { std::free(block); }
[[gnu::noinline]] void operator delete(void* block, std::size_t) noexcept { std::free(block); }
[[gnu::noinline]] void operator delete(void* block, std::align_val_t) noexcept { std::free(block); }
[[gnu::noinline]] void operator delete(void* block, std::size_t, std::align_val_t) noexcept {
  std::free(block);
}
