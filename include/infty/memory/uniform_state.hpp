// SPDX-License-Identifier: MIT
#pragma once

#include <algorithm>
#include <cstddef>
#include <memory>
#include <utility>
#include <vector>

#include <infty/autograd/snapshot.hpp>
#include <infty/core/state.hpp>
#include <infty/memory/long_term_state.hpp>

namespace infty {

namespace detail {

/// A signal contracted for the block that waits behind it, and what it was made of.
template <class T, class B>
struct CarriedSignal {
  Snapshot<T, B> coefficients;
  std::vector<double> shares;            ///< of each row; 0 where nothing is carried
  std::shared_ptr<const void> matrices;  ///< whose: `RidgeCache::identity`
  Tensor<T, B> value;                    ///< A B, [batch, N, d]

  /// Keeps the value if it is of these, else nothing.
  Tensor<T, B>& of(const Variable<T, B>& now, std::vector<double> all,
                   std::shared_ptr<const void> by) {
    if (!coefficients.holds(now) || shares != all || matrices != by)
      *this = {Snapshot(now), std::move(all), std::move(by), {}};
    return value;
  }
};

}  // namespace detail

/// What a `UniformMemory` remembers, a batch of independent rows. Its size does not depend on how
/// much has been read.
template <class T, class Backend>
struct UniformState {
  LongTermState<T, Backend>
      signal;                   ///< of all full blocks; counts means, halved as the rate doubles
  Variable<T, Backend> means;   ///< [batch, P, d], of the block that is not yet written
  Tensor<double, Backend> sum;  ///< [batch, d], of the vectors of the mean that is not full
  RowCounts held;               ///< vectors in them
  RowCounts rate;               ///< m, vectors of a mean, a power of two; 0 of a fresh row is 1
  RowCounts taken;              ///< vectors taken in since the row was fresh
  RowCounts refits;             ///< writes to the signal since the row was fresh
  /// Of the last read: serves all until the next block is written, or the share changes.
  detail::CarriedSignal<T, Backend> carried = {};

  /// Whether no row has a vector that waits.
  bool nothing_waits() const {
    return std::all_of(held.begin(), held.end(), [](Index n) { return n == 0; });
  }
  /// m of a row; a fresh row's is 1.
  Index rate_of(std::size_t row) const { return rate[row] == 0 ? 1 : rate[row]; }
  /// The same of every row.
  RowCounts rates() const {
    RowCounts all = rate;
    for (Index& m : all) m = (std::max<Index>)(m, 1);
    return all;
  }
  /// Means of every row that wait, the last of which need not be full.
  RowCounts entries() const {
    RowCounts all = rates();
    for (std::size_t row = 0; row < all.size(); ++row)
      all[row] = (held[row] + all[row] - 1) / all[row];
    return all;
  }

  template <class Visitor>
  void visit(Visitor&& see) {
    see("signal", signal);
    see("means", means);
    see("sum", sum);
    see("held", held);
    see("rate", rate);
    see("taken", taken);
    see("refits", refits);
  }
};

}  // namespace infty
