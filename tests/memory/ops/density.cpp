// SPDX-License-Identifier: MIT
#include <cmath>
#include <type_traits>
#include <vector>

#include <infty/autograd/elementwise.hpp>
#include <infty/memory/ops/density.hpp>
#include <infty/signal/gaussian_basis.hpp>
#include <infty/signal/truncated_parabola.hpp>
#include <infty/testing/gradient_check.hpp>

#include "support/catch.hpp"
#include "support/tensors.hpp"
#include "support/types.hpp"

using infty::Index;
using infty::Random;
using infty::Shape;
using infty::Tensor;
using infty::Variable;
using infty::tests::uniform_variable;

TEMPLATE_LIST_TEST_CASE("affine_density: by hand", "", infty::tests::Types) {
  using T = typename TestType::T;
  using B = typename TestType::B;
  // One head of D = 4, so scores are halved: mu = sigmoid(2 log 3 / 2), sigma² = softplus(0).
  const T log3 = std::log(T(3));
  const Variable<T, B> q(Tensor<T, B>::from({1, 1, 4}, {log3, 0, 0, log3}));
  const Variable<T, B> folded(Tensor<T, B>::from({1, 2, 4}, {1, 5, 5, 1, 0, 5, 5, 0}));
  const auto y = infty::affine_density(q, folded, 1, T(1e-6)).value().to_vector();
  CHECK(y[0] == Approx(0.75));
  CHECK(y[1] == Approx(std::log(2.0)));
  CHECK(infty::affine_density(q, folded, 1, T(2)).value().to_vector()[1] == T(2));
}

TEST_CASE("affine_density: gradients, and none where the floor holds") {
  Random random(infty::tests::seed);
  const auto q = uniform_variable<double>({2, 5, 6}, random, -3, 3);
  const auto folded = uniform_variable<double>({2, 2, 6}, random, -2, 2);
  const Variable<double> by(infty::tests::uniform_tensor<double>({2, 2, 3, 5}, random));
  // A floor in the middle of the range: some variances stand on it, none within 1e-4 of it.
  for (const double floor : {1e-6, 0.7}) {
    const auto density = infty::affine_density(q, folded, 3, floor);
    Index held = 0;
    for (Index i = 30; i < 60; ++i) held += density.value().data()[i] == floor;
    CHECK((floor == 0.7) == (held > 0));
    const auto loss = [&] { return infty::sum(infty::affine_density(q, folded, 3, floor) * by); };
    CAPTURE(floor);
    CHECK(infty::gradient_check(loss, std::vector{q, folded}) < 1e-8);
  }
}

TEMPLATE_LIST_TEST_CASE("affine_density: gradients on every backend", "", infty::tests::Types) {
  using T = typename TestType::T;
  using B = typename TestType::B;
  const auto gradients = []<class On>(std::type_identity<On>) {
    Random random(infty::tests::seed);
    const auto q = uniform_variable<T, On>({2, 30, 12}, random, -3, 3);
    const auto folded = uniform_variable<T, On>({2, 2, 12}, random, -2, 2);
    const Variable<T, On> by(infty::tests::uniform_tensor<T, On>({2, 2, 3, 30}, random));
    folded.grad().fill(T(0.5));  // what is there is added to
    infty::Tape tape;
    tape.backward(infty::sum(infty::affine_density(q, folded, 3, T(0.7)) * by));
    auto all = q.grad().to_vector();
    for (const T g : folded.grad().to_vector()) all.push_back(g);
    return all;
  };
  CHECK(infty::tests::error(gradients(std::type_identity<B>{}),
                            gradients(std::type_identity<infty::EigenBackend>{})) <
        infty::tests::tolerance<T>);
}

TEMPLATE_LIST_TEST_CASE("affine_density: mu in [0, 1] and sigma² >= floor whatever comes", "",
                        infty::tests::Types) {
  using T = typename TestType::T;
  using B = typename TestType::B;
  for (const double size : {1e-44, 1e-20, 1.0, 1e5, 1e30}) {
    Random random(infty::tests::seed);
    const auto q = uniform_variable<T, B>({2, 20, 4}, random, -size, size);
    const auto folded = uniform_variable<T, B>({2, 2, 4}, random);
    infty::Tape tape;
    const auto y = infty::affine_density(q, folded, 2, T(1e-6));
    const auto of = y.value().to_vector();
    for (std::size_t i = 0; i < 80; ++i) {
      const T mu = of[i], var = of[80 + i];
      CHECK((mu >= 0 && mu <= 1));
      CHECK((var >= T(1e-6) && std::isfinite(var)));
    }
    tape.backward(infty::sum(y));
    for (const T g : q.grad().to_vector()) CHECK(std::isfinite(g));
    for (const T g : folded.grad().to_vector()) CHECK(std::isfinite(g));
  }
}

