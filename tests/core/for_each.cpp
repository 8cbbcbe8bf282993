// SPDX-License-Identifier: MIT
#include <numeric>
#include <vector>

#include <infty/core/for_each.hpp>
#include <infty/core/tensor.hpp>

#include "support/catch.hpp"
#include "support/types.hpp"

using infty::Index;
using infty::Shape;
using infty::Tensor;

TEMPLATE_LIST_TEST_CASE("for_each_element: once for each row and column", "", infty::tests::Types) {
  using T = typename TestType::T;
  using B = typename TestType::B;
  for (const Index rows : {0, 1, 7, 3000})
    for (const Index columns : {0, 1, 5, 1000}) {
      auto x = Tensor<T, B>::zeros(Shape{rows, columns});
      T* const to = x.data();
      infty::detail::for_each_element<B>(
          rows, columns, [=] INFTY_HOST_DEVICE(Index row, Index column) {
            to[row * columns + column] += static_cast<T>(row * 1000 + column);
          });
      std::vector<T> expected;
      for (Index row = 0; row < rows; ++row)
        for (Index column = 0; column < columns; ++column)
          expected.push_back(static_cast<T>(row * 1000 + column));
      REQUIRE(x.to_vector() == expected);
    }
}

TEMPLATE_LIST_TEST_CASE("for_each_span: spans make up each row once", "", infty::tests::Types) {
  using T = typename TestType::T;
  using B = typename TestType::B;
  for (const Index rows : {0, 1, 300})
    for (const Index columns : {0, 1, 70}) {
      auto x = Tensor<T, B>::zeros(Shape{rows, columns});
      T* const to = x.data();
      infty::detail::for_each_span<B>(rows, columns, columns,
                                      [=] INFTY_HOST_DEVICE(Index row, Index begin, Index end) {
                                        for (Index j = begin; j < end; ++j)
                                          to[row * columns + j] += static_cast<T>(row + j);
                                      });
      std::vector<T> expected;
      for (Index row = 0; row < rows; ++row)
        for (Index j = 0; j < columns; ++j) expected.push_back(static_cast<T>(row + j));
      REQUIRE(x.to_vector() == expected);
    }
}
