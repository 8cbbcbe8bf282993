// SPDX-License-Identifier: MIT
#pragma once

#include <cmath>

#include <infty/autograd/elementwise.hpp>
#include <infty/core/checked.hpp>
#include <infty/core/number.hpp>
#include <infty/memory/fwd.hpp>
#include <infty/nn/embedding.hpp>
#include <infty/nn/slot_attention.hpp>
#include <infty/nn/slot_reader.hpp>
#include <infty/nn/unit_vectors.hpp>

namespace infty {

/// The constants of a `SlotWriter`.
struct SlotConfig {
  Index slots = 1024;       ///< m, that a row has [Wu et al. 2022, §4.2, WikiText-103]
  Index heads = 0;          ///< H of reader and writer, which divide d; 0: those of the attention
  double temperature = .5;  ///< τ of the writer; the paper says below 1 and no more
  SlotMaps maps = {};       ///< what maps of reader and writer have beside weights

  /// Checks all constants. @throws infty::ValueError that names the first out of its range
  void validate() const {
    require_at_least("SlotConfig", "slots", slots, 1);
    require_at_least("SlotConfig", "heads", heads, 0);
    require_sizes("SlotConfig", {{"slots", slots}});
    require_sizes("SlotConfig", {{"heads", heads}});
    require_within("SlotConfig", "temperature", temperature, least_divisor, largest_constant);
  }
};

/// The writer of a Memformer [Wu et al. 2022, §3.3]: every slot reads itself, as it is, and the
/// segment's last vectors, or keeps itself; then it is normed with a bias that lets it forget:
/// m <- (m + v) / |m + v|. A slot that nothing is written to comes to v / |v|, as which it began.
template <class T, class Backend>
class SlotWriter {
 public:
  using Scalar = T;
  using BackendType = Backend;
  using V = Variable<T, Backend>;
  using Config = SlotConfig;

  Linear<T, Backend> query;               ///< of slots, d -> d
  Linear<T, Backend> key;                 ///< of slots and vectors, d -> d
  Linear<T, Backend> value;               ///< of vectors, d -> d; a slot's own is the slot itself
  std::optional<Linear<T, Backend>> out;  ///< behind the heads; empty for none
  V bias;                                 ///< v, [m, d]: how fast, and whither, slots forget

  /// Makes a writer of slots of width d, with weights drawn as `Linear` draws them, and biases of
  /// about unit length, as slots have. @throws infty::ValueError for a configuration that cannot be
  SlotWriter(Config config, Index d, Random random)
      : query((check(config, d), d), d, random.split(0), config.maps.bias),
        key(d, d, random.split(1), config.maps.bias),
        value(d, d, random.split(2), config.maps.bias),
        bias(Embedding<T, Backend>(config.slots, d, random.split(4),
                                   1 / std::sqrt(static_cast<double>(d)))
                 .weight),
        config_(config) {
    if (config.maps.output) out.emplace(d, d, random.split(3), config.maps.bias);
  }

  /// The constants as given.
  const Config& config() const { return config_; }

  template <class Visitor>
  void visit(Visitor&& see) {
    see("query", query);
    see("key", key);
    see("value", value);
    see("out", out);
    see("bias", bias);
  }

  /// The slots of a fresh row, v / |v| -> [m, d].
  V initial() const { return unit_vectors(bias); }

  /// The next slots.
  /// @param slots    [B, m, d]   @param x  [B, L, d], L >= 1, the last layer's answers
  /// @param visible  [B], how many of x (the last ones) count in a row; empty for all
  /// @return         [B, m, d], of unit length
  /// @throws infty::ShapeError, infty::ValueError
  V forward(const V& slots, const V& x, const Tensor<Index, Backend>& visible = {}) const {
    const V read = slot_attention(query.forward(slots), key.forward(slots), slots, key.forward(x),
                                  value.forward(x), options(visible));
    return unit_vectors((out ? out->forward(read) : read) + bias);
  }

  /// What `forward` averages by, for those who look. @throws as there
  SlotAttentionWeights<T, Backend> weights(const V& slots, const V& x,
                                           const Tensor<Index, Backend>& visible = {}) const {
    const auto guard = no_grad();
    return slot_attention_weights(query.forward(slots), key.forward(slots), key.forward(x),
                                  options(visible));
  }

 private:
  SlotAttentionOptions<Backend> options(const Tensor<Index, Backend>& visible) const {
    return {.heads = config_.heads, .temperature = config_.temperature, .visible = visible};
  }

  static void check(const Config& config, Index d) {
    config.validate();
    detail::require_slot_heads("SlotWriter", d, config.heads);
    require_sizes("SlotWriter", {{"slots", config.slots}, {"d", d}});
  }

  Config config_;
};

}  // namespace infty
