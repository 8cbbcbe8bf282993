// SPDX-License-Identifier: MIT
#include <algorithm>
#include <cmath>
#include <string>
#include <utility>
#include <vector>

#include <infty/autograd/parameters.hpp>
#include <infty/nn/adaptive_softmax.hpp>
#include <infty/testing/gradient_check.hpp>

#include "support/catch.hpp"
#include "support/tensors.hpp"
#include "support/threads.hpp"
#include "support/types.hpp"

using infty::AdaptiveConfig;
using infty::AdaptiveEmbedding;
using infty::AdaptiveSoftmax;
using infty::ignore_index;
using infty::Index;
using infty::Random;
using infty::Shape;
using infty::Tensor;
using infty::Variable;

namespace {

const AdaptiveConfig narrower{.vocabulary = 11, .model_dim = 6, .cutoffs = {3, 7}, .div_value = 2};
const AdaptiveConfig equally_wide{.vocabulary = 11, .model_dim = 6, .cutoffs = {3, 7}};
const AdaptiveConfig of_another_width{
    .vocabulary = 11, .model_dim = 6, .cutoffs = {5}, .embedding_dim = 4};
const AdaptiveConfig one_cluster{.vocabulary = 11, .model_dim = 6};

/// A layer whose biases are no zeros.
template <class T, class B>
AdaptiveSoftmax<T, B> softmax_of(const AdaptiveConfig& config) {
  AdaptiveSoftmax<T, B> layer(config, Random(5));
  Random random(6);
  for (auto& bias : layer.biases) fill_uniform(bias.value(), -1, 1, random);
  if (config.clusters() > 1) fill_uniform(layer.cluster_bias.value(), -1, 1, random);
  return layer;
}

/// log p of all tokens for each of the vectors, as the definition says, one by one.
template <class T, class B>
std::vector<double> log_probabilities_one_by_one(const AdaptiveSoftmax<T, B>& layer,
                                                 const std::vector<T>& hidden) {
  const AdaptiveConfig& config = layer.config();
  const auto scores = [&](const T* x, Index i) {
    const auto at = static_cast<std::size_t>(i);
    const auto w = layer.weights[at].value().to_vector(), b = layer.biases[at].value().to_vector();
    const auto cluster_w = layer.cluster_weight.value().to_vector(),
               cluster_b = layer.cluster_bias.value().to_vector();
    const Index d = config.model_dim, width = config.width(i);
    std::vector<double> mapped(x, x + d), out;
    if (!layer.projections.empty()) {
      const auto p = layer.projections[at].value().to_vector();
      mapped.assign(static_cast<std::size_t>(width), 0);
      for (Index j = 0; j < d; ++j)
        for (Index c = 0; c < width; ++c)
          mapped[static_cast<std::size_t>(c)] +=
              static_cast<double>(x[j]) *
              static_cast<double>(p[static_cast<std::size_t>(j * width + c)]);
    }
    const auto score = [&](const std::vector<T>& weight, const std::vector<T>& bias, Index row) {
      double sum = static_cast<double>(bias[static_cast<std::size_t>(row)]);
      for (Index c = 0; c < width; ++c)
        sum += mapped[static_cast<std::size_t>(c)] *
               static_cast<double>(weight[static_cast<std::size_t>(row * width + c)]);
      out.push_back(sum);
    };
    for (Index row = 0; row < config.size(i); ++row) score(w, b, row);
    for (Index row = 0; i == 0 && row + 1 < config.clusters(); ++row)
      score(cluster_w, cluster_b, row);
    double sum = 0;
    for (const double s : out) sum += std::exp(s);
    for (double& s : out) s -= std::log(sum);
    return out;
  };
  std::vector<double> all;
  for (std::size_t at = 0; at < hidden.size(); at += static_cast<std::size_t>(config.model_dim)) {
    const auto head = scores(hidden.data() + at, 0);
    all.insert(all.end(), head.begin(), head.begin() + config.size(0));
    for (Index i = 1; i < config.clusters(); ++i)
      for (const double log_p : scores(hidden.data() + at, i))
        all.push_back(log_p + head[head.size() - static_cast<std::size_t>(i)]);
  }
  return all;
}

}  // namespace

