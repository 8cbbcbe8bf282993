// SPDX-License-Identifier: MIT
#pragma once

#include <string>
#include <type_traits>
#include <vector>

#include <infty/core/state.hpp>

namespace infty::tests {

/// Everything that a state holds, as numbers.
template <class State>
std::vector<double> numbers_of(const State& state) {
  std::vector<double> all;
  const auto add = [&](const auto& numbers) {
    for (const auto x : numbers) all.push_back(static_cast<double>(x));
  };
  for_each_member(state, [&](const std::string&, const auto& member) {
    using M = std::remove_cvref_t<decltype(member)>;
    if constexpr (infty::detail::is_tensor<M>) {
      add(infty::detail::tensor_of(member).to_vector());
    } else {
      add(infty::detail::counts_of(member));
    }
  });
  return all;
}

}  // namespace infty::tests
