// SPDX-License-Identifier: MIT
#include <concepts>
#include <vector>

#include <infty/nn/layer_norm.hpp>

#include "support/catch.hpp"
#include "support/tensors.hpp"
#include "support/types.hpp"
#if !defined(INFTY_TEST_CUDA)
#include "support/item_orders.hpp"
#endif

using infty::Index;
using infty::Random;
using infty::Shape;
using infty::tests::error;
using infty::tests::tolerance;
using infty::tests::uniform_tensor;

namespace {

/// What a kernel makes of numbers about `mean`: y, statistics, dx, d_gain and d_bias, one after the
/// other. Gradients are added to what is there.
template <class Kernel, class T, class B>
std::vector<std::vector<T>> results(Index rows, Index d, double mean = 0) {
  Random random(infty::tests::seed);
  const auto x = uniform_tensor<T, B>({rows, d}, random, mean - 1, mean + 1);
  const auto gain = uniform_tensor<T, B>({d}, random), bias = uniform_tensor<T, B>({d}, random);
  const auto dy = uniform_tensor<T, B>({rows, d}, random);
  auto y = uniform_tensor<T, B>({rows, d}, random);
  auto statistics = uniform_tensor<T, B>({rows, 2}, random);
  auto dx = uniform_tensor<T, B>({rows, d}, random), d_gain = uniform_tensor<T, B>({d}, random),
       d_bias = uniform_tensor<T, B>({d}, random);
  Kernel::forward(rows, d, T(1e-5), x.data(), gain.data(), bias.data(), y.data(),
                  statistics.data());
  Kernel::backward(rows, d, x.data(), gain.data(), statistics.data(), dy.data(), dx.data(),
                   d_gain.data(), d_bias.data());
  return {y.to_vector(), statistics.to_vector(), dx.to_vector(), d_gain.to_vector(),
          d_bias.to_vector()};
}

}  // namespace

TEMPLATE_LIST_TEST_CASE("layer_norm: the kernel is the composition", "", infty::tests::Types) {
  using T = typename TestType::T;
  using B = typename TestType::B;
  using Kernel = typename infty::detail::ChosenLayerNorm<B>::type;
  static_assert(std::same_as<Kernel, typename B::FusedLayerNorm>);
  for (const Index rows : {0, 1, 5, 128, 300})
    for (const Index d : {1, 2, 31, 128, 129, 1000}) {
      CAPTURE(rows, d);
      const auto got = results<Kernel, T, B>(rows, d);
      const auto expected = results<infty::ComposedLayerNorm<B>, T, B>(rows, d);
      for (std::size_t i = 0; i < got.size(); ++i) CHECK(error(got[i], expected[i]) < tolerance<T>);
    }
}

TEMPLATE_LIST_TEST_CASE("layer_norm: the kernel's variance does not cancel", "",
                        infty::tests::Types) {
  using T = typename TestType::T;
  using B = typename TestType::B;
  using Kernel = typename infty::detail::ChosenLayerNorm<B>::type;
  // A mean of 1,000 costs three digits of x itself, and no more.
  const auto got = results<Kernel, T, B>(20, 256, 1000);
  const auto expected = results<infty::ComposedLayerNorm<B>, T, B>(20, 256, 1000);
  CHECK(error(got[0], expected[0]) < 1e3 * tolerance<T>);
}

TEMPLATE_LIST_TEST_CASE("layer_norm: the kernel leaves gradients alone that nobody wants", "",
                        infty::tests::Types) {
  using T = typename TestType::T;
  using B = typename TestType::B;
  using Kernel = typename infty::detail::ChosenLayerNorm<B>::type;
  Random random(infty::tests::seed);
  const Index rows = 9, d = 40;
  const auto x = uniform_tensor<T, B>({rows, d}, random),
             dy = uniform_tensor<T, B>(x.shape(), random);
  const auto gain = uniform_tensor<T, B>({d}, random);
  auto y = x.clone();
  infty::Tensor<T, B> statistics(Shape{rows, 2});
  Kernel::forward(rows, d, T(1e-5), x.data(), gain.data(), gain.data(), y.data(),
                  statistics.data());
  const auto gradients = [&](bool of_x, bool of_gain, bool of_bias) {
    std::vector<infty::Tensor<T, B>> to{infty::Tensor<T, B>::zeros(x.shape()),
                                        infty::Tensor<T, B>::zeros({d}),
                                        infty::Tensor<T, B>::zeros({d})};
    Kernel::backward(rows, d, x.data(), gain.data(), statistics.data(), dy.data(),
                     of_x ? to[0].data() : nullptr, of_gain ? to[1].data() : nullptr,
                     of_bias ? to[2].data() : nullptr);
    return std::vector{to[0].to_vector(), to[1].to_vector(), to[2].to_vector()};
  };
  const auto all = gradients(true, true, true), none = gradients(false, false, false);
  for (std::size_t wanted = 0; wanted < 3; ++wanted) {
    const auto some = gradients(wanted == 0, wanted == 1, wanted == 2);
    for (std::size_t i = 0; i < 3; ++i) CHECK(some[i] == (i == wanted ? all[i] : none[i]));
  }
}

#if !defined(INFTY_TEST_CUDA)
TEST_CASE("layer_norm: the kernels have no race") {
  for (const Index d : {1, 300})
    CHECK(infty::tests::same_in_all_orders(
        [&]<class B>() { return results<typename B::FusedLayerNorm, float, B>(150, d); }));
}
#endif
