// SPDX-License-Identifier: MIT
#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <string>
#include <vector>

#include <infty/core/random.hpp>
#include <infty/signal/bins.hpp>
#include <infty/signal/contraction.hpp>
#include <infty/signal/truncated_parabola.hpp>

#include "signal/golden.hpp"
#include "support/catch.hpp"
#include "support/tensors.hpp"
#include "support/types.hpp"

using namespace infty;
using namespace infty::tests;
using Catch::Matchers::Contains;

TEMPLATE_LIST_TEST_CASE("bin_probability: the recorded probabilities", "", Types) {
  using T = typename TestType::T;
  using B = typename TestType::B;
  const LtmCase golden("sticky");
  for (Index step = 1; step < golden.count("steps"); ++step) {
    const std::string at = "step" + std::to_string(step) + ".sticky.";
    const auto p = bin_probability(golden.file.tensor<T, B>(at + "mu"),
                                   golden.file.tensor<T, B>(at + "sigma"), golden.count("bins"));
    CHECK(relative_error(p.to_vector(), golden.file.read<double>(at + "probability")) <=
          (std::is_same_v<T, float> ? 1e-5 : 1e-12));
  }
}

TEMPLATE_LIST_TEST_CASE("bin_probability: two bins done by hand", "", Types) {
  using T = typename TestType::T;
  using B = typename TestType::B;
  // A standard deviation of a quarter about 1/4: the edges 0, 1/2, 1 stand at -1, 1 and 3.
  const auto p = bin_probability(Tensor<T, B>::from({1, 1}, {T(0.25)}),
                                 Tensor<T, B>::from({1, 1}, {T(0.25)}), 2)
                     .to_vector();
  const double first = 0.6826894921370859, second = 0.15865525393145707 - 0.0013498980316300957;
  CHECK(p[0] == Approx(first / (first + second)).epsilon(1e-5));
  CHECK(p[1] == Approx(second / (first + second)).epsilon(2e-5));
}

TEMPLATE_LIST_TEST_CASE("bin_probability: rows are probabilities, however narrow or far", "",
                        Types) {
  using T = typename TestType::T;
  using B = typename TestType::B;
  const auto mu = Tensor<T, B>::from(
      {5, 2}, {T(0.5), T(0.51), T(-2), T(-3), T(1e4), T(1e4), T(0), T(1), T(0.3), T(0.3)});
  const auto sigma = Tensor<T, B>::from(
      {5, 2}, {T(1e-4), T(1e-4), T(0.2), T(0.3), T(0.1), T(0.2), T(1e-3), T(1e-3), T(10), T(10)});
  for (const Index bins : {1, 7, 128}) {
    const auto p = bin_probability(mu, sigma, bins).to_vector();
    for (Index row = 0; row < 5; ++row) {
      double sum = 0;
      for (Index bin = 0; bin < bins; ++bin) {
        const double q = p[static_cast<std::size_t>(row * bins + bin)];
        CHECK(q >= 0);
        sum += q;
      }
      CHECK(sum == Approx(1).epsilon(1e-5));
    }
  }
  const auto p = bin_probability(mu, sigma, 10).to_vector();
  CHECK(p[10] > 0.9);  // -2 and -3: their tail in [0, 1] lies at 0, and is not lost
  for (std::size_t bin = 20; bin < 30; ++bin) CHECK(p[bin] == Approx(0.1));  // nothing is left
  // At 0 and 1, a standard deviation of 1e-3: half of each lies within, and 1e-6 more.
  CHECK(p[30] == Approx(0.5).epsilon(1e-4));
  CHECK(p[39] == Approx(0.5).epsilon(1e-4));
}

