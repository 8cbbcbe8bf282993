// SPDX-License-Identifier: MIT
#include <cmath>

#include <infty/autograd/reduce.hpp>
#include <infty/core/random.hpp>
#include <infty/memory/infty_memory.hpp>
#include <infty/memory/stability.hpp>
#include <infty/model/transformer_lm.hpp>
#include <infty/signal/basis.hpp>
#include <infty/testing/gradient_check.hpp>

#include "support/catch.hpp"

using infty::Index;

/// N hats, the piecewise linear functions between N places, evenly from 0 to 1.
template <class T>
struct Hats {
  using Scalar = T;
  Index n;

  INFTY_HOST_DEVICE Index size() const { return n; }
  INFTY_HOST_DEVICE T step() const { return 1 / T(n - 1); }
  INFTY_HOST_DEVICE T place(Index j) const { return T(j) / T(n - 1); }

  /// psi_j(t): all that a `Basis` is.
  INFTY_HOST_DEVICE T operator()(Index j, T t) const {
    return std::fmax(T(0), 1 - std::fabs(t - place(j)) / step());
  }

  /// The same functions in another scalar: ridge matrices are solved in double.
  template <class U>
  Hats<U> cast() const {
    return {n};
  }

  /// E[psi_j] under N(mu, var) and its gradient: makes it a basis for `GaussianDensity`. A hat is
  /// made of three ramps, and that of a ramp is E[max(t - c, 0)] = s phi(z) + (mu - c) Phi(z).
  INFTY_HOST_DEVICE infty::Expectation<T> gaussian_expectation(Index j, T mu, T var) const {
    infty::Expectation<T> sum{0, 0, 0};
    for (int k = -1; k <= 1; ++k) {
      const T s = std::sqrt(var), z = (mu - place(j)) / s - T(k) * step() / s;
      const T phi = std::exp(-z * z / 2) / std::sqrt(T(6.283185307179586)),
              below = std::erfc(-z / std::sqrt(T(2))) / 2, weight = T(k == 0 ? -2 : 1) / step();
      sum.value += weight * s * (phi + z * below);
      sum.d_mu += weight * below;
      sum.d_var += weight * phi / (2 * s);
    }
    return sum;
  }
};

static_assert(infty::ConfiguredBasis<Hats<float>>);
static_assert(infty::DensityOver<infty::GaussianDensity, Hats<float>>);

template <class T, class B = infty::EigenBackend>
using HatsMemory = infty::WithMemory<infty::ShortTermMemory<T, B>,
                                     infty::LongTermMemory<T, infty::GaussianDensity, Hats<T>, B>>;

static_assert(infty::SequenceLayer<HatsMemory<double>>);

TEST_CASE("docs: a basis of one's own is written and read") {
  using V = infty::Variable<double>;
  infty::Random random(1);
  V x(infty::Tensor<double>({1, 12, 4})), queries(infty::Tensor<double>({1, 3, 4}));
  fill_uniform(x.value(), -1., 1., random);
  fill_uniform(queries.value(), -1., 1., random);

  infty::LongTermMemory<double, infty::GaussianDensity, Hats<double>> memory(
      {.model_dim = 4, .heads = 2, .basis = 9, .samples = 16}, infty::Random(1));
  const auto read = [&] {
    auto state = memory.make_state(1);
    memory.write(state, x);
    memory.write(state, x);
    return sum(memory.read(state, queries));
  };

  CHECK(gradient_check(read, std::vector<V>{queries}) < 1e-8);
  CHECK(infty::stability<Hats<double>>(memory.config(), 12).bound <= infty::most_run);
}

TEST_CASE("docs: the expectations of the basis are sums over a fine grid") {
  const Hats<double> psi{9};
  for (Index j = 0; j < 9; ++j) {
    double sum = 0;
    for (int i = -20000; i < 30000; ++i) {
      const double t = (i + .5) / 10000;
      sum += psi(j, t) * infty::GaussianDensity::pdf(t, .4, .03) / 10000;
    }
    CHECK(psi.gaussian_expectation(j, .4, .03).value == Approx(sum).epsilon(1e-6));
  }
}

TEST_CASE("docs: a model remembers by a basis of one's own") {
  infty::TransformerLM<HatsMemory<float>> model(
      {.vocabulary = 7, .model_dim = 8, .layers = 2, .heads = 2, .feed_forward = 16},
      {.attention = {.capacity = 4}, .memory = infty::LongTermConfig{.basis = 9, .samples = 16}},
      infty::Random(1));

  const auto tokens = infty::Tensor<Index>::from({1, 5}, {0, 1, 2, 3, 4});
  auto state = model.make_state(1);
  for (int i = 0; i < 3; ++i)
    CHECK(infty::detail::all_finite(model.forward(state, tokens).value()));
}
