// SPDX-License-Identifier: MIT
#pragma once

#include <algorithm>
#include <cmath>

#include <infty/core/config.hpp>
#include <infty/core/kernel/token_losses.hpp>
#include <infty/core/math.hpp>
#include <infty/core/number.hpp>
#include <infty/eigen/lanes.hpp>
#include <infty/eigen/parallel.hpp>

namespace infty::detail {

/// Losses of tokens on the CPU: the largest logit and the sum of exponentials in vector registers,
/// whatever the compiler makes of a fold.
struct FusedTokenLosses {
  template <class T>
  static void forward(const TokenLossInputs<T>& in, T* normaliser, T* losses) {
    parallel_for(in.rows, grain(in.classes), [=](Index begin, Index end) {
      const Index count = in.classes;
      for (Index i = begin; i < end; ++i) {
        const T* const x = in.logits + i * count;
        const Index target = in.targets[i];
        normaliser[i] = log_sum(count, x);
        losses[i] = target == in.ignored            ? T(0)
                    : target >= 0 && target < count ? normaliser[i] - x[target]
                                                    : math::not_a_number<T>;
      }
    });
  }

  template <class T>
  static void backward(const TokenLossInputs<T>& in, const T* normaliser, const T* d_losses,
                       T* d_logits) {
    parallel_for(in.rows, grain(in.classes), [=](Index begin, Index end) {
      const Index count = in.classes;
      for (Index i = begin; i < end; ++i) {
        const Index target = in.targets[i];
        if (target == in.ignored) continue;
        add_softmax(count, d_losses[i], normaliser[i], in.logits + i * count, d_logits + i * count);
        if (target >= 0 && target < count) d_logits[i * count + target] -= d_losses[i];
      }
    });
  }

 private:
  static Index grain(Index classes) {
    return std::max<Index>(1, 8192 / std::max<Index>(classes, 1));
  }

  /// The logarithm of the sum of e^x.
  template <class T>
  static T log_sum(Index n, const T* x) {
    constexpr Index chunk = 256;
    const T top = Eigen::Map<const Lanes<T, Eigen::Dynamic>>(x, n).maxCoeff();
    T terms[chunk], sum = T(0);
    for (Index begin = 0; begin < n; begin += chunk) {
      const Index count = (std::min)(chunk, n - begin);
      for (Index j = 0; j < count; ++j) terms[j] = math::exp_decay(x[begin + j] - top);
      sum += sum_lanes<T>(count, [&]<int W>(Index j) { return lanes<W>(terms + j); });
    }
    return top + std::log(sum);
  }

  template <class T>
  static void add_softmax(Index n, T factor, T normaliser, const T* __restrict x,
                          T* __restrict to) {
    for (Index j = 0; j < n; ++j) to[j] += factor * math::exp_of_share(x[j] - normaliser);
  }
};

}  // namespace infty::detail
