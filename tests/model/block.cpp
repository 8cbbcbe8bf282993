// SPDX-License-Identifier: MIT
#include <algorithm>
#include <cmath>
#include <cstddef>

#include <infty/memory/infty_memory.hpp>
#include <infty/model/block.hpp>

#include "support/catch.hpp"
#include "support/tensors.hpp"

using infty::Random;
using infty::RowCounts;
using infty::Shape;
using infty::Tensor;
using infty::Variable;

namespace {

using InftyBlock = infty::Block<infty::InftyMemory<double>>;

InftyBlock make_block(bool norms_in_front) {
  const infty::InftyConfig memory{
      .attention = {.capacity = 2, .stride = 1},
      .memory = infty::LongTermConfig{.basis = 4, .widths = {.2}, .samples = 3}};
  return {.mixer = infty::InftyMemory<double>(memory, {.model_dim = 4, .heads = 2, .head_dim = 2},
                                              Random(1)),
          .mixer_norm = infty::LayerNorm<double>(4),
          .feed = infty::FeedForward<double>(4, 3, Random(1).split(1)),
          .feed_norm = infty::LayerNorm<double>(4),
          .norms_in_front = norms_in_front};
}

Variable<double> run(const InftyBlock& block, InftyBlock::State& state, const Variable<double>& x) {
  infty::Pass<double> pass;
  return block.forward(state, x, pass);
}

}  // namespace

TEST_CASE("Block: where nothing is added the norms alone are left") {
  Random random(infty::tests::seed);
  const auto x = infty::tests::uniform_tensor<double>({2, 3, 4}, random);
  for (const bool in_front : {false, true}) {
    InftyBlock layer = make_block(in_front);
    layer.mixer.attention.attention.out.weight.value().fill(0);
    layer.mixer.memory->out.weight.value().fill(0);
    layer.feed.outer.weight.value().fill(0);
    layer.feed.outer.bias.value().fill(0);
    auto state = layer.make_state(2, 0);
    const auto y = run(layer, state, Variable<double>(x)).value().to_vector();
    const infty::LayerNorm<double> norm(4);
    const auto expected = in_front
                              ? x.to_vector()
                              : norm.forward(norm.forward(Variable<double>(x))).value().to_vector();
    CHECK(y == expected);
  }
}

TEST_CASE("Block: the memories' parts are added, Z = Z_T + Z_LTM") {
  Random random(infty::tests::seed);
  InftyBlock layer = make_block(true);
  layer.feed.outer.weight.value().fill(0);
  layer.feed.outer.bias.value().fill(0);
  auto state = layer.make_state(1, 0);
  const auto segment = [&] {
    return Variable<double>(infty::tests::uniform_tensor<double>({1, 5, 4}, random));
  };
  run(layer, state, segment());
  const auto x = segment();
  // Both parts, then each alone, of the same state.
  const auto answer = [&](bool attention, bool memory) {
    InftyBlock part = layer;
    const Variable<double> zero(Tensor<double>::zeros({4, 4}));
    if (!attention) part.mixer.attention.attention.out.weight = zero;
    if (!memory) part.mixer.memory->out.weight = zero;
    auto branch = state;
    return run(part, branch, x).value().to_vector();
  };
  const auto both = answer(true, true), one = answer(true, false), other = answer(false, true);
  const auto input = x.value().to_vector();
  double memory_part = 0;
  for (std::size_t i = 0; i < both.size(); ++i) {
    CHECK(std::abs(both[i] - (one[i] + other[i] - input[i])) < 1e-14);
    memory_part = std::max(memory_part, std::abs(other[i] - input[i]));
  }
  CHECK(memory_part > 1e-4);
}

TEST_CASE("Block: memory holds the inputs; what has left is written by the next call") {
  Random random(infty::tests::seed);
  const InftyBlock layer = make_block(false);
  auto state = layer.make_state(1, 0);
  const auto x = infty::tests::uniform_tensor<double>({1, 5, 4}, random);
  infty::Pass<double> pass{.traced = true};
  layer.forward(state, Variable<double>(x), pass);
  CHECK(first_shown(pass, "density").shape() == Shape{2, 1, 2, 5});
  CHECK(first_shown(pass, "memory_share").shape() == Shape{1, 5});
  const auto flat = x.reshape({5, 4});
  CHECK(state.mixer.attention.recent.vectors.to_vector() == flat.slice(3, 5).to_vector());
  CHECK(state.mixer.past->leaving.vectors.to_vector() == flat.slice(0, 3).to_vector());
  CHECK(state.mixer.past->memory.written == RowCounts{0});
  infty::Pass<double> unanswered{.answer = false};
  CHECK(layer.forward(state, Variable<double>(x), unanswered).size() == 0);
  CHECK(state.mixer.past->memory.written == RowCounts{3});
  CHECK(state.mixer.past->leaving.length == RowCounts{5});
}

TEST_CASE("Block: keeps what its feed works on, of the words alone") {
  Random random(infty::tests::seed);
  const Variable<double> x(infty::tests::uniform_tensor<double>({2, 5, 4}, random));
  for (const bool in_front : {false, true}) {
    InftyBlock layer = make_block(in_front);
    layer.mixer.attention.attention.out.weight.value().fill(0);  // so that the sum is x
    layer.mixer.memory->out.weight.value().fill(0);
    const auto kept = [&](infty::FeedInput which, infty::Index before, infty::Index behind) {
      auto state = layer.make_state(2, 0);
      infty::Pass<double> pass{.before = before, .behind = behind, .keep = which};
      layer.forward(state, x, pass);
      return pass.feed_input;
    };
    CHECK(kept(infty::FeedInput::none, 0, 0).empty());
    CHECK(kept(infty::FeedInput::plain, 0, 0).to_vector() == x.value().to_vector());
    const auto normed = infty::LayerNorm<double>(4).forward(x);
    CHECK(kept(infty::FeedInput::normed, 0, 0).to_vector() == normed.value().to_vector());
    CHECK(kept(infty::FeedInput::plain, 1, 2).to_vector() == narrow(x, 1, 3).value().to_vector());
  }
}
