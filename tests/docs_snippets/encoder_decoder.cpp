// SPDX-License-Identifier: MIT
// The code of docs/memories.md on encoders and decoders.

#include <vector>

#include <infty/memory/memformer.hpp>
#include <infty/memory/memory_tokens.hpp>
#include <infty/memory/short_term_memory.hpp>
#include <infty/model/encoder_decoder.hpp>
#include <infty/model/transformer_lm.hpp>
#include <infty/nn/beam_search.hpp>
#include <infty/nn/self_attention.hpp>
#include <infty/train/trainer.hpp>

#include "support/catch.hpp"

namespace encoder_decoder_page {

using infty::Index;
using infty::Random;
using infty::Tensor;

TEST_CASE("docs/memories.md: a translation") {
  infty::EncoderDecoderConfig config;
  config.encoder = {.vocabulary = 40, .model_dim = 16, .layers = 2, .heads = 2, .feed_forward = 32};
  config.decoder = config.encoder;
  config.decoder.vocabulary = 50;
  const Random random(1);

  const infty::MemoryTokens encoder(
      infty::blocks<infty::SelfAttention<float>>(config.encoder, {}, random.split(0)),
      {.tokens = 10}, config.encoder.model_dim, random.split(1));
  const auto decoder =
      infty::decoder_layers<infty::CachedAttention<float>>(config.decoder, {}, random.split(2));
  infty::EncoderDecoder model(config, encoder, decoder, random);

  const auto sources = infty::Sources<>::of({{7, 3, 9}, {4}});          // of any lengths
  const auto inputs = Tensor<Index>::from({2, 3}, {0, 5, 8, 0, 6, 1});  // 0 begins
  const auto targets = Tensor<Index>::from({2, 3}, {5, 8, 1, 6, 1, infty::ignore_index});

  infty::Trainer<float> trainer(model, {.steps = 2});
  trainer.run([&] {
    auto state = model.make_state(2);
    infty::Pass<float> pass;
    return model.loss(state, sources, inputs, targets, pass);
  });

  auto state = model.make_state(2);
  infty::Pass<float> pass;
  const auto guard = infty::no_grad();
  model.read(state, sources, pass);  // once
  const auto found = model.translate(state, 0, {.beam = 4, .end = 1, .longest = 20});
  const std::vector<Index>& first = found[0].front().tokens;

  CHECK(found.size() == 2);
  CHECK(first.size() <= 20);
}

TEST_CASE("docs/memories.md: MemSizer's and Memformer's forms") {
  const infty::TransformerConfig side{
      .vocabulary = 40, .model_dim = 16, .layers = 2, .heads = 2, .feed_forward = 32};
  const infty::EncoderDecoderConfig config{.encoder = side, .decoder = side};
  const Random random(1);
  const auto plain = infty::blocks<infty::SelfAttention<float>>(side, {}, random.split(0));

  const infty::EncoderDecoder memsizer(
      config, plain, infty::memsizer_layers<float>(side, {.feed_forward = 32}, random.split(1)));

  using Reading = infty::Memformer<infty::SelfAttention<float>>;
  const infty::RecurrentSlots<infty::Layers<infty::Block<Reading>>> encoder(
      infty::blocks<Reading>(side, {.slots = {.slots = 64}}, random.split(0)));
  const infty::EncoderDecoder memformer(
      config, encoder,
      infty::decoder_layers<infty::CachedAttention<float>>(side, {}, random.split(1)));

  auto state = memformer.make_state(1);
  infty::Pass<float> pass;
  memformer.read(state, infty::Sources<>::of({{1, 2, 3}}), pass);
  CHECK(state.encoder.written == infty::RowCounts{1});
  auto other = memsizer.make_state(1);
  memsizer.read(other, infty::Sources<>::of({{1, 2, 3}}), pass);
  CHECK(memsizer.translate(other, 0, {.end = 1, .longest = 5}).size() == 1);
}

TEST_CASE("docs/memories.md: beam search over a language model") {
  const infty::TransformerLM<infty::ShortTermMemory<float>> model(
      {.vocabulary = 6, .model_dim = 8, .layers = 2, .heads = 2, .feed_forward = 16},
      {.capacity = 4}, Random(1));
  const auto read = Tensor<Index>::from({2, 3}, {1, 2, 3, 4, 5, 1});

  auto state = model.make_state(2);
  model.observe(state, read);                                           // [2, 3]
  const auto next = [&](auto& rows, const std::vector<Index>& words) {  // a word a row
    const Index n = std::ssize(words);
    const auto hidden = model.forward(rows, Tensor<Index>::from({n, 1}, words));
    return log_probabilities(model.logits(hidden).value().reshape({n, 6}));
  };
  const auto found = beam_search(state, {4, 2}, next, {.beam = 3, .end = 0, .longest = 5});

  REQUIRE(found.size() == 2);
  const auto one =
      beam_search(take_rows(state, 1, 2), {2}, next, {.beam = 3, .end = 0, .longest = 5});
  CHECK(one[0][0].tokens == found[1][0].tokens);
  CHECK(found[0].size() == 1);
}

}  // namespace encoder_decoder_page
