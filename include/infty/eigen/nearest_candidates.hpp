// SPDX-License-Identifier: MIT
#pragma once

#include <algorithm>
#include <atomic>
#include <bit>
#include <cstdint>
#include <functional>
#include <limits>
#include <type_traits>

#include <infty/core/config.hpp>
#include <infty/core/float_bits.hpp>
#include <infty/core/kernel/nearest.hpp>
#include <infty/core/number.hpp>
#include <infty/eigen/scratch.hpp>

namespace infty::detail {

/// A score and whose it is.
template <class T>
struct Found {
  T score;
  Index index;

  /// Whether it comes before another.
  friend bool operator<(const Found& a, const Found& b) {
    return comes_before(a.score, a.index, b.score, b.index);
  }
};

/// What jobs that search for the same query tell each other: a score that k keys reach already, so
/// that nothing below it is among the k best of all. Whoever has it late only keeps more than
/// needed.
template <class T>
using SharedFloor = std::atomic<T>;

/// Raises a floor to a score; NaN raises none.
template <class T>
void raise_floor(SharedFloor<T>& floor, T score) {
  T seen = floor.load(std::memory_order_relaxed);
  while (score > seen && !floor.compare_exchange_weak(seen, score, std::memory_order_relaxed)) {
  }
}

/// A score as an integer that is larger where the score comes first; 0 and -0 are equal, as they
/// are in `Found`, and NaN is largest.
template <class T>
typename math::detail::FloatBits<T>::Bits rank_of(const T& score) {
  using Bits = typename math::detail::FloatBits<T>::Bits;
  constexpr Bits largest = (std::numeric_limits<Bits>::max)();
  const Bits bits = std::bit_cast<Bits>(score), size = bits & largest;
  const Bits signed_size = bits < 0 ? -size : size;
  return size > static_cast<Bits>(math::detail::infinite_bits<T>) ? largest : signed_size;
}

/// The k-th largest of n integers, 1 <= k <= n: they are counted in bins of one width, and only
/// those of one bin are selected from.
/// @param spare  room for n
template <class Bits>
Bits kth_largest(Index k, Index n, const Bits* x, Bits* spare) {
  using Unsigned = std::make_unsigned_t<Bits>;
  // Few numbers are told apart by few bins, which are cleared and gone through.
  constexpr Index most_bins = 1024;
  const int bits =
      std::clamp(static_cast<int>(std::bit_width(static_cast<std::uint64_t>(n))) + 1, 5, 10);
  const Index bins = Index{1} << bits;
  Bits least = x[0], most = x[0];
  for (Index j = 1; j < n; ++j) {
    least = (std::min)(least, x[j]);
    most = (std::max)(most, x[j]);
  }
  const auto below = static_cast<Unsigned>(least);  // differences wrap to what they are
  const Unsigned range = static_cast<Unsigned>(most) - below;
  const int shift = (std::max)(0, static_cast<int>(std::bit_width(range)) - bits);
  std::uint32_t count[most_bins];
  std::fill_n(count, bins, std::uint32_t{0});
  const auto bin_of = [&](Bits value) {
    return static_cast<Index>((static_cast<Unsigned>(value) - below) >> shift);
  };
  for (Index j = 0; j < n; ++j) ++count[bin_of(x[j])];
  Index bin = bins - 1;
  for (; k > static_cast<Index>(count[bin]); --bin) k -= static_cast<Index>(count[bin]);
  Index held = 0;
  for (Index j = 0; j < n; ++j) {
    spare[held] = x[j];
    held += bin_of(x[j]) == bin;
  }
  std::nth_element(spare, spare + (k - 1), spare + held, std::greater<Bits>());
  return spare[k - 1];
}

/// What a tile's queries have met that may be among the k best: a buffer for each, in the order in
/// which keys came, that is cut down to the k best whenever it is full. A score costs no more than
/// its place there, and a cut is a selection without an order, of twice k scores where sizes allow.
template <class T>
class Candidates {
 public:
  /// @param keys  that each query meets at most
  Candidates(Index queries, Index k, Index keys)
      : k_(k),
        room_((std::min)(k + std::max<Index>(k, 16), keys)),
        scores_(queries * room_),
        indices_(queries * room_),
        held_(queries),
        ranks_(2 * room_) {
    std::fill_n(held_.data(), queries, Index{0});
  }

  Index held(Index query) const { return held_.data()[query]; }
  const T* scores(Index query) const { return scores_.data() + query * room_; }
  const Index* indices(Index query) const { return indices_.data() + query * room_; }
  void clear(Index query) { held_.data()[query] = 0; }

  /// Takes a score in; whether there is no room for another, so that `cut` is due.
  bool add(Index query, T score, Index index) {
    Index& n = held_.data()[query];
    scores_.data()[query * room_ + n] = score;
    indices_.data()[query * room_ + n] = index;
    return ++n == room_ && n > k_;
  }

  /// Leaves the k best, in the order in which they came, and returns the worst of them.
  /// @pre more than k are held
  T cut(Index query) {
    T* const scores = scores_.data() + query * room_;
    Index* const indices = indices_.data() + query * room_;
    Bits* const ranks = ranks_.data();
    const Index n = held_.data()[query];
    for (Index j = 0; j < n; ++j) ranks[j] = rank_of(scores[j]);
    const Bits worst = kth_largest(k_, n, ranks, ranks + room_);
    Index equal = k_;  // that there is room for
    for (Index j = 0; j < n; ++j) equal -= ranks[j] > worst;
    T its_score = scores[0];
    Index to = 0;
    for (Index j = 0; j < n; ++j) {
      // Of equal ones the first, which have the lowest indices.
      const bool same = ranks[j] == worst;
      if (same) its_score = scores[j];
      scores[to] = scores[j];
      indices[to] = indices[j];
      to += (ranks[j] > worst) | (same & (equal > 0));
      equal -= same;
    }
    held_.data()[query] = k_;
    return its_score;
  }

 private:
  using Bits = typename math::detail::FloatBits<T>::Bits;

  Index k_, room_;
  Scratch<T> scores_;
  Scratch<Index> indices_, held_;
  Scratch<Bits> ranks_;
};

}  // namespace infty::detail