TEST_CASE("bin_probability: every bin of one density is its mass, by erf and by series") {
  Random random(seed);
  for (int i = 0; i < 300; ++i) {
    const Index bins = 1 + random.below(200);
    const double mu = 2 * random.uniform() - 0.5;
    const double sigma = 1e-2 * std::pow(1e4, random.uniform());
    const auto p =
        bin_probability(Tensor<double>::full({1, 1}, mu), Tensor<double>::full({1, 1}, sigma), bins)
            .to_vector();
    const double all = GaussianDensity::mass(-1e-6, 1 + 1e-6, mu, sigma * sigma);
    for (Index bin = 0; bin < bins; ++bin) {
      const double low = bin == 0 ? -1e-6 : static_cast<double>(bin) / static_cast<double>(bins);
      const double high =
          bin + 1 == bins ? 1 + 1e-6 : static_cast<double>(bin + 1) / static_cast<double>(bins);
      const double mass = GaussianDensity::mass(low, high, mu, sigma * sigma);
      // A difference of erf has an error of 1e-16, a bin of a wide density is 1e-5.
      CHECK(p[static_cast<std::size_t>(bin)] * all == Approx(mass).epsilon(1e-10).margin(1e-15));
    }
  }
}

TEST_CASE("bin_probability: bins of a wide density have their digits in float, at the ends, too") {
  Random random(seed);
  for (int i = 0; i < 300; ++i) {
    const Index bins = 1 + random.below(200);
    const double sigma = 4 * std::pow(10, 6 * random.uniform());
    const double mu = (6 * random.uniform() - 3) * sigma;
    CAPTURE(bins, mu, sigma);
    // As float has them.
    const auto m = static_cast<float>(mu), s = static_cast<float>(sigma);
    const auto p =
        bin_probability(Tensor<float>::full({1, 1}, m), Tensor<float>::full({1, 1}, s), bins)
            .to_vector();
    const auto exact =
        bin_probability(Tensor<double>::full({1, 1}, m), Tensor<double>::full({1, 1}, s), bins)
            .to_vector();
    for (std::size_t bin = 0; bin < p.size(); ++bin)
      CHECK(p[bin] == Approx(exact[bin]).epsilon(1e-5));
  }
}

TEST_CASE("bin_probability: far densities keep the ratio of their bins") {
  // phi falls so steeply 50 widths away that the nearer bin has all, to the digit.
  const auto p =
      bin_probability(Tensor<double>::full({1, 1}, -2.0), Tensor<double>::full({1, 1}, 0.1), 2)
          .to_vector();
  const double near = std::erfc((2 - 1e-6) / 0.1 / std::sqrt(2.0));
  const double far = std::erfc(2.5 / 0.1 / std::sqrt(2.0));
  CHECK(p[1] == Approx(far / near).epsilon(1e-9));
}

TEMPLATE_LIST_TEST_CASE("bin_probability: many densities are the mean of each", "", Types) {
  using T = typename TestType::T;
  using B = typename TestType::B;
  Random random(seed);
  const Index n = 1000, bins = 50;
  const auto mu = uniform_tensor<T, B>({1, n}, random, 0, 1);
  const auto sigma = uniform_tensor<T, B>({1, n}, random, 0.02, 0.5);
  const auto all = bin_probability(mu, sigma, bins).to_vector();
  std::vector<double> sum(static_cast<std::size_t>(bins));
  const auto m = mu.to_vector(), s = sigma.to_vector();
  for (std::size_t k = 0; k < m.size(); ++k)
    for (Index bin = 0; bin < bins; ++bin) {
      const double low = static_cast<double>(bin) / 50, high = static_cast<double>(bin + 1) / 50;
      const double to_left = bin == 0 ? 1e-6 : 0, to_right = bin + 1 == bins ? 1e-6 : 0;
      const auto mean = static_cast<double>(m[k]), deviation = static_cast<double>(s[k]);
      sum[static_cast<std::size_t>(bin)] +=
          GaussianDensity::mass(low - to_left, high + to_right, mean, deviation * deviation);
    }
  const double total = std::accumulate(sum.begin(), sum.end(), 0.0);
  for (double& x : sum) x /= total;
  CHECK(relative_error(all, sum) <= tolerance<T>);
}

TEST_CASE("bin_probability: the truncated parabola's bins") {
  // Half width 1/4 about 1/2: all of it lies in the middle two of four bins.
  const double h = 0.25, sigma = std::sqrt(2 * h * h * h / 3);
  const auto p = bin_probability<TruncatedParabola>(Tensor<double>::full({1, 1}, 0.5),
                                                    Tensor<double>::full({1, 1}, sigma), 4)
                     .to_vector();
  const double expected[] = {0, 0.5, 0.5, 0};
  for (std::size_t i = 0; i < 4; ++i) CHECK(p[i] == Approx(expected[i]).margin(1e-14));
}

