// SPDX-License-Identifier: MIT
// Basis functions at places, and their expectations under densities, written out as matrices; by
// bytes written, for little is read. Arguments: functions N, places or densities. Two widths.

#include <infty/signal/expectation.hpp>
#include <infty/signal/gaussian_basis.hpp>
#include <infty/signal/gaussian_density.hpp>
#include <infty/signal/truncated_parabola.hpp>

#include "../support/against.hpp"
#include "../support/tensors.hpp"

using namespace infty::bench;
using infty::Index, infty::Tensor, infty::GaussianDensity, infty::TruncatedParabola;

namespace {

template <class T>
struct Case {
  explicit Case(const benchmark::State& run)
      : N(run.range(0)),
        n(run.range(1)),
        psi(N, {.01, .05}),
        mu({n}),
        var(Tensor<T>::full({n}, T(.01))) {
    infty::Random random(1);
    fill_uniform(mu, 0, 1, random);
  }
  double bytes() const { return static_cast<double>(N * n) * sizeof(T); }

  Index N, n;
  infty::GaussianBasis<T> psi;
  Tensor<T> mu, var;
};

template <class T>
void basis(benchmark::State& run) {
  Case<T> c(run);
  against_copy(run, c.bytes(), [&] { evaluate(c.psi, c.mu); });
}

template <class T>
void basis_plain_eigen(benchmark::State& run) {
  using Array = Eigen::Array<T, 1, Eigen::Dynamic>;
  Case<T> c(run);
  Array centre(c.N), width(c.N);
  for (Index j = 0; j < c.N; ++j) {
    centre[j] = c.psi.centre(j);
    width[j] = c.psi.width(j);
  }
  const Array factor = 1 / (width * std::sqrt(T(2 * EIGEN_PI)));
  Tensor<T> out({c.n, c.N});
  auto F = matrix(out);
  against_copy(run, c.bytes(), [&] {
    for (Index i = 0; i < c.n; ++i)
      F.row(i) = (((centre - c.mu.data()[i]) / width).square() * T(-.5)).exp() * factor;
  });
}

template <class D, class T>
void expectation(benchmark::State& run) {
  Case<T> c(run);
  against_copy(run, c.bytes(), [&] { infty::expectation(D{}, c.psi, c.mu, c.var); });
}

void sizes(benchmark::internal::Benchmark* b) {
  b->Args({128, 512})->Args({1024, 1024})->UseManualTime();
}

}  // namespace

BENCHMARK_TEMPLATE(basis, float)->Apply(sizes);
BENCHMARK_TEMPLATE(basis_plain_eigen, float)->Apply(sizes);
BENCHMARK_TEMPLATE(basis, double)->Apply(sizes);
BENCHMARK_TEMPLATE(expectation, GaussianDensity, float)->Apply(sizes);
BENCHMARK_TEMPLATE(expectation, GaussianDensity, double)->Apply(sizes);
BENCHMARK_TEMPLATE(expectation, TruncatedParabola, float)->Apply(sizes);
BENCHMARK_TEMPLATE(expectation, TruncatedParabola, double)->Apply(sizes);
