// SPDX-License-Identifier: MIT
#pragma once

#include <string>
#include <vector>

#include <infty/memory/mixed_config.hpp>
#include <infty/memory/uniform_config.hpp>
#include <infty/model/settings.hpp>

#include "contraction.hpp"

// The constants of long-term memories that are written by blocks, as programs choose them.

namespace support {

using UniformConfig = infty::UniformConfig<infty::LongTermConfig>;

/// Of one signal. @param one  as if there were no blocks
inline UniformConfig uniform_config(const infty::LongTermConfig& one, const Contraction& c) {
  UniformConfig uniform;
  static_cast<infty::LongTermConfig&>(uniform) = one;
  uniform.power = c.power;
  uniform.block = c.block;
  uniform.waiting = infty::value_of<infty::Waiting>(c.waiting);
  return uniform;
}

/// Of several of one past. @param name  `mixed` or `learned`
inline infty::MixedConfig<UniformConfig> mixed_config(const infty::LongTermConfig& one,
                                                      const Contraction& c,
                                                      const std::string& name) {
  std::vector<infty::ContractionRule> rules;
  for (const double power : c.powers)
    if (power == 0)
      rules.push_back(infty::FixedContraction{one.tau});
    else
      rules.push_back(infty::PowerContraction{power});
  return infty::mixed_config(
      uniform_config(one, c), rules,
      name == "learned" ? infty::MixedReading::gate : infty::MixedReading::heads);
}

}  // namespace support
