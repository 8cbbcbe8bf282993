// SPDX-License-Identifier: MIT
#include <infty/core/tensor.hpp>

#include "support/catch.hpp"
#include "support/types.hpp"

// ctest wants this one to be found out: see `TypedTests` in support/main.cpp.
TEMPLATE_LIST_TEST_CASE("typed tests: one that forgets its backend", "", infty::tests::Types) {
  CHECK(infty::Tensor<typename TestType::T>::zeros({2}).size() == 2);
}
