// SPDX-License-Identifier: MIT
#pragma once

#include <utility>

#include <infty/autograd/kept_factor.hpp>
#include <infty/autograd/linear.hpp>
#include <infty/autograd/shape.hpp>
#include <infty/autograd/tape.hpp>

namespace infty {

namespace detail {

/// Two sequences [rows, first, in] and [rows, second, in], one behind the other in each row.
struct JoinedRows {
  Index rows, first, second;
  Index all() const { return first + second; }
};

/// dx = dy W of the one of two sequences that begins at a place, of dy (rows, all, out).
template <class T, class B>
void joined_input_backward(const JoinedRows& at, Index begin, const Unread<T, B>& x,
                           const Variable<T, B>& weight, const T* dy) {
  if (!x.requires_grad()) return;
  const Index in = weight.dim(1), out = weight.dim(0), length = x.dim(1);
  const auto to = x.grad_target();
  B::matmul({.m = length,
             .n = in,
             .k = out,
             .a = {.leading = out, .outer = at.all() * out},
             .b = {.leading = in},
             .c = {.leading = in, .outer = length * in},
             .outer = at.rows,
             .roundable = true},
            T(1), dy + begin * out, weight.value().data(), to.beta(), to.data);
}

/// dW += dyᵀ x of `length` places of each row from `begin` on.
template <class T, class B>
void joined_weight_backward(const JoinedRows& at, Index begin, Index length,
                            const KeptFactor<T, B>& x, const Variable<T, B>& weight, const T* dy) {
  const Index in = weight.dim(1), out = weight.dim(0);
  Tensor<T, B> own(Shape{at.rows, length, out});  // dy of these places
  copy_rows<B>(at.rows, length * out, dy + begin * out, at.all() * out, own.data(), length * out);
  const auto to = weight.grad_target();
  x.multiply(at.rows * length, out, in, std::as_const(own).data(), to.beta(), to.data);
}

}  // namespace detail

/// Computes linear(concat(a, b), weight, bias) without putting a and b together, and keeps them for
/// the way back as they are. There they are joined for the weight's gradient alone, so that it has
/// the bits of one product; with products in bfloat16 it is the sum of two.
/// @param a, b  [n, La, in] and [n, Lb, in]   @param weight, bias  as those of `linear`
/// @return      [n, La + Lb, out]
/// @throws infty::ShapeError if the shapes do not fit
template <class T, class B>
Variable<T, B> linear_of_concat(const Variable<T, B>& a, const Variable<T, B>& b,
                                const Variable<T, B>& weight, const Variable<T, B>& bias = {}) {
  using V = Variable<T, B>;
  const char* const op = "linear_of_concat";
  detail::require_linear(op, b, weight, bias);
  require<ShapeError>(
      b.shape().rank() == 3 && a.shape().rank() == 3 && a.shape() == b.shape().with(1, a.dim(1)),
      op, "a is ", a.shape(), ", b is ", b.shape(),
      ": they must be [n, L, in] and may differ in L only");
  if (a.dim(1) == 0) return linear(b, weight, bias);
  if (b.dim(1) == 0) return linear(a, weight, bias);
  if (weight.stored_in_bfloat16()) return linear(concat(a, b), weight, bias);
  const Index n = a.dim(0), in = weight.dim(1), out = weight.dim(0), la = a.dim(1), lb = b.dim(1),
              all = la + lb;
  Variable<T, B> y(Tensor<T, B>(Shape{n, all, out}));
  T* const py = y.value().data();
  if (bias.size() > 0) detail::fill_rows<B>(n * all, out, bias.value().data(), py);
  const auto multiply = [&](const Variable<T, B>& x, Index first) {
    B::matmul({.m = x.dim(1),
               .n = out,
               .k = in,
               .a = {.leading = in, .outer = x.dim(1) * in},
               .b = {.leading = in, .transposed = true},
               .c = {.leading = out, .outer = all * out},
               .outer = n,
               .roundable = true},
              T(1), x.value().data(), weight.value().data(), bias.size() > 0 ? T(1) : T(0),
              py + first * out);
  };
  multiply(a, 0);
  multiply(b, la);
  if (!Tape::active()) return y;
  const detail::KeptFactor of_a(a, weight), of_b(b, weight);
  const bool apart = of_a.rounds();
  return record(
      y,
      [a = Unread(a), b = Unread(b), of_a, of_b, apart, weight, bias](const Tensor<T, B>& dy) {
        const detail::JoinedRows at{dy.dim(0), a.dim(1), b.dim(1)};
        detail::joined_input_backward(at, 0, a, weight, dy.data());
        detail::joined_input_backward(at, at.first, b, weight, dy.data());
        if (weight.requires_grad() && apart) {
          detail::joined_weight_backward(at, 0, at.first, of_a, weight, dy.data());
          detail::joined_weight_backward(at, at.first, at.second, of_b, weight, dy.data());
        } else if (weight.requires_grad()) {
          const V joined = concat(V(of_a.value()), V(of_b.value()));
          const auto to = weight.grad_target();
          ComposedKeptFactor<B>::multiply(at.rows * at.all(), dy.dim(2), weight.dim(1), dy.data(),
                                          std::as_const(joined).value().data(), to.beta(), to.data);
        }
        if (bias.requires_grad())
          detail::add_column_sums<B>(at.rows * at.all(), dy.dim(2), dy.data(), bias.grad().data());
      },
      ReadIf(a, of_a.value()), ReadIf(b, of_b.value()), weight, Unread(bias));
}

}  // namespace infty
