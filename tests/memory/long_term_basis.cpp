// SPDX-License-Identifier: MIT
#include <algorithm>
#include <cmath>
#include <map>
#include <type_traits>
#include <vector>

#include <infty/autograd/elementwise.hpp>
#include <infty/autograd/parameters.hpp>
#include <infty/memory/long_term_memory.hpp>
#include <infty/memory/stability.hpp>
#include <infty/memory/to.hpp>
#include <infty/signal/fourier_basis.hpp>
#include <infty/signal/power_basis.hpp>
#include <infty/signal/rectangular_basis.hpp>
#include <infty/signal/truncated_parabola.hpp>
#include <infty/testing/gradient_check.hpp>

#include "memory/long_term.hpp"
#include "support/catch.hpp"
#include "support/other_backend.hpp"
#include "support/states.hpp"
#include "support/tensors.hpp"
#include "support/types.hpp"

using infty::FourierBasis;
using infty::GaussianBasis;
using infty::GaussianDensity;
using infty::Index;
using infty::LongTermConfig;
using infty::LongTermMemory;
using infty::PowerBasis;
using infty::Random;
using infty::RectangularBasis;
using infty::Resampling;
using infty::Shape;
using infty::Tensor;
using infty::TruncatedParabola;
using infty::Variable;
using infty::tests::numbers_of;
using infty::tests::small_config;
using infty::tests::uniform_tensor;
using infty::tests::uniform_variable;

namespace {

/// Calls f with a value of each basis of the library.
template <class T, class F>
void for_each_basis(const F& f) {
  f(std::type_identity<GaussianBasis<T>>{});
  f(std::type_identity<FourierBasis<T>>{});
  f(std::type_identity<PowerBasis<T>>{});
  f(std::type_identity<RectangularBasis<T>>{});
}

/// Powers of a t that is stretched, to show constants of a basis's own.
template <class T>
struct Stretched {
  using Scalar = T;
  struct Config {
    double stretch = 1;
  };

  Index n;
  T stretch;

  Stretched(Index count, const Config& config) : n(count), stretch(static_cast<T>(config.stretch)) {
    infty::require(config.stretch > 0, "Stretched", "stretch is ", config.stretch,
                   ": it must be positive");
  }

  INFTY_HOST_DEVICE Index size() const { return n; }
  INFTY_HOST_DEVICE T operator()(Index j, T t) const { return std::pow(stretch * t, T(j)); }
  INFTY_HOST_DEVICE infty::Expectation<T> gaussian_expectation(Index j, T mu, T var) const {
    const auto e = PowerBasis<T>(n).gaussian_expectation(j, stretch * mu, stretch * stretch * var);
    return {e.value, stretch * e.d_mu, stretch * stretch * e.d_var};
  }
};

}  // namespace

TEST_CASE("basis_of: what the configuration says, by what a basis is made of") {
  const LongTermConfig config{.basis = 8, .widths = {.1, .2}};
  CHECK(infty::basis_of<GaussianBasis<float>>(config).widths() == 2);
  CHECK(infty::basis_of<PowerBasis<double>>(config).size() == 8);
  CHECK(infty::basis_of<RectangularBasis<double>>(config)(7, 1.) == 1);
  const infty::LongTermConfigWith<Stretched<double>::Config> own{config, {.stretch = 2}};
  CHECK(infty::basis_of<Stretched<double>>(own)(1, 3.) == 6);
  STATIC_REQUIRE(std::is_same_v<infty::LongTermConfigFor<FourierBasis<float>>, LongTermConfig>);
  STATIC_REQUIRE(infty::ConfiguredBasis<Stretched<float>>);
}

TEST_CASE("LongTermMemory: a basis with constants of its own") {
  using Memory = LongTermMemory<double, GaussianDensity, Stretched<double>>;
  Memory::Config config{small_config(), {.stretch = .5}};
  const Memory memory(config, Random(1));
  CHECK(memory.basis().stretch == .5);
  CHECK(memory.config().of_basis.stretch == .5);
  CHECK(memory.sibling(Random(2)).basis().stretch == .5);
  config.of_basis.stretch = -1;
  CHECK_THROWS_WITH(Memory(config), "[Stretched] stretch is -1: it must be positive");
  // It is the powers, otherwise counted.
  Random random(infty::tests::seed);
  auto state = memory.make_state(1);
  memory.write(state, uniform_tensor<double>({1, 9, 4}, random));
  const auto z = memory.read(state, uniform_tensor<double>({1, 3, 6}, random));
  CHECK(z.shape() == Shape{1, 3, 4});
}

