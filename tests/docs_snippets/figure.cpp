// SPDX-License-Identifier: MIT
// Computes what docs/figures/idea.gp draws and holds docs/figures/idea.dat to it. With the
// environment variable INFTY_FIGURE_DATA naming a file, it writes that file anew.

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iomanip>
#include <sstream>
#include <string>
#include <vector>

#include <infty/eigen/backend.hpp>
#include <infty/signal/contraction.hpp>
#include <infty/signal/expectation.hpp>
#include <infty/signal/gaussian_basis.hpp>
#include <infty/signal/gaussian_density.hpp>
#include <infty/signal/ridge_cache.hpp>

#include "support/catch.hpp"

using namespace infty;

namespace {

using B = EigenBackend;
using Rows = std::vector<std::vector<double>>;

constexpr Index first_length = 24, second_length = 12, grid = 201;
constexpr double tau = 0.6, place = 0.42, sigma = 0.04;

/// One coordinate of the vectors: any lively function of their number.
Tensor<double> vectors(Index begin, Index count) {
  Tensor<double> x({1, count, 1});
  for (Index i = 0; i < count; ++i) {
    const auto n = static_cast<double>(begin + i);
    x.data()[i] = std::sin(0.37 * n) + 0.5 * std::cos(0.9 * n + 1);
  }
  return x;
}

Tensor<double> grid_on(double from, double to) {
  Tensor<double> t({grid});
  for (Index i = 0; i < grid; ++i)
    t.data()[i] = from + (to - from) * static_cast<double>(i) / static_cast<double>(grid - 1);
  return t;
}

/// Blocks of rows: 0 the first vectors (t, x), 1 the first signal (t, X), 2 the second vectors, 3
/// the second signal, 4 the first signal contracted, 5 the density (t, p), 6 what it reads (mu, E).
std::vector<Rows> figure() {
  const GaussianBasis<double> psi(32, {.02, .05});
  const RidgeCache<double, B, GaussianBasis<double>> ridge(
      psi, {.penalty = 0.5, .samples = 64, .tau = tau});
  const auto old_vectors = vectors(0, first_length),
             new_vectors = vectors(first_length, second_length);
  const auto old_signal = fit(ridge.first(first_length), old_vectors);
  const auto new_signal = update(ridge.next(second_length), old_signal, new_vectors);

  std::vector<Rows> blocks(7);
  const auto first = first_positions(first_length).inside;
  for (std::size_t i = 0; i < first.size(); ++i)
    blocks[0].push_back({first[i], old_vectors.data()[i]});
  const auto next = next_positions(second_length, 64, tau).inside;
  for (std::size_t i = 0; i < static_cast<std::size_t>(second_length); ++i)
    blocks[2].push_back({next[64 + i], new_vectors.data()[i]});
  const auto t = grid_on(0, 1);
  const auto before = resample(psi, old_signal, t), after = resample(psi, new_signal, t);
  for (Index i = 0; i < grid; ++i) {
    const double at = t.data()[i];
    blocks[1].push_back({at, before.data()[i]});
    blocks[3].push_back({at, after.data()[i]});
    blocks[4].push_back({tau * at, before.data()[i]});
    blocks[5].push_back({at, GaussianDensity::pdf(at, place, sigma * sigma)});
  }
  const auto r = expectation(GaussianDensity{}, psi, Tensor<double>::full({1}, place),
                             Tensor<double>::full({1}, sigma * sigma));
  double read = 0;
  for (Index j = 0; j < psi.size(); ++j) read += r.data()[j] * new_signal.data()[j];
  blocks[6].push_back({place, read});
  return blocks;
}

std::string text_of(const std::vector<Rows>& blocks) {
  std::ostringstream out;
  out << "# Written by tests/docs_snippets/figure.cpp\n" << std::setprecision(7);
  for (const auto& block : blocks) {
    for (const auto& row : block) out << row[0] << ' ' << row[1] << '\n';
    out << "\n\n";
  }
  return out.str();
}

}  // namespace

TEST_CASE("docs: the figure's data are what the library computes") {
  const auto blocks = figure();
  if (const char* const path = std::getenv("INFTY_FIGURE_DATA"))
    std::ofstream(path) << text_of(blocks);

  const auto root = std::filesystem::path(INFTY_TEST_DATA).parent_path();
  std::ifstream file(root / "docs" / "figures" / "idea.dat");
  REQUIRE(file.good());
  std::string line;
  std::getline(file, line);
  double worst = 0;
  for (const auto& block : blocks)
    for (const auto& row : block) {
      double t = 0, x = 0;
      REQUIRE(static_cast<bool>(file >> t >> x));
      worst = std::max({worst, std::abs(t - row[0]), std::abs(x - row[1])});
    }
  CHECK(worst < 1e-5);

  // The density reads about the signal's mean over its width.
  double mean = 0, mass = 0;
  for (std::size_t i = 0; i < blocks[3].size(); ++i) {
    mean += blocks[3][i][1] * blocks[5][i][1];
    mass += blocks[5][i][1];
  }
  CHECK(blocks[6][0][1] == Approx(mean / mass).margin(1e-6));
}
