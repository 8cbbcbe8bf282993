// SPDX-License-Identifier: MIT
#include <string>
#include <utility>
#include <vector>

#include <infty/nn/cross_entropy.hpp>
#include <infty/retrieval/continuous_cache.hpp>

#include "support/catch.hpp"
#include "support/golden_retrieval.hpp"
#include "support/tensors.hpp"
#include "support/types.hpp"

using infty::ContinuousCache;
using infty::Index;
using infty::Shape;
using infty::Tensor;

TEMPLATE_LIST_TEST_CASE("ContinuousCache: the recorded cases", "", infty::tests::Types) {
  using T = typename TestType::T;
  using B = typename TestType::B;
  for (const char* const name : {"linear", "linear_window", "global", "pointer"}) {
    infty::tests::GoldenCase file(std::string(INFTY_TEST_DATA) + "/golden/cache_" + name +
                                  ".safetensors");
    CAPTURE(name);
    CHECK(infty::tests::replay_retrieval<T, B>(file).worst < 8 * infty::tests::tolerance<T>);
  }
}

TEMPLATE_LIST_TEST_CASE("ContinuousCache: pairs of before alone are found, the last ones of them",
                        "", infty::tests::Types) {
  using T = typename TestType::T;
  using B = typename TestType::B;
  const ContinuousCache<T, B> cache(1, {.window = 2, .theta = .5});
  auto state = cache.make_state(1);
  const auto hidden = Tensor<T, B>::from({1, 4, 1}, {2, 3, 4, 5});
  const auto targets =
      Tensor<Index, B>::from({1, 4}, std::vector<Index>{7, infty::ignore_index, 0, 9});
  const auto found = cache.read(state, hidden, targets);
  CHECK(found.tokens.to_vector() == std::vector<Index>{-1, -1, -1, 7, 7, -1, -1, 0});
  const auto scores = found.scores.to_vector();
  CHECK(scores[3] == T(.5 * 3 * 2));
  CHECK(scores[7] == T(.5 * 5 * 4));
  CHECK(state.seen == infty::RowCounts{4});
  const auto next = cache.read(state, hidden.reshape({4}).slice(0, 1).reshape({1, 1, 1}),
                               Tensor<Index, B>::zeros({1, 1}));
  CHECK(next.tokens.to_vector() == std::vector<Index>{0, 9});
}

TEST_CASE("ContinuousCache: rows by themselves, in pieces, fresh again, and taken out") {
  infty::Random random(infty::tests::seed);
  const ContinuousCache<double> cache(3, {.window = 4});
  const auto hidden = infty::tests::uniform_tensor<double>({2, 5, 3}, random);
  std::vector<Index> tokens;
  for (Index i = 0; i < 10; ++i) tokens.push_back(i % 4);
  const auto targets = Tensor<Index>::from({2, 5}, tokens);
  auto state = cache.make_state(2);
  const auto both = cache.read(state, hidden, targets);
  for (Index row = 0; row < 2; ++row) {
    auto alone = cache.make_state(1);
    const auto found = cache.read(alone, hidden.slice(row, row + 1), targets.slice(row, row + 1));
    CHECK(found.tokens.to_vector() == both.tokens.slice(row * 5, row * 5 + 5).to_vector());
    CHECK(infty::tests::error(found.scores.to_vector(),
                              both.scores.slice(row * 5, row * 5 + 5).to_vector()) < 1e-14);
    const auto taken = infty::take_rows(state, row, row + 1);
    CHECK(taken.hidden.to_vector() == alone.hidden.to_vector());
    CHECK(taken.tokens.to_vector() == alone.tokens.to_vector());
  }
  infty::reset_row(state, 1);
  const auto again = cache.read(state, hidden, targets);
  CHECK(again.tokens.slice(5, 10).to_vector() == both.tokens.slice(5, 10).to_vector());
  CHECK(again.tokens.slice(0, 1).to_vector() == std::vector<Index>{1, 2, 3, 0});
}

TEST_CASE("ContinuousCache: what cannot be is refused, and changes nothing") {
  const auto made = [](infty::ContinuousCacheConfig config) { ContinuousCache<float>(2, config); };
  CHECK_THROWS_AS(made({.window = 0}), infty::ValueError);
  CHECK_THROWS_AS(made({.window = infty::largest_size}), infty::ValueError);
  CHECK_THROWS_AS(made({.theta = -1}), infty::ValueError);
  CHECK_THROWS_AS(made({.lambda = 1}), infty::ValueError);
  CHECK_THROWS_AS(made({.alpha = infty::math::infinity<double>}), infty::ValueError);
  CHECK_THROWS_AS(made({.alpha = 1e39}), infty::ValueError);
  CHECK_THROWS_AS(made({.alpha = -1e39}), infty::ValueError);
  CHECK_THROWS_AS(ContinuousCache<float>(0), infty::ValueError);
  const ContinuousCache<float> cache(2, {.window = 3});
  CHECK_THROWS_AS(cache.make_state(0), infty::ValueError);
  auto state = cache.make_state(1);
  const auto hidden = Tensor<float>::zeros({1, 2, 2});
  CHECK_THROWS_AS(cache.read(state, hidden, Tensor<Index>::zeros({1, 3})), infty::ShapeError);
  CHECK_THROWS_AS(cache.read(state, Tensor<float>::zeros({1, 2, 3}), Tensor<Index>::zeros({1, 2})),
                  infty::ShapeError);
  auto other = ContinuousCache<float>(2, {.window = 4}).make_state(1);
  CHECK_THROWS_AS(cache.read(other, hidden, Tensor<Index>::zeros({1, 2})), infty::ShapeError);
  for (const float bad : {infty::math::not_a_number<float>, infty::math::infinity<float>, 1e30F})
    CHECK_THROWS_AS(
        cache.read(state, Tensor<float>::from({1, 1, 2}, {0, bad}), Tensor<Index>::zeros({1, 1})),
        infty::NonFiniteError);
  CHECK(state.seen == infty::RowCounts{0});
}
