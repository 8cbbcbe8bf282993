// SPDX-License-Identifier: MIT
#include <cstddef>
#include <string>
#include <vector>

#include <infty/autograd/clone.hpp>
#include <infty/autograd/tape.hpp>
#include <infty/memory/infty_memory.hpp>
#include <infty/model/transformer_lm.hpp>
#include <infty/nn/linear.hpp>
#include <infty/train/adam.hpp>

#include "support/catch.hpp"

using infty::Index;
using infty::Random;
using infty::Shape;
using infty::Tensor;
using infty::Variable;

namespace {

/// Two maps with one weight, one of them also read in double.
struct TiedMaps {
  infty::Linear<float> first{3, 3, Random(1)}, second{3, 3, Random(2)};
  std::vector<Variable<double>> factors{Variable<double>(Tensor<double>::full({2}, 3), true),
                                        Variable<double>()};
  Index steps = 5;  // not a parameter

  TiedMaps() {
    second.weight = first.weight;
    second.bias.set_requires_grad(false);
  }

  template <class Visitor>
  void visit(Visitor&& see) {
    see("first", first);
    see("second", second);
    see("factors", factors);
  }
};

template <class L>
std::vector<float> values_of(const L& layer) {
  std::vector<float> all;
  infty::for_each_parameter(layer, [&](const std::string&, const Variable<float>& p) {
    for (const float x : p.value().to_vector()) all.push_back(x);
  });
  return all;
}

using Model = infty::TransformerLM<infty::InftyMemory<float>>;

Model make_tied_model(bool adaptive) {
  infty::TransformerConfig config{
      .vocabulary = 9, .model_dim = 6, .layers = 2, .heads = 2, .head_dim = 4, .feed_forward = 8};
  if (adaptive) {
    config.cutoffs = {3, 5};
    config.div_value = 2;
    config.tie_projections = true;
  }
  return Model(config,
               {.attention = {.capacity = 4},
                .memory = infty::LongTermConfig{.basis = 8, .widths = {.05, .2}, .samples = 6}},
               Random(1));
}

/// One matrix in two places.
struct TwoPlaces {
  Variable<float> first{Tensor<float>::full({2, 3}, .1F), true}, second = first;

  template <class Visitor>
  void visit(Visitor&& see) {
    see("first", first);
    see("second", second);
  }
};

}  // namespace

TEST_CASE(
    "clone: of matrices stored in bfloat16 has them so, of its own, and tied where they were") {
  TwoPlaces layer;
  CHECK(infty::store_in_bfloat16(layer) == 12);
  const auto twin = infty::clone(layer);
  REQUIRE(twin.first.stored_in_bfloat16());
  CHECK(same(twin.first, twin.second));
  layer.first.value().fill(7);
  CHECK(twin.first.value().to_vector() ==
        std::vector<float>(6, static_cast<float>(infty::BFloat16(.1F))));
}

TEST_CASE("clone: has the values, and none of the handles") {
  const TiedMaps layer;
  TiedMaps copy = infty::clone(layer);
  CHECK(copy.first.weight.value().to_vector() == layer.first.weight.value().to_vector());
  CHECK(copy.factors[0].value().to_vector() == std::vector<double>{3, 3});
  CHECK(copy.steps == 5);
  CHECK_FALSE(same(copy.first.weight, layer.first.weight));
  copy.first.weight.value().fill(7);
  copy.first.bias.value().fill(7);
  copy.factors[0].value().fill(7);
  for (const float x : layer.first.weight.value().to_vector()) CHECK(x != 7);
  for (const float x : layer.first.bias.value().to_vector()) CHECK(x != 7);
  CHECK(layer.factors[0].value().to_vector() == std::vector<double>{3, 3});
}

TEST_CASE("clone: a copy of a layer is another handle of the same weights") {
  const TiedMaps layer;
  TiedMaps copy = layer;
  CHECK(same(copy.first.weight, layer.first.weight));
  copy.first.weight.value().fill(7);
  CHECK(layer.second.weight.value().to_vector() == std::vector<float>(9, 7));
}

TEST_CASE("clone: what is tied is tied, what needs a gradient needs one, and none has arrived") {
  TiedMaps layer;
  layer.first.weight.grad().fill(1);
  const TiedMaps copy = infty::clone(layer);
  CHECK(same(copy.first.weight, copy.second.weight));
  CHECK_FALSE(same(copy.first.bias, copy.second.bias));
  CHECK(copy.first.weight.requires_grad());
  CHECK(copy.first.bias.requires_grad());
  CHECK_FALSE(copy.second.bias.requires_grad());
  CHECK_FALSE(copy.first.weight.has_grad());
  CHECK(layer.first.weight.has_grad());
  CHECK(infty::count_parameters(copy) == infty::count_parameters(layer));
}

TEST_CASE("clone: empty variables of a layer stay apart") {
  TiedMaps layer;
  layer.factors = std::vector<Variable<double>>(2);
  TiedMaps copy = infty::clone(layer);
  copy.factors[0].value() = Tensor<double>::zeros({4});
  CHECK(copy.factors[1].value().empty());
  CHECK(layer.factors[0].value().empty());
}

TEST_CASE("clone: a language model with tied embedding trains alone") {
  for (const bool adaptive : {false, true}) {
    const Model model = make_tied_model(adaptive);
    const auto before = values_of(model);
    Model copy = infty::clone(model);
    CHECK(values_of(copy) == before);
    for (std::size_t i = 0; i < copy.head.weights.size(); ++i) {
      CHECK(same(copy.head.weights[i], copy.embedding.weights[i]));
      CHECK_FALSE(same(copy.head.weights[i], model.head.weights[i]));
    }
    for (std::size_t i = 1; i < copy.head.projections.size(); ++i)
      CHECK(same(copy.head.projections[i], copy.embedding.projections[i]));
    const auto tokens = Tensor<Index>::from(Shape{1, 5}, {1, 8, 3, 0, 4});
    infty::Adam<float> adam(copy, {.learning_rate = .1});
    auto state = copy.make_state(1);
    for (int step = 0; step < 2; ++step) {
      infty::Tape tape;
      adam.zero_grad();
      tape.backward(infty::sum(copy.losses(copy.forward(state, tokens), tokens)));
      adam.step();
    }
    CHECK(values_of(model) == before);
    const auto was = model.embedding.weights[0].value().to_vector(),
               is = copy.embedding.weights[0].value().to_vector();
    for (std::size_t i = 0; i < was.size(); ++i) CHECK(is[i] != was[i]);
    infty::for_each_parameter(model, [](const std::string& name, const Variable<float>& p) {
      CAPTURE(name);
      CHECK_FALSE(p.has_grad());
    });
  }
}
