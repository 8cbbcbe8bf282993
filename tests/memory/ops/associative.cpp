// SPDX-License-Identifier: MIT
#include <algorithm>
#include <cmath>
#include <utility>
#include <vector>

#include <infty/autograd/elementwise.hpp>
#include <infty/autograd/reduce.hpp>
#include <infty/memory/ops/associative.hpp>
#include <infty/testing/gradient_check.hpp>

#include "support/catch.hpp"
#include "support/tensors.hpp"
#include "support/types.hpp"

using infty::Index;
using infty::Shape;
using infty::Tensor;
using infty::Variable;
using infty::tests::error;
using infty::tests::uniform_tensor;

TEMPLATE_LIST_TEST_CASE("associative: read, written and counted as in plain loops", "",
                        infty::tests::Types) {
  using T = typename TestType::T;
  using B = typename TestType::B;
  using V = Variable<T, B>;
  const Index b = 2, h = 3, l = 4, f = 5, v = 2;
  infty::Random random(infty::tests::seed);
  const auto phi = uniform_tensor<T>({b, h, l, f}, random, -.2, 1);
  const auto a = uniform_tensor<T>({b, h, f, v}, random),
             u = uniform_tensor<T>({b, h, l, v}, random);
  const auto z = uniform_tensor<T>({b, h, f}, random, -.4, 1.5);
  const auto share = uniform_tensor<T>({b, h, l, 1}, random);
  const auto fresh = Tensor<Index, B>::from({b}, {0, 1});
  const auto beta = uniform_tensor<T>({b, h, l, 2}, random, 0, 1),
             positive = uniform_tensor<T>({b, h, l, f}, random, 0, 1),
             filled = uniform_tensor<T>({b, h, f}, random, 0, 4);
  std::vector<double> read, sums, written, mass, counted, gamma, taken;
  for (Index i = 0; i < b * h; ++i) {
    const auto at = [](const Tensor<T>& x, Index j) { return static_cast<double>(x.data()[j]); };
    for (Index t = 0; t < l; ++t) {
      double total = 0, size = 0;
      for (Index k = 0; k < f; ++k) {
        const double x = at(phi, (i * l + t) * f + k);
        total += x * at(z, i * f + k);
        size += x * x;
      }
      for (Index j = 0; j < v; ++j) {
        double sum = 0;
        for (Index k = 0; k < f; ++k)
          sum += at(phi, (i * l + t) * f + k) * at(a, (i * f + k) * v + j);
        sums.push_back(sum);
        read.push_back(sum / (std::max(total, .5) + .1));
      }
      gamma.push_back(i >= h ? 1 : std::clamp(1 - (total + .1) / (size + .3), 0., 1.));
    }
    for (Index t = 0; t < l; ++t) {
      double row = 0;
      for (Index s = 0; s < l; ++s) {
        double total = 0, product = 0, size = 0;
        for (Index k = 0; k < f; ++k) {
          size += at(positive, (i * l + s) * f + k) * at(positive, (i * l + s) * f + k);
          total += at(positive, (i * l + s) * f + k) * at(filled, i * f + k);
          product += at(positive, (i * l + s) * f + k) * at(positive, (i * l + t) * f + k);
        }
        row += product * std::max(at(beta, (i * l + s) * 2), at(beta, (i * l + s) * 2 + 1)) /
               std::max(total + .1, size + .3);
      }
      taken.push_back(i >= h ? 1 : 1 / std::max(1., row));
    }
    for (Index k = 0; k < f; ++k) {
      double all = at(z, i * f + k), weighed = all;
      for (Index t = 0; t < l; ++t) {
        all += at(phi, (i * l + t) * f + k);
        weighed += at(phi, (i * l + t) * f + k) * at(share, i * l + t);
      }
      mass.push_back(all);
      counted.push_back(weighed);
      for (Index j = 0; j < v; ++j) {
        double sum = at(a, (i * f + k) * v + j);
        for (Index t = 0; t < l; ++t)
          sum += at(phi, (i * l + t) * f + k) * at(u, (i * l + t) * v + j);
        written.push_back(sum);
      }
    }
  }
  const auto on = [](const Tensor<T>& x) { return V(x.template to<B>()); };
  const infty::Denominator by{.floor = .5, .epsilon = .1};
  const double allowed = infty::tests::tolerance<T>;
  const auto numbers = [](const V& x) { return x.value().to_vector(); };
  CHECK(error(numbers(associative_read(on(phi), on(a), on(z), by)), read) < allowed);
  CHECK(error(numbers(associative_read(on(phi), on(a), V(), by)), sums) < allowed);
  CHECK(error(numbers(associative_write(on(a), on(phi), on(u))), written) < allowed);
  CHECK(error(numbers(mass_write(on(z), on(phi))), mass) < allowed);
  CHECK(error(numbers(mass_write(on(z), on(phi), share.template to<B>())), counted) < allowed);
  CHECK(error(infty::new_share(on(z).value(), on(phi).value(), fresh, .1, .3).to_vector(), gamma) <
        allowed);
  CHECK(std::count(gamma.begin(), gamma.begin() + h * l, 0.) > 0);  // the clip is tried
  CHECK(error(infty::contracting_share(on(positive).value(), on(beta).value(), on(filled).value(),
                                       fresh, .1, .3)
                  .to_vector(),
              taken) < allowed);
  const auto whole = std::count(taken.begin(), taken.begin() + h * l, 1.);
  CHECK((whole > 0 && whole < h * l));  // of either kind there are some
}

