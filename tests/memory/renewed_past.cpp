// SPDX-License-Identifier: MIT
#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include <infty/autograd/shape.hpp>
#include <infty/memory/lamemo.hpp>
#include <infty/memory/renewed_past.hpp>
#include <infty/model/block.hpp>
#include <infty/model/layers.hpp>

#include "support/around.hpp"
#include "support/catch.hpp"
#include "support/states.hpp"
#include "support/tensors.hpp"
#include "support/types.hpp"

using infty::Index;
using infty::LaMemo;
using infty::Pass;
using infty::Random;
using infty::RowCounts;
using infty::Shape;
using infty::Tensor;
using infty::Variable;
using infty::tests::numbers_of;
using infty::tests::uniform_tensor;

namespace {

template <class T, class B = infty::EigenBackend>
using Stack = infty::Layers<infty::Block<LaMemo<T, B>>>;

template <class T, class B = infty::EigenBackend>
using Renewed = infty::RenewedPast<Stack<T, B>>;

/// Two blocks of width 4, with their norms in front.
template <class T, class B = infty::EigenBackend>
Stack<T, B> two_blocks(Index capacity) {
  const infty::tests::Around<T, B> around(4);
  const auto first = around.drawn(LaMemo<T, B>({.capacity = capacity}, {4, 2, 3}, Random(1)));
  Stack<T, B> stack;
  for (const std::uint64_t i : {2U, 3U})
    stack.layers.push_back({.mixer = first.sibling(Random(i)),
                            .mixer_norm = around.layer_norm,
                            .feed = infty::FeedForward<T, B>(4, 5, Random(i)),
                            .feed_norm = around.layer_norm});
  return stack;
}

static_assert(infty::SequenceLayer<Renewed<float>>);

}  // namespace

TEMPLATE_LIST_TEST_CASE("RenewedPast: a layer sees the past as the layer below has renewed it", "",
                        infty::tests::Types) {
  using T = typename TestType::T;
  using B = typename TestType::B;
  using V = Variable<T, B>;
  constexpr Index capacity = 4;
  const auto stack = two_blocks<T, B>(capacity);
  const Renewed<T, B> renewed(stack);
  auto state = renewed.make_state(2);
  auto by_hand = stack.make_state(2);
  Tensor<T, B> held = Tensor<T, B>::zeros({2, 0, 4});  // the last inputs, of both rows as many
  Random random(infty::tests::seed);
  for (const Index length : {3, 1, 6, 2}) {
    CAPTURE(length);
    const V x(uniform_tensor<T, B>({2, length, 4}, random));
    Pass<T, B> pass;
    const auto got = renewed.forward(state, x, pass);
    CHECK(got.shape() == Shape{2, length, 4});
    CHECK(pass.before == 0);
    CHECK(pass.answer_before);
    // By hand: each block makes of the past and the segment what the next one sees.
    const Index past = held.dim(1);
    V y = concat(V(held), x);
    held = narrow(y, std::max<Index>(0, past + length - capacity), past + length).value();
    Pass<T, B> around{.before = past};
    for (std::size_t i = 0; i < 2; ++i) y = stack.layers[i].forward(by_hand.layers[i], y, around);
    CHECK(infty::tests::error(got.value().to_vector(),
                              narrow(y, past, past + length).value().to_vector()) <
          infty::tests::tolerance<T>);
    CHECK(infty::tests::error(numbers_of(state.inner), numbers_of(by_hand)) <
          infty::tests::tolerance<T>);
  }
}

TEST_CASE("RenewedPast: holds the last inputs, in whatever pieces they come, answered or not") {
  const Renewed<double> renewed(two_blocks<double>(3));
  auto pieces = renewed.make_state(1), whole = pieces, silent = pieces, recorded = pieces;
  CHECK(pieces.input.vectors.shape() == Shape{1, 3, 4});
  Random random(infty::tests::seed);
  const Variable<double> all(uniform_tensor<double>({1, 9, 4}, random));
  const auto run = [&](auto& state, const Variable<double>& x, bool answer = true) {
    Pass<double> pass{.answer = answer};
    const auto y = renewed.forward(state, x, pass);
    CHECK((y.size() > 0) == answer);
    return y;
  };
  Index begin = 0;
  for (const Index length : {2, 2, 5}) {
    const auto x = narrow(all, begin, begin + length);
    begin += length;
    const auto y = run(pieces, x);
    run(silent, x, false);
    infty::Tape tape;
    CHECK(infty::tests::error(run(recorded, x).value().to_vector(), y.value().to_vector()) < 1e-13);
  }
  run(whole, all);
  CHECK(numbers_of(silent) == numbers_of(pieces));
  CHECK(infty::tests::error(numbers_of(recorded), numbers_of(pieces)) < 1e-13);
  const auto last = narrow(all, 6, 9).value().to_vector();
  for (const auto* state : {&pieces, &whole}) {
    CHECK(state->input.length == RowCounts{3});
    CHECK(state->input.vectors.to_vector() == last);
  }
}

