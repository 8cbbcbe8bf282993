// SPDX-License-Identifier: MIT
#pragma once

#include <cstddef>

#include <infty/autograd/shape.hpp>
#include <infty/core/random.hpp>
#include <infty/memory/row_chunks.hpp>
#include <infty/memory/titans_config.hpp>
#include <infty/memory/titans_state.hpp>
#include <infty/nn/linear.hpp>
#include <infty/nn/short_convolution.hpp>

namespace infty {

/// Convolutions behind the projections of a neural memory's keys and values [Behrouz et al. 2025,
/// §4.4], over vectors as they are learned. What a row has learned last stays in its state, so that
/// chunks and segments may end anywhere.
template <class T, class Backend>
struct TitansConvolutions {
  using V = Variable<T, Backend>;
  using State = TitansState<T, Backend>;

  ShortConvolution<T, Backend> key, value;  ///< of the channels; without weights if there are none
  Index taps = 0;                           ///< of each; 0 for none
  Index model_dim = 0;                      ///< d, of vectors

  TitansConvolutions() = default;

  /// Draws them, if the configuration has any, as `ShortConvolution` does.
  TitansConvolutions(const TitansConfig& config, const Random& random)
      : taps(config.convolution), model_dim(config.model_dim) {
    if (taps == 0) return;
    using Convolution = ShortConvolution<T, Backend>;
    const Index channels = config.heads * config.head_dim;
    key = Convolution({.kernel = taps}, channels, random.split(0));
    value = Convolution({.kernel = taps}, channels, random.split(1));
  }

  template <class Visitor>
  void visit(Visitor&& see) {
    if (taps == 0) return;
    see("key", key);
    see("value", value);
  }

  /// Makes a state one of rows that have learned nothing.
  void start(State& state, Index batch) const {
    if (taps > 0) state.before = {V(Tensor<T, Backend>::zeros(Shape{batch, taps, model_dim}))};
  }

  /// Whether such a state is of these.
  bool fits(const State& state, Index batch) const {
    return state.before ? taps > 0 && state.before->past.shape() == Shape{batch, taps, model_dim}
                        : taps == 0;
  }

  /// `map` of vectors [B, n, d] and, if there are any, `convolution` over them, behind those that
  /// were learned before. The map has no bias: in front of the first there are zeros.
  V projected(const Linear<T, Backend>& map, const ShortConvolution<T, Backend>& convolution,
              const State& state, const V& x) const {
    const V y = map.forward(x);
    return taps > 0 ? short_convolution(y, map.forward(state.before->past), convolution.weight) : y;
  }

  /// Keeps the last of the vectors [B, n, d], of which row r has learned `count(r)`.
  template <class Count>
  void keep(State& state, const V& x, const Count& count) const {
    if (taps > 0)
      state.before->past = detail::pick(concat(state.before->past, x), taps,
                                        [&](Index row, Index i) { return count(row) + i; });
  }
};

}  // namespace infty
