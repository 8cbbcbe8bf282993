// SPDX-License-Identifier: MIT
#include <vector>

#include <infty/memory/linear_attention.hpp>
#include <infty/memory/memsizer.hpp>
#include <infty/model/transformer_lm.hpp>
#include <infty/nn/with_places.hpp>
#include <infty/testing/memory_invariants.hpp>

#include "io/temporary_folder.hpp"
#include "support/catch.hpp"
#include "support/states.hpp"
#include "support/tensors.hpp"
#include "support/types.hpp"

using infty::Index;
using infty::Pass;
using infty::Random;
using infty::RowCounts;
using infty::Variable;
using infty::WithPlaces;
using infty::tests::numbers_of;

TEMPLATE_LIST_TEST_CASE("WithPlaces: rows have places of their own, which go on until a reset", "",
                        infty::tests::Types) {
  using T = typename TestType::T;
  using B = typename TestType::B;
  using V = Variable<T, B>;
  const infty::LinearAttention<T, B> linear({}, {.model_dim = 4, .heads = 2, .head_dim = 3},
                                            Random(1));
  const WithPlaces<infty::LinearAttention<T, B>> placed(linear);
  auto state = placed.make_state(2), silent = state;
  auto inner = linear.make_state(2);
  Random random(infty::tests::seed);
  RowCounts first{0, 0};
  for (const Index length : {3, 1, 5}) {
    CAPTURE(length);
    const V x(infty::tests::uniform_tensor<T, B>({2, length, 4}, random));
    Pass<T, B> pass;
    const auto got = placed.forward(state, x, pass);
    const V with = add(x, V(infty::place_encoding<T, B>(first, length, 4)));
    CHECK(got.value().to_vector() == linear.forward(inner, with, pass).value().to_vector());
    CHECK(numbers_of(state.inner) == numbers_of(inner));
    for (Index& row : first) row += length;
    CHECK(state.read == first);

    Pass<T, B> unanswered{.answer = false};
    placed.forward(silent, x, unanswered);
    CHECK(numbers_of(silent) == numbers_of(state));
    if (length != 3) continue;
    for (auto* const of : {&state, &silent}) reset_row(*of, 1);
    reset_row(inner, 1);
    first[1] = 0;
  }
  const auto before = numbers_of(state);
  Pass<T, B> pass;
  for (const infty::Shape& wrong : {infty::Shape{3, 1, 4}, {2, 4}, {2, 1, 6}})
    CHECK_THROWS_AS(placed.forward(state, V(infty::Tensor<T, B>::zeros(wrong)), pass),
                    infty::ShapeError);
  CHECK_THROWS_AS(placed.forward(state, V(infty::Tensor<T, B>::zeros({2, 1, 5})), pass),
                  infty::ValueError);
  CHECK(numbers_of(state) == before);
  CHECK_THROWS_AS(placed.make_state(0), infty::ValueError);
}

TEST_CASE("WithPlaces: the last of all places, and none behind it") {
  using Inner = infty::LinearAttention<double>;
  const WithPlaces<Inner> placed(Inner({}, {.model_dim = 4, .heads = 1, .head_dim = 2}, Random(1)));
  auto state = placed.make_state(1);
  state.read[0] = infty::most_places - 2;
  const Variable<double> one(infty::Tensor<double>::zeros({1, 1, 4}));
  Pass<double> pass;
  placed.forward(state, one, pass);
  placed.forward(state, one, pass);
  const auto before = numbers_of(state);
  CHECK_THROWS_AS(placed.forward(state, one, pass), infty::ValueError);
  CHECK(numbers_of(state) == before);
}

TEST_CASE("PlacedMixer: keeps what every mixer keeps") {
  const infty::tests::TemporaryFolder folder;
  using infty::testing::require_mixer;
  require_mixer<infty::PlacedMixer<infty::LinearAttention<double>>>({}, folder / "state");
  require_mixer<infty::PlacedMixer<infty::MemSizer<double>>>({.slots = 3}, folder / "state");
}

TEST_CASE("PlacedMixer: sums in the place of attention know of the order of words with it alone") {
  const auto answer = [](const auto& model, const std::vector<Index>& words) {
    auto state = model.make_state(1);
    const auto y = model.forward(state, infty::Tensor<Index>::from({1, 3}, words));
    return narrow(y, 2, 3).value().to_vector();
  };
  const infty::TransformerConfig sizes{
      .vocabulary = 5, .model_dim = 4, .layers = 1, .heads = 1, .feed_forward = 4};
  using Linear = infty::LinearAttention<double>;
  const infty::TransformerLM<Linear> plain(sizes);
  const infty::TransformerLM<infty::PlacedMixer<Linear>> placed(sizes);
  CHECK(infty::tests::error(answer(plain, {1, 2, 3}), answer(plain, {2, 1, 3})) < 1e-14);
  CHECK(infty::tests::error(answer(placed, {1, 2, 3}), answer(placed, {2, 1, 3})) > 1e-6);
}
