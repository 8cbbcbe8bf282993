// SPDX-License-Identifier: MIT
#pragma once

#include <optional>

#include <infty/autograd/activations.hpp>
#include <infty/memory/flops.hpp>
#include <infty/memory/fwd.hpp>
#include <infty/memory/memory.hpp>
#include <infty/memory/ops/normalized_linear_attention.hpp>
#include <infty/memory/recurrence.hpp>
#include <infty/nn/linear.hpp>

namespace infty {

/// What linear attention makes of queries and keys: nothing, or elu(x) + 1, which is above 0.
enum class FeatureMap { identity, elu_plus_one };

/// The constants of linear attention. Defaults are those of [Katharopoulos et al. 2020].
struct LinearAttentionConfig {
  FeatureMap features = FeatureMap::elu_plus_one;  ///< of queries and keys [§3.2, Eq. 7]
  bool normalized = true;  ///< whether answers are divided by what all keys weigh [Eq. 9]
  /// What is added to that. Of flash-linear-attention; the authors' fast-transformers have 1e-6.
  double epsilon = 1e-10;
  double scale = 0;  ///< of the answers, which a normalised one loses again; 0: 1 / sqrt(head_dim)
  Index chunk = 64;  ///< places that go through matrix products together; 0: one after the other

  /// Checks all constants.
  /// @throws infty::ValueError that names the first constant out of its range
  void validate() const {
    require(math::is_finite(epsilon) && epsilon >= 0, "LinearAttentionConfig", "epsilon is ",
            epsilon, ": it must be finite and >= 0");
    require(math::is_finite(scale) && scale >= 0, "LinearAttentionConfig", "scale is ", scale,
            ": it must be finite and >= 0");
    require_at_least("LinearAttentionConfig", "chunk", chunk, 0);
    require_sizes("LinearAttentionConfig", {{"chunk", chunk}});
  }
};

/// What linear attention remembers.
template <class T, class Backend>
struct LinearAttentionState {
  Variable<T, Backend> memory;               ///< S, [batch, heads, head_dim, head_dim]
  std::optional<Variable<T, Backend>> norm;  ///< z, [batch, heads, head_dim], if normalised

  template <class Visitor>
  void visit(Visitor&& see) {
    see("memory", memory);
    see("norm", norm);
  }
};

/// Linear attention [Katharopoulos et al. 2020]: a mixer whose memory is a matrix a head, to which
/// every place adds its key times its value, S ← S + φ(k) vᵀ, and which it asks by its query,
/// Sᵀφ(q) / (φ(q)·z) with z the sum of the keys. A place costs the same however many there were,
/// and nothing is let go but by what is written over it. A gradient flows through the memory from
/// segment to segment, as far as a tape records.
template <class T, class Backend>
class LinearAttention {
 public:
  using Scalar = T;
  using BackendType = Backend;
  using V = Variable<T, Backend>;
  using Config = LinearAttentionConfig;
  using State = LinearAttentionState<T, Backend>;

  Linear<T, Backend> query, key, value;  ///< d -> H D, without a bias
  Linear<T, Backend> out;                ///< H D -> d, without a bias

  /// Makes the mixer of a layer, with weights drawn as `Linear` draws them.
  /// @throws infty::ValueError if sizes or configuration are not valid
  explicit LinearAttention(Config config, AttentionSizes sizes, Random random = Random(0))
      : config_((config.validate(), config)), sizes_((sizes.validate(), sizes)) {
    const Index d = sizes.model_dim, inner = sizes.inner();
    query = Linear<T, Backend>(d, inner, random.split(0), false);
    key = Linear<T, Backend>(d, inner, random.split(1), false);
    value = Linear<T, Backend>(d, inner, random.split(2), false);
    out = Linear<T, Backend>(inner, d, random.split(3), false);
  }

  /// Returns the constants.
  const Config& config() const { return config_; }

  template <class Visitor>
  void visit(Visitor&& see) {
    see("query", query);
    see("key", key);
    see("value", value);
    see("out", out);
  }

  /// A state of fresh rows. @throws infty::ValueError unless batch >= 1
  State make_state(Index batch, Index /*first_row*/ = 0) const {
    require(batch >= 1, "LinearAttention::make_state", "batch is ", batch, ": it must be >= 1");
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
    detail::require_causal_tokens("LinearAttention", pass);
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
    const Index inner = sizes_.inner(), D = sizes_.head_dim;
    return static_cast<double>(batch) *
           (detail::product_flops(length, 4 * inner, sizes_.model_dim) +
            detail::product_flops(length, 2 * inner, D));
  }

 private:
  Shape memory_shape(Index batch) const {
    return {batch, sizes_.heads, sizes_.head_dim, sizes_.head_dim};
  }
  Shape norm_shape(Index batch) const { return {batch, sizes_.heads, sizes_.head_dim}; }

  V features(const V& x) const {
    const V heads = detail::in_heads(x, sizes_.heads);
    return config_.features == FeatureMap::elu_plus_one ? elu_plus_one(heads) : heads;
  }

  V run(State& state, const V& x, bool answer) const {
    const DeltaRuleInputs<T, Backend> in{features(query.forward(x)), features(key.forward(x)),
                                         detail::in_heads(value.forward(x), sizes_.heads)};
    const DeltaRuleOptions options{config_.scale, config_.chunk};
    V output;
    if (config_.normalized) {
      const auto result =
          normalized_linear_attention(in, state.memory, *state.norm, config_.epsilon, options);
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
