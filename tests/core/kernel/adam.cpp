// SPDX-License-Identifier: MIT
#include <vector>

#include <infty/train/adam.hpp>

#include "support/catch.hpp"
#include "support/kernel.hpp"
#include "support/tensors.hpp"
#include "support/types.hpp"
#if defined(INFTY_TEST_THRUST)
#include "support/item_orders.hpp"
#endif

using infty::Index;
using infty::Random;
using infty::Shape;
using infty::Tensor;
using infty::tests::uniform_tensor;

namespace {

/// p, m and v of all parameters after two steps with factors of their own.
template <class Kernel, class T, class B>
infty::tests::Numbers<T> stepped(const std::vector<Index>& sizes) {
  Random random(infty::tests::seed);
  std::vector<Tensor<T, B>> all;  // p, m, v and g of one parameter after the other
  std::vector<infty::AdamItem<T>> items;
  for (const Index size : sizes) {
    for (const double low : {-1.0, -1.0, 0.0, -1.0})
      all.push_back(uniform_tensor<T, B>({size}, random, low));
    T* const p = (all.end() - 4)->data();
    const T step = static_cast<T>(items.size() + 1);
    items.push_back({p, all.back().data(), (all.end() - 3)->data(), (all.end() - 2)->data(), size,
                     T(1) / step, T(1) + T(0.5) / step});
  }
  const infty::AdamFactors<T> factors{T(0.9), T(0.1), T(0.99), T(0.01), T(0.999), T(1e-8)};
  for (int i = 0; i < 2; ++i) Kernel::step(factors, items.data(), std::ssize(items));
  std::vector<std::vector<T>> out;
  for (const auto& tensor : all) out.push_back(tensor.to_vector());
  return out;
}

std::vector<Index> repeated(std::vector<Index> sizes, std::size_t count) {
  std::vector<Index> out;
  for (std::size_t i = 0; i < count; ++i) out.push_back(sizes[i % sizes.size()]);
  return out;
}

}  // namespace

TEMPLATE_LIST_TEST_CASE("Adam: the kernel is the composition", "", infty::tests::Types) {
  using T = typename TestType::T;
  using B = typename TestType::B;
  const auto agree = [](const std::vector<Index>& sizes, double allowed) {
    infty::tests::kernel_equals_composition<infty::ComposedAdam<B>>(
        [&]<class Kernel>() { return stepped<Kernel, T, B>(sizes); }, allowed);
  };
  const std::vector<Index> sizes{0, 1, 4096, 3, 4097, 0, 0, 10'000, 255};
  // Fewer than a launch takes, just as many, one more, and two launches full; and more than a loop
  // over the threads takes.
  for (const std::size_t count : {0u, 1u, 2u, 9u, 60u, 61u, 125u, 260u}) {
    CAPTURE(count);
    agree(repeated(sizes, count), infty::tests::tolerance<T>);
  }
  agree(std::vector<Index>(70, 0), infty::tests::tolerance<T>);
}

#if defined(INFTY_TEST_THRUST)
TEST_CASE("Adam: the kernel has no race") {
  CHECK(infty::tests::same_in_all_orders([]<class B>() {
    return stepped<typename B::FusedAdam, float, B>({0, 5000, 1, 0, 9000, 64});
  }));
}
#endif
