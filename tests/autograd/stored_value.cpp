// SPDX-License-Identifier: MIT
#include <vector>

#include <infty/autograd/stored_value.hpp>

#include "support/catch.hpp"
#include "support/types.hpp"

using infty::Shape;
using infty::Tensor;

TEMPLATE_LIST_TEST_CASE("StoredValue: rounded, and in full for who asks, in the same place", "",
                        infty::tests::Types) {
  using T = typename TestType::T;
  using B = typename TestType::B;
  const infty::detail::StoredValue<T, B> stored(
      Tensor<T, B>::from({2, 2}, {T(1), T(.1), T(-256.5), T(0)}).template cast<infty::BFloat16>());
  CHECK(stored.rounded().shape() == Shape{2, 2});
  CHECK(stored.rounded().bytes() == 8);
  CHECK(
      stored.full().to_vector() ==
      std::vector<T>{T(1), static_cast<T>(static_cast<float>(infty::BFloat16(.1))), T(-256), T(0)});
  CHECK(stored.full().data() == stored.full().data());
  const infty::detail::StoredValue<T, B> none((Tensor<infty::BFloat16, B>()));
  CHECK(none.full().empty());
}
