// SPDX-License-Identifier: MIT
#pragma once

#include <utility>

#include <infty/memory/fwd.hpp>
#include <infty/memory/memsizer.hpp>
#include <infty/nn/feed_forward.hpp>

namespace infty {

/// The constants of a `MemSizerLayer`: those of the paper's translation.
struct MemSizerLayerConfig {
  MemSizerConfig self = {
      .slots = 4, .query_scale = 8, .value_scale = 8};  ///< [Zhang & Cai 2022, §4]
  MemSizerConfig cross = {.slots = 32, .query_scale = 8, .value_scale = 8};  ///< the same
  Index feed_forward = 4096;  ///< width of the feed-forward network's inner layer (the same)
  /// x + f(norm(x)) instead of norm(x + f(x)); the authors' language model has it, their
  /// translation has not.
  bool norms_in_front = false;

  /// Checks all constants. @throws infty::ValueError that names the first out of its range
  void validate() const {
    self.validate();
    cross.validate();
    require_at_least("MemSizerLayerConfig", "feed_forward", feed_forward, 1);
    require_sizes("MemSizerLayerConfig", {{"feed_forward", feed_forward}});
  }
};

/// What a `MemSizerLayer` remembers: what it has read of the target, and the source's memory.
template <class T, class Backend>
struct MemSizerLayerState {
  MemSizerState<T, Backend> self;  ///< of the causal form
  Variable<T, Backend> source;     ///< [batch, k, d], zeros until `set_source`; with a gradient

  template <class Visitor>
  void visit(Visitor&& see) {
    see("self", self);
    see("source", source);
  }
};

/// The decoder layer of a translation with MemSizer [Zhang & Cai 2022]: the causal form, the cross
/// form over a source, and a feed-forward network, each with a residual, dropout and a norm. The
/// source is read once, by `set_source`; what is kept of it does not depend on its length.
template <class T, class Backend>
class MemSizerLayer {
 public:
  using Scalar = T;
  using BackendType = Backend;
  using V = Variable<T, Backend>;
  using Config = MemSizerLayerConfig;
  using State = MemSizerLayerState<T, Backend>;

  MemSizer<T, Backend> self, cross;                        ///< of the target, and of the source
  FeedForward<T, Backend> feed;                            ///< changes each vector by itself
  LayerNorm<T, Backend> self_norm, cross_norm, feed_norm;  ///< of the three parts

  /// Makes a layer with weights drawn from `random`.
  /// @throws infty::ValueError if the configuration or the sizes are not valid
  MemSizerLayer(Config config, AttentionSizes sizes, Random random = Random(0))
      : self((config.validate(), config.self), sizes, random.split(0)),
        cross(config.cross, sizes, random.split(1)),
        feed(sizes.model_dim, config.feed_forward, random.split(2)),
        self_norm(sizes.model_dim),
        cross_norm(sizes.model_dim),
        feed_norm(sizes.model_dim),
        config_(config) {}

  /// The constants as given.
  const Config& config() const { return config_; }

  template <class Visitor>
  void visit(Visitor&& see) {
    see("self", self);
    see("self_norm", self_norm);
    see("cross", cross);
    see("cross_norm", cross_norm);
    see("feed", feed);
    see("feed_norm", feed_norm);
  }

  /// A state of fresh rows, without a source. @throws infty::ValueError unless batch >= 1
  State make_state(Index batch, Index first_row = 0) const {
    return {self.make_state(batch, first_row), cross.make_state(batch).memory};
  }

  /// Takes a source in, [B, S, d], in place of the one before. @param padding  as
  /// `MemSizer::encode`
  /// @throws as there, and infty::ShapeError for another number of rows; then the state is as it
  /// was
  void set_source(State& state, const V& source, const Tensor<Index, Backend>& padding = {}) const {
    V memory = cross.encode(source, padding);
    require<ShapeError>(memory.shape() == state.source.shape(), "MemSizerLayer::set_source",
                        "the source is ", source.shape(), ", the state holds ",
                        state.source.shape());
    state.source = std::move(memory);
  }

  /// The same of rows that are padded in front. @param length  how many vectors of the source, the
  /// last ones, each row has
  /// @throws as there; infty::ValueError for a length out of range
  void set_source(State& state, const V& source, const RowCounts& length) const {
    require<ShapeError>(source.shape().rank() == 3 && source.dim(0) == std::ssize(length),
                        "MemSizerLayer::set_source", "the source is ", source.shape(), ", of ",
                        length.size(), " rows");
    RowCounts padding;
    for (const Index n : length) {
      require(n >= 0 && n <= source.dim(1), "MemSizerLayer::set_source", "a length is ", n,
              ": it must lie in [0, ", source.dim(1), "]");
      for (Index i = 0; i < source.dim(1); ++i) padding.push_back(i < source.dim(1) - n ? 1 : 0);
    }
    set_source(state, source,
               Tensor<Index, Backend>::from(Shape{source.dim(0), source.dim(1)}, padding.data()));
  }

  /// Vectors of the target [B, L, d] -> [B, L, d], each having read those up to itself and the
  /// source. @throws infty::ShapeError; then the state is as it was
  V forward(State& state, const V& x, Pass<T, Backend>& pass) const {
    MemSizerState<T, Backend> next = state.self;
    V y = self.forward(next, in_front(self_norm, x), pass);
    if (pass.answer && x.dim(1) > 0) {
      y = behind(self_norm, pass.add_dropped(x, y));
      y = behind(cross_norm,
                 pass.add_dropped(y, cross.attend(in_front(cross_norm, y), state.source)));
      y = behind(feed_norm, pass.add_dropped(y, feed.forward(in_front(feed_norm, y), pass)));
    }
    state.self = std::move(next);
    return y;
  }

 private:
  V in_front(const LayerNorm<T, Backend>& norm, const V& x) const {
    return config_.norms_in_front ? norm.forward(x) : x;
  }
  V behind(const LayerNorm<T, Backend>& norm, const V& x) const {
    return config_.norms_in_front ? x : norm.forward(x);
  }

  Config config_;
};

}  // namespace infty
