// SPDX-License-Identifier: MIT
#pragma once

#include <string>
#include <string_view>

#include <infty/core/shape.hpp>
#include <infty/io/safetensors.hpp>
#include <infty/train/checkpoint_version.hpp>

// What version 1 of checkpoints called the tensors of a `TransformerLM` and of memories' states. A
// loader asks for a tensor by its name of today, and takes it by an older one where a file has only
// that: so files of parameters, which have no version, are read, too.

namespace infty {

namespace detail {

/// What a part of a name was, and what it is. It begins a name or follows a dot.
struct CheckpointRename {
  std::string_view old, now;
};

/// Each is tried alone. Several may fit a name: the one is meant by which the file has a tensor.
inline constexpr CheckpointRename checkpoint_renames[] = {
    // A layer of a model: what was attention, a memory that it was given, and biases of the model.
    {"attention_norm.", "mixer_norm."},
    {"feed_forward.", "feed."},
    {"feed_forward_norm.", "feed_norm."},
    {"", "mixer."},  // of attention beside a long-term memory, and of states
    {"attention.", "mixer."},
    {"memory.", "mixer."},
    {"memory.short_term.", "mixer.attention."},
    {"memory.long_term.", "mixer.memory."},
    {"content_bias", "layers.0.mixer.content_bias"},
    {"position_bias", "layers.0.mixer.position_bias"},
    {"future_bias", "layers.0.mixer.future_bias"},
    {"content_bias", "layers.0.mixer.attention.content_bias"},
    {"position_bias", "layers.0.mixer.attention.position_bias"},
    {"future_bias", "layers.0.mixer.attention.future_bias"},
    // A model's state.
    {"short_term.", "mixer.attention."},
    {"long_term.", "mixer.past."},
    {"long_term.memory.stream", "mixer.past.memory.row_id"},
    {"layers.0.input.", "input."},
    {"layers.0.short_term.input.", "input."},
    // A memory's state.
    {"short_term.", "attention."},
    {"long_term.", "past."},
    {"long_term.memory.stream", "past.memory.row_id"},
    {"stream", "row_id"},
};

}  // namespace detail

/// Returns what a file calls a tensor: its name, or else the older name that the file has, or else
/// its name all the same.
inline std::string stored_name(const SafetensorsFile& file, const std::string& name) {
  if (file.has(name) || version_of(file) == checkpoint_version) return name;
  for (const auto& [old, now] : detail::checkpoint_renames) {
    for (auto at = name.find(now); at != std::string::npos; at = name.find(now, at + 1)) {
      if (at > 0 && name[at - 1] != '.') continue;
      std::string older = name;
      older.replace(at, now.size(), old);
      if (file.has(older)) return older;
    }
  }
  return name;
}

/// Returns whether a tensor of a file of version 1 is a sequence [batch, 0, ...] of no vectors.
inline bool is_empty_sequence(const SafetensorsFile& file, std::string_view name) {
  if (version_of(file) != first_checkpoint_version || !file.has(name)) return false;
  const Shape& shape = file.shape(name);
  return shape.rank() >= 2 && shape[1] == 0;
}

/// Returns whether a tensor of a file of version 1 has no name today and is not missed: the inputs
/// that LaMemo's layers above the first did not hold, sequences of no vectors, and their lengths.
inline bool is_dropped(const SafetensorsFile& file, std::string_view name) {
  const std::string_view sequence = name.substr(0, name.rfind('.'));
  return sequence.ends_with(".input") &&
         is_empty_sequence(file, std::string(sequence) + ".vectors");
}

}  // namespace infty
