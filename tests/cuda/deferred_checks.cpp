// SPDX-License-Identifier: MIT
// What is computed from bad tokens, targets and counts before a device's check of them is read: of
// no use, but without touching memory that is not theirs.
#include <cmath>
#include <concepts>
#include <limits>
#include <tuple>
#include <vector>

#include <infty/autograd/elementwise.hpp>
#include <infty/autograd/reduce.hpp>
#include <infty/nn/attention.hpp>
#include <infty/nn/cross_entropy.hpp>
#include <infty/nn/embedding.hpp>
#include <infty/nn/local_attention.hpp>
#include <infty/nn/two_way_attention.hpp>
#include <infty/nn/weighted_rows.hpp>

#include "support/catch.hpp"
#include "support/tensors.hpp"
#include "support/types.hpp"

using infty::Index;
using infty::Random;
using infty::Tensor;
using infty::Variable;
using infty::tests::uniform_variable;

namespace {

/// Never looks at what its checks find.
struct Trusting : std::tuple_element_t<0, infty::tests::Types>::B {
  template <class Bad, class Report>
  static void verify(Index, Bad, Report) {}
};

/// The same, with the compositions for its own kernels.
class Composing : public Trusting {
  using FusedAttention = void;
  using FusedTokenLosses = void;
};
static_assert(std::same_as<infty::detail::chosen_t<infty::ComposedTokenLosses<Composing>>,
                           infty::ComposedTokenLosses<Composing>>);

constexpr Index far = std::numeric_limits<Index>::max() / 2;

}  // namespace

TEST_CASE("embedding: a token that is not there is a row of zeros and has no gradient") {
  using B = Trusting;
  Random random(infty::tests::seed);
  const auto table = uniform_variable<float, B>({4, 3}, random);
  infty::Tape tape;
  const auto y = infty::embedding(Tensor<Index, B>::from({6}, {-1, 1, far, -far, 1, 4}), table);
  tape.backward(infty::sum(y));
  for (const Index row : {0, 2, 3, 5})
    CHECK(y.value().slice(row, row + 1).to_vector() == std::vector<float>(3, 0));
  CHECK(y.value().slice(1, 2).to_vector() == table.value().slice(1, 2).to_vector());
  CHECK(table.grad().to_vector() == std::vector<float>{0, 0, 0, 2, 2, 2, 0, 0, 0, 0, 0, 0});
}

TEMPLATE_TEST_CASE("cross_entropy: a target that is not there makes the loss NaN", "", Trusting,
                   Composing) {
  using B = TestType;
  Random random(infty::tests::seed);
  const auto logits = uniform_variable<float, B>({4, 9}, random);
  for (const Index target : {Index{-1}, Index{9}, far, -far}) {
    infty::Tape tape;
    const auto loss = infty::cross_entropy(logits, Tensor<Index, B>::from({4}, {1, target, 2, 8}));
    tape.backward(loss);
    CHECK(std::isnan(loss.value().item()));
  }
}

TEMPLATE_TEST_CASE("relative_attention: counts out of range are taken for the nearest in range", "",
                   Trusting, Composing) {
  using B = TestType;
  const auto results = [](std::vector<Index> visible) {
    Random random(infty::tests::seed);
    const auto draw = [&](infty::Shape shape) { return uniform_variable<float, B>(shape, random); };
    const auto q = draw({2, 3, 8}), k = draw({2, 7, 8}), v = draw({2, 7, 8}), r = draw({7, 8}),
               u = draw({2, 4}), w = draw({2, 4});
    infty::Tape tape;
    const auto y =
        infty::relative_attention(q, k, v, r, u, w, Tensor<Index, B>::from({2}, visible));
    tape.backward(infty::sum(y * y));
    std::vector<float> all = y.value().to_vector();
    for (const auto& input : {q, k, v, r, u, w})
      for (const float g : input.grad().to_vector()) all.push_back(g);
    return all;
  };
  const auto nearest = results({0, 4});
  CHECK(results({-1, 5}) == nearest);
  CHECK(results({-far, far}) == nearest);
}

TEST_CASE(
    "weighted_rows: a row that is not there is one of zeros, also to the gradient of its weight") {
  using B = Trusting;
  Random random(infty::tests::seed);
  const auto table = uniform_variable<float, B>({4, 3}, random);
  const auto weights = uniform_variable<float, B>({2, 5}, random);
  infty::Tape tape;
  const auto y = infty::weighted_rows(
      weights, Tensor<Index, B>::from({2, 5}, {-1, 1, far, -far, 4, 4, far, -1, -far, 5}), table);
  tape.backward(infty::sum(y));
  const auto row = table.value().slice(1, 2).to_vector();
  const float w = weights.value().to_vector()[1];
  CHECK(y.value().to_vector() == std::vector<float>{w * row[0], w * row[1], w * row[2], 0, 0, 0});
  std::vector<float> d_weights(10, 0);
  d_weights[1] = weights.grad().to_vector()[1];
  CHECK(d_weights[1] == Approx(row[0] + row[1] + row[2]));
  CHECK(weights.grad().to_vector() == d_weights);
  // To that of the table it counts as row 0: see `group_rows`.
  CHECK(table.grad().slice(1, 4).to_vector() == std::vector<float>{w, w, w, 0, 0, 0, 0, 0, 0});
}

TEST_CASE("local_attention, two_way_attention: counts out of range are taken for the nearest") {
  using B = Trusting;
  const auto results = [](std::vector<Index> counts) {
    Random random(infty::tests::seed);
    const auto draw = [&](infty::Shape shape) { return uniform_variable<float, B>(shape, random); };
    const auto q = draw({2, 3, 8}), k = draw({2, 7, 8}), v = draw({2, 7, 8}), r = draw({9, 8}),
               u = draw({2, 4}), w = draw({2, 4});
    const auto visible = Tensor<Index, B>::from({2}, counts);
    infty::Tape tape;
    const auto x = infty::local_attention(q, k, v, Variable<float, B>(),
                                          {.heads = 2, .key_heads = 2, .visible = visible});
    const auto y =
        infty::two_way_attention(q, k, v, r, u, w, infty::AheadPositions::distance, visible);
    tape.backward(infty::sum(x * x) + infty::sum(y * y));
    std::vector<float> all = x.value().to_vector();
    for (const float each : y.value().to_vector()) all.push_back(each);
    for (const auto& input : {q, k, v, r, u, w})
      for (const float g : input.grad().to_vector()) all.push_back(g);
    return all;
  };
  const auto nearest = results({0, 4});
  CHECK(results({-1, 5}) == nearest);
  CHECK(results({-far, far}) == nearest);
}
