// SPDX-License-Identifier: MIT
#pragma once

#include <concepts>
#include <cstddef>
#include <map>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>

#include <infty/memory/memsizer.hpp>
#include <infty/model/transformer_lm.hpp>
#include <infty/train/load_report.hpp>

namespace infty {

/// A model that was made of another, and what it has of it.
template <class Mixer>
struct Converted {
  TransformerLM<Mixer> model;  ///< with parameters of its own
  /// `missing` are parameters that the other model lacks, which are as they were drawn, and
  /// `unexpected` those of the other model that have no place in this one.
  LoadReport report;
};

namespace detail {

/// A parameter's name without those of decorators that mixers ask for around the stack.
inline std::string name_inside(std::string_view name) {
  constexpr std::string_view inner = "inner.";
  while (name.starts_with(inner)) name.remove_prefix(inner.size());
  return std::string(name);
}

/// Whether a parameter of this name is a mixer's.
inline bool is_of_mixer(std::string_view name) {
  return name.find(".mixer.") != std::string_view::npos;
}

/// Whether a model's mixers ask keys by queries, so that another one of the kind can take their
/// maps.
template <class Model>
bool has_maps_of_attention(const Model& model) {
  bool query = false, key = false, value = false, out = false;
  for_each_parameter(model, [&](const std::string& name, const auto&) {
    query = query || name.ends_with(".mixer.query.weight");
    key = key || name.ends_with(".mixer.key.weight");
    value = value || name.ends_with(".mixer.value.weight");
    out = out || name.ends_with(".mixer.out.weight");
  });
  return query && key && value && out;
}

}  // namespace detail

/// A trained transformer with another mixer in the place of its own, to be trained on: T2R's
/// conversion, "swap, then fine-tune" [Kasai et al. 2021], of any mixer into any other.
/// Parameters that have the same names in both, but for what decorators around the stack add to
/// them, are copied: embedding, feeds, norms and head, and
/// where both mixers are attention by queries, keys and values (`CausalAttention`, `NoMemory`,
/// `LinearAttention` of all kinds), the maps to these and of the answer. All others are drawn from
/// `random`, or begin as the mixer's do. Biases are copied where both have them: `CausalAttention`
/// has, `NoMemory` has none.
///
///     auto [model, report] = with_mixer<LinearAttention<float>>(trained, presets::t2r());
///
/// @throws infty::ValueError if the configuration is not valid, or the model was moved from;
/// infty::ShapeError for a parameter
/// of the same name and another shape
template <class Mixer, class Other>
Converted<Mixer> with_mixer(const TransformerLM<Other>& model, typename Mixer::Config config = {},
                            Random random = Random(0)) {
  using T = typename Mixer::Scalar;
  using Backend = typename Mixer::BackendType;
  using V = Variable<T, Backend>;
  static_assert(std::is_same_v<T, typename Other::Scalar> &&
                    std::is_same_v<Backend, typename Other::BackendType>,
                "with_mixer: both mixers must have the same Scalar and BackendType; `to` makes "
                "them so");
  detail::require_parameters("with_mixer", model);
  Converted<Mixer> made{TransformerLM<Mixer>(model.config(), config, random), {}};
  std::map<std::string, std::pair<std::string, V>> there;  // by the name inside of decorators
  for_each_parameter(model, [&](const std::string& name, const V& x) {
    there.emplace(detail::name_inside(name), std::pair(name, x));
  });
  const bool attention =
      detail::has_maps_of_attention(model) && detail::has_maps_of_attention(made.model);
  for_each_parameter(made.model, [&](const std::string& name, V& to) {
    const auto from = there.find(detail::name_inside(name));
    if (from == there.end() || (detail::is_of_mixer(name) && !attention)) {
      made.report.missing.push_back(name);
      return;
    }
    const auto& [old_name, old] = from->second;
    require<ShapeError>(old.shape() == to.shape(), "with_mixer", old_name, " is ", old.shape(),
                        ", the new mixer's ", to.shape());
    Backend::copy(to.value().data(), old.value().data(), to.size());
    there.erase(from);
  });
  for (const auto& [inside, old] : there) made.report.unexpected.push_back(old.first);
  return made;
}

namespace detail {

/// The layers of a body, or of what its decorator stands around.
template <class Body>
auto& layers_inside(Body& body) {
  if constexpr (requires { body.inner; })
    return layers_inside(body.inner);
  else
    return body.layers;
}

}  // namespace detail

/// A model of MemSizers, placed ones too, with another number of slots and parameters of its own:
/// every mixer is `MemSizer::with_slots(slots)`, all else is copied. @throws as there, and
/// infty::ValueError for a model that was moved from
template <class Mixer>
  requires std::derived_from<Mixer, MemSizer<typename Mixer::Scalar, typename Mixer::BackendType>>
TransformerLM<Mixer> with_slots(const TransformerLM<Mixer>& model, Index slots) {
  using Own = MemSizer<typename Mixer::Scalar, typename Mixer::BackendType>;
  detail::require_parameters("with_slots", model);
  MemSizerConfig config = model.memory_config();
  config.slots = slots;
  auto out = with_mixer<Mixer>(model, config).model;
  const auto& from = detail::layers_inside(model.body);
  auto& to = detail::layers_inside(out.body);
  for (std::size_t i = 0; i < to.size(); ++i)
    static_cast<Own&>(to[i].mixer) = static_cast<const Own&>(from[i].mixer).with_slots(slots);
  return out;
}

}  // namespace infty
