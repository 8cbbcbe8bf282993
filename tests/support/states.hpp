// SPDX-License-Identifier: MIT
#pragma once

#include <string>
#include <vector>

#include <infty/core/state.hpp>

namespace infty::tests {

/// Not a lambda, of which every state has its own.
struct CollectNumbers {
  std::vector<double>& all;

  template <class M>
  void operator()(const std::string&, const M& member) const {
    if constexpr (infty::detail::is_tensor<M>)
      add(infty::detail::tensor_of(member).to_vector());
    else
      add(infty::detail::counts_of(member));
  }
  void add(const auto& numbers) const {
    for (const auto x : numbers) all.push_back(static_cast<double>(x));
  }
};

/// Everything that a state holds, as numbers.
template <class State>
std::vector<double> numbers_of(const State& state) {
  std::vector<double> all;
  for_each_member(state, CollectNumbers{all});
  return all;
}

}  // namespace infty::tests
