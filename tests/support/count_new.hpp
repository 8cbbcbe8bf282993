// SPDX-License-Identifier: MIT
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdlib>
#include <new>

#include <infty/core/pool.hpp>

#if defined(__CUDACC__)
#pragma nv_diag_suppress 20011, 20014  // nvcc takes these operators for the device's, too
#endif

/// Counts every call of operator new of the program, and lets it fail. Include it in one file of a
/// program only: it replaces the global operators.
namespace infty::tests {

inline std::atomic<std::size_t> new_calls{0};
/// The number of calls behind which every one fails.
inline std::atomic<std::size_t> new_calls_that_work{~std::size_t{0}};

inline void* counted_new(std::size_t bytes, std::size_t alignment) {
  if (++new_calls > new_calls_that_work) throw std::bad_alloc();
  const std::size_t rounded = (bytes + alignment - 1) / alignment * alignment;
  if (void* const block = std::aligned_alloc(alignment, rounded == 0 ? alignment : rounded))
    return block;
  throw std::bad_alloc();
}

/// f() while memory runs out behind n more calls. @return whether f missed it
template <class F>
bool runs_out_after(std::size_t n, F&& f) {
  HostPool::instance().trim();  // or what is cached would do
  bool missed = false;
  new_calls_that_work = new_calls + n;
  try {
    f();
  } catch (const std::bad_alloc&) {
    missed = true;
  }
  new_calls_that_work = ~std::size_t{0};
  return missed;
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
