// SPDX-License-Identifier: MIT
#pragma once

#include <cmath>

#include <infty/autograd/elementwise.hpp>
#include <infty/core/fold.hpp>
#include <infty/core/kernel/chosen.hpp>
#include <infty/core/kernel/token_losses.hpp>
#include <infty/core/math.hpp>
#include <infty/core/number.hpp>
#include <infty/core/row.hpp>
#include <infty/core/verify.hpp>

namespace infty {

/// The target that no loss is counted for, as in PyTorch.
inline constexpr Index ignore_index = -100;

/// The composition that defines `token_losses` and its gradient, from primitives. It runs on every
/// backend and is the oracle of the fused kernels that a backend may bring.
template <class B>
struct ComposedTokenLosses {
  template <class Own = B>
  using Kernel = typename Own::FusedTokenLosses;

  /// Losses [rows], and the normaliser [rows] that the backward pass wants: the logarithm of the
  /// sum of exp(logits). A target out of range that is not `ignored`, which only a backend that
  /// verifies later lets through, has a loss of NaN.
  template <class T>
  static void forward(const TokenLossInputs<T>& in, T* normaliser, T* losses) {
    B::for_each_row(in.rows, 4 * in.classes, [=] INFTY_HOST_DEVICE(Index i) {
      const Index classes = in.classes, target = in.targets[i];
      const T* const x = in.logits + i * classes;
      const T top = detail::row_max<T>(classes, [=](Index j) { return x[j]; });
      const T sum = detail::row_sum<T>(classes, [=](Index j) { return math::exp(x[j] - top); });
      normaliser[i] = top + std::log(sum);
      losses[i] = target == in.ignored              ? T(0)
                  : target >= 0 && target < classes ? normaliser[i] - x[target]
                                                    : math::not_a_number<T>;
    });
  }

  /// Adds (softmax - one-hot target) * d_losses to d_logits.
  template <class T>
  static void backward(const TokenLossInputs<T>& in, const T* normaliser, const T* d_losses,
                       T* d_logits) {
    B::for_each_row(in.rows, 4 * in.classes, [=] INFTY_HOST_DEVICE(Index i) {
      const Index classes = in.classes, target = in.targets[i];
      if (target == in.ignored) return;
      for (Index j = i * classes; j < (i + 1) * classes; ++j)
        d_logits[j] += d_losses[i] * math::exp(in.logits[j] - normaliser[i]);
      if (target >= 0 && target < classes) d_logits[i * classes + target] -= d_losses[i];
    });
  }
};

/// Negative log-likelihood in nats of each target under softmax(logits), 0 where it is ignored.
/// @param logits  [..., vocabulary]   @param targets  [...], in [0, vocabulary) or `ignored`
/// @return  [...]
/// @throws infty::ShapeError; infty::ValueError for a target out of range
template <class T, class B>
Variable<T, B> token_losses(const Variable<T, B>& logits, const Tensor<Index, B>& targets,
                            Index ignored = ignore_index) {
  using Kernel = detail::chosen_t<ComposedTokenLosses<B>>;
  const Index classes = logits.shape().rank() ? logits.dim(-1) : 0, rows = targets.size();
  require<ShapeError>(classes > 0 && targets.rank() == logits.shape().rank() - 1 &&
                          rows * classes == logits.size() &&
                          logits.shape().size(0, targets.rank()) == rows,
                      "token_losses", "logits are ", logits.shape(), ", targets ", targets.shape(),
                      ": they must be [..., vocabulary] and [...]");
  const Index* const target = targets.data();
  detail::verify<B>(
      rows,
      [=] INFTY_HOST_DEVICE(Index i) {
        return target[i] != ignored && (target[i] < 0 || target[i] >= classes);
      },
      [targets, classes](Index wrong) {
        raise<ValueError>("token_losses", "target ",
                          targets.reshape(Shape{targets.size()}).slice(wrong, wrong + 1).item(),
                          " at place ", wrong, ": targets must lie in [0, ", classes, ")");
      });
  Tensor<T, B> normaliser(Shape{rows});
  Variable<T, B> losses(Tensor<T, B>(targets.shape()));
  Kernel::forward(TokenLossInputs<T>{rows, classes, logits.value().data(), target, ignored},
                  normaliser.data(), losses.value().data());
  return record(
      losses,
      [logits, targets, normaliser, rows, classes, ignored](const Tensor<T, B>& dy) {
        const TokenLossInputs<T> in{rows, classes, logits.value().data(), targets.data(), ignored};
        // Logits are large: a gradient of zeros need not be filled in and read by kernels that
        // write.
        if constexpr (requires(T* to) {
                        Kernel::backward(in, normaliser.data(), dy.data(), to, true);
                      }) {
          const GradTarget<T> to = logits.grad_target();
          Kernel::backward(in, normaliser.data(), dy.data(), to.data, to.add);
        } else {
          Kernel::backward(in, normaliser.data(), dy.data(), logits.grad().data());
        }
      },
      logits, targets);
}

/// Mean of losses over the targets that are not ignored -> scalar, 0 if all are: losses [...], 0
/// where the target is `ignored`, as `token_losses` makes them, and targets [...].
/// @throws infty::ShapeError
template <class T, class B>
Variable<T, B> mean_loss(const Variable<T, B>& losses, const Tensor<Index, B>& targets,
                         Index ignored = ignore_index) {
  require<ShapeError>(losses.shape() == targets.shape(), "mean_loss", "losses are ", losses.shape(),
                      ", targets ", targets.shape(), ": they must have one shape");
  // The count stays where the targets are: the host need not wait for it.
  Tensor<Index, B> counted(Shape{});
  Tensor<T, B> share(Shape{});  // 1 / counted
  Variable<T, B> mean(Tensor<T, B>(Shape{}));
  {
    const Index* const target = targets.data();
    const T* const loss = losses.value().data();
    Index* const count = counted.data();
    T *const s = share.data(), *const total = mean.value().data();
    B::reduce_into(
        targets.size(), Index{0}, detail::Plus{},
        [=] INFTY_HOST_DEVICE(Index i) { return Index{target[i] != ignored}; }, count);
    B::reduce_into(
        losses.size(), T(0), detail::Plus{}, [=] INFTY_HOST_DEVICE(Index i) { return loss[i]; },
        total);
    B::for_each(1, [=] INFTY_HOST_DEVICE(Index) {
      *s = T(1) / static_cast<T>(*count > 0 ? *count : 1);
      *total *= *s;
    });
  }
  return record(
      mean,
      [losses = Unread(losses), share](const Tensor<T, B>& dy) {
        const T *const s = share.data(), *const d = dy.data();
        detail::add_to_grad(losses, [=] INFTY_HOST_DEVICE(Index) { return *s * *d; });
      },
      Unread(losses));
}

/// Mean negative log-likelihood in nats over the targets that are not ignored, as
/// torch.nn.functional.cross_entropy; 0 if all are. Shapes and errors as `token_losses`.
template <class T, class B>
Variable<T, B> cross_entropy(const Variable<T, B>& logits, const Tensor<Index, B>& targets,
                             Index ignored = ignore_index) {
  return mean_loss(token_losses(logits, targets, ignored), targets, ignored);
}

}  // namespace infty
