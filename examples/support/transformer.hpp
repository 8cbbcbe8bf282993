// SPDX-License-Identifier: MIT
#pragma once

#include <infty/model/transformer_config.hpp>

namespace support {

/// Calls see(group, name, field, help) for the settings of a transformer that all programs have.
template <class See>
void each_transformer_setting(const char* group, infty::TransformerConfig& model, See&& see) {
  see(group, "width", model.model_dim, "d");
  see(group, "layers", model.layers, "one above the other");
  see(group, "heads", model.heads, "of attention");
  see(group, "feed-forward", model.feed_forward, "width of its inner layer");
  see(group, "pre-norm", model.pre_norm, "norms before attention and feed-forward, not behind");
}

}  // namespace support
