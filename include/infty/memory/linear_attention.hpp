// SPDX-License-Identifier: MIT
#pragma once

#include <cmath>
#include <optional>

#include <infty/core/checked.hpp>
#include <infty/memory/feature_map.hpp>
#include <infty/memory/flops.hpp>
#include <infty/memory/fwd.hpp>
#include <infty/memory/memory.hpp>
#include <infty/memory/ops/normalized_linear_attention.hpp>
#include <infty/memory/recurrence.hpp>
#include <infty/nn/linear.hpp>

namespace infty {

/// The constants of linear attention. Defaults are those of [Katharopoulos et al. 2020].
struct LinearAttentionConfig {
  FeatureMap features = FeatureMap::elu_plus_one;  ///< of queries and keys [§3.2, Eq. 7]
  bool normalized = true;  ///< whether answers are divided by what all keys weigh [Eq. 9]
  /// What is added to that. Of flash-linear-attention; the authors' fast-transformers have 1e-6.
  double epsilon = 1e-10;
  double scale = 0;  ///< of the answers, which a normalised one loses again; 0: 1 / sqrt(head_dim)
  Index chunk = 64;  ///< places that go through matrix products together; 0: one after the other
  /// D: random projections, of which Gaussian features are two each, or learned features. 0: 64
  /// [Peng et al. 2021], 32 learned ones [Kasai et al. 2021], from memory and not checked.
  Index feature_dim = 0;
  /// Least number that answers are divided by, for Gaussian features may cancel, where the sum that
  /// they stand for is above 0. 0: 0.01 of Gaussian ones, and none of others. Of the library; what
  /// the authors' program does is not known.
  double floor = 0;
  /// The memory fades by g = sigmoid(w·x + b) a place and head, and what is written is weighed by
  /// 1 - g [Peng et al. 2021, §3.2].
  bool gate = false;
  bool bias = false;  ///< of the maps of queries, keys, values and answers

  /// `feature_dim` with its default.
  Index resolved_feature_dim() const {
    return feature_dim > 0 ? feature_dim : features == FeatureMap::learned ? 32 : 64;
  }
  /// `floor` with its default.
  double resolved_floor() const {
    return floor > 0 ? floor : features == FeatureMap::gaussian ? .01 : 0;
  }

  /// Checks all constants.
  /// @throws infty::ValueError that names the first constant out of its range
  void validate() const {
    const auto not_negative = [](const char* name, double value) {
      require_within("LinearAttentionConfig", name, value, 0, largest_constant);
    };
    not_negative("epsilon", epsilon);
    not_negative("scale", scale);
    require_at_least("LinearAttentionConfig", "chunk", chunk, 0);
    require_sizes("LinearAttentionConfig", {{"chunk", chunk}});
    require_at_least("LinearAttentionConfig", "feature_dim", feature_dim, 0);
    require_sizes("LinearAttentionConfig", {{"feature_dim", feature_dim}});
    not_negative("floor", floor);
  }
};

/// What linear attention remembers.
template <class T, class Backend>
struct LinearAttentionState {
  Variable<T, Backend> memory;               ///< S, [batch, heads, features, head_dim]
  std::optional<Variable<T, Backend>> norm;  ///< z, [batch, heads, features], if normalised

  template <class Visitor>
  void visit(Visitor&& see) {
    see("memory", memory);
    see("norm", norm);
  }
};

/// Linear attention [Katharopoulos et al. 2020]: a mixer whose memory is a matrix a head, to which
/// every place adds its key times its value, S ← S + φ(k) vᵀ, and which it asks by its query,
/// Sᵀφ(q) / (φ(q)·z) with z the sum of the keys. A place costs the same however many there were,
/// and nothing is let go, but with a gate. A gradient flows through the memory from segment to
/// segment, as far as a tape records.
///
/// By its features and its gate it is RFA [Peng et al. 2021] and T2R [Kasai et al. 2021], too:
/// `presets::rfa` and `presets::t2r`. `with_mixer` puts it into a trained transformer.
template <class T, class Backend>
class LinearAttention {
 public:
  using Scalar = T;
  using BackendType = Backend;
  using V = Variable<T, Backend>;
  using Config = LinearAttentionConfig;
  using State = LinearAttentionState<T, Backend>;

  Linear<T, Backend> query, key, value;  ///< d -> H D
  Linear<T, Backend> out;                ///< H D -> d
  HeadFeatures<T, Backend> features;     ///< of queries and keys
  Linear<T, Backend> gate;               ///< d -> H, with a bias; empty without a gate

