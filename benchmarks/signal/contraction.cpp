// SPDX-License-Identifier: MIT
// The fit of a first write and the update of a later one: evenly resampled, which is one matrix;
// resampled at chosen places; and, as the paper has it, resampled and fitted again by plain Eigen.
// Arguments: rows of the batch, vectors, functions N; vectors of 300, 512 samples.

#include <infty/signal/gaussian_basis.hpp>
#include <infty/signal/ridge_cache.hpp>

#include "../support/against.hpp"
#include "../support/flops.hpp"
#include "../support/tensors.hpp"

using namespace infty::bench;
using infty::Index, infty::Tensor, infty::EigenBackend;

namespace {

constexpr Index dim = 300, samples = 512;

template <class T>
struct Case {
  explicit Case(const benchmark::State& run)
      : batch(run.range(0)),
        length(run.range(1)),
        N(run.range(2)),
        psi(N, {.01, .05}),
        cache(psi, {.samples = samples}),
        x(normal<T>({batch, length, dim})),
        old(normal<T>({batch, N, dim})) {}

  double fit_flops() const { return static_cast<double>(batch) * product_flops(N, dim, length); }
  /// A B and the fit: what an update needs, if it is evenly resampled.
  double even_flops() const {
    return fit_flops() + static_cast<double>(batch) * product_flops(N, dim, N);
  }
  /// Samples of the old signal, and a fit of these and the new vectors.
  double sampled_flops() const {
    return fit_flops() + 2 * static_cast<double>(batch) * product_flops(N, dim, samples);
  }

  Index batch, length, N;
  infty::GaussianBasis<T> psi;
  infty::RidgeCache<T, EigenBackend, infty::GaussianBasis<T>> cache;
  Tensor<T> x, old;
};

template <class T>
void fit(benchmark::State& run) {
  Case<T> c(run);
  const auto G = c.cache.first(c.length);
  against_matrix_product<T>(run, c.fit_flops(), [&] { infty::fit(G, c.x); });
}

template <class T>
void update(benchmark::State& run) {
  Case<T> c(run);
  const auto next = c.cache.next(c.length);
  against_matrix_product<T>(run, c.even_flops(), [&] { infty::update(next, c.old, c.x); });
}

template <class T>
void update_at_places(benchmark::State& run) {
  Case<T> c(run);
  const auto next = c.cache.next(c.length);
  const auto t = infty::even_locations<T, EigenBackend>(samples);
  against_matrix_product<T>(run, c.sampled_flops(),
                            [&] { infty::update(next, c.psi, c.old, c.x, t); });
}

template <class T>
void update_plain_eigen(benchmark::State& run) {
  using Matrix = infty::detail::RowMajor<T>;
  Case<T> c(run);
  const auto next = c.cache.next(c.length);
  Matrix G(samples + c.length, c.N);
  G << matrix(next.next_old), matrix(next.next_new);
  const auto places = evaluate(c.psi, infty::even_locations<T, EigenBackend>(samples));
  const auto F = matrix(places);
  against_matrix_product<T>(run, c.sampled_flops(), [&] {
    for (Index row = 0; row < c.batch; ++row) {
      const auto x = c.x.slice(row, row + 1), old = c.old.slice(row, row + 1);
      Matrix both(samples + c.length, dim);
      both << F * matrix(old), matrix(x);
      const Matrix B = G.transpose() * both;
      benchmark::DoNotOptimize(B.data());
    }
  });
}

void sizes(benchmark::internal::Benchmark* b) {
  b->Args({1, 256, 128})->Args({8, 1024, 1024})->UseManualTime();
}

}  // namespace

BENCHMARK_TEMPLATE(fit, float)->Apply(sizes);
BENCHMARK_TEMPLATE(fit, double)->Apply(sizes);
BENCHMARK_TEMPLATE(update, float)->Apply(sizes);
BENCHMARK_TEMPLATE(update_at_places, float)->Apply(sizes);
BENCHMARK_TEMPLATE(update_plain_eigen, float)->Apply(sizes);
BENCHMARK_TEMPLATE(update, double)->Apply(sizes);
