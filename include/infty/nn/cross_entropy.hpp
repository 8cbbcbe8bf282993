// SPDX-License-Identifier: MIT
#pragma once

#include <cmath>

#include <infty/autograd/reduce.hpp>
#include <infty/core/math.hpp>
#include <infty/core/row.hpp>

namespace infty {

/// The target that no loss is counted for, as in PyTorch.
inline constexpr Index ignore_index = -100;

/// Negative log-likelihood in nats of each target under softmax(logits), 0 where it is ignored.
/// @param logits  [..., vocabulary]   @param targets  [...], in [0, vocabulary) or `ignored`
/// @return  [...]
/// @throws infty::ShapeError; infty::ValueError for a target out of range
template <class T, class B>
Variable<T, B> token_losses(const Variable<T, B>& logits, const Tensor<Index, B>& targets,
                            Index ignored = ignore_index) {
  const Index classes = logits.shape().rank() ? logits.dim(-1) : 0, rows = targets.size();
  require<ShapeError>(classes > 0 && targets.rank() == logits.shape().rank() - 1 &&
                          rows * classes == logits.size() &&
                          logits.shape().size(0, targets.rank()) == rows,
                      "token_losses", "logits are ", logits.shape(), ", targets ", targets.shape(),
                      ": they must be [..., vocabulary] and [...]");
  const Index* const target = targets.data();
  const Index wrong = B::reduce(
      rows, Index{-1}, [] INFTY_HOST_DEVICE(Index a, Index b) { return a > b ? a : b; },
      [=] INFTY_HOST_DEVICE(Index i) {
        return target[i] == ignored || (target[i] >= 0 && target[i] < classes) ? Index{-1} : i;
      });
  require(wrong < 0, "token_losses", "target ", wrong, " does not lie in [0, ", classes, ")");

  Tensor<T, B> normaliser(Shape{rows});  // log of the sum of exp(logits)
  Variable<T, B> losses(Tensor<T, B>(targets.shape()));
  {
    const T* const in = logits.value().data();
    T *const log_sum = normaliser.data(), *const out = losses.value().data();
    B::for_each_row(rows, 4 * classes, [=] INFTY_HOST_DEVICE(Index i) {
      const T* const x = in + i * classes;
      const T top = detail::row_max<T>(classes, [=](Index j) { return x[j]; });
      const T sum = detail::row_sum<T>(classes, [=](Index j) { return math::exp(x[j] - top); });
      log_sum[i] = top + std::log(sum);
      out[i] = target[i] == ignored ? T(0) : log_sum[i] - x[target[i]];
    });
  }
  return record(
      losses,
      [logits, targets, normaliser, rows, classes, ignored](const Tensor<T, B>& dy) {
        // d logits = (softmax - one-hot target) * dy
        const T *const in = logits.value().data(), *const log_norm = normaliser.data();
        const T* const d = dy.data();
        const Index* const wanted = targets.data();
        T* const dx = logits.grad().data();
        B::for_each_row(rows, 4 * classes, [=] INFTY_HOST_DEVICE(Index i) {
          if (wanted[i] == ignored) return;
          for (Index j = 0; j < classes; ++j)
            dx[i * classes + j] += d[i] * math::exp(in[i * classes + j] - log_norm[i]);
          dx[i * classes + wanted[i]] -= d[i];
        });
      },
      logits);
}

/// Mean negative log-likelihood in nats over the targets that are not ignored, as
/// torch.nn.functional.cross_entropy; 0 if all are. Shapes and errors as `token_losses`.
template <class T, class B>
Variable<T, B> cross_entropy(const Variable<T, B>& logits, const Tensor<Index, B>& targets,
                             Index ignored = ignore_index) {
  const auto losses = token_losses(logits, targets, ignored);
  const Index* const target = targets.data();
  const Index counted = B::reduce(
      targets.size(), Index{0}, detail::Plus{},
      [=] INFTY_HOST_DEVICE(Index i) { return target[i] == ignored ? Index{0} : Index{1}; });
  return sum(losses, T(1) / static_cast<T>(counted > 0 ? counted : 1));
}

}  // namespace infty