TEMPLATE_LIST_TEST_CASE("sample_locations: left edges, sorted, as often as probable", "", Types) {
  using T = typename TestType::T;
  using B = typename TestType::B;
  Random random(seed);
  const auto p = Tensor<T, B>::from({1, 4}, {T(0.1), T(0), T(0.6), T(0.3)});
  const Index draws = 20000;
  const auto t = sample_locations(p, draws, random).to_vector();
  CHECK(std::is_sorted(t.begin(), t.end()));
  const auto share = [&](T at) {
    return static_cast<double>(std::count(t.begin(), t.end(), at)) / static_cast<double>(draws);
  };
  CHECK(share(T(0)) == Approx(0.1).margin(0.01));
  CHECK(share(T(0.25)) == 0);
  CHECK(share(T(0.5)) == Approx(0.6).margin(0.015));
  CHECK(share(T(0.75)) == Approx(0.3).margin(0.015));
}

TEMPLATE_LIST_TEST_CASE("sample_locations: a row draws the same alone and in a batch", "", Types) {
  using T = typename TestType::T;
  using B = typename TestType::B;
  Random random(seed);
  const auto p = uniform_tensor<T, B>({3, 16}, random, 0, 1);
  std::vector<Random> each{Random(7, 0), Random(7, 1), Random(7, 2)};
  auto alone = each;
  const auto whole = sample_locations(p, 20, std::span(each));
  for (std::size_t row = 0; row < 3; ++row) {
    const auto at = static_cast<Index>(row);
    const auto t = sample_locations(p.slice(at, at + 1), 20, std::span(alone).subspan(row, 1));
    CHECK(t.to_vector() == whole.slice(at, at + 1).to_vector());
    CHECK(alone[row] == each[row]);
  }
}

TEST_CASE("sample_locations: one generator gives new numbers every time, and can be replayed") {
  Random random(seed);
  const auto p = Tensor<double>::full({2, 64}, 1.0);
  const Random before = random;
  const auto first = sample_locations(p, 32, random).to_vector();
  CHECK(sample_locations(p, 32, random).to_vector() != first);
  Random replay = before;
  CHECK(sample_locations(p, 32, replay).to_vector() == first);
  Random alone = before;  // the first row does not know of the second
  const auto row = sample_locations(p.slice(0, 1), 32, alone).to_vector();
  CHECK(std::equal(row.begin(), row.end(), first.begin()));
}

TEMPLATE_LIST_TEST_CASE("quantile_locations: equal bins give even locations", "", Types) {
  using T = typename TestType::T;
  using B = typename TestType::B;
  for (const Index bins : {1, 5, 128})
    for (const Index samples : {1, 10, 200}) {
      const auto t = quantile_locations(Tensor<T, B>::full({2, bins}, T(0.5)), samples);
      REQUIRE(t.shape() == Shape{2, samples});
      const auto even = even_locations<T, B>(samples).to_vector();
      CHECK(t.slice(0, 1).to_vector() == even);  // to the bit
      CHECK(t.slice(1, 2).to_vector() == even);
    }
}

TEMPLATE_LIST_TEST_CASE("bin_probability: a density narrower than its square is a number", "",
                        Types) {
  using T = typename TestType::T;
  using B = typename TestType::B;
  const T narrow = std::numeric_limits<T>::min();
  const auto p = bin_probability<TruncatedParabola>(Tensor<T, B>::full({1, 1}, T(.5)),
                                                    Tensor<T, B>::full({1, 1}, narrow), 4);
  CHECK(error(p.to_vector(), std::vector<double>{0, .5, .5, 0}) <= tolerance<T>);
}

