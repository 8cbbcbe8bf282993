// SPDX-License-Identifier: MIT
#include <limits>
#include <vector>

#include <infty/thrust/kernels/scatter.hpp>

#include "support/catch.hpp"
#include "support/tensors.hpp"
#include "support/types.hpp"
#if !defined(INFTY_TEST_CUDA)
#include "support/item_orders.hpp"
#endif

using infty::Index;
using infty::Random;
using infty::Shape;
using infty::Tensor;
using infty::tests::uniform_tensor;

namespace {

struct Primitive {
  template <class T, class B>
  static void add(Index n, Index width, const T* from, const Index* rows, Index count, T* to) {
    B::scatter_add_rows(n, width, from, rows, count, to);
  }
};
struct Composed {
  template <class T, class B>
  static void add(Index n, Index width, const T* from, const Index* rows, Index count, T* to) {
    infty::detail::ComposedScatter<B>::add(n, width, from, rows, count, to);
  }
};

template <class How, class T, class B>
std::vector<T> added(Index width, const std::vector<Index>& rows, Index count) {
  Random random(infty::tests::seed);
  const auto n = static_cast<Index>(rows.size());
  auto to = uniform_tensor<T, B>({count, width}, random);
  const auto from = uniform_tensor<T, B>({n, width}, random);
  const auto at = Tensor<Index, B>::from({n}, rows);
  How::template add<T, B>(n, width, from.data(), at.data(), count, to.data());
  return to.to_vector();
}

/// Rows of [0, count), and some that are outside of it.
std::vector<Index> some_rows(Index n, Index count, Random& random) {
  constexpr Index out_of_reach = std::numeric_limits<Index>::max() / 2;
  std::vector<Index> rows;
  for (Index i = 0; i < n; ++i) {
    const Index kind = random.below(10);
    rows.push_back(kind == 0   ? -1 - random.below(3)
                   : kind == 1 ? count + random.below(3)
                   : kind == 2 ? (random.below(2) == 0 ? out_of_reach : -out_of_reach)
                               : random.below(count));
  }
  return rows;
}

}  // namespace

TEMPLATE_LIST_TEST_CASE("scatter_add_rows: the kernel has the bits of the composition", "",
                        infty::tests::Types) {
  using T = typename TestType::T;
  using B = typename TestType::B;
  Random random(infty::tests::seed);
  for (const Index n : {0, 1, 2, 100, 3000})
    for (const Index width : {0, 1, 3, 130})
      for (const Index count : {1, 7, 1000}) {
        CAPTURE(n, width, count);
        const auto rows = some_rows(n, count, random);
        CHECK(added<Primitive, T, B>(width, rows, count) ==
              added<Composed, T, B>(width, rows, count));
      }
  const std::vector<Index> equal(2000, 3);
  CHECK(added<Primitive, T, B>(5, equal, 4) == added<Composed, T, B>(5, equal, 4));
  const std::vector<Index> outside(50, -1);
  CHECK(added<Primitive, T, B>(5, outside, 4) == added<Composed, T, B>(5, {}, 4));
}

#if !defined(INFTY_TEST_CUDA)
TEST_CASE("scatter_add_rows: the kernel has no race") {
  Random random(infty::tests::seed);
  const auto rows = some_rows(500, 20, random);
  CHECK(infty::tests::same_in_all_orders(
      [&]<class B>() { return added<Primitive, float, B>(200, rows, 20); }));
}
#endif