TEMPLATE_LIST_TEST_CASE("AdaptiveSoftmax: the definition, probabilities sum to 1, losses agree", "",
                        infty::tests::Types) {
  using T = typename TestType::T;
  using B = typename TestType::B;
  const double tolerance = infty::tests::tolerance<T>;
  const std::vector<Index> targets{10, 0, 2, 3, ignore_index, 6};
  for (const auto& config : {narrower, equally_wide, of_another_width, one_cluster}) {
    Random random(infty::tests::seed);
    const auto layer = softmax_of<T, B>(config);
    const Variable<T, B> hidden(infty::tests::uniform_tensor<T, B>({2, 3, 6}, random, -2, 2));
    const auto all = layer.log_probabilities(hidden);
    CHECK(all.shape() == Shape{2, 3, 11});
    const auto log_p = all.value().to_vector();
    CHECK(infty::tests::error(
              log_p, log_probabilities_one_by_one(layer, hidden.value().to_vector())) < tolerance);
    const auto losses = layer.losses(hidden, Tensor<Index, B>::from({2, 3}, targets));
    CHECK(losses.shape() == Shape{2, 3});
    const auto loss = losses.value().to_vector();
    for (std::size_t row = 0; row < 6; ++row) {
      double sum = 0;
      for (std::size_t j = 0; j < 11; ++j)
        sum += std::exp(static_cast<double>(log_p[row * 11 + j]));
      CHECK(sum == Approx(1).epsilon(tolerance));
      const double expected =
          targets[row] == ignore_index
              ? 0
              : -static_cast<double>(log_p[row * 11 + static_cast<std::size_t>(targets[row])]);
      CHECK(static_cast<double>(loss[row]) ==
            Approx(expected).margin(tolerance).epsilon(tolerance));
    }
    // One row, one cluster; no row at all; a single vector.
    const auto one = Tensor<Index, B>::from({1}, {6});
    const Variable<T, B> row(hidden.value().reshape({6, 6}).slice(5, 6));
    CHECK(static_cast<double>(layer.losses(row, one).value().item()) ==
          Approx(static_cast<double>(loss[5])).epsilon(tolerance));
    const Variable<T, B> vector(row.value().reshape({6}));
    CHECK(layer.losses(vector, Tensor<Index, B>::from({}, {6})).shape() == Shape{});
    CHECK(layer.log_probabilities(vector).shape() == Shape{11});
    const Variable<T, B> nothing(Tensor<T, B>::zeros({0, 6}));
    CHECK(layer.losses(nothing, Tensor<Index, B>::zeros({0})).shape() == Shape{0});
    CHECK(layer.log_probabilities(nothing).shape() == Shape{0, 11});
  }
}

TEST_CASE("AdaptiveSoftmax: gradient of every parameter and of the input") {
  Random random(infty::tests::seed);
  const auto hidden = infty::tests::uniform_variable<double>({2, 4, 6}, random);
  const auto targets = Tensor<Index>::from({2, 4}, {10, 0, 2, 3, ignore_index, 6, 1, 8});
  const Variable<double> weigh(infty::tests::uniform_tensor<double>({2, 4, 11}, random));
  for (const auto& config : {narrower, equally_wide, of_another_width, one_cluster}) {
    auto layer = softmax_of<double, infty::EigenBackend>(config);
    auto inputs = infty::parameters<double>(layer);
    inputs.push_back(hidden);
    const auto squares = [&] {
      const auto losses = layer.losses(hidden, targets);
      return infty::sum(losses * losses);
    };
    CHECK(infty::gradient_check(squares, inputs) < 1e-7);
    const auto weighed = [&] { return infty::sum(layer.log_probabilities(hidden) * weigh); };
    CHECK(infty::gradient_check(weighed, inputs) < 1e-7);
  }
}

TEST_CASE("AdaptiveSoftmax: clusters without a target get no gradient, ignored rows none at all") {
  auto layer = softmax_of<double, infty::EigenBackend>(narrower);
  Random random(infty::tests::seed);
  const auto hidden = infty::tests::uniform_variable<double>({3, 6}, random);
  infty::Tape tape;
  tape.backward(infty::sum(layer.losses(hidden, Tensor<Index>::from({3}, {1, ignore_index, 9}))));
  CHECK(layer.weights[1].has_grad() == false);
  CHECK(layer.weights[2].has_grad());
  for (std::size_t j = 6; j < 12; ++j) CHECK(hidden.grad().to_vector()[j] == 0);
  // Another number may stand for "ignored": one that a cluster's place in the head has, too.
  const auto ignored = layer.losses(hidden, Tensor<Index>::from({3}, {3, 4, 9}), Index{4});
  CHECK(ignored.value().to_vector()[0] > 0);
  CHECK(ignored.value().to_vector()[1] == 0);
  CHECK(ignored.value().to_vector()[2] > 0);
  const auto none = layer.losses(hidden, Tensor<Index>::full({3}, ignore_index));
  CHECK(none.value().to_vector() == std::vector<double>{0, 0, 0});
}

TEST_CASE("AdaptiveSoftmax: without cutoffs the plain softmax, bit for bit") {
  Random random(infty::tests::seed);
  auto layer = softmax_of<float, infty::EigenBackend>(one_cluster);
  const auto hidden = infty::tests::uniform_variable<float>({4, 6}, random);
  const auto targets = Tensor<Index>::from({4}, {10, 0, ignore_index, 3});
  const auto logits = infty::linear(hidden, layer.weights[0], layer.biases[0]);
  CHECK(layer.head(hidden).value().to_vector() == logits.value().to_vector());
  CHECK(layer.losses(hidden, targets).value().to_vector() ==
        infty::token_losses(logits, targets).value().to_vector());
  std::vector<std::string> names;
  infty::for_each_parameter(layer, [&](const std::string& name, auto&) { names.push_back(name); });
  CHECK(names == std::vector<std::string>{"weight", "bias"});
}

