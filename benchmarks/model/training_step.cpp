// SPDX-License-Identifier: MIT
// A training step: the segments of a sequence that memory only observes, a forward and backward
// pass over the last one, and a step of Adam. Argument: rows of the batch.

#include <infty/model/presets.hpp>
#include <infty/model/transformer_lm.hpp>
#include <infty/train/train_step.hpp>

#include "../support/against.hpp"
#include "../support/flops.hpp"
#include "../support/tensors.hpp"

using namespace infty::bench;
using infty::Index, infty::Tensor, infty::EigenBackend;

namespace {

struct Task {
  infty::TransformerConfig model;
  infty::InftyConfig memory;
  Index segment, segments, answer;  ///< tokens of a segment, segments observed, tokens learned from
};

/// examples/sorting as `./dev demo` runs it.
Task demo(bool long_term) {
  Task task{{.vocabulary = 11,
             .model_dim = 64,
             .layers = 2,
             .heads = 4,
             .feed_forward = 128,
             .pre_norm = true},
            {.attention = {.capacity = 64, .stride = 1}, .memory = {}},
            64,
            8,
            10};
  if (long_term)
    task.memory.memory = infty::LongTermConfig{.basis = 32, .widths = {.05, .2}, .samples = 48};
  return task;
}

/// A model as small as those of examples/recall, by short segments.
Task small() {
  Task task = demo(true);
  task.model.vocabulary = 64;
  task.model.model_dim = 32;
  task.model.feed_forward = 64;
  task.memory.attention.capacity = 16;
  task.segment = task.answer = 16;
  return task;
}

/// The paper's sorting experiment: four segments, of which the last is learned from.
Task paper() {
  const auto e = infty::presets::sorting(4000);
  Task task{e.model, e.memory, 1024, 3, 1024};
  task.model.dropout = 0;
  return task;
}

/// Calls measure(run, flops, body) for a step.
template <class B, class Measure>
void measured_step(benchmark::State& run, const Task& task, const Measure& measure) {
  using Model = infty::TransformerLM<infty::InftyMemory<float, B>>;
  const Index batch = run.range(0), symbol = task.model.vocabulary / 2;
  Model model(task.model, task.memory, infty::Random(1));
  infty::Adam<float, B> optimizer(model);
  const auto tokens = Tensor<Index, B>::full({batch, task.segment * task.segments}, symbol);
  const auto answer = Tensor<Index, B>::full({batch, task.answer}, symbol);
  const double flops =
      training_step_flops(task.model, task.memory, batch, task.segment, task.segments, task.answer);
  measure(run, flops, [&] {
    auto state = model.make_state(batch);
    model.observe(state, tokens, task.segment);
    train_step(optimizer, {.learning_rate = 1e-4, .max_norm = 1}, [&] {
      infty::Pass<float, B> pass;
      const auto hidden = model.forward(state, answer, pass);
      return infty::cross_entropy(model.logits(hidden), answer) +
             infty::scale(loss_named(pass, "divergence"), 1e-6F);
    });
  });
}

template <class B>
void step(benchmark::State& run, const Task& task) {
  measured_step<B>(run, task, [](auto&&... of) { against_matrix_product<float>(of...); });
}

/// With factors in bfloat16, against the same in full.
void rounded_step(benchmark::State& run, const Task& task) {
  measured_step<EigenBackend>(run, task, [](auto&&... of) { rounded_against_full(of...); });
}

template <class B>
void demo_with_memory(benchmark::State& run) {
  step<B>(run, demo(true));
}
template <class B>
void demo_without_memory(benchmark::State& run) {
  step<B>(run, demo(false));
}
template <class B>
void small_with_memory(benchmark::State& run) {
  step<B>(run, small());
}
template <class B>
void paper_sorting(benchmark::State& run) {
  step<B>(run, paper());
}

void demo_with_memory_rounded(benchmark::State& run) { rounded_step(run, demo(true)); }
void paper_sorting_rounded(benchmark::State& run) { rounded_step(run, paper()); }

}  // namespace

BENCHMARK_TEMPLATE(demo_with_memory, EigenBackend)->Arg(1)->Arg(12)->UseManualTime();
BENCHMARK_TEMPLATE(demo_with_memory, Composed)->Arg(12)->UseManualTime();
BENCHMARK_TEMPLATE(demo_without_memory, EigenBackend)->Arg(12)->UseManualTime();
BENCHMARK_TEMPLATE(small_with_memory, EigenBackend)->Arg(16)->UseManualTime();
BENCHMARK_TEMPLATE(paper_sorting, EigenBackend)->Arg(8)->UseManualTime()->MinTime(4);
BENCHMARK(demo_with_memory_rounded)->Arg(12)->UseManualTime();
BENCHMARK(paper_sorting_rounded)->Arg(8)->UseManualTime()->MinTime(4);
