// SPDX-License-Identifier: MIT
#pragma once

#include <infty/autograd/snapshot.hpp>
#include <infty/core/state.hpp>
#include <infty/memory/fifo.hpp>

namespace infty {

namespace detail {

/// The keys that densities need, or the values, of a state, and what they were computed from.
template <class T, class B>
struct DensityKeys {
  Snapshot<T, B> coefficients, density_weight, key_weight;
  Variable<T, B> value;  ///< [batch, 2, H D]; of a density of scores [batch, N, H D]

  /// The keys for these, by make() unless they are held.
  template <class Make>
  const Variable<T, B>& of(const Variable<T, B>& now, const Variable<T, B>& densities,
                           const Variable<T, B>& keys, Make&& make) {
    if (!coefficients.holds(now) || !density_weight.holds(densities) || !key_weight.holds(keys))
      *this = {Snapshot(now), Snapshot(densities), Snapshot(keys), make()};
    return value;
  }
};

}  // namespace detail

/// What a long-term memory remembers, a batch of independent rows. Its size does not depend on how
/// much has been read.
template <class T, class Backend>
struct LongTermState {
  Variable<T, Backend> coefficients;  ///< B, [batch, N, d]; a gradient flows to the last write
  RowCounts written;                  ///< vectors taken in since the row was fresh
  RowCounts writes;                   ///< writes since the row was fresh
  Tensor<T, Backend> attention;       ///< [batch, bins] of the reads since the last write (sticky)
  RowIds row_id;                      ///< names each row's random numbers (sticky)
  RowCounts last;                     ///< vectors of the last write
  Tensor<T, Backend> largest;         ///< c, [batch, d], largest |x| written of each coordinate
  RowSequences<T, Backend> waiting;   ///< [batch, group - 1, d], not yet written
  /// Of the last read without a gradient: these serve all reads between two writes.
  detail::DensityKeys<T, Backend> density_keys = {};
  detail::DensityKeys<T, Backend> read_values = {};  ///< the same, of a density of scores

  template <class Visitor>
  void visit(Visitor&& see) {
    see("coefficients", coefficients);
    see("written", written);
    see("writes", writes);
    see("attention", attention);
    see("row_id", row_id);
    see("last", last);
    see("largest", largest);
    see("waiting", waiting);
  }
};

namespace detail {

/// A state of fresh rows, of N functions and vectors of width d.
template <class T, class B>
LongTermState<T, B> fresh_long_term_state(Index N, Index d, Index bins, const Fifo<T, B>& waiting,
                                          Index batch, Index first_row) {
  const auto rows = static_cast<std::size_t>(batch);
  LongTermState<T, B> state{
      Tensor<T, B>::zeros(Shape{batch, N, d}), RowCounts(rows, 0),       RowCounts(rows, 0),
      Tensor<T, B>::zeros(Shape{batch, bins}), {RowCounts(rows)},        RowCounts(rows, 0),
      Tensor<T, B>::zeros(Shape{batch, d}),    waiting.make_state(batch)};
  for (std::size_t row = 0; row < rows; ++row)
    state.row_id.id[row] = first_row + static_cast<Index>(row);
  return state;
}

/// Clears what rows remember that take in vectors and have taken in `threshold` or more; what waits
/// to be written stays.
template <class T, class B>
void clear_full_rows(LongTermState<T, B>& state, Index threshold, const RowCounts& counts) {
  for (std::size_t row = 0; row < counts.size(); ++row)
    if (counts[row] > 0 && state.written[row] >= threshold) {
      const auto waiting = state.waiting;
      reset_row(state, static_cast<Index>(row));
      state.waiting = waiting;
    }
}

}  // namespace detail

/// What a read returns beside what was read.
template <class T, class Backend = EigenBackend>
struct Reading {
  Variable<T, Backend> context;  ///< [B, Q, d]
  /// [2, B, H, Q], mu and sigma² of every query and head; nothing of a density of scores
  Variable<T, Backend> density;
  RowCounts unseen;  ///< vectors of each row that wait to be written and were not read
};

}  // namespace infty