TEST_CASE("AdaptiveSoftmax: tied, it shares the embedding's tables and all maps but the first") {
  AdaptiveEmbedding<double> embedding(narrower, Random(1));
  AdaptiveSoftmax<double> layer(embedding, Random(2));
  for (std::size_t i = 0; i < 3; ++i) CHECK(same(layer.weights[i], embedding.weights[i]));
  CHECK(same(layer.projections[0], embedding.projections[0]) == false);
  CHECK(same(layer.projections[1], embedding.projections[1]));
  CHECK(same(layer.projections[2], embedding.projections[2]));
  std::vector<std::string> names;
  infty::for_each_parameter(layer, [&](const std::string& name, auto&) { names.push_back(name); });
  CHECK(names == std::vector<std::string>{"weight.0", "weight.1", "weight.2", "bias.0", "bias.1",
                                          "bias.2", "projection.0", "projection.1", "projection.2",
                                          "cluster_weight", "cluster_bias"});
  // Gradients of both uses meet in the one table.
  const auto tokens = Tensor<Index>::from({5}, {0, 9, 4, 7, 2});
  const auto targets = Tensor<Index>::from({5}, {9, 4, 7, 2, 5});
  auto inputs = infty::parameters<double>(layer);
  inputs.push_back(embedding.projections[0]);
  const auto loss = [&] { return infty::sum(layer.losses(embedding.forward(tokens), targets)); };
  CHECK(infty::gradient_check(loss, inputs) < 1e-7);
}

TEST_CASE("AdaptiveSoftmax: scores of 1e30 neither overflow nor vanish") {
  auto layer = softmax_of<float, infty::EigenBackend>(equally_wide);
  const Variable<float> hidden(Tensor<float>::full({2, 6}, 1e30f), true);
  infty::Tape tape;
  const auto losses = layer.losses(hidden, Tensor<Index>::from({2}, {1, 9}));
  tape.backward(infty::sum(losses));
  for (const float x : losses.value().to_vector()) CHECK(std::isfinite(x));
  for (const auto& p : infty::parameters<float>(layer))
    for (const float g : p.grad().to_vector()) CHECK(!std::isnan(g));
  for (const float x : layer.log_probabilities(hidden).value().to_vector())
    CHECK((std::isfinite(x) && x <= 0));
}

TEST_CASE("AdaptiveSoftmax: the same bits with one thread and with two") {
  const auto run = [] {
    Random random(infty::tests::seed);
    auto layer = softmax_of<float, infty::EigenBackend>(narrower);
    const auto hidden = infty::tests::uniform_variable<float>({2000, 6}, random);
    Tensor<Index> targets(Shape{2000});
    for (Index i = 0; i < 2000; ++i) targets.data()[i] = random.below(11);
    infty::Tape tape;
    const auto loss = infty::sum(layer.losses(hidden, targets));
    tape.backward(loss);
    auto all = hidden.grad().to_vector();
    for (const auto& p : infty::parameters<float>(layer))
      for (const float g : p.grad().to_vector()) all.push_back(g);
    all.push_back(loss.value().item());
    return all;
  };
  CHECK(infty::tests::with_threads(1, run) == infty::tests::with_threads(2, run));
}

TEST_CASE("AdaptiveSoftmax: shapes and targets that do not fit") {
  const auto layer = softmax_of<float, infty::EigenBackend>(narrower);
  const auto zeros = [](Shape shape) { return Variable<float>(Tensor<float>::zeros(shape)); };
  CHECK_THROWS_WITH(layer.losses(zeros({2, 6}), Tensor<Index>::from({2}, {2, 11})),
                    "[AdaptiveSoftmax::losses] target 11 at place 1: targets must lie in [0, 11)");
  CHECK_THROWS_AS(layer.losses(zeros({2, 6}), Tensor<Index>::from({2}, {-1, 0})),
                  infty::ValueError);
  CHECK_THROWS_WITH(
      layer.losses(zeros({2, 6}), Tensor<Index>::zeros({3})),
      "[AdaptiveSoftmax::losses] hidden is [2, 6], targets [3]: they must be [..., 6] and [...]");
  CHECK_THROWS_WITH(layer.log_probabilities(zeros({2, 5})),
                    "[AdaptiveSoftmax] hidden is [2, 5]: it must be [..., 6]");
  CHECK_THROWS_AS(layer.head(zeros({})), infty::ShapeError);
}

TEST_CASE("AdaptiveSoftmax: is tied to no embedding without tables") {
  const std::string why =
      "[AdaptiveSoftmax] the embedding's tables are not there: it was made by default, or moved "
      "from";
  using Embedding = infty::AdaptiveEmbedding<float>;
  CHECK_THROWS_WITH(infty::AdaptiveSoftmax<float>(Embedding(), Random(1)), why);
  for (const AdaptiveConfig& config : {equally_wide, narrower}) {
    Embedding embedding(config);
    const Embedding taken = std::move(embedding);
    CHECK_THROWS_WITH(infty::AdaptiveSoftmax<float>(embedding, Random(1)), why);
  }
}
