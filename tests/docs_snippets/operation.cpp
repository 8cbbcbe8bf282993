// SPDX-License-Identifier: MIT
#include <infty/autograd/reduce.hpp>
#include <infty/autograd/tape.hpp>
#include <infty/core/random.hpp>
#include <infty/testing/gradient_check.hpp>

#include "support/catch.hpp"

using infty::Index, infty::Tensor, infty::Variable;

/// x³ elementwise: the forward pass, and behind `record` the backward pass, dx += dy · 3 x².
template <class T, class B>
Variable<T, B> cube(const Variable<T, B>& x) {
  Variable<T, B> y(Tensor<T, B>(x.shape()));
  const T* const from = x.value().data();
  T* const to = y.value().data();
  B::for_each(x.size(), [=] INFTY_HOST_DEVICE(Index i) { to[i] = from[i] * from[i] * from[i]; });
  return record(
      y,
      [x](const Tensor<T, B>& dy) {
        const T *const in = x.value().data(), *const d = dy.data();
        T* const dx = x.grad().data();
        B::for_each(x.size(),
                    [=] INFTY_HOST_DEVICE(Index i) { dx[i] += d[i] * 3 * in[i] * in[i]; });
      },
      x);
}

TEST_CASE("docs: an operation of one's own has a gradient") {
  infty::Random random(1);
  Variable<double> x(Tensor<double>({3, 4}));
  fill_uniform(x.value(), -1., 1., random);
  const double worst = gradient_check([&] { return sum(cube(x)); }, std::vector{x});

  CHECK(worst < 1e-8);
}
