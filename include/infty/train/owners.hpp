// SPDX-License-Identifier: MIT
#pragma once

#include <algorithm>
#include <cstddef>
#include <iterator>
#include <numeric>
#include <vector>

#include <infty/core/config.hpp>
#include <infty/train/named_parameters.hpp>

namespace infty::detail {

/// Which rank has the moments of each parameter: the largest first, each goes to the rank that has
/// the fewest elements yet, the first of them. It depends on nothing but the sizes.
template <class T, class B>
std::vector<int> owners_of(const std::vector<NamedParameter<T, B>>& parameters, int ranks) {
  const auto size = [&](std::size_t i) {
    return parameters[i].variable.requires_grad() ? parameters[i].variable.size() : 0;
  };
  std::vector<std::size_t> order(parameters.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::stable_sort(order.begin(), order.end(),
                   [&](std::size_t a, std::size_t b) { return size(a) > size(b); });
  std::vector<Index> held(static_cast<std::size_t>(ranks));
  std::vector<int> owners(parameters.size());
  for (const std::size_t i : order) {
    const auto least = std::min_element(held.begin(), held.end());
    owners[i] = static_cast<int>(least - held.begin());
    *least += size(i);
  }
  return owners;
}

}  // namespace infty::detail
