// SPDX-License-Identifier: MIT
// One training step of the sorting demo's model: eight segments that memory only observes, then a
// forward and backward pass over the answer and a step of Adam. Argument: rows of the batch.

#include <benchmark/benchmark.h>

#include <infty/model/transformer_lm.hpp>
#include <infty/train/trainer.hpp>

using infty::Index, infty::Tensor;

namespace {

void step(benchmark::State& run, bool long_term) {
  const Index batch = run.range(0), symbols = 10, segment = 64, segments = 8;
  infty::TransformerConfig config{.vocabulary = symbols + 1,
                                  .model_dim = 64,
                                  .layers = 2,
                                  .heads = 4,
                                  .feed_forward = 128,
                                  .short_term = 64,
                                  .pre_norm = true};
  config.long_term = infty::LongTermConfig{.basis = 32, .widths = {.05, .2}, .samples = 48};
  if (!long_term) config.long_term.reset();
  infty::TransformerLM<float> model(config, infty::Random(1));
  infty::Adam<float> optimizer(model);
  const auto tokens = Tensor<Index>::full({batch, segments * segment}, 3);
  const auto answer = Tensor<Index>::full({batch, symbols}, 5);
  for (auto _ : run) {
    auto state = model.make_state(batch);
    model.observe(state, tokens, segment);
    train_step(optimizer, {.learning_rate = 1e-3}, [&] {
      const auto output = model.forward(state, answer);
      return infty::cross_entropy(model.logits(output.hidden), answer);
    });
  }
  run.counters["tokens/s"] = benchmark::Counter(double(batch * (segment * segments + symbols)),
                                                benchmark::Counter::kIsIterationInvariantRate);
}

void with_long_term_memory(benchmark::State& run) { step(run, true); }
void without_long_term_memory(benchmark::State& run) { step(run, false); }

}  // namespace

BENCHMARK(with_long_term_memory)->Arg(1)->Arg(32)->UseRealTime()->Unit(benchmark::kMillisecond);
BENCHMARK(without_long_term_memory)->Arg(1)->Arg(32)->UseRealTime()->Unit(benchmark::kMillisecond);