TEST_CASE("LongTermMemory: moments are refused for a basis that has none") {
  auto config = small_config();
  config.parameters = infty::DensityParameters::moments;
  CHECK_THROWS_WITH((LongTermMemory<float, GaussianDensity, FourierBasis<float>>(config)),
                    "[LongTermMemory] parameters is moments: the basis has no centres and widths "
                    "to make them of");
  CHECK_NOTHROW(LongTermMemory<float, GaussianDensity, RectangularBasis<float>>(config));
  STATIC_REQUIRE(infty::CentredBasis<RectangularBasis<float>>);
  STATIC_REQUIRE_FALSE(infty::CentredBasis<PowerBasis<float>>);
}

TEMPLATE_LIST_TEST_CASE("LongTermMemory: any basis reads the expectation of its signal", "",
                        infty::tests::Types) {
  using T = typename TestType::T;
  using B = typename TestType::B;
  for_each_basis<T>([]<class Psi>(std::type_identity<Psi>) {
    auto config = small_config();
    config.gate = false;
    LongTermMemory<T, GaussianDensity, Psi, B> memory(config, Random(1));
    Random random(infty::tests::seed);
    auto state = memory.make_state(2);
    for (const Index length : {7, 7, 3})
      memory.write(state, uniform_tensor<T, B>({2, length, 4}, random));
    const auto q = uniform_tensor<T, B>({2, 3, 6}, random, -3, 3);
    const auto reading = memory.attend(state, q);
    // out (value (sum over j of E[psi_j] B_j)), head by head, in plain loops.
    const auto C = state.coefficients.value().to_vector(),
               density = reading.density.value().to_vector(),
               value = memory.value.weight.value().to_vector(),
               out = memory.out.weight.value().to_vector(),
               got = reading.context.value().to_vector();
    const Psi psi = memory.basis();
    for (std::size_t row = 0; row < 2; ++row)
      for (std::size_t query = 0; query < 3; ++query) {
        std::vector<double> want(4, 0);
        for (std::size_t head = 0; head < 2; ++head) {
          const std::size_t at = (row * 2 + head) * 3 + query;
          for (Index j = 0; j < 8; ++j) {
            const auto e = static_cast<double>(
                psi.gaussian_expectation(j, density[at], density[12 + at]).value);
            for (std::size_t c = 0; c < 4; ++c)
              for (std::size_t k = 0; k < 3; ++k)
                for (std::size_t i = 0; i < 4; ++i)
                  want[i] +=
                      e * static_cast<double>(C[(row * 8 + static_cast<std::size_t>(j)) * 4 + c]) *
                      static_cast<double>(value[(head * 3 + k) * 4 + c]) *
                      static_cast<double>(out[i * 6 + head * 3 + k]);
          }
        }
        for (std::size_t i = 0; i < 4; ++i)
          CHECK(std::fabs(static_cast<double>(got[(row * 3 + query) * 4 + i]) - want[i]) <
                50 * infty::tests::tolerance<T>);
      }
  });
}

TEST_CASE("LongTermMemory: gradients of a write and a read, over every basis and density") {
  for_each_basis<double>([]<class Psi>(std::type_identity<Psi>) {
    const auto check = []<class Density>(std::type_identity<Density>, LongTermConfig config) {
      config.sigma0 = .3;
      Random random(infty::tests::seed), wide(4);
      LongTermMemory<double, Density, Psi> memory(config, Random(3));
      if (memory.density_weight.size() > 0)
        infty::fill_uniform(memory.density_weight.value(), -2, 2, wide);
      auto before = memory.make_state(2);
      memory.write(before, uniform_tensor<double>({2, 7, 4}, random));
      const auto x = uniform_variable<double>({2, 3, 4}, random);
      const auto q = uniform_variable<double>({2, 2, 6}, random);
      const Variable<double> by(uniform_tensor<double>({2, 2, 4}, random));
      const auto loss = [&] {
        auto state = before;
        memory.write(state, x);
        const auto reading = memory.attend(state, q);
        return infty::sum(reading.context * by) +
               infty::sum(memory.divergence(reading.density), .01);
      };
      auto inputs = infty::parameters<double>(memory);
      inputs.push_back(x);
      inputs.push_back(q);
      CHECK(infty::gradient_check(loss, inputs) < 1e-6);
    };
    check(std::type_identity<GaussianDensity>{}, small_config());
    check(std::type_identity<TruncatedParabola>{}, small_config());
    auto sticky = small_config();
    sticky.resampling = Resampling::sticky_quantiles;
    check(std::type_identity<GaussianDensity>{}, sticky);
    if constexpr (infty::CentredBasis<Psi>) {
      auto moments = small_config();
      moments.parameters = infty::DensityParameters::moments;
      check(std::type_identity<GaussianDensity>{}, moments);
    }
  });
}

