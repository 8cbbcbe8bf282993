// SPDX-License-Identifier: MIT
#include <cmath>
#include <limits>
#include <string>
#include <vector>

#include <infty/memory/short_term_memory.hpp>
#include <infty/metrics/perplexity.hpp>
#include <infty/model/transformer_lm.hpp>

#include "support/catch.hpp"
#include "support/types.hpp"

using infty::BatchConfig;
using infty::Index;
using infty::TextBatch;
using infty::TextScore;
using infty::TokenId;
using infty::TokenStream;

namespace {

TokenStream stream_of(Index documents, Index length) {
  TokenStream stream;
  for (Index d = 0; d < documents; ++d) {
    std::vector<TokenId> document;
    for (Index i = 0; i < length; ++i)
      document.push_back(static_cast<TokenId>((i * i + 3 * d + i) % 7));
    stream.append(document);
  }
  return stream;
}

}  // namespace

TEST_CASE("TextScore: nats, perplexity and bits by hand") {
  TextScore score;
  TextBatch batch{.batch = 2,
                  .length = 2,
                  .inputs = {0, 0, 0, 0},
                  .targets = {1, 1, 1, infty::ignore_index},
                  .predicted = 3,
                  .reset = {}};
  const double log2 = std::log(2.0);
  score.add(batch, std::vector<double>{log2, log2, 4 * log2, 0});
  CHECK(score.tokens == 3);
  CHECK(score.per_token() == Approx(2 * log2));
  CHECK(score.perplexity() == Approx(4));
  CHECK(score.bits_per(12) == Approx(.5));

  const TextScore before = score;
  CHECK_THROWS_WITH(score.add(batch, std::vector<double>{1, 1, std::nan(""), 0}),
                    "[TextScore] the loss of target 0 of row 1 is nan");
  CHECK_THROWS_WITH(score.add(batch, std::vector<float>{1, 1, 1}),
                    "[TextScore] there are 3 losses for 2 rows of 2 targets");
  CHECK(score.nats == before.nats);
  CHECK(score.tokens == before.tokens);

  CHECK(TextScore{.nats = 1e6, .tokens = 1}.perplexity() == std::numeric_limits<double>::max());
  CHECK(std::isnan(TextScore{}.per_token()));
}

TEST_CASE("evaluate_segments: every token is predicted once, whatever the batch and the segment") {
  const TokenStream stream = stream_of(3, 11);
  const BatchConfig config =
      GENERATE(BatchConfig{.batch = 1, .segment = 4}, BatchConfig{.batch = 3, .segment = 5},
               BatchConfig{.batch = 4, .segment = 100}, BatchConfig{.batch = 99, .segment = 1},
               BatchConfig{.batch = 2, .segment = 4, .reset_documents = true});
  // A token's loss is its number: they must come to the sum of the text.
  double sum = 0;
  for (const TokenId token : stream.tokens) sum += static_cast<double>(token);
  const auto score = infty::evaluate_segments(stream, config, [](const TextBatch& batch) {
    std::vector<double> losses;
    for (const Index target : batch.targets)
      losses.push_back(target == infty::ignore_index ? 0 : static_cast<double>(target));
    return losses;
  });
  CHECK(score.tokens == 33);
  CHECK(score.nats == sum);
}

TEST_CASE("evaluate_rows: rows that are read apart are those that are read together") {
  const TokenStream stream = stream_of(3, 11);
  const BatchConfig config =
      GENERATE(BatchConfig{.batch = 4, .segment = 3}, BatchConfig{.batch = 5, .segment = 100},
               BatchConfig{.batch = 4, .segment = 1, .reset_documents = true});
  std::vector<Index> together(static_cast<std::size_t>(config.batch)), apart = together;
  const auto of = [](std::vector<Index>& rows) {
    return [&rows](const TextBatch& batch) {
      CHECK(batch.length > 0);
      for (Index row = 0; row < batch.batch; ++row)
        for (Index i = 0; i < batch.length; ++i) {
          const Index target = batch.targets[static_cast<std::size_t>(row * batch.length + i)];
          auto& of_row = rows[static_cast<std::size_t>(batch.first_row + row)];
          if (target != infty::ignore_index) of_row = 7 * (of_row % 100000) + target + 1;
        }
      return std::vector<double>(batch.targets.size());
    };
  };
  const auto all = infty::evaluate_segments(stream, config, of(together));
  const auto first = infty::evaluate_rows(stream, config, 0, 1, of(apart));
  const auto rest = infty::evaluate_rows(stream, config, 1, config.batch - 1, of(apart));
  CHECK(apart == together);
  CHECK(first.tokens + rest.tokens == all.tokens);
  CHECK(all.tokens == 33);
  CHECK_THROWS_AS(infty::evaluate_rows(stream, config, 1, config.batch, of(apart)),
                  infty::ValueError);
}

TEST_CASE("evaluate_segments: what is not finite stops with its segment") {
  const TokenStream stream = stream_of(1, 20);
  Index segment = 0;
  const auto losses = [&](const TextBatch& batch) {
    std::vector<float> out(batch.targets.size(), 1.0F);
    if (segment++ == 2) out[1] = std::numeric_limits<float>::infinity();
    return out;
  };
  std::string message;
  try {
    infty::evaluate_segments(stream, {.batch = 1, .segment = 4}, losses);
  } catch (const infty::NonFiniteError& error) {
    message = error.what();
  }
  CHECK(message == "[evaluate] segment 2: [TextScore] the loss of target 1 of row 0 is inf");
  CHECK_THROWS_AS(infty::evaluate_segments(TokenStream{}, {}, losses), infty::ValueError);
}

TEMPLATE_LIST_TEST_CASE("evaluate: a model's losses behind its memory, one token at a time or many",
                        "", infty::tests::Types) {
  using T = typename TestType::T;
  using B = typename TestType::B;
  using Model = infty::TransformerLM<infty::ShortTermMemory<T, B>>;
  const Model model({.vocabulary = 7, .model_dim = 8, .layers = 1, .heads = 2, .feed_forward = 8},
                    {.capacity = 40}, infty::Random(1));
  const TokenStream stream = stream_of(2, 13);
  const TextScore whole = infty::evaluate(model, stream, {.batch = 1, .segment = 100});
  CHECK(whole.tokens == 26);

  // The same by hand: the token before the text is `start`.
  std::vector<Index> read{0}, due;
  for (const TokenId token : stream.tokens) {
    read.push_back(static_cast<Index>(token));
    due.push_back(static_cast<Index>(token));
  }
  read.pop_back();
  auto state = model.make_state(1);
  const auto hidden = model.forward(state, infty::Tensor<Index, B>::from({1, 26}, read));
  double sum = 0;
  for (const T loss :
       model.losses(hidden, infty::Tensor<Index, B>::from({1, 26}, due)).value().to_vector())
    sum += static_cast<double>(loss);
  CHECK(whole.nats == Approx(sum));

  // One layer whose memory holds all: how the text is cut makes no difference.
  const TextScore pieces = infty::evaluate(model, stream, {.batch = 1, .segment = 1});
  CHECK(pieces.tokens == 26);
  CHECK(pieces.nats == Approx(whole.nats).epsilon(1e-5));
  // A state that is forgotten between documents does.
  const TextScore apart =
      infty::evaluate(model, stream, {.batch = 1, .segment = 100, .reset_documents = true});
  CHECK(apart.tokens == 26);
  CHECK(apart.nats != Approx(whole.nats).epsilon(1e-9));
}
