// SPDX-License-Identifier: MIT
#pragma once

#include <algorithm>
#include <bit>
#include <cstdint>
#include <limits>
#include <type_traits>

#include <infty/core/config.hpp>
#include <infty/core/kernel/top_k.hpp>
#include <infty/core/number.hpp>
#include <infty/eigen/nearest_scores.hpp>
#include <infty/eigen/register_tile.hpp>

namespace infty::detail {

/// A row of `top_k` by vectors. The row is dealt out to 2 k groups or a few more: k of these have
/// an element as large as the k-th of their largest, so that nothing below it counts. Some 1.4 k of
/// a row in no order are left, and each learns its place by counting those before it. Rows of which
/// more are left, with NaN, or of small n or large k, go by a heap.
struct FusedTopK {
  static constexpr Index most_k = 128;  ///< for which there is room
  static constexpr Index room = 512;    ///< for elements that may count

  /// The indices of the first k <= n of x (n) in the order of `comes_before`.
  template <class T>
  static void row(Index n, Index k, const T* x, Index* out) {
    const Index groups = padded<T>(2 * k);
    if (k == 0 || k > most_k || n < 2 * groups || n > most_indices<T> ||
        !by_vectors(n, k, groups, x, out))
      row_top_k(n, k, x, out);
  }

 private:
  /// An index beside a number, in vectors of as many.
  template <class T>
  using Lane = std::conditional_t<sizeof(T) == 4, std::int32_t, std::int64_t>;
  template <class T>
  static constexpr Index most_indices = (std::numeric_limits<Lane<T>>::max)();

  /// Whether there was room, and no NaN.
  template <class T>
  static bool by_vectors(Index n, Index k, Index groups, const T* x, Index* out) {
    using S = Simd<T>;
    using L = Simd<Lane<T>>;
    const T least = kth_of_groups(n, k, groups, x);
    T score[room + S::width];
    Lane<T> index[room + S::width], place[room + S::width];
    Index held = 0;
    const auto keep = [&](std::uint64_t wanted, Index from) {
      if (held + std::popcount(wanted) > room) return false;
      for (; wanted != 0; wanted &= wanted - 1) {
        const Index i = from + std::countr_zero(wanted);
        score[held] = x[i];
        index[held++] = static_cast<Lane<T>>(i);
      }
      return true;
    };
    Index i = 0;
    const typename S::Vector limit = least - typename S::Vector{};
    constexpr Lane<T> sizes = (std::numeric_limits<Lane<T>>::max)();  // all bits but the sign
    typename L::Vector nan{};  // seen by its bits, which -ffast-math leaves alone
    for (; i + S::width <= n; i += S::width) {
      nan |= (L::load(reinterpret_cast<const Lane<T>*>(x + i)) & sizes) >
             static_cast<Lane<T>>(math::detail::infinite_bits<T>);
      if (!keep(lanes_of(S::load(x + i) >= limit), i)) return false;
    }
    bool none = lanes_of(nan) == 0;
    for (; i < n; ++i) {
      none &= !math::is_nan_at(x + i);
      if (!keep(x[i] >= least ? 1 : 0, i)) return false;
    }
    if (!none || held < k) return false;
    for (Index j = held; j < held + S::width; ++j) {
      score[j] = -math::infinity<T>;
      index[j] = (std::numeric_limits<Lane<T>>::max)();
    }
    for (Index j = 0; j < held; j += S::width) {
      const typename S::Vector mine = S::load(score + j);
      const typename L::Vector at = L::load(index + j);
      typename L::Vector before{};
      for (Index other = 0; other < held; ++other) {
        const typename S::Vector its = score[other] - typename S::Vector{};
        const typename L::Vector stands = index[other] - typename L::Vector{};
        before -= (its > mine) | ((its == mine) & (stands < at));
      }
      L::store(place + j, before);
    }
    for (Index j = 0; j < held; ++j)
      if (place[j] < k) out[place[j]] = index[j];
    return true;
  }

  /// The k-th of the largest of each group, of elements i, i + groups, i + 2 groups...; NaN is in
  /// none, and what is left over.
  template <class T>
  static T kth_of_groups(Index n, Index k, Index groups, const T* x) {
    using S = Simd<T>;
    T most[2 * most_k + S::width];
    std::fill_n(most, groups, -math::infinity<T>);
    for (Index i = 0; i + groups <= n; i += groups)
      for (Index j = 0; j < groups; j += S::width) {
        const typename S::Vector next = S::load(x + i + j), top = S::load(most + j);
        S::store(most + j, next > top ? next : top);
      }
    typename S::Vector least = math::infinity<T> - typename S::Vector{};
    for (Index j = 0; j < groups; j += S::width) {
      const typename S::Vector mine = S::load(most + j);
      typename Simd<Lane<T>>::Vector above{};  // how many are
      for (Index other = 0; other < groups; ++other)
        above -= most[other] - typename S::Vector{} > mine;
      const typename S::Vector first = above < static_cast<Lane<T>>(k) ? mine : least;
      least = first < least ? first : least;
    }
    S::store(most, least);
    return *std::min_element(most, most + S::width);
  }
};

}  // namespace infty::detail
