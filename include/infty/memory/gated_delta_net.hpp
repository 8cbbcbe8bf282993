// SPDX-License-Identifier: MIT
#pragma once

#include <algorithm>
#include <cmath>
#include <optional>
#include <vector>

#include <infty/autograd/activations.hpp>
#include <infty/core/checked.hpp>
#include <infty/memory/flops.hpp>
#include <infty/memory/fwd.hpp>
#include <infty/memory/memory.hpp>
#include <infty/memory/ops/delta_rule.hpp>
#include <infty/memory/recurrence.hpp>
#include <infty/nn/linear.hpp>
#include <infty/nn/rms_norm.hpp>
#include <infty/nn/short_convolution.hpp>
#include <infty/nn/unit_vectors.hpp>

namespace infty {

/// The constants of a Gated DeltaNet [Yang et al. 2025]. Defaults are those of the layer in
/// flash-linear-attention, by the paper's authors.
struct GatedDeltaNetConfig {
  /// Heads of values, a multiple of those of queries and keys, of which neighbours share one;
  /// 0: as many.
  Index value_heads = 0;
  Index value_dim = 0;            ///< width of a head's values; 0: twice that of its keys
  Index convolution = 4;          ///< taps of the convolutions of queries, keys and values; 0: none
  bool convolution_bias = false;  ///< whether these have a bias
  bool decay = true;              ///< whether the memory fades; without: `DeltaNet`
  bool gate = true;               ///< whether answers pass a gate, SiLU(W x)
  /// β up to 2 instead of 1, so that what is written may turn the memory [Grazzi et al. 2025].
  bool negative_eigenvalues = false;
  double scale = 0;              ///< of the answers; 0: 1 / sqrt(head_dim)
  double norm_epsilon = 1e-5;    ///< of the norm of answers
  double length_epsilon = 1e-6;  ///< of the squared length of queries and keys
  Index chunk = 64;  ///< places that go through matrix products together; 0: one after the other

  /// The same with its sizes resolved.
  GatedDeltaNetConfig resolved(const AttentionSizes& sizes) const {
    GatedDeltaNetConfig c = *this;
    if (c.value_heads == 0) c.value_heads = sizes.heads;
    if (c.value_dim == 0) c.value_dim = 2 * sizes.head_dim;
    return c;
  }

  /// Checks all constants.
  /// @throws infty::ValueError that names the first constant out of its range
  void validate() const {
    const char* const op = "GatedDeltaNetConfig";
    require_at_least(op, "value_heads", value_heads, 0);
    require_at_least(op, "value_dim", value_dim, 0);
    require_at_least(op, "convolution", convolution, 0);
    require_sizes(op, {{"value_heads", value_heads}, {"value_dim", value_dim}});
    require_sizes(op, {{"convolution", convolution}});
    require_within(op, "scale", scale, 0, largest_constant);
    require_within(op, "norm_epsilon", norm_epsilon, least_divisor, largest_constant);
    require_within(op, "length_epsilon", length_epsilon, least_divisor, largest_constant);
    require_at_least(op, "chunk", chunk, 0);
    require_sizes(op, {{"chunk", chunk}});
  }
};

/// What a (Gated) DeltaNet remembers.
template <class T, class Backend>
struct GatedDeltaNetState {
  using Inputs = ShortConvolutionState<T, Backend>;  ///< of one convolution

  Variable<T, Backend> memory;              ///< S, [batch, value_heads, head_dim, value_dim]
  std::optional<Inputs> query, key, value;  ///< last inputs of the convolutions, if there are any

  template <class Visitor>
  void visit(Visitor&& see) {
    see("memory", memory);
    see("query", query);
    see("key", key);
    see("value", value);
  }
};

/// A Gated DeltaNet [Yang et al. 2025]: a mixer whose memory is a matrix S [K, D] a head. At every
/// place it fades by e^g, what it holds at the place's key is replaced, by the share β, by the
/// place's value, and the place's query reads it:
///
///     S ← e^g S;   S ← S + k (β (v - Sᵀk))ᵀ;   o = Sᵀq / sqrt(K)
///
/// q, k, v = SiLU(conv(W x)), q and k then of length 1 in every head; β = sigmoid(W x) and
/// g = -exp(a) softplus(W x + b) a head of values. Answers are normed by head (RMS), pass a gate
/// SiLU(W x), and are joined by a linear map. A place costs the same however many there were. A
/// gradient flows through all of the state from segment to segment, as far as a tape records. Where
/// none does, on a CPU, and a head's memory is 64 KiB or less, all segments go place by place,
/// which is quicker there: the same but for rounding.
///
/// A pass that is traced is shown β, "delta_share", and e^g, "delta_kept", of the words, [B, L,
/// H'].
template <class T, class Backend>
class GatedDeltaNet {
 public:
  using Scalar = T;
  using BackendType = Backend;
  using V = Variable<T, Backend>;
  using Config = GatedDeltaNetConfig;
  using State = GatedDeltaNetState<T, Backend>;

