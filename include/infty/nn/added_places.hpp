// SPDX-License-Identifier: MIT
#pragma once

#include <optional>
#include <vector>

#include <infty/autograd/elementwise.hpp>
#include <infty/core/pool.hpp>
#include <infty/nn/embedding.hpp>
#include <infty/nn/pass.hpp>

namespace infty {

/// Learned vectors of the places in a segment, added to what comes in, with dropout. As a layer,
/// and not a part of the embedding, it can stand inside of a decorator that has memory tokens ride
/// along: then these are counted, too, as in the Recurrent Memory Transformer around GPT-2.
template <class T, class Backend = EigenBackend>
struct AddedPlaces {
  using Scalar = T;
  using BackendType = Backend;

  Embedding<T, Backend> places;  ///< [longest, d]
  /// Share of the sums that is dropped while training, in [0, 1); nothing for the pass's.
  std::optional<double> dropout = {};

  AddedPlaces() = default;

  /// Draws the vectors from a normal distribution; the deviation is GPT-2's.
  /// @param longest  places that there are, those of memory tokens included
  /// @throws infty::ValueError unless longest, d >= 1
  AddedPlaces(Index longest, Index d, Random random, double deviation = .02)
      : places(longest, d, random, deviation) {}

  template <class Visitor>
  void visit(Visitor&& see) {
    see("places", places);
  }

  /// [B, L, d] -> [B, L, d]. @throws infty::ShapeError if there are not so many places
  Variable<T, Backend> forward(const Variable<T, Backend>& x, Pass<T, Backend>& pass) const {
    const Index most = places.weight.dim(0), d = places.weight.dim(1);
    require<ShapeError>(x.shape().rank() == 3 && x.dim(1) <= most && x.dim(2) == d, "AddedPlaces",
                        "x is ", x.shape(), ": it must be [B, L, ", d, "], L at most ", most);
    PoolVector<Index> numbers;
    for (Index i = 0; i < x.dim(1); ++i) numbers.push_back(i);
    const auto at = Tensor<Index, Backend>::from(Shape{1, x.dim(1)}, numbers.data());
    return pass.dropped(add(x, places.forward(at)), dropout.value_or(pass.dropout));
  }
};

}  // namespace infty
