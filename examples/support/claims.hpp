// SPDX-License-Identifier: MIT
#pragma once

#include <algorithm>
#include <initializer_list>
#include <string>
#include <utility>

#include <infty/core/error.hpp>
#include <infty/io/safetensors.hpp>
#include <infty/model/transformer_config.hpp>
#include <infty/train/checkpoint_renames.hpp>

namespace support {

/// Whether a file can be of a model of these sizes, before one is built to compare it with: a few
/// kilobytes may say that there are a billion layers.
/// @param prefix  of the model's parameters
/// @param sizes   other settings by their names, none of which belongs above 65,536 in a file with
///                fewer elements
/// Throws infty::IoError that names the tensor or the setting, infty::ValueError for a
/// configuration that cannot be.
inline void require_fits(const infty::SafetensorsFile& file, const infty::TransformerConfig& model,
                         const std::string& prefix,
                         std::initializer_list<std::pair<const char*, infty::Index>> sizes) {
  model.validate();
  const std::string path = file.path().string();
  const auto has = [&](const std::string& begin) {
    const auto at = file.tensors().lower_bound(begin);
    return at != file.tensors().end() && at->first.starts_with(begin);
  };
  std::string around = prefix;  // of decorators, one inside of the other
  while (!has(around + "layers.") && has(around + "inner.")) around += "inner.";
  const std::string layers = around + "layers.";
  const auto has_layer = [&](infty::Index layer) {
    return has(layers + std::to_string(layer) + '.');
  };
  infty::require<infty::IoError>(has_layer(model.layers - 1) && !has_layer(model.layers), "load",
                                 path, ": its settings say --layers ", model.layers,
                                 ", and its tensors are of another number");
  infty::Index elements = 0;
  for (const auto& [name, entry] : file.tensors()) elements += entry.shape.size();
  const auto require_size = [&](const char* name, infty::Index size, infty::Index most) {
    infty::require<infty::IoError>(size <= most, "load", path, ": its settings say --", name, ' ',
                                   size, ", and it has ", elements, " numbers in all");
  };
  std::string block = layers + "0.";  // likewise; a lookup in the feed's place has no width
  while (!has(block + "feed.") && has(block + "inner.")) block += "inner.";
  if (!has(block + "feed.values"))
    file.check_shape(infty::stored_name(file, block + "feed.inner.weight"),
                     {model.feed_forward, model.model_dim});
  require_size("feed-forward", model.feed_forward, std::max<infty::Index>(elements, 65536));
  require_size("heads", model.heads, elements);
  require_size("head-dim", model.resolved_head_dim(), elements / model.heads);
  infty::require<infty::IoError>(model.vocabulary <= elements, "load", path, ": ", model.vocabulary,
                                 " tokens are more than its ", elements, " numbers");
  for (const auto& [name, size] : sizes)
    require_size(name, size, std::max<infty::Index>(elements, 65536));
}

}  // namespace support
