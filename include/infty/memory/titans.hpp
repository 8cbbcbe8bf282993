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
///
/// A pass that is traced is shown how much is learned of each word, θ, "titans_step" [B, L, H].
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
  /// Behind `query`, over words; without weights if there is none.
  ShortConvolution<T, Backend> query_convolution;

  /// Makes the layer with weights drawn as `Linear` draws them; the configuration's sizes are set
  /// to these. @throws infty::ValueError if sizes or configuration are not valid
  explicit Titans(Config config, AttentionSizes sizes, Random random = Random(0))
      : query((sizes.validate(), sizes.model_dim), sizes.inner(), random.split(0), false),
        memory(sized(config, sizes), random.split(1)) {
    if (config.convolution > 0)
      query_convolution = {{.kernel = config.convolution}, sizes.inner(), random.split(2)};
  }

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
    if (config().convolution > 0) see("query_convolution", query_convolution);
  }

  /// A state of fresh rows. @throws infty::ValueError unless batch >= 1
  State make_state(Index batch, Index first_row = 0) const {
    State state = memory.make_state(batch, first_row);
    if (config().convolution > 0) state.asked = query_convolution.make_state(batch);
    return state;
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
    detail::require_room_for_tokens("Titans", length, pass);
    const Index begin = pass.before, end = length - pass.behind;
    require_causal_tokens("Titans", pass);
    const V words = narrow(x, begin, end);
    const RowCounts counts(state.since.size(), end - begin);
    if (pass.traced) pass.show("titans_step", memory.steps(words), "row word head");
    require<ShapeError>(state.asked.has_value() == (config().convolution > 0), "Titans",
                        "the state has ", state.asked ? "" : "no ", "queries of a convolution, ",
                        "of which the layer has ", config().convolution, " taps");
    State next = state;
    if (!pass.answer) {
      if (next.asked) query_convolution.forward(*next.asked, query.forward(words));
      memory.write(next, words, counts);
      state = std::move(next);
      return {};
    }
    const V queries = query.forward(x);
    // Memory tokens ask behind the words before them and stay behind no other.
    const auto convolved = [&](auto asked, Index first, Index last) {
      const V these = narrow(queries, first, last);
      return asked ? query_convolution.forward(*asked, these) : these;
    };
    V asked = narrow(queries, begin, end);
    if (next.asked) asked = query_convolution.forward(*next.asked, asked);
    V y = memory.learn(next, words, counts, &asked);
    if (begin > 0) y = concat(memory.read(state, convolved(state.asked, 0, begin)), y);
    if (end < length) y = concat(y, memory.read(next, convolved(next.asked, end, length)));
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