  /// Makes the mixer of a layer, with weights drawn as `Linear` draws them.
  /// @throws infty::ValueError if sizes or configuration are not valid
  explicit LinearAttention(Config config, AttentionSizes sizes, Random random = Random(0))
      : config_((config.validate(), config)), sizes_((sizes.validate(), sizes)) {
    const Index d = sizes.model_dim, inner = sizes.inner();
    query = Linear<T, Backend>(d, inner, random.split(0), config.bias);
    key = Linear<T, Backend>(d, inner, random.split(1), config.bias);
    value = Linear<T, Backend>(d, inner, random.split(2), config.bias);
    out = Linear<T, Backend>(inner, d, random.split(3), config.bias);
    features = HeadFeatures<T, Backend>(config.features, config.resolved_feature_dim(), sizes,
                                        random.split(4));
    if (config.gate) gate = Linear<T, Backend>(d, sizes.heads, random.split(5));
  }

  /// Returns the constants.
  const Config& config() const { return config_; }

  template <class Visitor>
  void visit(Visitor&& see) {
    see("query", query);
    see("key", key);
    see("value", value);
    see("out", out);
    see("features", features);
    if (config_.gate) see("gate", gate);
  }

  /// A state of fresh rows. @throws infty::ValueError unless 1 <= batch <= `largest_size`
  State make_state(Index batch, Index /*first_row*/ = 0) const {
    require_rows("LinearAttention::make_state", batch);
    State state{V(Tensor<T, Backend>::zeros(memory_shape(batch))), {}};
    if (config_.normalized) state.norm = V(Tensor<T, Backend>::zeros(norm_shape(batch)));
    return state;
  }

  /// x [B, L, d] -> [B, L, d], each place seeing those up to itself and what the state remembers,
  /// which moves on. Memory tokens are read in their places and leave nothing behind.
  /// @throws infty::ShapeError, infty::ValueError for memory tokens with rules of their own; then
  /// the state is as it was
  V forward(State& state, const V& x, Pass<T, Backend>& pass) const {
    const Index batch = x.shape().rank() > 0 ? x.dim(0) : 0;
    detail::require_segment("LinearAttention", x, batch, sizes_, pass);
    require_causal_tokens("LinearAttention", pass);
    require<ShapeError>(state.memory.shape() == memory_shape(batch) &&
                            state.norm.has_value() == config_.normalized &&
                            (!state.norm || state.norm->shape() == norm_shape(batch)),
                        "LinearAttention", "the state's memory is ", state.memory.shape(),
                        ": it must be ", memory_shape(batch), ", ",
                        config_.normalized ? "with" : "without", " a norm");
    return detail::run_words(state, x, pass, [&](State& s, const V& words, bool answer) {
      return run(s, words, answer);
    });
  }

  /// Of `forward`: see memory/flops.hpp.
  double flops(Index batch, Index length) const {
    const Index inner = sizes_.inner(), maps = 4 * inner + (config_.gate ? sizes_.heads : 0);
    return static_cast<double>(batch) *
           (detail::product_flops(length, maps, sizes_.model_dim) + features.flops(2 * length) +
            detail::product_flops(length, 2 * inner, features.width()));
  }

 private:
  Shape memory_shape(Index batch) const {
    return {batch, sizes_.heads, features.width(), sizes_.head_dim};
  }
  Shape norm_shape(Index batch) const { return {batch, sizes_.heads, features.width()}; }

  DeltaRuleInputs<T, Backend> inputs(const V& x) const {
    DeltaRuleInputs<T, Backend> in{features.forward(query.forward(x)),
                                   features.forward(key.forward(x)),
                                   detail::in_heads(value.forward(x), sizes_.heads)};
    if (config_.gate) {
      // g = sigmoid(a), whose logarithm is -softplus(-a), and 1 - g = sigmoid(-a).
      const V less = -gate.forward(x);
      in.decay = -softplus(less);
      in.key = in.key * reshape(sigmoid(less), {x.dim(0), x.dim(1), sizes_.heads, 1});
    }
    return in;
  }

  V run(State& state, const V& x, bool answer) const {
    const auto in = inputs(x);
    const double D = static_cast<double>(sizes_.head_dim);
    const DeltaRuleOptions options{config_.scale > 0 ? config_.scale : 1 / std::sqrt(D),
                                   config_.chunk};
    V output;
    if (config_.normalized) {
      const auto result = normalized_linear_attention(
          in, state.memory, *state.norm, config_.epsilon, options, config_.resolved_floor());
      output = result.output;
      state = {result.state, result.norm};
    } else {
      const auto result = delta_rule(in, state.memory, options);
      output = result.output;
      state.memory = result.state;
    }
    return answer ? out.forward(detail::joined_heads(output)) : V();
  }

  Config config_;
  AttentionSizes sizes_;
};

}  // namespace infty
