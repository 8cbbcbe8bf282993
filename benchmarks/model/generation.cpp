// SPDX-License-Identifier: MIT
// The next token of every row behind full memories: the paper's sorting model, and what of it is
// the long-term memory, whose values have to be read once. Argument: rows of the batch.

#include <infty/model/presets.hpp>
#include <infty/model/transformer_lm.hpp>

#include "../support/against.hpp"
#include "../support/flops.hpp"
#include "../support/tensors.hpp"

using namespace infty::bench;
using infty::Index, infty::Tensor;

namespace {

infty::presets::Experiment experiment() { return infty::presets::sorting(4000); }

// Against products: a token's own maps, its pairs with the short-term memory, keys and values of
// which a state could keep, and its read.
void next_token(benchmark::State& run) {
  const Index batch = run.range(0);
  const auto [config, memory] = std::pair(experiment().model, experiment().memory);
  const infty::TransformerLM<infty::InftyMemory<float>> model(config, memory, infty::Random(1));
  auto state = model.make_state(batch);
  const auto guard = infty::no_grad();
  model.observe(state, Tensor<Index>::full({batch, 3 * 1024}, 5), 1024);
  const auto token = Tensor<Index>::full({batch, 1}, 5);
  model.forward(state, token);  // writes what has left the short-term memory
  const auto start = state;
  const double flops = token_flops(config, memory, batch);
  int calls = 0;
  against_matrix_product<float>(run, flops, [&] {
    if (++calls % 256 == 0) state = start;  // a text goes on, and memories stay about as full
    model.logits(model.forward(state, token));
  });
}

void long_term_read(benchmark::State& run) {
  const Index batch = run.range(0);
  const auto c = experiment().memory.resolved_memory(experiment().model.attention_sizes());
  const infty::LongTermMemory<float> memory(c, infty::Random(1));
  auto state = memory.make_state(batch);
  memory.write(state, normal<float>({batch, 1024, c.model_dim}));
  const auto query = normal<float>({batch, 1, c.model_dim});
  const auto values = static_cast<double>(batch * c.basis * c.model_dim) * sizeof(float);
  against_copy(run, values, [&] { memory.read(state, query); });
}

void rows(benchmark::internal::Benchmark* b) { b->Arg(1)->Arg(8)->UseManualTime(); }

}  // namespace

BENCHMARK(next_token)->Apply(rows);
BENCHMARK(long_term_read)->Apply(rows);