TEST_CASE("moment_density: mean and variance of the mixture, by hand") {
  // Two functions at 0 and 1 of width .5; scores log 3 and 0 weigh them 3/4 and 1/4.
  const infty::GaussianBasis<double> psi(2, {.5});
  const Variable<double> q(Tensor<double>::from({1, 1, 1}, {1}));
  const Variable<double> keys(Tensor<double>::from({1, 2, 1}, {std::log(3.0), 0}));
  const auto y = infty::moment_density(q, keys, psi, 1).value().to_vector();
  CHECK(y[0] == Approx(0.25));
  CHECK(y[1] == Approx(0.25 + 3.0 / 16));
}

TEST_CASE("moment_density: gradients") {
  Random random(infty::tests::seed);
  const infty::GaussianBasis<double> psi(6, {.05, .3});
  const auto q = uniform_variable<double>({2, 5, 4}, random, -3, 3);
  const auto keys = uniform_variable<double>({2, 6, 4}, random);
  const Variable<double> by(infty::tests::uniform_tensor<double>({2, 2, 2, 5}, random));
  const auto loss = [&] { return infty::sum(infty::moment_density(q, keys, psi, 2) * by); };
  CHECK(infty::gradient_check(loss, std::vector{q, keys}) < 1e-8);
}

TEMPLATE_LIST_TEST_CASE("moment_density: the variance is never below the narrowest width's", "",
                        infty::tests::Types) {
  using T = typename TestType::T;
  using B = typename TestType::B;
  const infty::GaussianBasis<T> psi(32, {.01});
  for (const double size : {1e-30, 1.0, 1e3, 1e15}) {
    Random random(infty::tests::seed);
    const auto q = uniform_variable<T, B>({1, 50, 4}, random, -size, size);
    const auto keys = uniform_variable<T, B>({1, 32, 4}, random, -size, size);
    const auto y = infty::moment_density(q, keys, psi, 1).value().to_vector();
    for (std::size_t i = 0; i < 50; ++i) {
      const double mu = static_cast<double>(y[i]);
      CHECK((mu >= -1e-6 && mu <= 1 + 1e-6));
      CHECK(static_cast<double>(y[50 + i]) >= 1e-4 * (1 - infty::tests::tolerance<T>));
    }
  }
}

TEST_CASE("kl: by hand, zero for the prior itself, and its gradient") {
  const auto density = [](std::vector<double> var) {
    auto both = std::vector<double>(var.size(), .5);
    both.insert(both.end(), var.begin(), var.end());
    const auto n = static_cast<Index>(var.size());
    return Variable<double>(Tensor<double>::from({2, 1, 1, n}, both), true);
  };
  const auto x = density({.04, .08, .01, 1e-6, 50});
  const auto y = infty::kl(x, .2);
  CHECK(y.shape() == Shape{1, 1, 5});
  const auto d = y.value().to_vector();
  CHECK(std::abs(d[0]) < 1e-15);
  CHECK(d[1] == Approx(.5 * (2 - std::log(2.0) - 1)));
  CHECK(d[2] == Approx(.5 * (.25 + std::log(4.0) - 1)));
  for (const double v : d) CHECK(v >= -1e-15);
  const auto mild = density({.04, .08, .3, 2});
  const auto loss = [&] { return infty::sum(infty::kl(mild, .2)); };
  CHECK(infty::gradient_check(loss, std::vector{mild}) < 1e-7);
}

namespace {

/// A density whose divergence depends on its place, as it does where a density ends at 0 and 1.
struct Placed {
  static double pdf(double, double, double) { return 0; }
  static double mass(double, double, double, double) { return 0; }
  template <class T>
  INFTY_HOST_DEVICE static infty::Expectation<T> divergence(T mu, T var, T sigma0) {
    return {mu * mu * var / sigma0, 2 * mu * var / sigma0, mu * mu / sigma0};
  }
};

}  // namespace

