// SPDX-License-Identifier: MIT
#pragma once

#include <cstddef>
#include <vector>

#include <infty/core/checked.hpp>
#include <infty/core/config.hpp>
#include <infty/core/error.hpp>
#include <infty/core/number.hpp>
#include <infty/signal/contraction_rule.hpp>

namespace infty {

/// How the parts of a `MixedMemory` answer queries together.
enum class MixedReading {
  heads,  ///< each part answers its share of the heads
  gate,   ///< each part answers all heads, and a learned gate mixes what they read, head by head
};

/// The constants of a `MixedMemory`; `mixed_config` makes them of one memory's. `Part` is
/// `LongTermConfig` or another memory's that is made of it.
template <class Part>
struct MixedConfig {
  Index model_dim = 300;  ///< d, width of the vectors written; `WithMemory` takes its attention's
  Index heads = 6;  ///< H, a multiple of the parts if they share them out; `WithMemory`: the same
  Index head_dim = 0;  ///< D, width of a head; 0 stands for model_dim / heads
  MixedReading reading = MixedReading::heads;  ///< who answers which heads
  /// P, of each memory. Their model_dim, heads, head_dim and `project` are made of these.
  std::vector<Part> parts = {};

  /// D, with 0 resolved.
  Index resolved_head_dim() const { return head_dim > 0 ? head_dim : model_dim / heads; }

  /// Whether what the heads read is mapped to d, as the parts' `project` says.
  bool project() const { return parts.empty() || parts.front().project; }

  /// The constants that part i is made of.
  Part resolved_part(std::size_t i) const {
    Part part = parts[i];
    part.model_dim = model_dim;
    part.heads = reading == MixedReading::gate ? heads : heads / static_cast<Index>(parts.size());
    part.head_dim = resolved_head_dim();
    part.project = false;
    return part;
  }

  /// Checks all constants.
  /// @throws infty::ValueError that names the first constant out of its range
  void validate() const {
    const auto count = static_cast<Index>(parts.size());
    require(count >= 1, "MixedConfig", "parts is empty: there must be one memory at least");
    require_at_least("MixedConfig", "model_dim", model_dim, 1);
    require_at_least("MixedConfig", "heads", heads, 1);
    require_at_least("MixedConfig", "head_dim", head_dim, 0);
    require(head_dim > 0 || model_dim % heads == 0, "MixedConfig", "model_dim is ", model_dim,
            ", heads is ", heads, ": head_dim must be given where heads does not divide model_dim");
    const NamedSize all_heads{"heads", heads};
    require_sizes("MixedConfig", {{"model_dim", model_dim}, all_heads, {"head_dim", head_dim}});
    require(reading == MixedReading::gate || heads % count == 0, "MixedConfig", "heads is ", heads,
            ": it must be a multiple of the number of parts, ", count, ", which share them out");
    require_sizes("MixedConfig", {all_heads, {"parts", count}});
    for (std::size_t i = 0; i < parts.size(); ++i) {
      const auto same = [i](const char* name, bool here, bool first) {
        require(here == first, "MixedConfig", "parts.", i, '.', name, " is ", here,
                ", that of part 0 is ", first, ": the parts share what it is about");
      };
      same("gate", parts[i].gate, parts[0].gate);
      same("bias", parts[i].bias, parts[0].bias);
      same("project", parts[i].project, parts[0].project);
      if constexpr (requires { parts[i].waiting; })
        require(parts[i].waiting == parts[0].waiting, "MixedConfig", "parts.", i,
                ".waiting is another than that of part 0: what waits is read in one way");
      require(parts[i].group == 1, "MixedConfig", "parts.", i, ".group is ", parts[i].group,
              ": it must be 1, for vectors wait in the attention (its stride), or in a block");
      resolved_part(i).validate();
    }
  }
};

namespace detail {

/// Lets a memory contract by a rule: by its tau or power where that says the same.
template <class Config>
void contract_by(Config& config, const ContractionRule& rule) {
  if (!rule) return;
  config.power = 0;
  config.contraction = {};
  // Of a memory of blocks, a power of 0 and no rule stand for a power of 1.
  constexpr bool blocks = requires { config.block; };
  const auto* const fixed = rule.template target<FixedContraction>();
  const auto* const power = rule.template target<PowerContraction>();
  if (power) {
    require(math::is_finite(power->power) && power->power > 0, "mixed_config", "power is ",
            power->power, ": it must be positive and finite");
    config.power = power->power;
  } else if (fixed && !blocks) {
    config.tau = fixed->tau;
  } else {
    config.contraction = rule;
  }
}

}  // namespace detail

/// The constants of a mixture that is as large as one memory: of as many parts as there are rules,
/// each contracted by its own. N is divided among the parts, and so are the vectors of a block,
/// where there are blocks. Widths grow in proportion, so that functions overlap as much as before.
/// A `FixedContraction` or a `PowerContraction` becomes the part's `tau` or `power`; where a rule
/// is empty, a part contracts as `one` does.
/// @throws infty::ValueError if there are no rules, or more than can be divided among
template <class Part>
MixedConfig<Part> mixed_config(const Part& one, const std::vector<ContractionRule>& rules,
                               MixedReading reading = MixedReading::heads) {
  const auto count = static_cast<Index>(rules.size());
  require(count >= 1, "mixed_config", "there are no rules: there must be one at least");
  MixedConfig<Part> mixed{
      .model_dim = one.model_dim, .heads = one.heads, .head_dim = one.head_dim, .reading = reading};
  // A Gaussian basis has as many functions of each width.
  const auto widths = static_cast<Index>(one.widths.size());
  const Index unit = widths > 0 && one.basis % widths == 0 ? widths : 1, units = one.basis / unit;
  require(units >= count, "mixed_config", "basis is ", one.basis, ": there are too few for ", count,
          " parts", unit > 1 ? ", each with functions of all widths" : "");
  for (Index i = 0; i < count; ++i) {
    Part part = one;
    part.basis = unit * (units / count + (i < units % count ? 1 : 0));
    for (double& width : part.widths)
      width *= static_cast<double>(one.basis) / static_cast<double>(part.basis);
    if constexpr (requires { part.block; }) {
      require(part.block >= count, "mixed_config", "block is ", part.block,
              ": there are too few vectors for ", count, " parts");
      part.block = part.block / count + (i < part.block % count ? 1 : 0);
    }
    detail::contract_by(part, rules[static_cast<std::size_t>(i)]);
    mixed.parts.push_back(part);
  }
  return mixed;
}

}  // namespace infty
