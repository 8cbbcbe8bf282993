// SPDX-License-Identifier: MIT
#pragma once

#include <infty/autograd/tape.hpp>
#include <infty/core/random.hpp>

namespace infty {

/// Zero with the given probability, x / (1 - probability) otherwise [Srivastava et al. 2014].
/// Which elements fall is drawn from `random`, element i by draw i; the backward pass draws again.
/// Probability 0 draws nothing. @throws infty::ValueError unless 0 <= probability < 1
template <class T, class B>
Variable<T, B> dropout(const Variable<T, B>& x, double probability, Random& random) {
  require(probability >= 0 && probability < 1, "dropout", "probability is ", probability,
          ": it must lie in [0, 1)");
  if (probability == 0) return x;
  const std::uint64_t seed = random.seed(), stream = random.stream(), first = random.counter();
  random.seek(first + static_cast<std::uint64_t>(x.size()));
  const T factor = static_cast<T>(1 / (1 - probability));
  const auto keep = [=] INFTY_HOST_DEVICE(Index i) {
    return detail::uniform_at(seed, stream, first + static_cast<std::uint64_t>(i)) >= probability
               ? factor
               : T(0);
  };
  Variable<T, B> y(Tensor<T, B>(x.shape()));
  const T* const in = x.value().data();
  T* const out = y.value().data();
  B::for_each(x.size(), [=] INFTY_HOST_DEVICE(Index i) { out[i] = in[i] * keep(i); });
  return record(
      y,
      [x, keep](const Tensor<T, B>& dy) {
        const T* const d = dy.data();
        T* const dx = x.grad().data();
        B::for_each(dy.size(), [=] INFTY_HOST_DEVICE(Index i) { dx[i] += d[i] * keep(i); });
      },
      x);
}

}  // namespace infty
