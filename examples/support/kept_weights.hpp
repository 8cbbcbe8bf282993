// SPDX-License-Identifier: MIT
#pragma once

#include <string>
#include <utility>
#include <vector>

#include <infty/autograd/parameters.hpp>
#include <infty/core/pool.hpp>
#include <infty/train/named_parameters.hpp>

// What a model keeps its matrices as, for programs that read with it and do not train it.

namespace support {

namespace detail {

/// The parameters of a model that was chosen when the program ran, as a layer.
struct ParametersAlone {
  std::vector<infty::NamedParameter<float>> all;

  template <class See>
  void visit(See&& see) {
    for (auto& each : all) see(each.name, each.variable);
  }
};

}  // namespace detail

/// Keeps a model's matrices as float32, as they are, or bfloat16, in half of the bytes.
inline void keep_weights(std::vector<infty::NamedParameter<float>> parameters,
                         const std::string& as) {
  if (as != "bfloat16") return;
  detail::ParametersAlone layer{std::move(parameters)};
  infty::store_in_bfloat16(layer);
  infty::HostPool::instance().trim();  // what they took in full goes back
}

}  // namespace support
