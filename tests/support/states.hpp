// SPDX-License-Identifier: MIT
#pragma once

#include <vector>

#include <infty/testing/difference.hpp>

namespace infty::tests {

/// Everything that a state holds, as numbers.
template <class State>
std::vector<double> numbers_of(const State& state) {
  std::vector<testing::detail::MemberNumbers> members;
  for_each_member(state, testing::detail::CollectNumbers{members});
  std::vector<double> all;
  for (const auto& member : members)
    all.insert(all.end(), member.numbers.begin(), member.numbers.end());
  return all;
}

}  // namespace infty::tests
