// SPDX-License-Identifier: MIT
#pragma once

#if defined(INFTY_THRUST_FENCE)
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <type_traits>

#include <sys/mman.h>

#include <infty/core/error.hpp>
#include <infty/thrust/fence.hpp>

namespace infty::detail {

/// Whether a word is an address of memory that this process has and a GPU has not.
inline bool is_host_address(std::uint64_t word) {
  constexpr std::uint64_t page = 4096, first = 16 * page, end = std::uint64_t{1} << 47;
  if (word < first || word >= end) return false;
  void* const at = reinterpret_cast<void*>(word / page * page);
  unsigned char resident = 0;
  return !Fence::instance().holds(at) && mincore(at, 1, &resident) == 0;
}

/// Sets what stands between members to zero: it is of no meaning, and often half of an address.
/// @return  false if the compiler cannot, and there may be such bytes
template <class F>
bool clear_padding(F* x) {
#if defined(__has_builtin)
#if __has_builtin(__builtin_clear_padding)
  __builtin_clear_padding(x);
  return true;
#endif
#endif
  (void)x;
  return std::has_unique_object_representations_v<F>;
}

/// Refuses what a GPU would be handed by value, a functor or a tile program, if a word of it is an
/// address of the host: here the host reads through it, there nobody could. The other half of what
/// `Fence` shows. What lies behind an address of the fence is not looked at.
/// @throws infty::Error
template <class F>
void require_carried(const char* call, const F& f) {
  using Word = std::uint64_t;
  if constexpr (std::is_trivially_copyable_v<F> && sizeof(F) >= sizeof(Word)) {
    F copy = f;
    if (!clear_padding(&copy)) return;
    Word words[sizeof(F) / sizeof(Word)];
    std::memcpy(words, static_cast<const void*>(&copy), sizeof(words));
    for (const Word word : words)
      require(!is_host_address(word), call, "what a GPU is handed holds an address of the host");
  }
}

/// Refuses an address that a GPU is to read or write and cannot; null is one of nothing.
/// @throws infty::Error
inline void require_fenced(const char* call, const void* address) {
  require(address == nullptr || Fence::instance().holds(address), call,
          "a GPU is handed an address of the host");
}

}  // namespace infty::detail
#endif