  Linear<T, Backend> query, key;                   ///< d -> H K, without a bias
  Linear<T, Backend> value;                        ///< d -> H' D, without a bias
  ShortConvolution<T, Backend> query_convolution;  ///< of queries; without weights if there is none
  ShortConvolution<T, Backend> key_convolution;    ///< of keys, likewise
  ShortConvolution<T, Backend> value_convolution;  ///< of values, likewise
  Linear<T, Backend> beta;                         ///< d -> H', without a bias
  Linear<T, Backend> decay;  ///< d -> H', without a bias; empty if nothing fades
  V decay_rate;              ///< a, [H'], the logarithm of the rate; empty if nothing fades
  V decay_bias;              ///< b, [H']; empty if nothing fades
  Linear<T, Backend> gate;   ///< d -> H' D, without a bias; empty without a gate
  RMSNorm<T, Backend> norm;  ///< of a head's answers, with one gain for all heads, [D]
  Linear<T, Backend> out;    ///< H' D -> d, without a bias

  /// Makes the mixer of a layer: weights as `Linear` and `ShortConvolution` draw them, and decays
  /// as Mamba-2's, rates from (0, 16) and steps from 0.001 to 0.1.
  /// @throws infty::ValueError if sizes or configuration are not valid
  explicit GatedDeltaNet(GatedDeltaNetConfig config, AttentionSizes sizes,
                         Random random = Random(0))
      : config_((config.validate(), config)), sizes_((sizes.validate(), sizes)) {
    full_ = config.resolved(sizes);
    require(full_.value_heads % sizes.heads == 0, "GatedDeltaNetConfig", "value_heads is ",
            full_.value_heads, ": it must be a multiple of the ", sizes.heads, " heads");
    require_sizes("GatedDeltaNetConfig", {{"value_heads", full_.value_heads},
                                          {"value_dim", full_.value_dim},
                                          {"model_dim", sizes.model_dim}});
    const Index d = sizes.model_dim, keys = sizes.inner(), heads = full_.value_heads;
    const Index values = heads * full_.value_dim;
    const auto map = [&](Index in, Index to, Index stream) {
      return Linear<T, Backend>(in, to, random.split(static_cast<std::uint64_t>(stream)), false);
    };
    query = map(d, keys, 0);
    key = map(d, keys, 1);
    value = map(d, values, 2);
    if (config.convolution > 0) {
      const ShortConvolutionConfig taps{.kernel = config.convolution,
                                        .bias = config.convolution_bias};
      query_convolution = ShortConvolution<T, Backend>(taps, keys, random.split(3));
      key_convolution = ShortConvolution<T, Backend>(taps, keys, random.split(4));
      value_convolution = ShortConvolution<T, Backend>(taps, values, random.split(5));
    }
    beta = map(d, heads, 6);
    if (config.decay) {
      decay = map(d, heads, 7);
      draw_decays(heads, random.split(8));
    }
    if (config.gate) gate = map(d, values, 9);
    norm = RMSNorm<T, Backend>(full_.value_dim, static_cast<T>(config.norm_epsilon));
    out = map(values, d, 10);
  }

  /// Returns the constants as given.
  const Config& config() const { return config_; }

  template <class Visitor>
  void visit(Visitor&& see) {
    see("query", query);
    see("key", key);
    see("value", value);
    if (config_.convolution > 0) {
      see("query_convolution", query_convolution);
      see("key_convolution", key_convolution);
      see("value_convolution", value_convolution);
    }
    see("beta", beta);
    if (config_.decay) {
      see("decay", decay);
      see("decay_rate", decay_rate);
      see("decay_bias", decay_bias);
    }
    if (config_.gate) see("gate", gate);
    see("norm", norm);
    see("out", out);
  }

  /// A state of fresh rows. @throws infty::ValueError unless 1 <= batch <= `largest_size`
  State make_state(Index batch, Index /*first_row*/ = 0) const {
    require_rows("GatedDeltaNet::make_state", batch);
    State state{V(Tensor<T, Backend>::zeros(memory_shape(batch))), {}, {}, {}};
    if (config_.convolution > 0) {
      state.query = query_convolution.make_state(batch);
      state.key = key_convolution.make_state(batch);
      state.value = value_convolution.make_state(batch);
    }
    return state;
  }

