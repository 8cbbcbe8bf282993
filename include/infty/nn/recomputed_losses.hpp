// SPDX-License-Identifier: MIT
#pragma once

#include <algorithm>

#include <infty/autograd/linear.hpp>
#include <infty/nn/cross_entropy.hpp>

namespace infty::detail {

/// x Wᵀ + b of rows [begin, begin + rows) of x, (rows, out).
template <class T, class B>
Tensor<T, B> scores_of(const Variable<T, B>& x, const Variable<T, B>& weight,
                       const Variable<T, B>& bias, Index begin, Index rows) {
  const Index in = weight.dim(1), out = weight.dim(0);
  const T* const b = bias.value().data();
  Tensor<T, B> scores(Shape{rows, out});
  T* const to = scores.data();
  for_each_element<B>(rows, out,
                      [=] INFTY_HOST_DEVICE(Index i, Index j) { to[i * out + j] = b[j]; });
  weight_product(rows, x.value().data() + begin * in, weight, T(1), to, out, false);
  return scores;
}

/// Computes token_losses(linear(x, weight, bias), targets) without keeping scores, which are as
/// many as targets times tokens: the backward pass computes them once more. Targets are not
/// checked; those that are `ignore_index` have no loss and no gradient.
/// @param x     [n, in]   @param weight  [tokens, in]   @param bias  [tokens]
/// @param most  scores that are there at a time, unless one row has more
/// @return      [n]
template <class T, class B>
Variable<T, B> recomputed_losses(const Variable<T, B>& x, const Variable<T, B>& weight,
                                 const Variable<T, B>& bias, const Tensor<Index, B>& targets,
                                 Index most = Index{1} << 24) {
  using Kernel = chosen_t<ComposedTokenLosses<B>>;
  const Index n = x.dim(0), in = weight.dim(1), tokens = weight.dim(0);
  const Index piece = std::clamp<Index>(most / tokens, 1, std::max<Index>(n, 1));
  Tensor<T, B> normaliser(Shape{n});
  Variable<T, B> losses(Tensor<T, B>(Shape{n}));
  for (Index begin = 0; begin < n; begin += piece) {
    const Index rows = (std::min)(piece, n - begin);
    const auto scores = scores_of(x, weight, bias, begin, rows);
    Kernel::forward(
        TokenLossInputs<T>{rows, tokens, scores.data(), targets.data() + begin, ignore_index},
        normaliser.data() + begin, losses.value().data() + begin);
  }
  return record(
      losses,
      [=](const Tensor<T, B>& dy) {
        for (Index begin = 0; begin < n; begin += piece) {
          const Index rows = (std::min)(piece, n - begin);
          const auto scores = scores_of(x, weight, bias, begin, rows);
          auto d_scores = Tensor<T, B>::zeros(scores.shape());
          const T* const d = d_scores.data();
          Kernel::backward(
              TokenLossInputs<T>{rows, tokens, scores.data(), targets.data() + begin, ignore_index},
              normaliser.data() + begin, dy.data() + begin, d_scores.data());
          if (x.requires_grad())
            product<B>(rows, in, tokens, false, false, d, weight.value().data(), T(1),
                       x.grad().data() + begin * in);
          if (weight.requires_grad())
            product<B>(tokens, in, rows, true, false, d, x.value().data() + begin * in, T(1),
                       weight.grad().data());
          if (bias.requires_grad()) add_column_sums<B>(rows, tokens, d, bias.grad().data());
        }
      },
      x, weight, bias, targets);
}

}  // namespace infty::detail
