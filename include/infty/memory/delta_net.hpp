// SPDX-License-Identifier: MIT
#pragma once

#include <infty/memory/gated_delta_net.hpp>

namespace infty {

/// The constants of a DeltaNet [Yang et al. 2024]. Defaults are those of the layer in
/// flash-linear-attention, by the paper's authors.
struct DeltaNetConfig {
  Index value_dim = 0;            ///< width of a head's values; 0: that of its keys
  Index convolution = 4;          ///< taps of the convolutions of queries, keys and values; 0: none
  bool convolution_bias = false;  ///< whether these have a bias
  bool gate = false;              ///< whether answers pass a gate, SiLU(W x)
  /// β up to 2 instead of 1, so that what is written may turn the memory [Grazzi et al. 2025].
  bool negative_eigenvalues = false;
  double scale = 0;              ///< of the answers; 0: 1 / sqrt(head_dim)
  double norm_epsilon = 1e-5;    ///< of the norm of answers
  double length_epsilon = 1e-6;  ///< of the squared length of queries and keys
  Index chunk = 64;  ///< places that go through matrix products together; 0: one after the other

  /// The Gated DeltaNet that this is, one that does not fade.
  GatedDeltaNetConfig gated(const AttentionSizes& sizes) const {
    return {.value_heads = 0,
            .value_dim = value_dim == 0 ? sizes.head_dim : value_dim,
            .convolution = convolution,
            .convolution_bias = convolution_bias,
            .decay = false,
            .gate = gate,
            .negative_eigenvalues = negative_eigenvalues,
            .scale = scale,
            .norm_epsilon = norm_epsilon,
            .length_epsilon = length_epsilon,
            .chunk = chunk};
  }

  /// Checks all constants.
  /// @throws infty::ValueError that names the first constant out of its range
  void validate() const { gated({}).validate(); }
};

/// A DeltaNet [Schlag et al. 2021; Yang et al. 2024]: a `GatedDeltaNet` whose memory does not fade.
/// What it holds at a place's key is replaced, by the share β, by the place's value, S ← S + k (β
/// (v - Sᵀk))ᵀ, and stays until something else is written at that key.
template <class T, class Backend>
class DeltaNet : public GatedDeltaNet<T, Backend> {
 public:
  using Config = DeltaNetConfig;

  /// Makes the mixer of a layer, with weights drawn as `Linear` and `ShortConvolution` draw them.
  /// @throws infty::ValueError if sizes or configuration are not valid
  explicit DeltaNet(DeltaNetConfig config, AttentionSizes sizes, Random random = Random(0))
      : GatedDeltaNet<T, Backend>(config.gated(sizes), sizes, random), config_(config) {}

  /// Returns the constants as given.
  const Config& config() const { return config_; }

 private:
  Config config_;
};

}  // namespace infty
