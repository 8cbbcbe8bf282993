// SPDX-License-Identifier: MIT
#pragma once

#include <tuple>
#include <utility>

#include <infty/memory/titans_memory.hpp>
#include <infty/nn/attention_sizes.hpp>

namespace infty {

/// A mixer: a neural memory by itself in place of attention, "memory as a layer"
/// [Behrouz et al. 2025, §4.3]. Each vector reads what the memory has learned up to the last full
/// chunk, which a chunk's last vector belongs to, and is learned itself. Memory tokens read and are
/// not learned: those in front what was known before the segment, those behind what is known after.
template <class T, class Backend>
class Titans {
 public:
  using Scalar = T;
  using BackendType = Backend;
  using V = Variable<T, Backend>;
  using Config = TitansConfig;
  using State = TitansState<T, Backend>;

  Linear<T, Backend> query;         ///< d -> H D, without a bias
  TitansMemory<T, Backend> memory;  ///< what is read and written

  /// Makes the layer with weights drawn as `Linear` draws them; the configuration's sizes are set
  /// to these. @throws infty::ValueError if sizes or configuration are not valid
  explicit Titans(Config config, AttentionSizes sizes, Random random = Random(0))
      : query((sizes.validate(), sizes.model_dim), sizes.inner(), random.split(0), false),
        memory(sized(config, sizes), random.split(1)) {}

  /// The constants, with their sizes.
  const Config& config() const { return memory.config(); }
  /// What it is made of: constants and sizes.
  std::tuple<Config, AttentionSizes> configs() const {
    return {
        config(),
        {.model_dim = config().model_dim, .heads = config().heads, .head_dim = config().head_dim}};
  }

  template <class Visitor>
  void visit(Visitor&& see) {
    see("query", query);
    see("memory", memory);
  }

  /// A state of fresh rows. @throws infty::ValueError unless batch >= 1
  State make_state(Index batch, Index first_row = 0) const {
    return memory.make_state(batch, first_row);
  }

  /// Reads and learns the segment: x [B, L, d] -> [B, L, d].
  /// @throws infty::ShapeError, infty::ValueError for memory tokens with rules of their own; then
  /// the state is as it was
  V forward(State& state, const V& x, Pass<T, Backend>& pass) const {
    memory.check("Titans", state);
    const Index batch = state.learned[0].dim(0), length = x.shape().rank() == 3 ? x.dim(1) : 0;
    require<ShapeError>(x.shape() == Shape{batch, length, config().model_dim}, "Titans",
                        "the segment is ", x.shape(), ": it must be [", batch, ", L, ",
                        config().model_dim, "]");
    const Index begin = pass.before, end = length - pass.behind;
    require<ShapeError>(0 <= begin && begin <= end && end <= length, "Titans", "of ", length,
                        " vectors, ", begin, " and ", pass.behind, " are said to be memory tokens");
    detail::require_causal_tokens("Titans", pass);
    const V words = narrow(x, begin, end);
    const RowCounts counts(state.since.size(), end - begin);
    if (!pass.answer) {
      memory.write(state, words, counts);
      return {};
    }
    State next = state;
    const V queries = query.forward(x), asked = narrow(queries, begin, end);
    V y = memory.learn(next, words, counts, &asked);
    if (begin > 0) y = concat(memory.read(state, narrow(queries, 0, begin)), y);
    if (end < length) y = concat(y, memory.read(next, narrow(queries, end, length)));
    state = std::move(next);
    return y;
  }

 private:
  static Config sized(Config config, const AttentionSizes& sizes) {
    config.model_dim = sizes.model_dim;
    config.heads = sizes.heads;
    config.head_dim = sizes.head_dim;
    return config;
  }
};

}  // namespace infty
