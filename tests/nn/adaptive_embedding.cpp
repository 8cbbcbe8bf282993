// SPDX-License-Identifier: MIT
#include <cmath>
#include <string>
#include <vector>

#include <infty/nn/adaptive_embedding.hpp>
#include <infty/nn/to.hpp>
#include <infty/testing/gradient_check.hpp>

#include "support/catch.hpp"
#include "support/tensors.hpp"
#include "support/types.hpp"

using infty::AdaptiveConfig;
using infty::AdaptiveEmbedding;
using infty::Index;
using infty::Random;
using infty::Shape;
using infty::Tensor;

namespace {

/// The vectors of tokens as the definition says, one by one.
template <class T, class B>
std::vector<double> embedded_one_by_one(const AdaptiveEmbedding<T, B>& layer,
                                        const std::vector<Index>& tokens, double factor) {
  const AdaptiveConfig& config = layer.config();
  std::vector<double> out;
  for (const Index token : tokens) {
    Index i = 0;
    while (token >= config.end(i)) ++i;
    const auto table = layer.weights[static_cast<std::size_t>(i)].value().to_vector();
    const auto map = layer.projection(i).value().to_vector();
    const Index width = config.width(i), at = (token - config.begin(i)) * width;
    for (Index j = 0; j < config.model_dim; ++j) {
      double sum = map.empty() ? static_cast<double>(table[static_cast<std::size_t>(at + j)]) : 0;
      for (Index c = 0; c < width && !map.empty(); ++c)
        sum += static_cast<double>(map[static_cast<std::size_t>(j * width + c)]) *
               static_cast<double>(table[static_cast<std::size_t>(at + c)]);
      out.push_back(factor * sum);
    }
  }
  return out;
}

/// With narrower clusters, equally wide ones, and equally wide ones of another width.
const std::vector<AdaptiveConfig> embedding_configs{
    {.vocabulary = 11, .model_dim = 6, .cutoffs = {3, 7}, .div_value = 2},
    {.vocabulary = 11, .model_dim = 6, .cutoffs = {3, 7}},
    {.vocabulary = 11, .model_dim = 6, .cutoffs = {1}, .embedding_dim = 5},
    {.vocabulary = 11, .model_dim = 6, .embedding_dim = 4}};

}  // namespace

TEMPLATE_LIST_TEST_CASE("AdaptiveEmbedding: every token's vector by its cluster", "",
                        infty::tests::Types) {
  using T = typename TestType::T;
  using B = typename TestType::B;
  const std::vector<Index> tokens{10, 0, 2, 3, 10, 6, 7, 1};
  for (const auto& config : embedding_configs) {
    const AdaptiveEmbedding<T, B> layer(config, Random(infty::tests::seed));
    const auto y = layer.forward(Tensor<Index, B>::from({2, 4}, tokens), T(3));
    CHECK(y.shape() == Shape{2, 4, 6});
    CHECK(infty::tests::error(y.value().to_vector(), embedded_one_by_one(layer, tokens, 3)) <
          infty::tests::tolerance<T>);
    CHECK(layer.forward(Tensor<Index, B>::zeros({0})).shape() == Shape{0, 6});
    // A batch of one token, with all other clusters empty.
    const auto one = layer.forward(Tensor<Index, B>::from({1}, {4}));
    CHECK(infty::tests::error(one.value().to_vector(), embedded_one_by_one(layer, {4}, 1)) <
          infty::tests::tolerance<T>);
  }
}

TEST_CASE("AdaptiveEmbedding: gradient of every table and map, none for a cluster without tokens") {
  const auto tokens = Tensor<Index>::from({2, 3}, {1, 8, 10, 0, 1, 10});
  for (const auto& config : embedding_configs) {
    AdaptiveEmbedding<double> layer(config, Random(infty::tests::seed));
    const auto loss = [&] {
      const auto y = layer.forward(tokens, 1.5);
      return infty::sum(y * y);
    };
    CHECK(infty::gradient_check(loss, infty::parameters<double>(layer)) < 1e-8);
  }
  AdaptiveEmbedding<double> layer(embedding_configs[0], Random(1));
  infty::Tape tape;
  tape.backward(infty::sum(layer.forward(tokens)));
  CHECK(layer.weights[1].has_grad() == false);
}

TEST_CASE("AdaptiveEmbedding: without cutoffs the plain embedding, draws and name included") {
  AdaptiveEmbedding<float> adaptive({.vocabulary = 9, .model_dim = 4}, Random(7));
  const infty::Embedding<float> plain(9, 4, Random(7), 0.5);
  CHECK(adaptive.weights[0].value().to_vector() == plain.weight.value().to_vector());
  const auto tokens = Tensor<Index>::from({3}, {8, 0, 5});
  CHECK(adaptive.forward(tokens, 2.0f).value().to_vector() ==
        plain.forward(tokens, 2.0f).value().to_vector());
  std::vector<std::string> names;
  infty::for_each_parameter(adaptive,
                            [&](const std::string& name, auto&) { names.push_back(name); });
  CHECK(names == std::vector<std::string>{"weight"});
}

TEST_CASE("AdaptiveEmbedding: embedded tokens of all clusters have the same deviation") {
  for (const double deviation : {0., .02, 3.}) {
    const AdaptiveConfig config{.vocabulary = 3000,
                                .model_dim = 64,
                                .cutoffs = {1000, 2000},
                                .div_value = 4,
                                .deviation = deviation};
    const AdaptiveEmbedding<double> layer(config, Random(infty::tests::seed));
    for (Index i = 0; i < 3; ++i) {
      Tensor<Index> tokens(Shape{1000});
      for (Index j = 0; j < 1000; ++j) tokens.data()[j] = config.begin(i) + j;
      double squares = 0;
      for (const double x : layer.forward(tokens).value().to_vector()) squares += x * x;
      // Of 64,000 elements; the few columns of a narrow map leave a share of some tenths to chance.
      const double expected = deviation > 0 ? deviation : 1. / 8;
      CHECK(std::abs(std::sqrt(squares / 64000) / expected - 1) < 0.15);
    }
  }
}

TEST_CASE("AdaptiveEmbedding: a copy on another backend; tokens out of range") {
  const AdaptiveEmbedding<float> layer(embedding_configs[0], Random(3));
  const auto copy = infty::to<infty::EigenBackend>(layer);
  const auto tokens = Tensor<Index>::from({2}, {10, 4});
  CHECK(copy.forward(tokens).value().to_vector() == layer.forward(tokens).value().to_vector());
  CHECK_THROWS_WITH(layer.forward(Tensor<Index>::from({3}, {0, 11, 1})),
                    "[embedding] token 11 at place 1: tokens must lie in [0, 11)");
  CHECK_THROWS_AS(layer.forward(Tensor<Index>::from({1}, {-1})), infty::ValueError);
  CHECK_THROWS_AS(layer.forward(Tensor<Index>::zeros({1, 1, 1, 1, 1, 1})), infty::ShapeError);
}

TEST_CASE("AdaptiveEmbedding: the projection of a cluster that there is not is refused") {
  for (const AdaptiveConfig& config : embedding_configs) {
    const AdaptiveEmbedding<float> layer(config, Random(3));
    for (const Index i : {Index{-1}, config.clusters()})
      CHECK_THROWS_WITH(layer.projection(i), "[AdaptiveEmbedding::projection] cluster " +
                                                 std::to_string(i) + ": there are " +
                                                 std::to_string(config.clusters()));
  }
}
