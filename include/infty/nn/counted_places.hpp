// SPDX-License-Identifier: MIT
#pragma once

#include <algorithm>
#include <optional>
#include <utility>
#include <vector>

#include <infty/autograd/elementwise.hpp>
#include <infty/core/checked.hpp>
#include <infty/core/pool.hpp>
#include <infty/core/state.hpp>
#include <infty/nn/embedding.hpp>
#include <infty/nn/pass.hpp>

namespace infty {

/// How far the rows of a `CountedPlaces` are.
struct CountedPlacesState {
  RowCounts read;  ///< vectors that each row has read since it was fresh

  template <class Visitor>
  void visit(Visitor&& see) {
    see("read", read);
  }
};

/// Learned vectors of the places in a row, added to what comes in, with dropout: `AddedPlaces` that
/// go on where the row's last segment ended, for layers behind that hold what was read. Rows may be
/// at different places.
template <class T, class Backend = EigenBackend>
struct CountedPlaces {
  using Scalar = T;
  using BackendType = Backend;
  using State = CountedPlacesState;

  Embedding<T, Backend> places;  ///< [longest, d]
  /// Share of the sums that is dropped while training, in [0, 1); nothing for the pass's.
  std::optional<double> dropout = {};
  /// A row that a segment would take beyond so many places begins again at the first one, as layers
  /// behind that hold a chunk do (`CachedAttention` beside a memory); 0: never.
  Index chunk = 0;

  CountedPlaces() = default;

  /// Draws the vectors from a normal distribution; the deviation is GPT-2's.
  /// @param longest  places that there are
  /// @throws infty::ValueError unless longest, d >= 1
  CountedPlaces(Index longest, Index d, Random random, double deviation = .02)
      : places(longest, d, random, deviation) {}

  template <class Visitor>
  void visit(Visitor&& see) {
    see("places", places);
  }

  /// A state of fresh rows. @throws infty::ValueError unless 1 <= batch <= `largest_size`
  State make_state(Index batch, Index /*first_row*/ = 0) const {
    require_rows("CountedPlaces::make_state", batch);
    return {RowCounts(static_cast<std::size_t>(batch), 0)};
  }

  /// [B, L, d] -> [B, L, d], moving the state on.
  /// @throws infty::ShapeError if a row needs more places than there are; then the state is as it
  /// was
  Variable<T, Backend> forward(State& state, const Variable<T, Backend>& x,
                               Pass<T, Backend>& pass) const {
    const Index most = places.weight.dim(0), d = places.weight.dim(1), length = x.dim(1);
    require<ShapeError>(
        x.shape().rank() == 3 && x.dim(2) == d && x.dim(0) == std::ssize(state.read),
        "CountedPlaces", "x is ", x.shape(), ", the state's rows are ", state.read.size(),
        ": it must be [", state.read.size(), ", L, ", d, "]");
    RowCounts first = state.read;
    for (Index& read : first)
      if (chunk > 0 && read > chunk - length) read = 0;
    for (const Index read : first)
      require<ShapeError>(read >= 0 && read <= most - length, "CountedPlaces", "a row has read ",
                          read, " vectors, ", length, " more are to come: there are ", most,
                          " places");
    RowCounts next = first;
    for (Index& read : next) read += length;
    // Rows at the same place, as most are, share the vectors that are looked up.
    if (std::all_of(first.begin(), first.end(), [&](Index n) { return n == first.front(); }))
      first.resize(1);
    PoolVector<Index> numbers;
    for (const Index begin : first)
      for (Index i = 0; i < length; ++i) numbers.push_back(begin + i);
    const auto at = Tensor<Index, Backend>::from(Shape{std::ssize(first), length}, numbers.data());
    const auto y = pass.dropped(add(x, places.forward(at)), dropout.value_or(pass.dropout));
    state.read = std::move(next);
    return y;
  }
};

}  // namespace infty
