// SPDX-License-Identifier: MIT
#include <vector>

#include <infty/model/transformer_lm.hpp>
#include <infty/train/train_step.hpp>

#include "support/catch.hpp"
#include "threads/at_once.hpp"

using infty::Index;
using infty::Random;
using infty::Shape;
using infty::Tensor;
using infty::tests::same_at_once;
using Model = infty::TransformerLM<float>;

namespace {

Model make_model(std::uint64_t seed) {
  return Model({.vocabulary = 5, .model_dim = 4, .layers = 2, .heads = 2, .feed_forward = 6},
               {.short_term = {.capacity = 4, .stride = 2},
                .long_term = infty::LongTermConfig{.basis = 4,
                                                   .widths = {.1, .2},
                                                   .samples = 6,
                                                   .resampling = infty::Resampling::sticky,
                                                   .bins = 8}},
               Random(seed));
}

Tensor<Index> tokens(Index length, Random& random) {
  Tensor<Index> out(Shape{2, length});
  for (Index i = 0; i < out.size(); ++i) out.data()[i] = random.below(5);
  return out;
}

}  // namespace

TEST_CASE("threads: one model answers and observes for states of their own") {
  // Of segments that grow, and with them the model's table of distances.
  const Model model = make_model(1);
  CHECK(same_at_once([&](int i) {
    Random random(static_cast<std::uint64_t>(i));
    auto state = model.make_state(2, i);
    std::vector<float> all;
    for (Index n = 0; n < 6; ++n) {
      const auto hidden = model.forward(state, tokens(1 + n + i % 2, random)).hidden;
      for (const float x : model.logits(hidden).value().to_vector()) all.push_back(x);
      model.observe(state, tokens(4, random), 3);
    }
    return all;
  }));
}

TEST_CASE("threads: models of their own are trained") {
  CHECK(same_at_once([](int i) {
    Model model = make_model(static_cast<std::uint64_t>(i));
    infty::Adam<float> adam(model);
    Random random(7);
    auto state = model.make_state(2);
    std::vector<double> losses;
    for (int n = 0; n < 3; ++n) {
      const auto input = tokens(3, random), target = tokens(3, random);
      const auto loss = [&] {
        return infty::cross_entropy(model.logits(model.forward(state, input).hidden), target);
      };
      losses.push_back(infty::train_step(adam, {}, loss).loss);
    }
    return losses;
  }));
}
