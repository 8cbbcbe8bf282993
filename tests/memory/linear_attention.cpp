// SPDX-License-Identifier: MIT
#include <vector>

#include <infty/autograd/reduce.hpp>
#include <infty/memory/linear_attention.hpp>
#include <infty/testing/gradient_check.hpp>
#include <infty/testing/memory_invariants.hpp>

#include "io/temporary_folder.hpp"
#include "support/catch.hpp"
#include "support/states.hpp"
#include "support/tensors.hpp"
#include "support/types.hpp"

using infty::Index;
using infty::LinearAttention;
using infty::LinearAttentionConfig;
using infty::Pass;
using infty::Random;
using infty::Shape;
using infty::Tensor;
using infty::Variable;

TEMPLATE_LIST_TEST_CASE("normalized_linear_attention: by hand", "", infty::tests::Types) {
  using T = typename TestType::T;
  using B = typename TestType::B;
  using V = Variable<T, B>;
  // z = (1, 0) + (1, 1) = (2, 1), then (2, 4); S = (0, 6) + 8 (1, 1) = (8, 14), then (8, 14 + 3).
  const V q(Tensor<T, B>::from({1, 2, 1, 2}, {1, 0, 1, 1})),
      k(Tensor<T, B>::from({1, 2, 1, 2}, {1, 1, 0, 3})),
      v(Tensor<T, B>::from({1, 2, 1, 1}, {8, 1})), state(Tensor<T, B>::from({1, 1, 2, 1}, {0, 6})),
      norm(Tensor<T, B>::from({1, 1, 2}, {1, 0}));
  for (const Index chunk : {0, 1, 2}) {
    CAPTURE(chunk);
    const auto got = infty::normalized_linear_attention<T, B>({q, k, v}, state, norm, 0,
                                                              {.scale = 2, .chunk = chunk});
    CHECK(infty::tests::error(got.output.value().to_vector(), std::vector<double>{4, 25. / 6}) <
          infty::tests::tolerance<T>);
    CHECK(got.state.value().to_vector() == std::vector<T>{8, 17});
    CHECK(got.norm.value().to_vector() == std::vector<T>{2, 4});
  }
}

TEMPLATE_LIST_TEST_CASE("LinearAttention: in pieces as at once", "", infty::tests::Types) {
  using T = typename TestType::T;
  using B = typename TestType::B;
  for (const bool normalized : {false, true}) {
    const LinearAttention<T, B> layer({.normalized = normalized, .chunk = 4},
                                      {.model_dim = 6, .heads = 2, .head_dim = 3}, Random(1));
    Random random(infty::tests::seed);
    const Variable<T, B> x(infty::tests::uniform_tensor<T, B>({2, 9, 6}, random));
    Pass<T, B> pass;
    auto at_once = layer.make_state(2), in_pieces = layer.make_state(2);
    const auto expected = layer.forward(at_once, x, pass);
    Variable<T, B> got(Tensor<T, B>(Shape{2, 0, 6}));
    for (Index i = 0; i < 9; ++i)
      got = concat(got, layer.forward(in_pieces, narrow(x, i, i + 1), pass));
    CHECK(infty::tests::error(got.value().to_vector(), expected.value().to_vector()) <
          infty::tests::tolerance<T>);
    CHECK(infty::tests::error(infty::tests::numbers_of(in_pieces),
                              infty::tests::numbers_of(at_once)) < infty::tests::tolerance<T>);
  }
}

TEST_CASE("normalized_linear_attention: gradients of all inputs and of both states") {
  Random random(infty::tests::seed);
  using infty::tests::uniform_variable;
  const Shape shape{2, 5, 2, 3};
  const auto q = uniform_variable<double>(shape, random, .1, 1),
             k = uniform_variable<double>(shape, random, .1, 1),
             v = uniform_variable<double>(shape, random),
             state = uniform_variable<double>({2, 2, 3, 3}, random),
             norm = uniform_variable<double>({2, 2, 3}, random, 0, 1);
  const Variable<double> by(infty::tests::uniform_tensor<double>(shape, random));
  for (const Index chunk : {0, 2}) {
    const auto loss = [&] {
      const auto got = infty::normalized_linear_attention<double, infty::EigenBackend>(
          {q, k, v}, state, norm, .1, {.chunk = chunk});
      return infty::sum(got.output * by) + infty::sum(got.state * got.state) +
             infty::sum(got.norm * got.norm);
    };
    CHECK(infty::gradient_check(loss, std::vector{q, k, v, state, norm}) < 1e-7);
  }
}

TEST_CASE("LinearAttention: keeps to what every mixer keeps to") {
  const infty::tests::TemporaryFolder folder;
  infty::testing::require_mixer<LinearAttention<double>>({}, folder / "state");
  infty::testing::require_mixer<LinearAttention<double>>(
      {.features = infty::FeatureMap::identity, .normalized = false, .chunk = 3}, folder / "state");
}

TEST_CASE("LinearAttention: what does not fit") {
  const infty::AttentionSizes sizes{.model_dim = 6, .heads = 2, .head_dim = 3};
  const auto make = [&](LinearAttentionConfig config) {
    return LinearAttention<float>(config, sizes);
  };
  CHECK_THROWS_WITH(make({.epsilon = -1}),
                    "[LinearAttentionConfig] epsilon is -1: it must be finite and >= 0");
  CHECK_THROWS_WITH(make({.scale = -1}),
                    "[LinearAttentionConfig] scale is -1: it must be finite and >= 0");
  CHECK_THROWS_WITH(make({.chunk = -1}),
                    "[LinearAttentionConfig] chunk is -1: it must be at least 0");
  CHECK_THROWS_AS(LinearAttention<float>({}, {.heads = 0}), infty::ValueError);
  const auto layer = make({});
  CHECK_THROWS_AS(layer.make_state(0), infty::ValueError);
  Pass<float> pass;
  auto state = layer.make_state(2), other = make({.normalized = false}).make_state(2);
  const Variable<float> x(Tensor<float>::zeros({2, 3, 6}));
  CHECK_THROWS_AS(layer.forward(other, x, pass), infty::ShapeError);
  CHECK_THROWS_AS(layer.forward(state, narrow(x, 0, 2).value().slice(0, 1), pass),
                  infty::ShapeError);
  const auto zeros = [](Shape shape) { return Variable<float>(Tensor<float>::zeros(shape)); };
  using Inputs = infty::DeltaRuleInputs<float>;
  const auto q = zeros({1, 2, 2, 3});
  CHECK_THROWS_AS(
      infty::normalized_linear_attention(Inputs{q, q, q}, zeros({1, 2, 3, 3}), zeros({1, 2, 4})),
      infty::ShapeError);
  CHECK_THROWS_AS(infty::normalized_linear_attention(Inputs{q, q, zeros({1, 2, 4, 3})},
                                                     zeros({1, 4, 3, 3}), zeros({1, 2, 3})),
                  infty::ShapeError);
}
