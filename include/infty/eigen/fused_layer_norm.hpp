// SPDX-License-Identifier: MIT
#pragma once

#include <algorithm>
#include <cmath>

#include <infty/core/config.hpp>
#include <infty/core/kernel/layer_norm.hpp>
#include <infty/eigen/lanes.hpp>
#include <infty/eigen/parallel.hpp>
#include <infty/eigen/scratch.hpp>

namespace infty::detail {

/// Layer normalisation on the CPU: a row stays in the first cache for all that is done with it, in
/// both passes, so that every matrix crosses the memory once.
struct FusedLayerNorm {
  template <class T>
  static void forward(const LayerNormInputs<T>& in, T* y, T* statistics) {
    const Index rows = in.rows, d = in.d;
    const T *const x = in.x, *const gain = in.gain, *const bias = in.bias;
    const T epsilon = in.epsilon;
    const T share = T(1) / static_cast<T>(d);
    parallel_for(rows, band, [=](Index begin, Index end) {
      for (Index i = begin; i < end; ++i) {
        const T* const row = x + i * d;
        T* const out = y + i * d;
        const T mean = share * sum_lanes<T>(d, [=]<int W>(Index j) { return lanes<W>(row + j); });
        const T var = share * sum_lanes<T>(d, [=]<int W>(Index j) {
                        return (lanes<W>(row + j) - mean).square();
                      });
        const T inverse = T(1) / std::sqrt(var + epsilon);
        for_each_lanes(d, [=]<int W>(Index j) {
          lanes<W>(out + j) =
              (lanes<W>(row + j) - mean) * inverse * lanes<W>(gain + j) + lanes<W>(bias + j);
        });
        statistics[2 * i] = mean;
        statistics[2 * i + 1] = inverse;
      }
    });
  }

  template <class T>
  static void backward(const LayerNormInputs<T>& inputs, const T* statistics, const T* dy,
                       const LayerNormGradients<T>& gradients) {
    const Index rows = inputs.rows, d = inputs.d;
    const T *const x = inputs.x, *const gain = inputs.gain;
    T *const dx = gradients.x, *const d_gain = gradients.gain, *const d_bias = gradients.bias;
    const bool add = gradients.add;
    const T share = T(1) / static_cast<T>(d);
    const Index bands = (rows + band - 1) / band;
    Scratch<T> partial(bands * 2 * d);  // sums of dy * normalised x and of dy, one pair a band
    T* const sums = partial.data();
    parallel_for(rows, band, [=](Index begin, Index end) {
      T *const of_gain = sums + begin / band * 2 * d, *const of_bias = of_gain + d;
      std::fill_n(of_gain, 2 * d, T(0));
      for (Index i = begin; i < end; ++i) {
        const T *const in = x + i * d, *const out = dy + i * d;
        const T mean = statistics[2 * i], inverse = statistics[2 * i + 1];
        // With h = normalised x and c = dy * gain: dx = (c - mean(c) - h mean(c h)) / sd
        LaneSum<T> c, ch;
        for_each_lanes(d, [&]<int W>(Index j) {
          const Lanes<T, W> o = lanes<W>(out + j), h = (lanes<W>(in + j) - mean) * inverse;
          const Lanes<T, W> weighed = o * lanes<W>(gain + j);
          lanes<W>(of_gain + j) += o * h;
          lanes<W>(of_bias + j) += o;
          c.template add<W>(weighed);
          ch.template add<W>(weighed * h);
        });
        if (!dx) continue;
        T* const to = dx + i * d;
        const T mean_c = share * c.total(), mean_ch = share * ch.total();
        for_each_lanes(d, [=]<int W>(Index j) {
          const Lanes<T, W> h = (lanes<W>(in + j) - mean) * inverse;
          const Lanes<T, W> slope =
              (lanes<W>(out + j) * lanes<W>(gain + j) - mean_c - h * mean_ch) * inverse;
          if (add)
            lanes<W>(to + j) += slope;
          else
            lanes<W>(to + j) = slope;
        });
      }
    });
    for (Index p = 0; p < bands; ++p)
      for (Index j = 0; j < d; ++j) {
        if (d_gain) d_gain[j] += sums[p * 2 * d + j];
        if (d_bias) d_bias[j] += sums[p * 2 * d + d + j];
      }
  }

 private:
  static constexpr Index band = 64;  ///< rows of one task; sums go by bands, not by threads
};

}  // namespace infty::detail