TEST_CASE("contracting_share: what a write takes off has no eigenvalue above 1") {
  constexpr Index length = 9, width = 5;
  constexpr double epsilon = 1e-5;
  infty::Random random(infty::tests::seed);
  const auto drawn = [&](Shape shape) {
    return infty::tests::uniform_tensor<double>(shape, random, 0, 1);
  };
  double largest = 0;
  for (int trial = 0; trial < 300; ++trial) {
    auto phi = drawn({1, 1, length, width});
    for (Index i = 0; i < phi.size(); ++i)  // of any sizes, some alike, some without a feature
      phi.data()[i] = trial % 3 == 0 ? phi.data()[i % width]
                                     : std::pow(10., 6 * phi.data()[i] - 4) *
                                           static_cast<double>(random.below(3) > 0);
    const auto beta = drawn({1, 1, length, 1}), mass = drawn({1, 1, width});
    const bool divided = trial % 2 == 0;
    const auto share =
        infty::contracting_share(phi, beta, divided ? mass : Tensor<double>(Shape{0}),
                                 Tensor<Index>::zeros({1}), epsilon, epsilon);
    std::vector<double> u(width, 1);  // by powers of the matrix, which is symmetric
    double eigenvalue = 0;
    for (int power = 0; power < 100; ++power) {
      std::vector<double> next(width);
      for (Index t = 0; t < length; ++t) {
        const double* const f = phi.data() + t * width;
        double along = 0, known = epsilon, whole = epsilon;
        for (Index k = 0; k < width; ++k) {
          along += f[k] * u[static_cast<std::size_t>(k)];
          known += f[k] * mass.data()[k];
          whole += f[k] * f[k];
        }
        const double w = share.data()[t] * beta.data()[t] / (divided ? std::max(known, whole) : 1);
        for (Index k = 0; k < width; ++k) next[static_cast<std::size_t>(k)] += w * along * f[k];
      }
      double before = 0, after = 0;
      for (std::size_t k = 0; k < u.size(); ++k) {
        before += u[k] * u[k];
        after += next[k] * next[k];
      }
      if (after == 0) break;
      eigenvalue = std::sqrt(after / before);
      for (std::size_t k = 0; k < u.size(); ++k) u[k] = next[k] / std::sqrt(after);
    }
    CAPTURE(trial, eigenvalue);
    CHECK(eigenvalue <= 1 + 1e-9);
    largest = std::max(largest, eigenvalue);
  }
  CHECK(largest > .99);  // as far as that it does go
}

TEST_CASE("associative: gradients") {
  infty::Random random(infty::tests::seed);
  const auto drawn = [&](Shape shape) {
    return infty::tests::uniform_variable<double>(shape, random, -.3, 1);
  };
  const auto phi = drawn({2, 2, 3, 4}), a = drawn({2, 2, 4, 3}), z = drawn({2, 2, 4}),
             u = drawn({2, 2, 3, 3});
  const auto share = drawn({2, 2, 3, 1}).value();
  const auto loss = [&] {
    const infty::Denominator by{.floor = .6, .epsilon = .2};  // some masses are below, some above
    const auto values = u - associative_read(phi, a, z, by);
    const auto memory = associative_write(a, phi, values);
    const auto mass = mass_write(z, phi, share);
    const auto read = associative_read(phi, memory, mass, by);
    return infty::sum(read * read) + infty::sum(memory * memory * memory) + infty::sum(mass * mass);
  };
  CHECK(infty::gradient_check(loss, std::vector{phi, a, z, u}, 1e-6) < 1e-8);
}

TEST_CASE("associative: a mass of the floor itself, as of what no key was like, has its gradient") {
  // z φ is 0 where z lacks a feature, and what is read is A φ / (0 + ε) all the same.
  using V = Variable<double>;
  const V phi(Tensor<double>::from({1, 1, 1, 2}, {0, 1})), a(Tensor<double>::full({1, 1, 2, 1}, 3)),
      z(Tensor<double>::from({1, 1, 2}, {1, 0}), true);
  infty::Tape tape;
  tape.backward(infty::sum(associative_read(phi, a, z, {.floor = 0, .epsilon = .5})));
  CHECK(z.grad().to_vector() == std::vector<double>{0, -12});  // -3 / .5^2
}

TEST_CASE("associative: shapes that do not fit") {
  const auto zeros = [](Shape shape) { return Variable<float>(Tensor<float>::zeros(shape)); };
  const auto phi = zeros({2, 2, 3, 4}), a = zeros({2, 2, 4, 5}), z = zeros({2, 2, 4});
  CHECK_THROWS_WITH(associative_read(phi, zeros({2, 2, 3, 5}), z, {}),
                    "[associative_read] features are [2, 2, 3, 4], the memory is [2, 2, 3, 5]: "
                    "they must be [B, H, L, F] and [B, H, F, V]");
  CHECK_THROWS_AS(associative_read(phi, a, zeros({2, 2, 3}), {}), infty::ShapeError);
  CHECK_THROWS_AS(associative_write(a, phi, zeros({2, 2, 3, 4})), infty::ShapeError);
  CHECK_THROWS_AS(mass_write(z, phi, zeros({2, 2, 3, 2}).value()), infty::ShapeError);
  CHECK_THROWS_AS(infty::new_share(z.value(), phi.value(), Tensor<Index>::zeros({3}), 1, 1),
                  infty::ShapeError);
  const auto rows = Tensor<Index>::zeros({2});
  CHECK_THROWS_AS(infty::contracting_share(phi.value(), a.value(), z.value(), rows, 1, 1),
                  infty::ShapeError);
  CHECK_THROWS_AS(
      infty::contracting_share(phi.value(), phi.value(), zeros({2, 2, 3}).value(), rows, 1, 1),
      infty::ShapeError);
  CHECK_THROWS_AS(infty::contracting_share(phi.value(), phi.value(), z.value(),
                                           Tensor<Index>::zeros({3}), 1, 1),
                  infty::ShapeError);
}
