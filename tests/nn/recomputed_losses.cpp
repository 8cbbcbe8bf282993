// SPDX-License-Identifier: MIT
#include <tuple>
#include <vector>

#include <infty/autograd/reduce.hpp>
#include <infty/nn/adaptive_softmax.hpp>
#include <infty/nn/recomputed_losses.hpp>
#include <infty/testing/gradient_check.hpp>

#include "support/catch.hpp"
#include "support/queue.hpp"
#include "support/tensors.hpp"
#include "support/types.hpp"

using infty::ignore_index;
using infty::Index;
using infty::Random;
using infty::Tensor;
using infty::Variable;
using infty::detail::recomputed_losses;
using infty::tests::uniform_variable;

TEMPLATE_LIST_TEST_CASE("recomputed_losses: those of all scores at once, and their gradients", "",
                        infty::tests::Types) {
  using T = typename TestType::T;
  using B = typename TestType::B;
  const auto targets = Tensor<Index, B>::from({7}, {0, 4, ignore_index, 2, 2, ignore_index, 3});
  const auto results = [&](Index most) {
    Random random(infty::tests::seed);
    const auto x = uniform_variable<T, B>({7, 3}, random),
               weight = uniform_variable<T, B>({5, 3}, random),
               bias = uniform_variable<T, B>({5}, random);
    infty::Tape tape;
    const auto losses = most == 0 ? token_losses(linear(x, weight, bias), targets)
                                  : recomputed_losses(x, weight, bias, targets, most);
    tape.backward(infty::sum(losses * losses));
    return std::vector{losses.value().to_vector(), x.grad().to_vector(), weight.grad().to_vector(),
                       bias.grad().to_vector()};
  };
  const auto expected = results(0);
  CHECK(expected[0][2] == T(0));
  // Pieces of one row, though it has more scores; of two, of four, of all.
  for (const Index most : {1, 11, 20, 1000}) {
    const auto got = results(most);
    for (std::size_t i = 0; i < got.size(); ++i)
      CHECK(infty::tests::error(got[i], expected[i]) <= infty::tests::tolerance<T>);
  }
}

TEST_CASE("recomputed_losses: gradient; no rows") {
  Random random(infty::tests::seed);
  const auto x = uniform_variable<double>({4, 3}, random),
             weight = uniform_variable<double>({5, 3}, random),
             bias = uniform_variable<double>({5}, random);
  const auto targets = Tensor<Index>::from({4}, {1, ignore_index, 0, 4});
  const auto loss = [&] {
    const auto losses = recomputed_losses(x, weight, bias, targets, 10);
    return infty::sum(losses * losses);
  };
  CHECK(infty::gradient_check(loss, std::vector{x, weight, bias}) < 1e-7);
  const Variable<double> none(Tensor<double>::zeros({0, 3}));
  CHECK(recomputed_losses(none, weight, bias, Tensor<Index>::zeros({0})).shape() ==
        infty::Shape{0});
}

TEST_CASE("adaptive embedding and softmax: by all rows as by those of each cluster") {
  using infty::tests::Queue;
  for (const Index div_value : {1, 2}) {
    const infty::AdaptiveConfig config{
        .vocabulary = 11, .model_dim = 6, .cutoffs = {3, 7}, .div_value = div_value};
    const auto results = [&]<class B>(const B&) {
      const infty::AdaptiveEmbedding<double, B> embedding(config, Random(1));
      const infty::AdaptiveSoftmax<double, B> softmax(config, Random(2));
      const auto tokens = Tensor<Index, B>::from({2, 3}, {10, 0, 2, 3, 7, 6}),
                 targets = Tensor<Index, B>::from({2, 3}, {10, 0, 2, ignore_index, 8, 6});
      infty::Tape tape;
      const auto embedded = embedding.forward(tokens, 2.0);
      const auto losses = softmax.losses(embedded, targets);
      tape.backward(infty::sum(losses * losses));
      std::vector<std::vector<double>> out{embedded.value().to_vector(),
                                           losses.value().to_vector()};
      const auto add = [&](const auto& parts) {
        for (const auto& part : parts) out.push_back(part.grad().to_vector());
      };
      add(embedding.weights);
      add(embedding.projections);
      add(softmax.weights);
      add(softmax.biases);
      add(softmax.projections);
      out.push_back(softmax.cluster_weight.grad().to_vector());
      out.push_back(softmax.cluster_bias.grad().to_vector());
      return out;
    };
    const auto each = results(infty::EigenBackend()), all = results(Queue());
    REQUIRE(all.size() == each.size());
    for (std::size_t i = 0; i < all.size(); ++i) {
      CAPTURE(div_value, i);
      CHECK(infty::tests::error(all[i], each[i]) <= 1e-13);
    }
  }
}

TEST_CASE("tokens_in_cluster: counted from its first, others apart") {
  const auto bounds =
      infty::AdaptiveConfig{.vocabulary = 9, .model_dim = 1, .cutoffs = {2, 5}}.bounds();
  const auto tokens = Tensor<Index>::from({2, 3}, {0, 2, 4, 5, 8, -1});
  CHECK(infty::detail::tokens_in_cluster(bounds, tokens, 1, -7).to_vector() ==
        std::vector<Index>{-7, 0, 2, -7, -7, -7});
  CHECK(infty::detail::tokens_in_cluster(bounds, tokens, 2, -7).to_vector() ==
        std::vector<Index>{-7, -7, -7, 0, 3, -7});
}
