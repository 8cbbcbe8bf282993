// SPDX-License-Identifier: MIT
#pragma once

#include <chrono>
#include <cstddef>
#include <ctime>
#include <vector>

#include <infty/memory/infty_memory.hpp>
#include <infty/model/transformer_lm.hpp>
#include <infty/nn/cross_entropy.hpp>
#include <infty/parallel/shard_tree.hpp>

// What is trained to measure steps on ranks, and the clocks that these are measured by.

namespace infty::bench {

/// The model, an ∞-former, and the batch.
struct StepOptions {
  Index dim = 256, layers = 4, heads = 4, basis = 64, vocabulary = 4096;
  Index rows = 8, segment = 128, shards = 8, steps = 9;
};

/// All of it but how many steps are measured.
template <class See>
void each_field(StepOptions& o, See&& see) {
  see("dim", o.dim);
  see("layers", o.layers);
  see("heads", o.heads);
  see("basis", o.basis);
  see("vocabulary", o.vocabulary);
  see("rows", o.rows);
  see("segment", o.segment);
  see("shards", o.shards);
}

/// Seconds by two clocks: that of the wall, and the time that processors spend on this process, the
/// thread that sends among them, which stands still while others have them.
struct Seconds {
  double wall = 0, processor = 0;

  static Seconds now() {
    timespec t{};
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
    const std::chrono::duration<double> wall = std::chrono::steady_clock::now().time_since_epoch();
    return {wall.count(), static_cast<double>(t.tv_sec) + 1e-9 * static_cast<double>(t.tv_nsec)};
  }
  /// Those since `start`.
  static Seconds since(const Seconds& start) {
    const Seconds end = now();
    return {end.wall - start.wall, end.processor - start.processor};
  }
};

using StepModel = TransformerLM<InftyMemory<float>>;

/// The model in training.
inline StepModel step_model(const StepOptions& options) {
  return StepModel({.vocabulary = options.vocabulary,
                    .model_dim = options.dim,
                    .layers = options.layers,
                    .heads = options.heads,
                    .feed_forward = 4 * options.dim,
                    .pre_norm = true},
                   InftyConfig{.attention = {.capacity = options.segment},
                               .memory = LongTermConfig{.basis = options.basis}},
                   Random(1));
}

/// The loss of a shard of random tokens, whose rows are these, by their share of the batch. Two
/// segments go before it, without a gradient, which fill the memories: the second pushes the first
/// out of the short-term one and into the long-term one, which without them would be empty.
inline Variable<float> shard_loss(const StepModel& model, const StepOptions& options, Index shard,
                                  const ShardRange& rows) {
  Random draws(2, static_cast<std::uint64_t>(shard));
  const auto tokens = [&](Index length) {
    std::vector<Index> drawn(static_cast<std::size_t>(rows.count() * length));
    for (Index& token : drawn) token = draws.below(options.vocabulary);
    return Tensor<Index>::from(Shape{rows.count(), length}, drawn);
  };
  auto state = model.make_state(rows.count());
  model.observe(state, tokens(2 * options.segment), options.segment);
  Pass<float> pass;
  const auto hidden = model.forward(state, tokens(options.segment), pass);
  const auto loss = cross_entropy(model.logits(hidden), tokens(options.segment));
  return scale(loss, static_cast<float>(rows.count()) / static_cast<float>(options.rows));
}

}  // namespace infty::bench
