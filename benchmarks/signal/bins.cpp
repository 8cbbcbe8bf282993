// SPDX-License-Identifier: MIT
// Sticky memories: how much of the densities lies in each bin, and places drawn by it. Arguments:
// densities of a row, bins; 8 rows, 512 places. The bins by bytes, a sum read and written for each
// density and bin; the draws by bytes of places.

#include <span>

#include <infty/signal/bins.hpp>
#include <infty/signal/truncated_parabola.hpp>

#include "../support/against.hpp"
#include "../support/tensors.hpp"

using namespace infty::bench;
using infty::Index, infty::Tensor, infty::GaussianDensity, infty::TruncatedParabola;

namespace {

constexpr Index rows = 8, samples = 512;

template <class T>
struct Case {
  explicit Case(const benchmark::State& run)
      : n(run.range(0)),
        bins(run.range(1)),
        mu({rows, n}),
        sigma(Tensor<T>::full({rows, n}, T(.1))) {
    infty::Random random(1);
    fill_uniform(mu, 0, 1, random);
  }
  double bytes() const { return 2.0 * static_cast<double>(rows * n * bins) * sizeof(T); }
  double footprint() const { return static_cast<double>(rows * (2 * n + bins)) * sizeof(T); }

  Index n, bins;
  Tensor<T> mu, sigma;
};

template <class D, class T>
void bin_probability(benchmark::State& run) {
  Case<T> c(run);
  against_copy(run, c.bytes(), c.footprint(),
               [&] { infty::bin_probability<D>(c.mu, c.sigma, c.bins); });
}

/// By differences of the distribution function at the edges.
template <class T>
void bin_probability_plain_eigen(benchmark::State& run) {
  Case<T> c(run);
  using Array = Eigen::Array<T, 1, Eigen::Dynamic>;
  const Array edges = Array::LinSpaced(c.bins + 1, T(0), T(1));
  const auto mu = matrix(c.mu), sigma = matrix(c.sigma);
  against_copy(run, c.bytes(), c.footprint(), [&] {
    for (Index row = 0; row < rows; ++row) {
      Array sum = Array::Zero(c.bins);
      for (Index i = 0; i < c.n; ++i) {
        const Array below =
            ((edges - mu(row, i)) / (sigma(row, i) * std::sqrt(T(2)))).unaryExpr([](T x) {
              return std::erf(x);
            });
        sum += (below.tail(c.bins) - below.head(c.bins)) / 2;
      }
      sum /= sum.sum();
      benchmark::DoNotOptimize(sum.data());
    }
  });
}

template <class T>
void sample_locations(benchmark::State& run) {
  Case<T> c(run);
  const auto probability = infty::bin_probability(c.mu, c.sigma, c.bins);
  infty::Random random(1);
  against_copy(run, double(rows * samples) * sizeof(T),
               [&] { infty::sample_locations(probability, samples, random); });
}

template <class T>
void quantile_locations(benchmark::State& run) {
  Case<T> c(run);
  const auto probability = infty::bin_probability(c.mu, c.sigma, c.bins);
  against_copy(run, double(rows * samples) * sizeof(T),
               [&] { infty::quantile_locations(probability, samples); });
}

void sizes(benchmark::internal::Benchmark* b) { b->Args({6 * 1024, 128})->UseManualTime(); }

}  // namespace

BENCHMARK_TEMPLATE(bin_probability, GaussianDensity, float)->Apply(sizes);
BENCHMARK_TEMPLATE(bin_probability_plain_eigen, float)->Apply(sizes);
BENCHMARK_TEMPLATE(bin_probability, GaussianDensity, double)->Apply(sizes);
BENCHMARK_TEMPLATE(bin_probability, TruncatedParabola, float)->Apply(sizes);
BENCHMARK_TEMPLATE(sample_locations, float)->Apply(sizes);
BENCHMARK_TEMPLATE(quantile_locations, float)->Apply(sizes);