TEST_CASE("RenewedPast: of no vectors it is the stack alone") {
  const auto stack = two_blocks<double>(0);
  const Renewed<double> renewed(stack);
  auto state = renewed.make_state(2);
  auto alone = stack.make_state(2);
  Random random(infty::tests::seed);
  for (const Index length : {3, 2}) {
    const Variable<double> x(uniform_tensor<double>({2, length, 4}, random));
    Pass<double> pass, same;
    CHECK(renewed.forward(state, x, pass).value().to_vector() ==
          stack.forward(alone, x, same).value().to_vector());
  }
  CHECK(infty::count_parameters(renewed) == infty::count_parameters(stack));
}

TEST_CASE("RenewedPast: rows are apart, and copies branch") {
  const Renewed<double> renewed(two_blocks<double>(3));
  Random random(infty::tests::seed);
  const auto run = [&](auto& state, const Variable<double>& x) {
    Pass<double> pass;
    return renewed.forward(state, x, pass).value();
  };
  const auto row = [](const Tensor<double>& x, Index i) { return x.slice(i, i + 1); };
  const auto old = uniform_tensor<double>({2, 5, 4}, random),
             x = uniform_tensor<double>({2, 2, 4}, random);
  auto state = renewed.make_state(2), fresh = renewed.make_state(1);
  run(state, old);
  auto alone = take_rows(state, 0, 1);
  reset_row(state, 1);
  const auto branch = state;
  const auto before = numbers_of(branch);
  const auto y = run(state, x);
  CHECK(numbers_of(branch) == before);
  CHECK(infty::tests::error(row(y, 0).to_vector(), run(alone, row(x, 0)).to_vector()) < 1e-13);
  CHECK(infty::tests::error(row(y, 1).to_vector(), run(fresh, row(x, 1)).to_vector()) < 1e-13);
}

TEST_CASE("RenewedPast: memory tokens and states that do not fit are refused") {
  const Renewed<double> renewed(two_blocks<double>(3)), longer(two_blocks<double>(4));
  CHECK_THROWS_AS(renewed.make_state(0), infty::ValueError);
  auto state = renewed.make_state(2);
  const Variable<double> x(Tensor<double>::full({2, 4, 4}, .5));
  Pass<double> first;
  renewed.forward(state, x, first);
  const auto refused = [&](auto wrong, const Variable<double>& segment, const std::string& what,
                           Pass<double> pass = {}) {
    CAPTURE(what);
    const auto before = numbers_of(wrong);
    for (const bool answer : {true, false}) {
      auto spent = pass;
      spent.answer = answer;
      CHECK_THROWS_WITH(renewed.forward(wrong, segment, spent), Catch::Contains(what));
      CHECK(numbers_of(wrong) == before);
    }
  };
  refused(state, x,
          "[RenewedPast] there are 1 and 0 memory tokens around the segment: a renewed past takes "
          "none",
          {.before = 1});
  refused(state, x, "[RenewedPast] there are 0 and 2 memory tokens", {.behind = 2});
  refused(longer.make_state(2), x, "[RenewedPast] the state holds [2, 4, 4]");
  auto wrong = state;
  wrong.inner = longer.make_state(2).inner;
  refused(wrong, x, "[LaMemo::forward] the state holds [2, 4, 6]");
  wrong = state;
  wrong.inner.layers.pop_back();
  refused(wrong, x, "[Layers] the state has 1 layers, the model 2");
  wrong = state;
  wrong.input = renewed.make_state(1).input;
  refused(wrong, x, "");
  wrong = state;
  wrong.input.length[0] = 4;
  refused(wrong, x, "[RenewedPast] a row of the state has 4 vectors: it must have 0 to 3");
  refused(state, Variable<double>(Tensor<double>::zeros({1, 2, 4})), "");
  refused(state, Variable<double>(Tensor<double>::zeros({2, 2, 3})), "");
  refused(state, Variable<double>(Tensor<double>::zeros({2, 0, 4})), "[LaMemo::forward]");
  refused(renewed.make_state(2), Variable<double>(Tensor<double>::zeros({2, 4})), "");
}
