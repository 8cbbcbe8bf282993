// SPDX-License-Identifier: MIT
#include <cmath>
#include <string>
#include <vector>

#include <infty/retrieval/exact_index.hpp>
#include <infty/retrieval/knn_lm.hpp>

#include "support/catch.hpp"
#include "support/golden_retrieval.hpp"
#include "support/tensors.hpp"
#include "support/types.hpp"

using infty::Datastore;
using infty::ExactIndex;
using infty::Index;
using infty::KnnConfig;
using infty::KnnSimilarity;
using infty::Tensor;
using infty::Variable;

namespace knn_lm_tests {

/// Keys 0, 1, 3 on a line, with tokens 2, 0, 2.
template <class T>
Datastore<T> store() {
  Datastore<T> out(1, 2);
  const std::vector<T> keys{0, 1, 3};
  const std::vector<Index> tokens{2, 0, 2};
  out.append(keys.data(), tokens.data(), 3);
  return out;
}

}  // namespace knn_lm_tests

TEMPLATE_LIST_TEST_CASE("KnnLm: the recorded cases", "", infty::tests::Types) {
  using T = typename TestType::T;
  using B = typename TestType::B;
  for (const char* const name : {"l2", "inner", "l2_dot"}) {
    infty::tests::GoldenCase file(std::string(INFTY_TEST_DATA) + "/golden/knnlm_" + name +
                                  ".safetensors");
    CAPTURE(name);
    CHECK(infty::tests::replay_retrieval<T, B>(file).worst < 8 * infty::tests::tolerance<T>);
  }
}

TEMPLATE_LIST_TEST_CASE("KnnLm: by hand, with a temperature, and with more neighbours than keys",
                        "", infty::tests::Types) {
  using T = typename TestType::T;
  using B = typename TestType::B;
  const auto store = knn_lm_tests::store<T>();
  const ExactIndex<T, B> index(store);
  const auto queries = Tensor<T, B>::from({1, 1}, {T(1)});
  const double e = std::exp(-1 / 2.), far = std::exp(-4 / 2.), all = 1 + e + far;
  const auto found = infty::look_up(store, index, queries, KnnConfig{.k = 5, .temperature = 2});
  CHECK(found.tokens.to_vector() == std::vector<Index>{0, 2, 2, -1, -1});
  const Variable<T, B> own(Tensor<T, B>::full({1, 3}, std::log(T(1) / 3)));
  const auto y = infty::interpolated(own, found, .5).value().to_vector();
  const std::vector<double> wanted{.5 / all + .5 / 3, .5 / 3, .5 * (e + far) / all + .5 / 3};
  for (std::size_t i = 0; i < 3; ++i)
    CHECK(std::abs(std::exp(static_cast<double>(y[i])) - wanted[i]) < infty::tests::tolerance<T>);

  const auto products = infty::look_up(
      store, index, queries, KnnConfig{.k = 2, .similarity = KnnSimilarity::inner_product});
  CHECK(products.scores.to_vector() == std::vector<T>{1, 0});
}

TEMPLATE_LIST_TEST_CASE("KnnLm: neighbours that are all infinitely far leave the model's own", "",
                        infty::tests::Types) {
  using T = typename TestType::T;
  using B = typename TestType::B;
  constexpr T none = -infty::math::infinity<T>;
  const infty::Retrieved<T, B> found{Tensor<T, B>::from({2, 2}, {none, none, none, T(1)}),
                                     Tensor<Index, B>::from({2, 2}, {0, 1, 0, 1})};
  const T log_half = std::log(T(.5));
  const Variable<T, B> own(Tensor<T, B>::full({2, 2}, log_half));
  const auto all = infty::interpolated(own, found, .5).value().to_vector();
  CHECK(all[0] == log_half);
  CHECK(all[1] == log_half);
  CHECK(std::abs(std::exp(static_cast<double>(all[2])) - .25) < infty::tests::tolerance<T>);
  CHECK(std::abs(std::exp(static_cast<double>(all[3])) - .75) < infty::tests::tolerance<T>);
  const Variable<T, B> one(Tensor<T, B>::full({2}, log_half));
  const auto targets = Tensor<Index, B>::zeros({2});
  CHECK(infty::interpolated(one, found, targets, .5).value().to_vector()[0] == log_half);
}

TEST_CASE("KnnLm: a token's probability alone is that of the distribution") {
  infty::Random random(infty::tests::seed);
  const auto store = knn_lm_tests::store<double>();
  const ExactIndex<double> index(store);
  const auto queries = infty::tests::uniform_tensor<double>({4, 1}, random, 0, 3);
  const auto found = infty::look_up(store, index, queries, KnnConfig{.k = 2});
  const auto own = infty::tests::uniform_variable<double>({4, 3}, random, -2, 0);
  const auto all = infty::interpolated(own, found, .3).value().to_vector();
  for (Index token = 0; token < 3; ++token) {
    std::vector<double> one, wanted;
    for (std::size_t q = 0; q < 4; ++q) {
      one.push_back(own.value().to_vector()[3 * q + static_cast<std::size_t>(token)]);
      wanted.push_back(all[3 * q + static_cast<std::size_t>(token)]);
    }
    const auto y = infty::interpolated(Variable<double>(Tensor<double>::from({4}, one)), found,
                                       Tensor<Index>::full({4}, token), .3);
    CHECK(infty::tests::error(y.value().to_vector(), wanted) < 1e-14);
  }
}

TEST_CASE("KnnLm: what cannot be is refused") {
  const auto store = knn_lm_tests::store<double>();
  const ExactIndex<double> index(store);
  const auto queries = Tensor<double>::zeros({2, 1});
  const auto look_up = [&](KnnConfig config) { infty::look_up(store, index, queries, config); };
  CHECK_THROWS_AS(look_up({.k = 0}), infty::ValueError);
  CHECK_THROWS_AS(look_up({.lambda = 1}), infty::ValueError);
  CHECK_THROWS_AS(look_up({.temperature = 0}), infty::ValueError);
  CHECK_THROWS_AS(look_up({.temperature = std::nan("")}), infty::ValueError);
  CHECK_THROWS_AS(look_up({.temperature = 1e-31}), infty::ValueError);
  CHECK_THROWS_AS(look_up({.temperature = 1e31}), infty::ValueError);
  CHECK_THROWS_AS(infty::look_up(store, index, Tensor<double>::zeros({2, 2}), KnnConfig{.k = 1}),
                  infty::ShapeError);
  const Datastore<double> empty(1);
  CHECK_THROWS_AS(infty::look_up(empty, index, queries, KnnConfig{.k = 1}), infty::ShapeError);
}