TEMPLATE_LIST_TEST_CASE("divergence: each density's own, value and gradient", "",
                        infty::tests::Types) {
  using T = typename TestType::T;
  using B = typename TestType::B;
  const auto check = [&]<class D>(std::type_identity<D>) {
    Random random(infty::tests::seed);
    auto x = infty::tests::uniform_variable<T, B>({2, 2, 3, 5}, random, .1, .9);
    const auto by = infty::tests::uniform_tensor<T, B>({2, 3, 5}, random);
    infty::Tape tape;
    const auto y = infty::divergence<D>(x, T(.3));
    CHECK(y.shape() == Shape{2, 3, 5});
    tape.backward(infty::sum(y * Variable<T, B>(by)));
    const auto in = x.value().to_vector(), out = y.value().to_vector(), d = by.to_vector(),
               grad = x.grad().to_vector();
    for (std::size_t i = 0; i < 30; ++i) {
      const auto at = D::divergence(static_cast<double>(in[i]), static_cast<double>(in[30 + i]),
                                    static_cast<double>(T(.3)));
      const double scale = 1 + std::abs(at.value) + std::abs(at.d_var) + std::abs(at.d_mu),
                   weight = static_cast<double>(d[i]);
      CHECK(std::abs(static_cast<double>(out[i]) - at.value) < infty::tests::tolerance<T> * scale);
      CHECK(std::abs(static_cast<double>(grad[i]) - weight * at.d_mu) <
            infty::tests::tolerance<T> * scale);
      CHECK(std::abs(static_cast<double>(grad[30 + i]) - weight * at.d_var) <
            infty::tests::tolerance<T> * scale);
    }
  };
  check(std::type_identity<infty::GaussianDensity>{});
  check(std::type_identity<infty::TruncatedParabola>{});
  check(std::type_identity<Placed>{});
}

TEMPLATE_LIST_TEST_CASE("mean_divergence: by hand, value and gradient", "", infty::tests::Types) {
  using T = typename TestType::T;
  using B = typename TestType::B;
  const Variable<T, B> x(Tensor<T, B>::from(Shape{2, 1, 1, 2}, {T(.25), T(.75), T(.1), T(.2)}),
                         true);
  infty::Tape tape;
  const auto y = infty::mean_divergence(x, T(-1), T(.5));
  CHECK(y.shape() == Shape{1, 1, 2});
  CHECK(infty::tests::error(y.value().to_vector(), std::vector{3.125, 6.125}) <
        infty::tests::tolerance<T>);
  tape.backward(infty::sum(y));
  CHECK(infty::tests::error(x.grad().to_vector(), std::vector{5., 7., 0., 0.}) <
        infty::tests::tolerance<T>);
}

TEST_CASE("divergence: gradients of each density's own") {
  Random random(infty::tests::seed);
  auto x = infty::tests::uniform_variable<double>({2, 1, 2, 4}, random, .1, .9);
  const auto inputs = std::vector<Variable<double>>{x};
  CHECK(infty::gradient_check(
            [&] { return infty::sum(infty::divergence<infty::TruncatedParabola>(x, .2)); },
            inputs) < 1e-7);
  CHECK(infty::gradient_check([&] { return infty::sum(infty::divergence<Placed>(x, .2)); },
                              inputs) < 1e-7);
}

TEST_CASE("densities: shapes that do not fit") {
  const auto zeros = [](Shape shape) { return Variable<float>(Tensor<float>::zeros(shape)); };
  CHECK_THROWS_WITH(infty::affine_density(zeros({1, 2, 4}), zeros({1, 2, 6}), 2, 1e-6f),
                    "[affine_density] queries are [1, 2, 4], keys [1, 2, 6], heads 2: they must "
                    "be [B, Q, HD] and [B, 2, HD]");
  CHECK_THROWS_AS(infty::affine_density(zeros({1, 2, 4}), zeros({1, 2, 4}), 3, 1e-6f),
                  infty::ShapeError);
  CHECK_THROWS_AS(infty::affine_density(zeros({1, 2, 4}), zeros({1, 2, 4}), 0, 1e-6f),
                  infty::ShapeError);
  const infty::GaussianBasis<float> psi(3, {.1});
  CHECK_THROWS_WITH(infty::moment_density(zeros({1, 2, 4}), zeros({1, 2, 4}), psi, 2),
                    "[moment_density] queries are [1, 2, 4], keys [1, 2, 4], heads 2: they must be "
                    "[B, Q, HD] and [B, N, HD], N = 3");
  CHECK_THROWS_WITH(infty::kl(zeros({3, 1, 1, 1}), 1.0f),
                    "[divergence] density is [3, 1, 1, 1]: it must be [2, B, H, Q]");
}