  /// x [B, L, d] -> [B, L, d], each place seeing those up to itself and what the state remembers,
  /// which moves on. Memory tokens are read in their places and leave nothing behind.
  /// @throws infty::ShapeError, infty::ValueError for memory tokens with rules of their own; then
  /// the state is as it was
  V forward(State& state, const V& x, Pass<T, Backend>& pass) const {
    const Index batch = x.shape().rank() > 0 ? x.dim(0) : 0;
    detail::require_segment("GatedDeltaNet", x, batch, sizes_, pass);
    require_causal_tokens("GatedDeltaNet", pass);
    const bool convolved = config_.convolution > 0;
    require<ShapeError>(
        state.memory.shape() == memory_shape(batch) && state.query.has_value() == convolved &&
            state.key.has_value() == convolved && state.value.has_value() == convolved,
        "GatedDeltaNet", "the state's memory is ", state.memory.shape(), ": it must be ",
        memory_shape(batch), ", ", convolved ? "with" : "without", " inputs of convolutions");
    if (pass.traced) show_gates(narrow(x, pass.before, x.dim(1) - pass.behind), pass);
    return detail::run_words(state, x, pass, [&](State& s, const V& words, bool answer) {
      return run(s, words, answer);
    });
  }

  /// Of `forward`: see memory/flops.hpp.
  double flops(Index batch, Index length) const {
    const Index H = full_.value_heads, keys = sizes_.inner(), values = H * full_.value_dim;
    const Index maps = 2 * keys + (config_.gate ? 3 : 2) * values + (config_.decay ? 2 : 1) * H;
    return static_cast<double>(batch) *
           (detail::product_flops(length, maps, sizes_.model_dim) +
            detail::product_flops(length, 2 * keys + values, config_.convolution) +
            detail::product_flops(length, 3 * values, sizes_.head_dim));
  }

 private:
  Shape memory_shape(Index batch) const {
    return {batch, full_.value_heads, sizes_.head_dim, full_.value_dim};
  }

  /// As the program draws them: exp(a) uniform, softplus(b) uniform in its logarithm.
  void draw_decays(Index heads, Random random) {
    std::vector<T> rates, biases;
    for (Index h = 0; h < heads; ++h)
      rates.push_back(static_cast<T>(std::log((std::max)(16 * random.uniform(), 1e-4))));
    const double low = std::log(1e-3), high = std::log(1e-1);
    for (Index h = 0; h < heads; ++h) {
      const double step = std::exp(low + (high - low) * random.uniform());
      biases.push_back(static_cast<T>(std::log(std::expm1(step))));
    }
    decay_rate = V(Tensor<T, Backend>::from(Shape{heads}, rates), true);
    decay_bias = V(Tensor<T, Backend>::from(Shape{heads}, biases), true);
  }

  /// SiLU(conv(x)) by head.
  V convolved(const ShortConvolution<T, Backend>& convolution,
              std::optional<typename State::Inputs>& inputs, const V& x, Index heads) const {
    return detail::in_heads(silu(inputs ? convolution.forward(*inputs, x) : x), heads);
  }

  /// β and g, [B, L, H'].
  V shares(const V& x) const {
    const V share = sigmoid(beta.forward(x));
    return config_.negative_eigenvalues ? scale(share, T(2)) : share;
  }
  V decays(const V& x) const {
    return -(exp(decay_rate) * softplus(decay.forward(x) + decay_bias));
  }

  void show_gates(const V& words, Pass<T, Backend>& pass) const {
    pass.show("delta_share", shares(words), "row word head");
    if (config_.decay) pass.show("delta_kept", exp(decays(words)), "row word head");
  }

  V run(State& state, const V& x, bool answer) const {
    const auto unit = [&](const V& y) { return unit_vectors(y, 0, config_.length_epsilon, 0); };
    DeltaRuleInputs<T, Backend> in{
        unit(convolved(query_convolution, state.query, query.forward(x), sizes_.heads)),
        unit(convolved(key_convolution, state.key, key.forward(x), sizes_.heads)),
        convolved(value_convolution, state.value, value.forward(x), full_.value_heads)};
    in.beta = shares(x);
    if (config_.decay) in.decay = decays(x);
    const Index chunk =
        detail::quickest_chunk<T, Backend>(config_.chunk, sizes_.head_dim, full_.value_dim);
    const auto result = delta_rule(in, state.memory, {config_.scale, chunk});
    state.memory = result.state;
    if (!answer) return V();
    V y = norm.forward(result.output);
    if (config_.gate) y = y * detail::in_heads(silu(gate.forward(x)), full_.value_heads);
    return out.forward(detail::joined_heads(y));
  }

  Config config_, full_;
  AttentionSizes sizes_;
};

}  // namespace infty