TEMPLATE_LIST_TEST_CASE("bin_probability: what is no number stays in its row", "", Types) {
  using T = typename TestType::T;
  using B = typename TestType::B;
  const auto rows_of = [](const Tensor<T, B>& p) {
    const auto q = p.to_vector();
    for (std::size_t i = 0; i < q.size(); ++i) CHECK(std::isnan(q[i]) == (i / 4 == 1));
  };
  const T nan = std::numeric_limits<T>::quiet_NaN();
  const auto good = Tensor<T, B>::full({3, 2}, T(.3));
  const auto bad = Tensor<T, B>::from({3, 2}, {T(.3), T(.3), nan, T(.3), T(.3), T(.3)});
  for (const bool in_mu : {true, false}) {
    rows_of(bin_probability(in_mu ? bad : good, in_mu ? good : bad, 4));
    rows_of(bin_probability<TruncatedParabola>(in_mu ? bad : good, in_mu ? good : bad, 4));
  }
}

TEMPLATE_LIST_TEST_CASE("quantile_locations: refuses what is no probability", "", Types) {
  using T = typename TestType::T;
  using B = typename TestType::B;
  const auto refused = [](T wrong) {
    const T p[] = {T(.5), wrong, T(.5)};
    try {
      quantile_locations(Tensor<T, B>::from({1, 3}, p), 4).to_vector();
    } catch (const infty::Error&) {
      return true;
    }
    return false;
  };
  CHECK(refused(T(-1)));
  CHECK(refused(std::numeric_limits<T>::infinity()));
  CHECK(refused(std::numeric_limits<T>::quiet_NaN()));
  CHECK_FALSE(refused(T(0)));
}

TEMPLATE_LIST_TEST_CASE("quantile_locations: done by hand, with empty bins", "", Types) {
  using T = typename TestType::T;
  using B = typename TestType::B;
  const auto p = Tensor<T, B>::from({1, 4}, {T(0), T(0.25), T(0.75), T(0)});
  const auto t = quantile_locations(p, 4).to_vector();
  const double third = 0.25 / 3;
  CHECK(error(t, std::vector<double>{0.5, 0.5 + third, 0.5 + 2 * third, 0.75}) <= tolerance<T>);
}

TEMPLATE_LIST_TEST_CASE("quantile_locations: the last ends the last bin that is not empty", "",
                        Types) {
  using T = typename TestType::T;
  using B = typename TestType::B;
  const auto first = Tensor<T, B>::from({1, 8}, {T(0.1), T(0), T(0), T(0), T(0), T(0), T(0), T(0)});
  const auto t = quantile_locations(first, 3).to_vector();
  CHECK(error(t, std::vector<double>{0.125 / 3, 0.25 / 3, 0.125}) <= tolerance<T>);

  Random random(seed);
  for (Index full = 1; full <= 40; ++full) {
    const Index bins = 40;
    auto values = uniform_tensor<T, B>({1, bins}, random, 0.001, 1).to_vector();
    std::fill(values.begin() + full, values.end(), T(0));
    const auto p = Tensor<T, B>::from({1, bins}, values);
    for (const Index samples : {1, 3, 5, 7, 49, 64, 100, 512}) {
      const auto some = quantile_locations(p, samples).to_vector();
      CHECK(std::is_sorted(some.begin(), some.end()));
      CHECK(static_cast<double>(some.back()) == Approx(static_cast<double>(full) / 40));
    }
  }
}

TEMPLATE_LIST_TEST_CASE("quantile_locations: many densities, each a half of it at its mean", "",
                        Types) {
  using T = typename TestType::T;
  using B = typename TestType::B;
  const Index rows = 200, bins = 150;
  Random random(seed);
  const auto mu = uniform_tensor<T, B>({rows, 1}, random, 0.02, 0.98);
  const auto p = bin_probability(mu, Tensor<T, B>::full({rows, 1}, T(0.01)), bins);
  const auto mean = mu.to_vector();
  for (const Index samples : {2, 10, 64, 100, 512}) {
    const auto all = quantile_locations(p, samples).to_vector();
    for (Index row = 0; row < rows; ++row) {
      const auto at = static_cast<std::size_t>(row * samples);
      const auto m = static_cast<double>(mean[static_cast<std::size_t>(row)]);
      const auto middle = static_cast<double>(all[at + static_cast<std::size_t>(samples / 2 - 1)]);
      CHECK(std::abs(middle - std::clamp(m, 0., 1.)) < 0.01);
      // Far from the mean no digit of the probability is left: of a float sooner than of a double.
      CHECK(static_cast<double>(all[at + static_cast<std::size_t>(samples - 1)]) <= m + 0.4);
    }
  }
}

