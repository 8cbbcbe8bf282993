// SPDX-License-Identifier: MIT
#pragma once

#include <cmath>
#include <cstdint>

#include <infty/autograd/elementwise.hpp>
#include <infty/autograd/tape.hpp>
#include <infty/core/random.hpp>

namespace infty {

namespace detail {

/// Which elements of a tensor fall: element i by word i mod 4 of block i / 4 of a stream.
template <class T>
struct DropoutMask {
  std::uint64_t seed, stream, first;
  std::uint32_t threshold;  ///< words below it fall
  T factor;                 ///< of what stays

  /// Takes its place in `random`, which moves on by one draw an element.
  /// @throws infty::ValueError unless 0 <= probability < 1
  static DropoutMask draw(Index size, double probability, Random& random) {
    require(math::is_finite(probability) && probability >= 0 && probability < 1, "dropout",
            "probability is ", probability, ": it must lie in [0, 1)");
    const DropoutMask mask{random.seed(), random.stream(), random.counter(),
                           static_cast<std::uint32_t>(probability * 0x1p32),
                           static_cast<T>(1 / (1 - probability))};
    if (probability > 0) random.seek(random.counter() + static_cast<std::uint64_t>(size));
    return mask;
  }

  /// f(i, factor or 0) for i in [0, n): four elements share the work of one block.
  template <class B, class F>
  void for_each(Index n, F f) const {
    const DropoutMask mask = *this;
    const auto take = [=] INFTY_HOST_DEVICE(Index block, Index words) {
      const PhiloxBlock drawn =
          philox(mask.seed, mask.stream, mask.first + static_cast<std::uint64_t>(block));
      for (Index w = 0; w < words; ++w)
        f(4 * block + w, drawn.word[w] >= mask.threshold ? mask.factor : T(0));
    };
    B::for_each(n / 4, [=] INFTY_HOST_DEVICE(Index block) { take(block, 4); });
    if (n % 4 > 0) B::for_each(1, [=] INFTY_HOST_DEVICE(Index) { take(n / 4, n % 4); });
  }

  /// x times factor or 0, element by element, to `out`, which may be x.
  template <class B>
  void apply(Index n, const T* x, T* out) const {
    for_each<B>(n, [=] INFTY_HOST_DEVICE(Index i, T keep) { out[i] = keep * x[i]; });
  }

  /// Adds term(i) times factor or 0 to the gradient of x, for all elements i.
  template <class B, class Handle, class Term>
  void add_to_grad(const GradientHandle<Handle, T, B>& x, Term term) const {
    const GradTarget<T> to = x.grad_target();
    T* const dx = to.data;
    if (to.add)
      for_each<B>(x.size(), [=] INFTY_HOST_DEVICE(Index i, T keep) { dx[i] += keep * term(i); });
    else
      for_each<B>(x.size(), [=] INFTY_HOST_DEVICE(Index i, T keep) { dx[i] = keep * term(i); });
  }
};

}  // namespace detail

/// Sets finite elements to zero with the given probability, to x / (1 - probability) otherwise
/// [Srivastava et al. 2014]; what is not finite falls as NaN. Which elements fall is drawn from
/// `random`, which moves on by one draw an element; the backward pass draws again. Probability 0
/// draws nothing.
/// @throws infty::ValueError unless 0 <= probability < 1
template <class T, class B>
Variable<T, B> dropout(const Variable<T, B>& x, double probability, Random& random) {
  const auto mask = detail::DropoutMask<T>::draw(x.size(), probability, random);
  if (probability == 0) return x;
  Variable<T, B> y(Tensor<T, B>(x.shape()));
  mask.template apply<B>(x.size(), x.value().data(), y.value().data());
  return record(
      y,
      [x = Unread(x), mask](const Tensor<T, B>& dy) {
        const T* const d = dy.data();
        mask.template add_to_grad<B>(x, [=] INFTY_HOST_DEVICE(Index i) { return d[i]; });
      },
      Unread(x));
}

/// Computes a + dropout(b), in one pass.
/// @throws infty::ShapeError unless the shapes are equal; infty::ValueError unless 0 <= probability
/// < 1
template <class T, class B>
Variable<T, B> add_dropped(const Variable<T, B>& a, const Variable<T, B>& b, double probability,
                           Random& random) {
  detail::require_same_shape("add_dropped", a, b);
  const auto mask = detail::DropoutMask<T>::draw(b.size(), probability, random);
  if (probability == 0) return add(a, b);
  Variable<T, B> y(Tensor<T, B>(a.shape()));
  const T *const pa = a.value().data(), *const pb = b.value().data();
  T* const out = y.value().data();
  mask.template for_each<B>(
      b.size(), [=] INFTY_HOST_DEVICE(Index i, T keep) { out[i] = pa[i] + keep * pb[i]; });
  return record(
      y,
      [a = Unread(a), b = Unread(b), mask](const Tensor<T, B>& dy) {
        const T* const d = dy.data();
        if (a.requires_grad()) detail::add_to_grad(a, dy);
        if (b.requires_grad())
          mask.template add_to_grad<B>(b, [=] INFTY_HOST_DEVICE(Index i) { return d[i]; });
      },
      Unread(a), Unread(b));
}

}  // namespace infty
