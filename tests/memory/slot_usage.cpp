// SPDX-License-Identifier: MIT
#include <cmath>

#include <infty/eigen/default.hpp>
#include <infty/memory/slot_usage.hpp>

#include "support/catch.hpp"
#include "support/types.hpp"

using infty::Index;
using infty::SlotUsage;
using infty::Tensor;

TEMPLATE_LIST_TEST_CASE("SlotUsage: equal use diverges by nothing, one slot by log K", "",
                        infty::tests::Types) {
  using T = typename TestType::T;
  using B = typename TestType::B;
  SlotUsage even(4), one(4);
  even.add(Tensor<Index, B>::from({2, 2}, {3, 1, 0, 2}), Tensor<T, B>::full({2, 2}, T(.25)));
  CHECK(even.fraction() == 1);
  CHECK(std::abs(even.divergence_by_weight()) < 1e-15);
  CHECK(std::abs(even.divergence_by_count()) < 1e-15);
  one.add(Tensor<Index, B>::from({3}, {2, 2, 2}), Tensor<T, B>::full({3}, T(.1)));
  CHECK(one.fraction() == .25);
  CHECK(one.divergence_by_weight() == Catch::Approx(std::log(4.)));
}

TEST_CASE("SlotUsage: weights and counts are kept apart, and summed over what is added") {
  SlotUsage usage(4);
  for (const double weight : {.75, .25})
    usage.add(Tensor<Index>::from({2}, {0, 1}), Tensor<double>::from({2}, {weight, 0}));
  CHECK(usage.fraction() == .25);  // slot 1 was read with weight 0
  CHECK(usage.divergence_by_weight() == Catch::Approx(std::log(4.)));
  CHECK(usage.divergence_by_count() == Catch::Approx(std::log(2.)));
}

TEST_CASE("SlotUsage: what is no slot is refused, and nothing has changed") {
  SlotUsage usage(4);
  CHECK_THROWS_WITH(usage.divergence_by_count(), "[SlotUsage] no slot was read yet");
  CHECK_THROWS_WITH(usage.add(Tensor<Index>::from({2}, {0, 4}), Tensor<float>::full({2}, 1)),
                    "[SlotUsage::add] slot 4 is not in [0, 4)");
  CHECK_THROWS_AS(usage.add(Tensor<Index>::zeros({2}), Tensor<float>::zeros({3})),
                  infty::ShapeError);
  CHECK(usage.fraction() == 0);
  CHECK_THROWS_WITH(SlotUsage(0), "[SlotUsage] slots is 0: it must be at least 1");
}
