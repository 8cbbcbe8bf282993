// SPDX-License-Identifier: MIT
#include <filesystem>
#include <string>
#include <vector>

#include <infty/memory/infty_memory.hpp>
#include <infty/memory/recurrent_tokens.hpp>
#include <infty/model/any_transformer_lm.hpp>
#include <infty/train/checkpoint.hpp>
#include <infty/train/named_parameters.hpp>

#include "io/temporary_folder.hpp"
#include "support/catch.hpp"
#include "support/states.hpp"

namespace any_transformer {

using infty::AnyLayer;
using infty::AnyTransformerLM;
using infty::FeedForward;
using infty::Index;
using infty::InftyConfig;
using infty::LongTermConfig;
using infty::mixers_of;
using infty::Random;
using infty::Tensor;
using infty::TransformerConfig;
using infty::TransformerLM;
using infty::tests::numbers_of;

const TransformerConfig sizes{.vocabulary = 7,
                              .model_dim = 6,
                              .layers = 3,
                              .heads = 2,
                              .feed_forward = 8,
                              .pre_norm = true,
                              .dropout = .2};
const InftyConfig memory{.attention = {.capacity = 4},
                         .memory = LongTermConfig{.basis = 4, .widths = {.1}, .samples = 6}};

TEST_CASE("AnyTransformerLM: what a TransformerLM of the same mixers is") {
  using T = float;
  using B = infty::EigenBackend;
  using Mixer = infty::InftyMemory<T, B>;
  TransformerLM<Mixer> typed(sizes, memory, Random(3));
  AnyTransformerLM<T, B> any(sizes, {.mixer = mixers_of<Mixer>(memory, sizes.attention_sizes())},
                             Random(3));
  auto theirs = infty::named_parameters<T, B>(typed), ours = infty::named_parameters<T, B>(any);
  REQUIRE(theirs.size() == ours.size());
  for (std::size_t i = 0; i < ours.size(); ++i) {
    CHECK(ours[i].name == theirs[i].name);
    CHECK(ours[i].variable.value().to_vector() == theirs[i].variable.value().to_vector());
  }
  auto of_typed = typed.make_state(2);
  auto of_any = any.make_state(2);
  for (const Index length : {3, 5, 1, 6}) {
    std::vector<Index> drawn;
    for (Index i = 0; i < 2 * length; ++i) drawn.push_back((i * i + length) % 7);
    const auto tokens = Tensor<Index, B>::from({2, length}, drawn);
    Random drop(1), same(1);
    infty::Pass<T, B> pass{.random = &drop}, other{.random = &same};
    CHECK(any.forward(of_any, tokens, pass).value().to_vector() ==
          typed.forward(of_typed, tokens, other).value().to_vector());
    any.observe(of_any, tokens, 2);
    typed.observe(of_typed, tokens, 2);
  }
  CHECK(numbers_of(of_any) == numbers_of(of_typed));
}

TEST_CASE("AnyTransformerLM: a feed in one layer, tokens around the stack, saved and loaded") {
  using T = double;
  const AnyTransformerLM<T>::Parts parts{
      .mixer = mixers_of<infty::InftyMemory<T>>(memory, sizes.attention_sizes()),
      .feed =
          [](Index i, Random random) {
            return i == 1 ? AnyLayer<T>(FeedForward<T>(6, 20, random)) : AnyLayer<T>();
          },
      .around =
          [](AnyLayer<T> stack, Random random) {
            return AnyLayer<T>(
                infty::RecurrentTokens<AnyLayer<T>>(std::move(stack), {.tokens = 2}, 6, random));
          }};
  AnyTransformerLM<T> model(sizes, parts, Random(1)), other(sizes, parts, Random(2));
  const Index without = [&] {
    AnyTransformerLM<T> plain(
        sizes, {.mixer = mixers_of<infty::InftyMemory<T>>(memory, sizes.attention_sizes())});
    return infty::count_parameters(plain);
  }();
  CHECK(infty::count_parameters(model) == without + 2 * 6 + (20 - 8) * (2 * 6 + 1));
  const infty::tests::TemporaryFolder folder;
  infty::save_parameters(folder.path() / "model", model);
  infty::load_parameters(folder.path() / "model", other);
  const auto tokens = Tensor<Index>::from({1, 4}, {1, 2, 3, 4});
  auto state = model.make_state(1), same = other.make_state(1);
  CHECK(model.forward(state, tokens).value().to_vector() ==
        other.forward(same, tokens).value().to_vector());
  CHECK(numbers_of(state) == numbers_of(same));
  CHECK_THROWS_WITH(AnyTransformerLM<T>(sizes, {.mixer = {}}),
                    "[AnyTransformerLM] there is nothing that makes mixers");
}

}  // namespace any_transformer
