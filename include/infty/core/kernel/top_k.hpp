// SPDX-License-Identifier: MIT
#pragma once

#include <bit>
#include <cstdint>
#include <type_traits>

#include <infty/core/config.hpp>
#include <infty/core/number.hpp>

namespace infty::detail {

/// Whether x[i] comes before x[j]: the larger one, and of equal ones that with the lower index. NaN
/// is larger than any number, as in PyTorch.
template <class T>
INFTY_HOST_DEVICE bool comes_before(const T* x, Index i, Index j) {
  const bool i_is_nan = math::is_nan_at(x + i), j_is_nan = math::is_nan_at(x + j);
  if (i_is_nan || j_is_nan) return i_is_nan && (!j_is_nan || i < j);
  return x[i] > x[j] || (x[i] == x[j] && i < j);
}

/// Whether one of n numbers is larger than `most`, or is none: no other comes before `most` where
/// it stands behind it. A loop without branches, for vector code.
template <class T>
INFTY_HOST_DEVICE bool any_above(Index n, const T* x, T most) {
  int above = 0;
  for (Index i = 0; i < n; ++i) above |= !math::is_nan_at(x + i) && x[i] <= most ? 0 : 1;
  return above != 0;
}

/// Calls take(i) for those i of [k, n) that may be among the first k of x, by groups: most groups
/// have none. root() is the index of the last of the first k so far.
template <class T, class Root, class Take>
INFTY_HOST_DEVICE void for_each_above(Index n, Index k, const T* x, const Root& root,
                                      const Take& take) {
  constexpr Index group = 32;
  Index i = k;
  for (; i + group <= n; i += group) {
    if (!any_above(group, x + i, x[root()])) continue;
    for (Index j = i; j < i + group; ++j) take(j);
  }
  for (; i < n; ++i) take(i);
}

/// Lets the root of a heap of k indices sink to where none below it comes after it: the one that
/// comes last is on top.
template <class T>
INFTY_HOST_DEVICE void sink(const T* x, Index root, Index k, Index* heap) {
  const Index moved = heap[root];
  for (Index child; (child = 2 * root + 1) < k; root = child) {
    if (child + 1 < k && comes_before(x, heap[child], heap[child + 1])) ++child;
    if (!comes_before(x, moved, heap[child])) break;
    heap[root] = heap[child];
  }
  heap[root] = moved;
}

/// A number that is the larger the earlier x comes in the order of `comes_before`.
INFTY_HOST_DEVICE inline std::uint32_t rank_bits(const float* x) {
  constexpr std::uint32_t sign = std::uint32_t{1} << 31;
  if (math::is_nan_at(x)) return ~std::uint32_t{0};
  const auto bits = *x == 0 ? 0 : std::bit_cast<std::uint32_t>(*x);  // -0 is 0
  return (bits & sign) != 0 ? ~bits : bits | sign;
}

/// `row_top_k` of float, of fewer than 2^31 elements: rank and index are one number, so that an
/// element is compared in one step and nothing is looked up.
INFTY_HOST_DEVICE inline void float_top_k(Index n, Index k, const float* x, Index* out) {
  // Half of the rank's order is negative, as an Index; the lower index is the larger number.
  constexpr std::uint32_t sign = std::uint32_t{1} << 31;
  const auto key = [=](std::uint32_t rank, Index i) {
    return static_cast<Index>(static_cast<std::int32_t>(rank ^ sign)) * (Index{1} << 32) +
           ((Index{1} << 32) - 1 - i);
  };
  const auto sink_key = [=](Index root, Index size) {  // the smallest on top
    const Index moved = out[root];
    for (Index child; (child = 2 * root + 1) < size; root = child) {
      if (child + 1 < size && out[child + 1] < out[child]) ++child;
      if (moved <= out[child]) break;
      out[root] = out[child];
    }
    out[root] = moved;
  };
  for (Index i = 0; i < k; ++i) out[i] = key(rank_bits(x + i), i);
  for (Index root = k / 2; root-- > 0;) sink_key(root, k);
  const auto index = [](Index number) {
    return (Index{1} << 32) - 1 - (number & ((Index{1} << 32) - 1));
  };
  for_each_above(
      n, k, x, [=] { return index(out[0]); },
      [=](Index i) {
        const Index next = key(rank_bits(x + i), i);
        if (next < out[0]) return;
        out[0] = next;
        sink_key(0, k);
      });
  for (Index last = k - 1; last > 0; --last) {
    const Index top = out[0];
    out[0] = out[last];
    out[last] = top;
    sink_key(0, last);
  }
  for (Index i = 0; i < k; ++i) out[i] = index(out[i]);
}

/// The indices of the first k <= n of x (n) in the order of `comes_before`, in n log k steps.
template <class T>
INFTY_HOST_DEVICE void row_top_k(Index n, Index k, const T* x, Index* out) {
  if (k == 0) return;
  if constexpr (std::is_same_v<T, float>)
    if (n <= (Index{1} << 31)) return float_top_k(n, k, x, out);
  for (Index i = 0; i < k; ++i) out[i] = i;
  for (Index root = k / 2; root-- > 0;) sink(x, root, k, out);
  for_each_above(
      n, k, x, [=] { return out[0]; },
      [=](Index i) {
        if (!comes_before(x, i, out[0])) return;
        out[0] = i;
        sink(x, Index{0}, k, out);
      });
  for (Index last = k - 1; last > 0; --last) {
    const Index top = out[0];
    out[0] = out[last];
    out[last] = top;
    sink(x, Index{0}, last, out);
  }
}

}  // namespace infty::detail
