// SPDX-License-Identifier: MIT
#include <vector>

#include <infty/autograd/reduce.hpp>
#include <infty/model/cross_block.hpp>
#include <infty/testing/gradient_check.hpp>
#include <infty/train/named_parameters.hpp>

#include "support/catch.hpp"
#include "support/tensors.hpp"

TEST_CASE("CrossBlock: attends to the context, with a norm behind each sum") {
  using V = infty::Variable<double>;
  infty::CrossBlock<double> block({.model_dim = 4, .heads = 2, .head_dim = 3}, 5, infty::Random(1));
  infty::Random random(infty::tests::seed);
  for (auto* norm : {&block.attention_norm, &block.feed_norm}) {
    fill_uniform(norm->weight.value(), .5, 1.5, random);
    fill_uniform(norm->bias.value(), -1, 1, random);
  }
  const V x = infty::tests::uniform_variable<double>({2, 3, 4}, random),
          context = infty::tests::uniform_variable<double>({2, 5, 4}, random);
  infty::Pass<double> pass;
  const V a = block.attention_norm.forward(x + block.attention.forward(x, context));
  const V wanted = block.feed_norm.forward(a + block.feed.forward(a, pass));
  CHECK(block.forward(x, context, pass).value().to_vector() == wanted.value().to_vector());

  const auto loss = [&] {
    const V y = block.forward(x, context, pass);
    return sum(y * y);
  };
  CHECK(infty::gradient_check(loss, std::vector<V>{x, context}) < 1e-6);
  CHECK(infty::gradient_check(loss, infty::named_parameters<double>(block)) < 1e-6);
  CHECK_THROWS_AS(block.forward(x, V(infty::Tensor<double>({2, 5, 3})), pass), infty::ShapeError);
}
