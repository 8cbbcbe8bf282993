// SPDX-License-Identifier: MIT
#include <string>
#include <vector>

#include <infty/data/batch_stream.hpp>
#include <infty/data/text_tensors.hpp>
#include <infty/data/vocabulary.hpp>
#include <infty/memory/infty_memory.hpp>
#include <infty/metrics/perplexity.hpp>
#include <infty/model/objective.hpp>
#include <infty/model/transformer_lm.hpp>
#include <infty/nn/sampling.hpp>
#include <infty/train/trainer.hpp>

#include "support/catch.hpp"

using infty::Index, infty::Tensor;

TEST_CASE("docs: a text is cut into batches, learned, judged and written") {
  const std::vector<std::string> documents{"the tide comes in , the tide goes out .\n",
                                           "the moon pulls the sea , and the sea follows .\n"};
  infty::Random random(2);

  const auto unit = infty::TextUnit::word;
  infty::TokenCounts counts;
  for (const auto& document : documents) counts.add_text(document, unit);
  const infty::Vocabulary vocabulary(counts);
  infty::TokenStream stream;
  for (const auto& document : documents) stream.append(vocabulary.encode(document, unit));
  const infty::BatchConfig cut{.batch = 2,
                               .segment = 4,
                               .start = vocabulary.find(infty::end_of_line).value(),
                               .reset_documents = true};

  infty::TransformerLM<infty::InftyMemory<float>> model(
      {.vocabulary = vocabulary.size(), .model_dim = 16, .layers = 2, .heads = 2},
      {.attention = {.capacity = 4}, .memory = infty::LongTermConfig{.basis = 8, .samples = 16}},
      infty::Random(1));
  infty::BatchStream batches(stream, cut);
  auto state = model.make_state(cut.batch);
  infty::Trainer<float> trainer(model, {.steps = 200, .adam = {.learning_rate = 1e-2}});
  trainer.run([&] {
    const infty::TextBatch batch = batches.next();  // each row goes on where it ended
    reset_rows(model, state, batch);                // or begins a document
    infty::Pass<float> pass;
    const auto hidden = model.forward(state, infty::input_tokens(batch), pass);
    const auto targets = infty::target_tokens(batch);
    return objective(model, hidden, targets, pass, {{"divergence", 1e-7}}).total;
  });
  const double perplexity = infty::evaluate(model, stream, cut).perplexity();

  auto reader = model.make_state(1);
  std::vector<infty::TokenId> written{cut.start};
  for (int i = 0; i < 10; ++i) {
    const auto hidden = model.forward(reader, Tensor<Index>::from({1, 1}, {written.back()}));
    const auto next = infty::sample(model.logits(hidden).value(), {.top_p = .9}, random);
    written.push_back(static_cast<infty::TokenId>(next.item()));
  }
  const std::string text = vocabulary.decode(written, unit);

  CHECK(perplexity < 2);
  CAPTURE(text);
  CHECK(text.starts_with(" \n the "));
}
