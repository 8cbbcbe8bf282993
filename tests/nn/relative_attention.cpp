// SPDX-License-Identifier: MIT
#include <vector>

#include <infty/autograd/elementwise.hpp>
#include <infty/autograd/parameters.hpp>
#include <infty/nn/relative_attention.hpp>
#include <infty/testing/gradient_check.hpp>

#include "support/catch.hpp"
#include "support/tensors.hpp"

using infty::Index;
using infty::Random;
using infty::Shape;
using infty::Tensor;
using infty::Variable;

TEST_CASE("RelativeAttention: gradients of all maps and of the biases") {
  Random random(infty::tests::seed);
  infty::RelativeAttention<double> layer({.model_dim = 4, .heads = 2, .head_dim = 3},
                                         random.split(1));
  auto inputs = infty::parameters<double>(layer);
  CHECK(inputs.size() == 7);
  for (auto* bias : {&layer.content_bias, &layer.position_bias}) {
    CHECK(bias->value().to_vector() == std::vector<double>(6, 0));
    fill_uniform(bias->value(), -1, 1, random);
  }
  const auto context = infty::tests::uniform_variable<double>({2, 5, 4}, random);
  const auto x = infty::tests::uniform_variable<double>({2, 3, 4}, random);
  const Variable<double> encoding(infty::distance_encoding<double>(5, 4));
  for (const auto& v : {context, x}) inputs.push_back(v);
  const auto loss = [&] {
    const auto z = layer.out.forward(layer.read(layer.query.forward(x), layer.key.forward(context),
                                                layer.value.forward(context),
                                                layer.position.forward(encoding), Tensor<Index>()));
    return infty::sum(z * z);
  };
  CHECK(infty::gradient_check(loss, inputs) < 1e-7);
}

TEST_CASE("RelativeAttention: a sibling has maps of its own, and shares biases and distances") {
  const infty::RelativeAttention<float> layer({.model_dim = 4, .heads = 2, .head_dim = 3},
                                              Random(1));
  infty::RelativeAttention<float> other = layer.sibling(Random(2));
  for (const auto map :
       {&infty::RelativeAttention<float>::query, &infty::RelativeAttention<float>::key,
        &infty::RelativeAttention<float>::value, &infty::RelativeAttention<float>::position,
        &infty::RelativeAttention<float>::out}) {
    const auto &mine = (layer.*map).weight, &its = (other.*map).weight;
    CHECK(mine.shape() == its.shape());
    CHECK(mine.value().to_vector() != its.value().to_vector());
  }
  other.content_bias.value().fill(2);
  other.position_bias.value().fill(3);
  CHECK(layer.content_bias.value().to_vector() == std::vector<float>(6, 2));
  CHECK(layer.position_bias.value().to_vector() == std::vector<float>(6, 3));
  // The sibling's parameters are as its seed alone would have them.
  const infty::RelativeAttention<float> same({.model_dim = 4, .heads = 2, .head_dim = 3},
                                             Random(2));
  CHECK(other.out.weight.value().to_vector() == same.out.weight.value().to_vector());
  const auto table = layer.encoding(7);
  CHECK(table.shape() == Shape{7, 4});
  CHECK(other.encoding(3).data() == table.data());
}

TEST_CASE("RelativeAttention: sizes that do not fit") {
  CHECK_THROWS_WITH(
      infty::RelativeAttention<float>({.model_dim = 4, .heads = 0, .head_dim = 3}, Random(1)),
      "[AttentionSizes] model_dim is 4, heads 0, head_dim 3: they must be >= 1");
  CHECK_THROWS_WITH(
      infty::RelativeAttention<float>({.model_dim = 5, .heads = 2, .head_dim = 3}, Random(1)),
      "[RelativeAttention] model_dim is 5: it must be even, for the encoding of distances");
  const infty::RelativeAttention<float> layer({.model_dim = 4, .heads = 2, .head_dim = 3},
                                              Random(1));
  const Variable<float> q(Tensor<float>::zeros({1, 2, 6})), keys(Tensor<float>::zeros({1, 3, 6})),
      five(Tensor<float>::zeros({1, 3, 5})), r(Tensor<float>::zeros({3, 6})),
      few(Tensor<float>::zeros({2, 6}));
  CHECK(layer.read(q, keys, keys, r, {}).shape() == Shape{1, 2, 6});
  CHECK_THROWS_AS(layer.read(q, five, five, r, {}), infty::ShapeError);
  CHECK_THROWS_AS(layer.read(q, keys, five, r, {}), infty::ShapeError);
  CHECK_THROWS_AS(layer.read(q, keys, keys, few, {}), infty::ShapeError);
}
