// SPDX-License-Identifier: MIT
#pragma once

#include <cstddef>
#include <vector>

#include <infty/core/kernel/chosen.hpp>

#include "support/catch.hpp"
#include "support/tensors.hpp"

namespace infty::tests {

/// All that one call of a kernel computes, a vector a tensor.
template <class T>
using Numbers = std::vector<std::vector<T>>;

/// Holds the kernel of a composition's backend to the composition: `run.operator()<Kernel>()`,
/// their `Numbers`, differ by `allowed` at most. That the backend brings the kernel, and that an
/// operation takes it, is checked as well: a name spelt wrong would fall back without a word.
template <class Composition, class Run>
void kernel_equals_composition(const Run& run, double allowed) {
  static_assert(detail::HasKernel<Composition>, "the backend brings no kernel of this name");
  const auto got = run.template operator()<detail::chosen_t<Composition>>();
  const auto expected = run.template operator()<Composition>();
  REQUIRE(got.size() == expected.size());
  for (std::size_t i = 0; i < got.size(); ++i) {
    CAPTURE(i);
    CHECK(error(got[i], expected[i]) < allowed);
  }
}

/// Checks that each of `count` gradients, the numbers from `first` on, comes alone as it comes with
/// all others, and that those that nobody wants are left as they are. Bit i of what `run` is given
/// says whether gradient i is wanted.
template <class Run>
void gradients_come_alone(std::size_t first, std::size_t count, const Run& run) {
  const auto all = run(~0u), none = run(0u);
  for (std::size_t wanted = 0; wanted < count; ++wanted) {
    const auto some = run(1u << wanted);
    for (std::size_t i = 0; i < count; ++i) {
      CAPTURE(wanted, i);
      CHECK(some[first + i] == (i == wanted ? all : none)[first + i]);
    }
  }
}

}  // namespace infty::tests
