// SPDX-License-Identifier: MIT
#pragma once

#include <cmath>
#include <cstddef>

#include <infty/core/config.hpp>
#include <infty/core/fold.hpp>
#include <infty/core/kernel/layer_norm.hpp>
#include <infty/thrust/kernels/column_sums.hpp>
#include <infty/thrust/tile.hpp>

namespace infty::detail {

/// One row a block: y and the statistics.
template <class T>
struct LayerNormForward {
  static constexpr int threads = 128;

  LayerNormInputs<T> in;
  T *y, *statistics;

  INFTY_HOST_DEVICE std::size_t shared_bytes() const { return 0; }

  template <class Block>
  INFTY_HOST_DEVICE void operator()(Block& block) const {
    const Index row = block.index(), d = in.d;
    const T* const x = in.x + row * d;
    T* const out = y + row * d;
    const T mean = block.reduce(d, T(0), Plus{}, [&](Index j) { return x[j]; }) / static_cast<T>(d);
    // About the mean: E[x²] - mean² would cancel.
    const T var = block.reduce(d, T(0), Plus{}, [&](Index j) {
      return (x[j] - mean) * (x[j] - mean);
    }) / static_cast<T>(d);
    const T inverse = T(1) / std::sqrt(var + in.epsilon);
    block.each(d, [&](Index j) {
      out[j] = (x[j] - mean) * inverse * in.gain[j] + in.bias[j];
      if (j == 0) {
        statistics[2 * row] = mean;
        statistics[2 * row + 1] = inverse;
      }
    });
  }
};

/// One row a block: dx (+)= (c - mean(c) - h mean(c h)) / sd, c = dy * gain, h = normalised x.
template <class T>
struct LayerNormBackward {
  static constexpr int threads = 128;

  Index d;
  const T *x, *gain, *statistics, *dy;
  T* dx;
  bool add;

  INFTY_HOST_DEVICE std::size_t shared_bytes() const { return 0; }

  template <class Block>
  INFTY_HOST_DEVICE void operator()(Block& block) const {
    const Index row = block.index();
    const T *const in = x + row * d, *const out = dy + row * d;
    T* const to = dx + row * d;
    const T mean = statistics[2 * row], inverse = statistics[2 * row + 1];
    const SumPair<T> sums = block.reduce(d, SumPair<T>{}, Plus{}, [&](Index j) {
      const T c = out[j] * gain[j];
      return SumPair<T>{c, c * (in[j] - mean) * inverse};
    });
    const T c = sums.first / static_cast<T>(d), ch = sums.second / static_cast<T>(d);
    block.each(d, [&](Index j) {
      to[j] =
          (add ? to[j] : T(0)) + (out[j] * gain[j] - c - (in[j] - mean) * inverse * ch) * inverse;
    });
  }
};

/// What an element of dy adds to the gradients of gain and bias: dy * normalised x, and dy.
template <class T>
struct LayerNormTerm {
  Index d;
  const T *x, *statistics, *dy;
  INFTY_HOST_DEVICE SumPair<T> operator()(Index row, Index column) const {
    const T out = dy[row * d + column];
    return {out * (x[row * d + column] - statistics[2 * row]) * statistics[2 * row + 1], out};
  }
};

/// Adds the sums of both to the gradients that are not null.
template <class T>
struct AddGainAndBias {
  T *d_gain, *d_bias;
  INFTY_HOST_DEVICE void operator()(Index, Index column, const SumPair<T>& sum) const {
    if (d_gain) d_gain[column] += sum.first;
    if (d_bias) d_bias[column] += sum.second;
  }
};

/// `ComposedLayerNorm` as tile programs.
template <class System>
struct TiledLayerNorm {
  template <class T>
  static void forward(const LayerNormInputs<T>& in, T* y, T* statistics) {
    launch<System>(in.rows, LayerNormForward<T>{in, y, statistics});
  }

  template <class T>
  static void backward(const LayerNormInputs<T>& in, const T* statistics, const T* dy,
                       const LayerNormGradients<T>& to) {
    if (to.gain || to.bias)
      reduce_columns<System, SumPair<T>>(in.rows, in.d,
                                         LayerNormTerm<T>{in.d, in.x, statistics, dy},
                                         AddGainAndBias<T>{to.gain, to.bias});
    if (to.x)
      launch<System>(in.rows,
                     LayerNormBackward<T>{in.d, in.x, in.gain, statistics, dy, to.x, to.add});
  }
};

}  // namespace infty::detail
