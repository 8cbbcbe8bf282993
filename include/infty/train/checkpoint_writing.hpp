// SPDX-License-Identifier: MIT
#pragma once

#include <cstdint>
#include <filesystem>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

#include <infty/autograd/parameters.hpp>
#include <infty/core/random.hpp>
#include <infty/core/state.hpp>
#include <infty/io/safetensors.hpp>
#include <infty/train/checkpoint_version.hpp>

// What a checkpoint is written of: each call adds tensors to a SafetensorsWriter. How they are read
// again stands in checkpoint.hpp.

namespace infty {

namespace detail {

/// The name of the counts that say how much of a sequence tensor each row fills: "x.vectors" has
/// "x.length", as in RowSequences.
inline std::string length_beside(const std::string& name) {
  const auto dot = name.rfind('.');
  return (dot == std::string::npos ? std::string() : name.substr(0, dot + 1)) + "length";
}

struct SaveParameter {
  SafetensorsWriter& writer;
  const std::string& prefix;

  template <class V>
  void operator()(const std::string& name, const V& parameter) const {
    writer.add(prefix + name, parameter.value());
  }
};

struct SaveMember {
  SafetensorsWriter& writer;
  const std::string& prefix;

  template <class M>
  void operator()(const std::string& name, const M& member) const {
    if constexpr (is_tensor<M>) {
      writer.add(prefix + name, tensor_of(member));
    } else {
      const std::span<const Index> rows = counts_of(member);
      writer.add(prefix + name, Shape{static_cast<Index>(rows.size())}, rows);
    }
  }
};

}  // namespace detail

/// Adds all parameters of a layer, by the names of `for_each_parameter` behind `prefix`.
/// @throws infty::IoError if a name is taken
template <Addressed L>
void save_parameters(SafetensorsWriter& writer, const L& layer, const std::string& prefix = "") {
  static_assert(Layer<L>, "save_parameters: the layer" INFTY_NO_VISIT);
  for_each_parameter(layer, detail::SaveParameter{writer, prefix});
}

/// Saves the parameters of a layer as a file, by the names of `for_each_parameter` behind `prefix`;
/// an old one is replaced when the new one is complete.
/// @param floats  as what numbers are stored
/// @throws infty::IoError such as for a missing folder; then the old file is there still
template <Addressed L>
void save_parameters(const std::filesystem::path& path, const L& layer,
                     const std::string& prefix = "", StoredFloats floats = StoredFloats::exact) {
  static_assert(Layer<L>, "save_parameters: the layer" INFTY_NO_VISIT);
  SafetensorsWriter writer(floats);
  save_parameters(writer, layer, prefix);
  writer.save(path);
}

/// Adds all members of a memory's state, by the names of `for_each_member` behind `prefix`. The
/// gradient that would flow to the last write is not kept. @throws infty::IoError if a name is
/// taken
template <Addressed State>
void save_state(SafetensorsWriter& writer, const State& state, const std::string& prefix = "") {
  static_assert(Visitable<State>, "save_state: the state" INFTY_NO_VISIT);
  mark_checkpoint(writer);
  for_each_member(state, detail::SaveMember{writer, prefix});
}

/// Saves a state as a file, by the names of its members behind `prefix`; an old one is replaced
/// when the new one is complete.
/// @param floats  as what numbers are stored
/// @throws infty::IoError such as for a missing folder; then the old file is there still
template <Addressed State>
void save_state(const std::filesystem::path& path, const State& state,
                const std::string& prefix = "", StoredFloats floats = StoredFloats::exact) {
  static_assert(Visitable<State>, "save_state: the state" INFTY_NO_VISIT);
  SafetensorsWriter writer(floats);
  save_state(writer, state, prefix);
  writer.save(path);
}

/// Adds the state of an optimiser such as Adam: counts and moments, by the names of its `visit`
/// behind `prefix`; its configuration is not part of it. @throws infty::IoError if a name is taken
template <Visitable Optimizer>
void save_optimizer(SafetensorsWriter& writer, const Optimizer& optimizer,
                    const std::string& prefix = "") {
  mark_checkpoint(writer);
  visit_members(optimizer, [&](std::string_view name, const auto& member) {
    if constexpr (std::is_same_v<std::remove_cvref_t<decltype(member)>, Index>)
      writer.add(prefix + std::string(name), Shape{}, std::span<const Index>(&member, 1));
    else
      writer.add(prefix + std::string(name), member);
  });
}

/// Adds a random generator: its seed, stream and counter. @throws infty::IoError if a name is taken
inline void save_random(SafetensorsWriter& writer, const Random& random, const std::string& name) {
  mark_checkpoint(writer);
  writer.add(name, Shape{3},
             std::vector<std::uint64_t>{random.seed(), random.stream(), random.counter()});
}

}  // namespace infty
