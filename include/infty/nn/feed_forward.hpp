// SPDX-License-Identifier: MIT
#pragma once

#include <infty/autograd/linear.hpp>
#include <infty/nn/dropout.hpp>
#include <infty/nn/linear.hpp>
#include <infty/nn/pass.hpp>

namespace infty {

/// dropout(relu(x Wᵀ + b)), what comes behind the product in one pass and in its memory. Shapes and
/// errors as `linear` and `dropout`.
template <class T, class B>
Variable<T, B> linear_relu(const Variable<T, B>& x, const Variable<T, B>& weight,
                           const Variable<T, B>& bias, double drop, Random& random) {
  detail::require_linear("linear_relu", x, weight, bias);
  const Index rows = x.shape().size(0, x.shape().rank() - 1);
  Variable<T, B> y(Tensor<T, B>(x.shape().with(-1, weight.dim(0))));
  const auto mask = detail::DropoutMask<T>::draw(y.size(), drop, random);
  T* const py = y.value().data();
  detail::linear_forward(rows, x, weight, bias, py);
  if (drop > 0)
    mask.template for_each<B>(y.size(), [=] INFTY_HOST_DEVICE(Index i, T keep) {
      py[i] = keep * (py[i] < T(0) ? T(0) : py[i]);
    });
  else
    B::for_each(y.size(), [=] INFTY_HOST_DEVICE(Index i) { py[i] = py[i] < T(0) ? T(0) : py[i]; });
  if (!Tape::active()) return y;
  const Tensor<T, B> result = y.value();
  const detail::KeptFactor kept(x, weight);
  return record(
      y,
      [x = Unread(x), kept, weight, bias, result, rows,
       factor = mask.factor](const Tensor<T, B>& dy) {
        // What is above 0 was neither cut off nor dropped.
        Tensor<T, B> inner(dy.shape());  // the gradient of x Wᵀ + b
        const T *const d = dy.data(), *const out = result.data(), f = factor;
        T* const to = inner.data();
        B::for_each(dy.size(),
                    [=] INFTY_HOST_DEVICE(Index i) { to[i] = out[i] > T(0) ? f * d[i] : T(0); });
        detail::linear_backward(rows, x, kept, weight, bias, to);
      },
      ReadIf(x, kept.value()), weight, Unread(bias), result);
}

/// The position-wise network of a transformer layer: W2 relu(W1 x + b1) + b2 [Vaswani et al. 2017,
/// Eq. 2], with dropout behind the first map; a block has it behind the second.
template <class T, class Backend>
struct FeedForward {
  using Scalar = T;
  using BackendType = Backend;

  Linear<T, Backend> inner, outer;  ///< d -> hidden, and hidden -> d

  FeedForward() = default;

  /// Makes both maps, with weights drawn as `Linear` draws them.
  /// @param d  width of vectors  @param hidden  width of the inner layer
  /// @throws infty::ValueError unless d, hidden >= 1
  FeedForward(Index d, Index hidden, Random random)
      : inner(d, hidden, random.split(0)), outer(hidden, d, random.split(1)) {}

  /// [..., d] -> [..., d]. @throws infty::ShapeError
  Variable<T, Backend> forward(const Variable<T, Backend>& x, Pass<T, Backend>& pass) const {
    Random unused(0);
    return outer.forward(
        linear_relu(x, inner.weight, inner.bias, pass.drop(), pass.random ? *pass.random : unused));
  }

  template <class Visitor>
  void visit(Visitor&& see) {
    see("inner", inner);
    see("outer", outer);
  }
};

}  // namespace infty
