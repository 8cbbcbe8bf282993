// SPDX-License-Identifier: MIT
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include <infty/core/pool.hpp>
#include <infty/core/random.hpp>
#include <infty/core/state.hpp>
#include <infty/core/tensor.hpp>
#include <infty/memory/long_term_config.hpp>
#include <infty/memory/sticky.hpp>
#include <infty/signal/bins.hpp>
#include <infty/signal/contraction.hpp>

namespace infty::detail {

/// Where a long-term memory samples its past, and what it notes of its reads to know: the one place
/// that knows what each `Resampling` is. What is noted is a histogram of attention for each row.
class Resampler {
 public:
  explicit Resampler(const LongTermConfig& config)
      : kind_(config.resampling),
        samples_(config.samples),
        bins_(config.resampling == Resampling::even ? 0 : config.bins),
        sorted_(config.sort_draws),
        seed_(config.sampling_seed) {}

  /// Bins of each row's histogram; 0 where reads are not noted.
  Index bins() const { return bins_; }
  /// Whether where a read looks decides where the next write samples.
  bool notes_reads() const { return bins_ > 0; }
  /// Whether a write may be one matrix, B' = A B + Gᵀ X, because its places never change.
  bool even() const { return kind_ == Resampling::even; }

  /// Where the next write samples each row, [batch, samples]; empty for evenly, at m / samples.
  /// @param attention  [batch, bins], what was noted since the last write; a row of zeros, evenly
  /// @param writes     of each row, until now   @param stream  names each row's random numbers
  template <class T, class B>
  Tensor<T, B> locations(const Tensor<T, B>& attention, const RowCounts& writes,
                         const RowIds& stream) const {
    if (even()) return {};
    const auto probability = even_where_zero(attention);
    if (kind_ == Resampling::sticky_quantiles) return quantile_locations(probability, samples_);
    const Random base(seed_);
    PoolVector<Random> draws;
    for (std::size_t row = 0; row < writes.size(); ++row)
      draws.push_back(base.split(static_cast<std::uint64_t>(stream.id[row]))
                          .split(static_cast<std::uint64_t>(writes[row])));
    return sample_locations(probability, samples_, std::span<Random>(draws), sorted_);
  }

  /// Adds to what was noted where queries of the given densities [2, B, H, Q] looked.
  template <class Density, class T, class B>
  void note(Tensor<T, B>& attention, const Tensor<T, B>& density) const {
    if (notes_reads() && density.dim(3) > 0)
      attention = attention_since<Density>(attention, density);
  }

  /// Forgets what was noted of rows that are written to.
  template <class T, class B>
  void forget(Tensor<T, B>& attention, const RowCounts& counts) const {
    if (!notes_reads()) return;
    attention = attention.clone();
    for (std::size_t row = 0; row < counts.size(); ++row)
      if (counts[row] > 0)
        attention.slice(static_cast<Index>(row), static_cast<Index>(row) + 1).fill(T(0));
  }

 private:
  Resampling kind_;
  Index samples_, bins_;
  bool sorted_;
  std::uint64_t seed_;
};

/// Even places in every row -> [batch, samples].
template <class T, class B>
Tensor<T, B> even_rows(Index batch, Index samples) {
  const auto even = even_locations<T, B>(samples);
  Tensor<T, B> all(Shape{batch, samples});
  for (Index row = 0; row < batch; ++row)
    all.slice(row, row + 1).copy_from(even.reshape(Shape{1, samples}));
  return all;
}

}  // namespace infty::detail
