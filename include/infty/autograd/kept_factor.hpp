// SPDX-License-Identifier: MIT
#pragma once

#include <memory>
#include <type_traits>
#include <utility>

#include <infty/autograd/rounded_factor.hpp>
#include <infty/autograd/tape.hpp>
#include <infty/autograd/variable.hpp>
#include <infty/core/kernel/chosen.hpp>

namespace infty {

/// The composition that defines what a linear map keeps of its input for the way back: the input. A
/// backend whose products round their factors may bring a kernel that keeps them rounded, in half
/// of the memory, and multiplies to the same bits.
template <class B>
struct ComposedKeptFactor {
  template <class Own = B>
  using Kernel = typename Own::FusedKeptFactor;

  /// dW (out, in) = dyᵀ x + beta dW, of dy (rows, out) and x (rows, in).
  template <class T>
  static void multiply(Index rows, Index out, Index in, const T* dy, const T* x, T beta, T* dw) {
    B::matmul({.m = out,
               .n = in,
               .k = rows,
               .a = {.leading = out, .transposed = true},
               .b = {.leading = in},
               .c = {.leading = in},
               .roundable = true},
              T(1), dy, x, beta, dw);
  }
};

namespace detail {

/// What the way back of a linear map y = x Wᵀ reads of x: nothing unless W takes a gradient.
template <class T, class B>
class KeptFactor {
  using Composed = ComposedKeptFactor<B>;
  static constexpr bool may_round = HasKernel<Composed> && std::is_same_v<T, float>;

 public:
  /// Keeps of x what is read; if factors are rounded, and nobody else holds the value of x, it is
  /// the rounded ones, which all maps of x share.
  KeptFactor(const Variable<T, B>& x, const Variable<T, B>& weight) {
    if constexpr (may_round) rounds_ = chosen_t<Composed>::rounds();
    if (!weight.requires_grad()) return;
    if constexpr (may_round)
      if (rounds_ && keep_rounded(x)) return;
    value_ = x.value();
  }

  /// Whether products round their factors, and so this or another of theirs may be kept rounded.
  bool rounds() const { return rounds_; }

  /// The value that is read, for `record`: none where it is another that was rounded.
  const Tensor<T, B>& value() const { return value_; }

  /// dW (out, in) = dyᵀ x + beta dW, of dy (rows, out).
  void multiply(Index rows, Index out, Index in, const T* dy, T beta, T* dw) const {
    if constexpr (may_round)
      if (rounded_)
        return chosen_t<Composed>::multiply(rows, out, in, dy, rounded_->pairs.data(), beta, dw);
    Composed::multiply(rows, out, in, dy, value_.data(), beta, dw);
  }

 private:
  /// Whether it was worth it. What this tape has not made stays with whoever has it, and may be
  /// read by other threads; what an operation keeps that comes before stays as well.
  bool keep_rounded(const Variable<T, B>& x) {
    const Tape* const tape = Tape::active();
    if (!tape || !tape->has_recorded(x) || x.stored_in_bfloat16() || x.size() == 0) return false;
    rounded_ = x.rounded_factor();
    if (rounded_) return true;
    if (x.value().is_shared()) return false;
    const Index in = x.dim(-1), rows = x.size() / in;
    Tensor<T, B> pairs(Shape{(rows + 1) / 2, in});
    chosen_t<Composed>::round(rows, in, x.value().data(), pairs.data());
    rounded_ = x.share_rounded_factor(std::move(pairs));
    return true;
  }

  Tensor<T, B> value_;
  std::shared_ptr<const RoundedFactor<T, B>> rounded_;
  bool rounds_ = false;
};

}  // namespace detail

}  // namespace infty
