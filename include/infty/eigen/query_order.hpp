// SPDX-License-Identifier: MIT
#pragma once

#include <algorithm>
#include <limits>
#include <numeric>

#include <infty/core/config.hpp>
#include <infty/core/kernel/expectation.hpp>
#include <infty/core/number.hpp>
#include <infty/eigen/parallel.hpp>
#include <infty/eigen/scratch.hpp>

namespace infty::detail {

/// Basis functions [begin, end).
struct FunctionRange {
  Index begin, end;
};

/// The queries of every row and head, in an order in which neighbours look at neighbouring places,
/// so that the basis functions far from a tile of queries need not be summed.
///
/// A density that has `reach(psi, var, tail)` says how far from mu every function's expectation has
/// fallen to `tail` times its largest value. What is left out of one result is then less than
/// N tail = epsilon / 64 of the largest value that the expectation of one function can have, times
/// the largest of the values: below the rounding of the sum. Without `reach`, or if `skip_tails` is
/// off, all functions count, and the queries stay in their order, as they do where one tile holds
/// them all.
template <class D, class T, class Psi>
class QueryOrder {
 public:
  /// Orders queries by their mu.
  /// @param tile  how many queries a tile holds
  QueryOrder(const ReadSize& s, const Psi& psi, const T* density, Index tile = 1)
      : queries_(s.queries),
        size_(psi.size()),
        tail_(std::numeric_limits<T>::epsilon() / (64 * static_cast<T>(psi.size()))),
        skips_(has_reach && s.skip_tails),
        sorts_(skips_ && s.queries > tile),
        order_(sorts_ ? s.batch * s.heads * s.queries : s.queries) {
    if (!sorts_) {
      std::iota(order_.data(), order_.data() + queries_, Index{0});
      return;
    }
    parallel_for(s.batch * s.heads, 1, [&](Index begin, Index end) {
      for (Index i = begin; i < end; ++i)
        sort(density + i * queries_, order_.data() + i * queries_);
    });
  }

  /// The numbers of the queries of a row and head, [Q].
  const Index* queries(Index row_and_head) const {
    return order_.data() + (sorts_ ? row_and_head * queries_ : 0);
  }

  /// The functions that count for some densities.
  FunctionRange functions(const Psi& psi, const T* mu, const T* var, Index count) const {
    if constexpr (has_reach) {
      if (skips_) {
        T low = math::infinity<T>, high = -low;
        bool finite = true;
        for (Index i = 0; i < count; ++i) {
          const T reach = D::reach(psi, var[i], tail_);
          finite = finite && math::is_finite(mu[i]) && math::is_finite(reach);
          low = (std::min)(low, mu[i] - reach);
          high = (std::max)(high, mu[i] + reach);
        }
        FunctionRange range{0, size_};
        if (!finite) return range;
        while (range.begin < range.end && psi.centre(range.begin) < low) ++range.begin;
        while (range.begin < range.end && psi.centre(range.end - 1) > high) --range.end;
        return range;
      }
    }
    return {0, size_};
  }

 private:
  static constexpr bool has_reach = requires(const Psi& psi, T x) { D::reach(psi, x, x); };

  /// By counting, which keeps the order of equals.
  void sort(const T* mu, Index* to) const {
    constexpr Index places = 256;
    const auto place = [=](Index i) {
      if (math::is_nan_at(mu + i) || mu[i] <= T(0)) return Index{0};
      return mu[i] < T(1) ? static_cast<Index>(mu[i] * T(places)) : places - 1;
    };
    Index start[places + 1] = {};
    for (Index i = 0; i < queries_; ++i) ++start[place(i) + 1];
    std::partial_sum(start, start + places, start);
    for (Index i = 0; i < queries_; ++i) to[start[place(i)]++] = i;
  }

  Index queries_, size_;
  T tail_;
  bool skips_, sorts_;
  Scratch<Index> order_;
};

}  // namespace infty::detail