TEMPLATE_LIST_TEST_CASE("quantile_locations: rise inside [0, 1]", "", Types) {
  using T = typename TestType::T;
  using B = typename TestType::B;
  Random random(seed);
  auto p = uniform_tensor<T, B>({20, 33}, random, 0, 1);
  for (const Index samples : {1, 7, 100}) {
    const auto all = quantile_locations(p, samples);
    for (Index row = 0; row < 20; ++row) {
      const auto t = all.slice(row, row + 1).to_vector();
      CHECK(std::is_sorted(t.begin(), t.end()));
      CHECK(t.front() >= 0);
      CHECK(t.back() <= 1);
    }
  }
}

TEST_CASE("bins: refuse shapes and numbers out of range") {
  Random random(seed);
  const auto flat = Tensor<double>::full({4}, 1.0), p = Tensor<double>::full({1, 4}, 1.0);
  CHECK_THROWS_WITH(bin_probability(flat, flat, 4), Contains("[bin_probability] mu is [4]"));
  CHECK_THROWS_AS(bin_probability(p, p.reshape({2, 2}), 4), ShapeError);
  CHECK_THROWS_WITH(bin_probability(p, p, 0), Contains("bins is 0"));
  CHECK_THROWS_WITH(sample_locations(flat, 4, random),
                    Contains("[sample_locations] probability is [4]"));
  CHECK_THROWS_WITH(sample_locations(p, 0, random), Contains("samples is 0"));
  std::vector<Random> two{Random(1), Random(2)};
  CHECK_THROWS_WITH(sample_locations(p, 3, std::span(two)), Contains("2 generators for 1 rows"));
  const auto bad = [&](double value) { return Tensor<double>::from({1, 2}, {1, value}); };
  CHECK_THROWS_WITH(sample_locations(bad(-1), 3, random), Contains("must not be negative"));
  CHECK_THROWS_AS(sample_locations(bad(std::nan("")), 3, random), NonFiniteError);
  CHECK_THROWS_WITH(sample_locations(Tensor<double>::zeros({1, 4}), 3, random),
                    Contains("sum to 0"));
  CHECK_THROWS_WITH(quantile_locations(Tensor<double>::zeros({1, 4}), 3), Contains("sum to 0"));
  const auto too_much = Tensor<double>::full({1, 4}, 1e308);
  CHECK_THROWS_WITH(sample_locations(too_much, 3, random), Contains("to infinity"));
  CHECK_THROWS_WITH(quantile_locations(too_much, 3), Contains("to infinity"));
  // A sum that is a number, and eight times as much is not.
  const auto nearly = Tensor<double>::from({1, 3}, {1e308, 2e307, 1e307});
  CHECK_THROWS_WITH(quantile_locations(nearly, 8), Contains("the sum times the samples must be"));
  CHECK(quantile_locations(nearly, 1).item() == Approx(1));
  const auto untouched = two;
  const auto half_bad = Tensor<double>::from({2, 2}, {1, 1, 1, -1});
  CHECK_THROWS_AS(sample_locations(half_bad, 3, std::span(two)), ValueError);
  CHECK(two == untouched);
  CHECK(random == Random(seed));
  CHECK_THROWS_AS(quantile_locations(flat, 4), ShapeError);
  CHECK_THROWS_WITH(quantile_locations(p, 0), Contains("[quantile_locations] samples is 0"));
}

TEST_CASE("sample_locations: an edge is below 1 however many bins there are") {
  const Index bins =
      (Index{1} << 24) + 1;  // whose last edge is nearer to 1 than any float below it
  Tensor<float> last = Tensor<float>::zeros({1, bins});
  last.data()[bins - 1] = 1;
  Random random(seed);
  const auto drawn = sample_locations(last, 3, random).to_vector();
  CHECK(drawn == std::vector<float>(3, std::nextafter(1.f, 0.f)));
}