TEST_CASE("LongTermMemory: over any basis the signal stays within the bound of docs/stability.md") {
  for_each_basis<float>([]<class Psi>(std::type_identity<Psi>) {
    using Exact = decltype(std::declval<Psi>().template cast<double>());
    for (const auto resampling : {Resampling::even, Resampling::sticky}) {
      LongTermConfig config{.model_dim = 2,
                            .heads = 1,
                            .basis = 16,
                            .widths = {.02, .1},
                            .samples = 24,
                            .tau = .8,
                            .ridge = .1,
                            .gate = false,
                            .resampling = resampling};
      const LongTermMemory<float, GaussianDensity, Psi> memory(config);
      std::vector<float> places;
      for (const double t : infty::detail::probe_places(memory.basis().template cast<double>()))
        places.push_back(static_cast<float>(t));
      const auto at = Tensor<float>::from({std::ssize(places)}, places);
      Random random(infty::tests::seed);
      auto state = memory.make_state(1);
      std::map<Index, decltype(infty::stability<Exact>(config, 1))> bounds;  // by length
      for (int i = 0; i < 120; ++i) {
        // Runs of equal lengths, single vectors and all kinds, from the corners of the cube.
        const Index length = i < 40 ? 20 : i < 80 ? 1 : 1 + random.below(30);
        Tensor<float> x({1, length, 2});
        for (Index k = 0; k < x.size(); ++k) x.data()[k] = random.uniform() < .5 ? -1.f : 1.f;
        if (i % 3 == 0)
          memory.write_at(state, x, {length}, uniform_tensor<float>({1, 24}, random, 0, 1));
        else
          memory.write(state, x);
        memory.read(state, uniform_tensor<float>({1, 2, 2}, random, -3, 3));
        if (!bounds.contains(length))
          bounds.emplace(length, infty::stability<Exact>(config, length));
        const auto& s = bounds.at(length);
        // A fit is found to within a hundredth; behind writes at other places its own bound holds.
        double most = 0;
        for (const float v : resample(memory.basis(), state.coefficients.value(), at).to_vector())
          most = std::max(most, std::fabs(static_cast<double>(v)));
        CAPTURE(i, length, s.lebesgue, s.bound, most);
        REQUIRE(s.lebesgue <= infty::most_lebesgue);
        REQUIRE(most <= 1.01 * s.bound);
      }
    }
  });
}

TEST_CASE("retention and stability: of any basis") {
  const LongTermConfig config{.basis = 16, .widths = {.1}, .samples = 32, .ridge = .1};
  for_each_basis<double>([&]<class Psi>(std::type_identity<Psi>) {
    const auto shares = infty::retention<Psi>(config, std::vector<Index>{16, 16, 16});
    CHECK(shares[0] == 1);
    CHECK((0 < shares[2] && shares[2] < shares[1] && shares[1] < 1));
    CHECK(infty::stability<Psi>(config, 16).bound <= infty::most_run);
    CHECK(infty::stability<Psi>(config, 16).radius < 1.01);
  });
}

TEST_CASE("LongTermMemory: over another basis it moves between backends") {
  using infty::tests::OtherBackend;
  using Memory = LongTermMemory<float, TruncatedParabola, FourierBasis<float>>;
  const Memory memory(small_config(), Random(3));
  Random random(1);
  auto state = memory.make_state(2);
  memory.write(state, uniform_tensor<float>({2, 5, 4}, random));
  const auto other = infty::to<OtherBackend>(memory);
  STATIC_REQUIRE(
      std::is_same_v<std::remove_const_t<decltype(other)>,
                     LongTermMemory<float, TruncatedParabola, FourierBasis<float>, OtherBackend>>);
  auto moved = infty::to<OtherBackend>(state);
  const auto x = uniform_variable<float>({2, 4, 4}, random);
  memory.write(state, x);
  other.write(moved, x.to<OtherBackend>());
  CHECK(numbers_of(moved) == numbers_of(state));
}
