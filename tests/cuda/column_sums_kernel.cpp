// SPDX-License-Identifier: MIT
#include <vector>

#include <infty/autograd/linear.hpp>

#include "support/catch.hpp"
#include "support/kernel.hpp"
#include "support/tensors.hpp"
#include "support/types.hpp"
#if !defined(INFTY_TEST_CUDA)
#include "support/item_orders.hpp"
#endif

using infty::Index;
using infty::Random;
using infty::Shape;
using infty::Tensor;
using infty::tests::Numbers;
using infty::tests::uniform_tensor;

namespace {

/// The sums that `Sums` adds to some numbers.
template <class Sums, class T, class B>
std::vector<T> added(Index rows, Index columns) {
  Random random(infty::tests::seed);
  const auto x = uniform_tensor<T, B>(Shape{rows, columns}, random);
  auto sums = uniform_tensor<T, B>(Shape{columns}, random);
  Sums::add(rows, columns, x.data(), sums.data());
  return sums.to_vector();
}

}  // namespace

TEMPLATE_LIST_TEST_CASE("column sums: the kernel adds what the composition adds", "",
                        infty::tests::Types) {
  using T = typename TestType::T;
  using B = typename TestType::B;
  for (const Index rows : {0, 1, 2, 127, 128, 129, 1000, 20'000})
    for (const Index columns : {0, 1, 31, 32, 33, 100}) {
      CAPTURE(rows, columns);
      infty::tests::kernel_equals_composition<infty::ComposedColumnSums<B>>(
          [=]<class Kernel>() { return Numbers<T>{added<Kernel, T, B>(rows, columns)}; },
          infty::tests::tolerance<T>);
    }
}

#if !defined(INFTY_TEST_CUDA)
TEST_CASE("column sums: the kernel has no race") {
  for (const Index rows : {1, 700})
    CHECK(infty::tests::same_in_all_orders(
        [&]<class B>() { return added<typename B::FusedColumnSums, float, B>(rows, 70); }));
}
#endif
