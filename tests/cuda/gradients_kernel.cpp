// SPDX-License-Identifier: MIT
#include <cmath>
#include <limits>
#include <vector>

#include <infty/core/kernel/gradients.hpp>

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
using infty::tests::uniform_tensor;

namespace gradients_kernel_test {

/// Means of squares of all gradients, and the gradients scaled.
template <class Kernel, class T, class B>
infty::tests::Numbers<T> measured(const std::vector<Index>& sizes) {
  Random random(infty::tests::seed);
  std::vector<Tensor<T, B>> all;
  std::vector<infty::GradientItem<T>> items;
  for (const Index size : sizes) {
    all.push_back(uniform_tensor<T, B>({size}, random));
    items.push_back({all.back().data(), size});
  }
  auto sums = Tensor<double, B>::full(Shape{std::ssize(items)}, -1);
  Kernel::squares(items.data(), std::ssize(items), sums.data());
  Kernel::scale(items.data(), std::ssize(items), T(0.75));
  std::vector<std::vector<T>> out(1);
  const auto squares = sums.to_vector();
  for (std::size_t i = 0; i < sizes.size(); ++i)
    out[0].push_back(
        static_cast<T>(squares[i] / static_cast<double>(sizes[i] == 0 ? Index{1} : sizes[i])));
  for (const auto& gradient : all) out.push_back(gradient.to_vector());
  return out;
}

}  // namespace gradients_kernel_test

TEMPLATE_LIST_TEST_CASE("gradients: the kernel is the composition", "", infty::tests::Types) {
  using T = typename TestType::T;
  using B = typename TestType::B;
  const std::vector<Index> sizes{0, 1, 4096, 3, 4097, 0, 0, 10'000, 255};
  // None, fewer than a launch takes, just as many, one more, and two launches full.
  for (const std::size_t count : {0u, 1u, 9u, 150u, 151u, 305u}) {
    std::vector<Index> repeated;
    for (std::size_t i = 0; i < count; ++i) repeated.push_back(sizes[i % sizes.size()]);
    CAPTURE(count);
    infty::tests::kernel_equals_composition<infty::ComposedGradients<B>>(
        [&]<class Kernel>() { return gradients_kernel_test::measured<Kernel, T, B>(repeated); },
        infty::tests::tolerance<T>);
  }
}

TEMPLATE_LIST_TEST_CASE("gradients: what is not finite is seen wherever it stands", "",
                        infty::tests::Types) {
  using T = typename TestType::T;
  using B = typename TestType::B;
  using Kernel = infty::detail::chosen_t<infty::ComposedGradients<B>>;
  for (const Index at : {0, 4095, 4096, 8999}) {
    std::vector<T> host(9000, T(1));
    host[static_cast<std::size_t>(at)] = std::numeric_limits<T>::infinity();
    auto fine = Tensor<T, B>::full(Shape{9000}, T(2)), bad = Tensor<T, B>::from({9000}, host);
    const infty::GradientItem<T> items[] = {{fine.data(), 9000}, {bad.data(), 9000}};
    Tensor<double, B> sums(Shape{2});
    Kernel::squares(items, 2, sums.data());
    CHECK(sums.to_vector()[0] == 36000);
    CHECK(std::isinf(sums.to_vector()[1]));
  }
}

#if !defined(INFTY_TEST_CUDA)
TEST_CASE("gradients: the kernel has no race") {
  CHECK(infty::tests::same_in_all_orders([]<class B>() {
    return gradients_kernel_test::measured<typename B::FusedGradients, float, B>(
        {0, 5000, 1, 0, 9000, 64});
  }));
}
#endif
