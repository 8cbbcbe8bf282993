// SPDX-License-Identifier: MIT
#pragma once

#include <cstddef>
#include <cstdint>

#include <infty/core/backend.hpp>

/// What a library of products must know of the batch of a `Matmul`.
namespace infty::detail {

/// Whether one stride an operand leads through the whole batch.
inline bool evenly_strided(const Matmul& s) {
  const auto even = [&](const Matmul::Operand& x) { return x.outer == s.inner * x.inner; };
  return s.outer == 1 || s.inner == 1 || (even(s.a) && even(s.b) && even(s.c));
}

/// Whether every matrix of each operand begins at a multiple of 16 bytes, for elements of `size`.
inline bool begins_at_16_bytes(const Matmul& s, std::size_t size, const void* a, const void* b,
                               const void* c) {
  const auto even = [&](const void* first, const Matmul::Operand& x) {
    const auto whole = [](std::uintptr_t bytes) { return bytes % 16 == 0; };
    return whole(reinterpret_cast<std::uintptr_t>(first)) &&
           (s.outer == 1 || whole(static_cast<std::uintptr_t>(x.outer) * size)) &&
           (s.inner == 1 || whole(static_cast<std::uintptr_t>(x.inner) * size));
  };
  return even(a, s.a) && even(b, s.b) && even(c, s.c);
}

}  // namespace infty::detail
