// SPDX-License-Identifier: MIT
#pragma once

#include <cmath>
#include <cstddef>

#include <infty/core/config.hpp>
#include <infty/core/kernel/token_losses.hpp>
#include <infty/core/math.hpp>
#include <infty/core/number.hpp>
#include <infty/thrust/tile.hpp>

namespace infty::detail {

/// The sum of exp(x - top) over some numbers x whose largest is `top`.
template <class T>
struct SumOfExp {
  T top, sum;
};

/// Joins two of them: logits are read once, and no exponential overflows.
struct JoinSums {
  template <class T>
  INFTY_HOST_DEVICE SumOfExp<T> operator()(const SumOfExp<T>& a, const SumOfExp<T>& b) const {
    const T top = a.top > b.top ? a.top : b.top;
    // Equal tops need no exponential; those of -inf would make it NaN.
    return {top, (a.top == top ? a.sum : a.sum * math::exp(a.top - top)) +
                     (b.top == top ? b.sum : b.sum * math::exp(b.top - top))};
  }
};

/// One row a block: loss and normaliser.
template <class T>
struct TokenLossesForward {
  static constexpr int threads = 256;

  TokenLossInputs<T> in;
  T *normaliser, *losses;

  INFTY_HOST_DEVICE std::size_t shared_bytes() const { return 0; }

  template <class Block>
  INFTY_HOST_DEVICE void operator()(Block& block) const {
    const Index row = block.index(), classes = in.classes, target = in.targets[row];
    const T* const x = in.logits + row * classes;
    const SumOfExp<T> sums =
        block.reduce(classes, SumOfExp<T>{-math::infinity<T>, T(0)}, JoinSums{}, [&](Index j) {
          return SumOfExp<T>{x[j], T(1)};
        });
    block.each(1, [&](int) {
      // Of an infinite logit nothing is left but NaN, as in the composition.
      const T norm =
          sums.top < math::infinity<T> ? sums.top + std::log(sums.sum) : math::not_a_number<T>;
      normaliser[row] = norm;
      losses[row] = target == in.ignored              ? T(0)
                    : target >= 0 && target < classes ? norm - x[target]
                                                      : math::not_a_number<T>;
    });
  }
};

/// A piece of a row a block: d_logits (+)= (softmax - one-hot target) * d_loss.
template <class T>
struct TokenLossesBackward {
  static constexpr int threads = 256;
  static constexpr Index piece = 4096;

  TokenLossInputs<T> in;
  const T *normaliser, *d_losses;
  T* d_logits;
  bool add;  ///< to what d_logits holds; otherwise it is overwritten

  INFTY_HOST_DEVICE Index pieces() const { return (in.classes + piece - 1) / piece; }
  INFTY_HOST_DEVICE std::size_t shared_bytes() const { return 0; }

  template <class Block>
  INFTY_HOST_DEVICE void operator()(Block& block) const {
    const Index row = block.index() / pieces(), begin = block.index() % pieces() * piece;
    const Index classes = in.classes, target = in.targets[row];
    if (target == in.ignored && add) return;
    const int count = static_cast<int>(classes - begin < piece ? classes - begin : piece);
    const T* const x = in.logits + row * classes + begin;
    T* const to = d_logits + row * classes + begin;
    const T d = d_losses[row], norm = normaliser[row];
    if (add)
      block.each(count, [&](int j) {
        const T hit = begin + j == target ? T(1) : T(0);
        to[j] += d * (math::exp(x[j] - norm) - hit);
      });
    else if (target == in.ignored)
      block.each(count, [&](int j) { to[j] = T(0); });
    else
      block.each(count, [&](int j) {
        const T hit = begin + j == target ? T(1) : T(0);
        to[j] = d * (math::exp(x[j] - norm) - hit);
      });
  }
};

/// `ComposedTokenLosses` as tile programs.
template <class System>
struct TiledTokenLosses {
  template <class T>
  static void forward(const TokenLossInputs<T>& in, T* normaliser, T* losses) {
    launch<System>(in.rows, TokenLossesForward<T>{in, normaliser, losses});
  }

  /// As `ComposedTokenLosses::backward`; without `add`, d_logits is overwritten.
  template <class T>
  static void backward(const TokenLossInputs<T>& in, const T* normaliser, const T* d_losses,
                       T* d_logits, bool add = true) {
    const TokenLossesBackward<T> kernel{in, normaliser, d_losses, d_logits, add};
    launch<System>(in.rows * kernel.pieces(), kernel);
  }
};

}  // namespace infty::detail
