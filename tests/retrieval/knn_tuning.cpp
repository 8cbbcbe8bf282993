// SPDX-License-Identifier: MIT
#include <cmath>
#include <span>
#include <vector>

#include <infty/retrieval/knn_lm.hpp>
#include <infty/retrieval/knn_tuning.hpp>

#include "support/catch.hpp"
#include "support/tensors.hpp"

using infty::Index;
using infty::KnnTuning;
using infty::Retrieved;
using infty::Tensor;

namespace knn_tuning_tests {

/// So many places with four neighbours each, the nearest first, the last place with none.
struct Places {
  Retrieved<double> found;
  std::vector<double> losses;
  std::vector<Index> targets;
};

Places drawn(Index n) {
  infty::Random random(infty::tests::seed);
  Places out;
  std::vector<double> scores;
  std::vector<Index> tokens;
  for (Index i = 0; i < n; ++i) {
    out.losses.push_back(random.uniform() * 4);
    out.targets.push_back(random.below(3));
    double score = 0;
    for (Index j = 0; j < 4; ++j) {
      scores.push_back(score -= random.uniform());
      tokens.push_back(i + 1 < n ? random.below(3) : -1);
    }
  }
  out.found = {Tensor<double>::from({n, 4}, scores), Tensor<Index>::from({n, 4}, tokens)};
  return out;
}

}  // namespace knn_tuning_tests

TEST_CASE("KnnTuning: says what an interpolation with these constants gives") {
  const auto [found, losses, targets] = knn_tuning_tests::drawn(50);
  KnnTuning tuning({4, 2}, {1, 3});
  CHECK(tuning.most() == 4);
  tuning.add(found, std::span<const double>(losses), targets);
  CHECK(tuning.places() == 50);
  std::vector<double> own;
  for (const double loss : losses) own.push_back(-loss);
  const infty::Variable<double> log_p(Tensor<double>::from({50}, own));
  for (const Index k : {2, 4})
    for (const double temperature : {1., 3.})
      for (const double lambda : {0., .3, .9}) {
        std::vector<double> scores;
        std::vector<Index> tokens;
        for (Index i = 0; i < 50; ++i)
          for (Index j = 0; j < k; ++j) {
            const auto at = static_cast<std::size_t>(4 * i + j);
            scores.push_back(found.scores.to_vector()[at] / temperature);
            tokens.push_back(found.tokens.to_vector()[at]);
          }
        const Retrieved<double> nearest{Tensor<double>::from({50, k}, scores),
                                        Tensor<Index>::from({50, k}, tokens)};
        const auto y =
            infty::interpolated(log_p, nearest, Tensor<Index>::from({50}, targets), lambda);
        double sum = 0;
        for (const double x : y.value().to_vector()) sum -= x;
        CAPTURE(k, temperature, lambda);
        CHECK(std::abs(tuning.nats(k, temperature, lambda) - sum / 50) < 1e-6);
      }
}

TEST_CASE("KnnTuning: no share, k or temperature that was tried is better than the best") {
  const auto [found, losses, targets] = knn_tuning_tests::drawn(80);
  KnnTuning tuning({1, 2, 4}, {.5, 2});
  tuning.add(found, std::span<const double>(losses), targets);
  const auto best = tuning.best();
  CHECK(std::abs(best.nats - tuning.nats(best.k, best.temperature, best.lambda)) < 1e-12);
  for (const Index k : {1, 2, 4})
    for (const double temperature : {.5, 2.})
      for (int i = 0; i < 100; ++i) CHECK(best.nats < tuning.nats(k, temperature, i / 100.) + 1e-9);
}

TEST_CASE("KnnTuning: a neighbour beyond all distances has no weight, wherever it stands") {
  const double far = -infty::math::infinity<double>;
  const std::vector<double> losses{.5};
  for (const bool first : {false, true}) {
    const Retrieved<double> found{
        Tensor<double>::from({1, 2}, first ? std::vector{far, 0.} : std::vector{0., far}),
        Tensor<Index>::from({1, 2}, first ? std::vector<Index>{3, 5} : std::vector<Index>{5, 3})};
    KnnTuning tuning({1, 2}, {1});
    tuning.add(found, std::span<const double>(losses), {5});
    CHECK(std::abs(tuning.nats(2, 1, .5) + std::log(.5 + .5 * std::exp(-.5))) < 1e-6);
  }
}

TEST_CASE("KnnTuning: ignored targets are left out, and what cannot be is refused") {
  auto places = knn_tuning_tests::drawn(4);
  const auto& found = places.found;
  auto& losses = places.losses;
  auto& targets = places.targets;
  KnnTuning tuning({4}, {1});
  CHECK_THROWS_AS(tuning.best(), infty::ValueError);
  targets[1] = -100;
  tuning.add(found, std::span<const double>(losses), targets);
  CHECK(tuning.places() == 3);
  CHECK(std::abs(tuning.nats(4, 1, 0) - (losses[0] + losses[2] + losses[3]) / 3) < 1e-6);
  CHECK_THROWS_AS(tuning.nats(3, 1, 0), infty::ValueError);
  CHECK_THROWS_AS(tuning.nats(4, 2, 0), infty::ValueError);
  const auto with_loss = [&](double loss) {
    auto all = losses;
    all[2] = loss;
    tuning.add(found, std::span<const double>(all), targets);
  };
  CHECK_THROWS_AS(with_loss(infty::math::not_a_number<double>), infty::NonFiniteError);
  CHECK_THROWS_AS(with_loss(-1), infty::ValueError);
  auto scores = found.scores.to_vector();
  scores[3] = infty::math::not_a_number<double>;
  CHECK_THROWS_AS(tuning.add(Retrieved<double>{Tensor<double>::from({4, 4}, scores), found.tokens},
                             std::span<const double>(losses), targets),
                  infty::NonFiniteError);
  CHECK(tuning.places() == 3);
  targets.pop_back();
  CHECK_THROWS_AS(tuning.add(found, std::span<const double>(losses), targets), infty::ShapeError);
  CHECK_THROWS_AS(KnnTuning({}, {1}), infty::ValueError);
  CHECK_THROWS_AS(KnnTuning({0}, {1}), infty::ValueError);
  CHECK_THROWS_AS(KnnTuning({1}, {0}), infty::ValueError);
  CHECK_THROWS_AS(KnnTuning({1}, {1e-31}), infty::ValueError);
  CHECK_THROWS_AS(KnnTuning({1}, {1e31}), infty::ValueError);
}
