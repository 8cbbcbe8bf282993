// SPDX-License-Identifier: MIT
#include <algorithm>
#include <cmath>

#include <infty/autograd/reduce.hpp>
#include <infty/core/random.hpp>
#include <infty/memory/infty_memory.hpp>
#include <infty/signal/basis.hpp>
#include <infty/signal/density.hpp>
#include <infty/testing/gradient_check.hpp>

#include "support/catch.hpp"

using infty::Index;

/// The uniform density on [mu - h, mu + h] of variance var = h² / 3.
struct Uniform {
  template <class T>
  INFTY_HOST_DEVICE static T half(T var) {
    return std::sqrt(3 * var);
  }

  /// p(t) and the probability of [a, b]: all that a `Density` is.
  template <class T>
  INFTY_HOST_DEVICE static T pdf(T t, T mu, T var) {
    return std::fabs(t - mu) <= half(var) ? 1 / (2 * half(var)) : T(0);
  }
  template <class T>
  INFTY_HOST_DEVICE static T mass(T a, T b, T mu, T var) {
    const T from = std::fmax(a, mu - half(var)), to = std::fmin(b, mu + half(var));
    return std::fmax(to - from, T(0)) / (2 * half(var));
  }

  /// KL from N(mu, sigma0²) and its gradient, for the regulariser: a `DensityWithPrior`.
  template <class T>
  INFTY_HOST_DEVICE static infty::Expectation<T> divergence(T, T var, T sigma0) {
    const T ratio = var / (sigma0 * sigma0);
    return {std::log(sigma0 / half(var)) + T(0.22579135264472744) + ratio / 2, T(0),
            (ratio - 1) / (2 * var)};
  }

  /// E[psi_j] and its gradient, for every basis that can be integrated and evaluated.
  template <infty::IntegrableBasis Psi, class T = typename Psi::Scalar>
  INFTY_HOST_DEVICE static infty::Expectation<T> expectation_gradient(const Psi& psi, Index j, T mu,
                                                                      T var) {
    const T h = half(var), low = psi(j, mu - h), high = psi(j, mu + h);
    const T mean = psi.integrals(j, mu - h, mu + h, mu).zeroth / (2 * h);
    return {mean, (high - low) / (2 * h), ((high + low) / 2 - mean) / (2 * var)};
  }
};

static_assert(infty::DensityWithPrior<Uniform>);
static_assert(infty::DensityOver<Uniform, infty::GaussianBasis<float>>);

template <class T, class B = infty::EigenBackend>
using EvenMemory = infty::WithMemory<infty::ShortTermMemory<T, B>,
                                     infty::LongTermMemory<T, Uniform, infty::GaussianBasis<T>, B>>;

static_assert(infty::SequenceLayer<EvenMemory<double>>);  // TransformerLM<EvenMemory<double>>

TEST_CASE("docs: a density of one's own reads the long-term memory") {
  using V = infty::Variable<double>;
  infty::Random random(1);
  V x(infty::Tensor<double>({1, 12, 4})), queries(infty::Tensor<double>({1, 3, 4}));
  fill_uniform(x.value(), -1., 1., random);
  fill_uniform(queries.value(), -1., 1., random);

  infty::LongTermMemory<double, Uniform> memory(
      {.model_dim = 4, .heads = 2, .basis = 8, .widths = {.1}, .samples = 16}, infty::Random(1));
  const auto read = [&] {
    auto state = memory.make_state(1);
    memory.write(state, x);
    return sum(memory.read(state, queries));
  };

  CHECK(gradient_check(read, std::vector<V>{x, queries}) < 1e-8);

  auto state = memory.make_state(1);
  const auto reading = memory.attend(state, queries);
  const auto far = memory.divergence(reading.density).value().to_vector();
  const auto parameters = reading.density.value().to_vector();
  for (std::size_t i = 0; i < far.size(); ++i) {
    // The sum of p log(p / prior) over a fine grid.
    const double var = parameters[far.size() + i], h = Uniform::half(var), sigma0 = .05;
    double sum = 0;
    for (int k = 0; k < 1000; ++k) {
      const double u = h * ((k + .5) / 500 - 1);
      sum += (std::log(1 / (2 * h)) -
              std::log(infty::GaussianDensity::pdf(u, 0., sigma0 * sigma0) + 1e-300)) /
             1000;
    }
    if (h < .5) CHECK(far[i] == Approx(sum).epsilon(1e-4));
    CHECK(far[i] > 0);
  }
}
