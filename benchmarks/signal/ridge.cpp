// SPDX-License-Identifier: MIT
// The ridge regression that a memory solves once for every length that is written, in double.
// Arguments: functions N, vectors; 512 samples of the past.

#include <infty/signal/gaussian_basis.hpp>
#include <infty/signal/ridge.hpp>

#include "../support/against.hpp"
#include "../support/flops.hpp"
#include "../support/tensors.hpp"

using namespace infty::bench;
using infty::Index, infty::EigenBackend;

namespace {

struct Case {
  explicit Case(const benchmark::State& run)
      : N(run.range(0)),
        psi(N, {.01, .05}),
        positions(infty::next_positions(run.range(1), 512, .75)),
        inside(static_cast<Index>(positions.inside.size())),
        all(inside + static_cast<Index>(positions.before.size() + positions.after.size())) {}

  /// The lower half of F Fᵀ, Cholesky's N³ / 3, and two triangular systems of all vectors.
  double flops() const {
    return product_flops(N, N, all) / 2 + product_flops(N, N, N) / 6 + product_flops(N, inside, N);
  }

  Index N;
  infty::GaussianBasis<double> psi;
  infty::Positions positions;
  Index inside, all;
};

void ridge_matrix(benchmark::State& run) {
  Case c(run);
  against_matrix_product<double>(
      run, c.flops(), [&] { infty::ridge_matrix<EigenBackend>(c.psi, c.positions, 1.0); });
}

void ridge_matrix_plain_eigen(benchmark::State& run) {
  Case c(run);
  against_matrix_product<double>(run, c.flops(), [&] {
    Eigen::MatrixXd F(c.N, c.all);
    Index column = 0;
    for (const auto* group : {&c.positions.inside, &c.positions.before, &c.positions.after})
      for (const double t : *group) {
        for (Index j = 0; j < c.N; ++j) F(j, column) = c.psi(j, t);
        ++column;
      }
    const Eigen::MatrixXd A = F * F.transpose() + Eigen::MatrixXd::Identity(c.N, c.N);
    const Eigen::MatrixXd G = A.llt().solve(F.leftCols(c.inside));
    benchmark::DoNotOptimize(G.data());
  });
}

void sizes(benchmark::internal::Benchmark* b) {
  b->Args({128, 64})->Args({512, 512})->Args({1024, 1024})->UseManualTime();
}

}  // namespace

BENCHMARK(ridge_matrix)->Apply(sizes);
BENCHMARK(ridge_matrix_plain_eigen)->Apply(sizes);
