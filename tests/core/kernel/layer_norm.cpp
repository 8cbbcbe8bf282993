// SPDX-License-Identifier: MIT
#include <infty/nn/layer_norm.hpp>

#include "support/catch.hpp"
#include "support/kernel.hpp"
#include "support/tensors.hpp"
#include "support/threads.hpp"
#include "support/types.hpp"
#if defined(INFTY_TEST_THRUST)
#include "support/item_orders.hpp"
#endif

using infty::Index;
using infty::Random;
using infty::Shape;
using infty::Tensor;
using infty::tests::kernel_equals_composition;
using infty::tests::Numbers;
using infty::tests::tolerance;
using infty::tests::uniform_tensor;

namespace {

/// What a kernel makes of numbers about `mean`: y, statistics, dx, d_gain and d_bias. Gradients are
/// added to what is there, or overwrite it in dx; bits of `wanted` say which are asked for.
template <class Kernel, class T, class B>
Numbers<T> normed(Index rows, Index d, double mean = 0, bool add = true, unsigned wanted = 7) {
  Random random(infty::tests::seed);
  const auto x = uniform_tensor<T, B>({rows, d}, random, mean - 1, mean + 1);
  const auto gain = uniform_tensor<T, B>({d}, random), bias = uniform_tensor<T, B>({d}, random);
  const auto dy = uniform_tensor<T, B>({rows, d}, random);
  auto y = uniform_tensor<T, B>({rows, d}, random);
  auto statistics = uniform_tensor<T, B>({rows, 2}, random);
  auto dx = uniform_tensor<T, B>({rows, d}, random), d_gain = uniform_tensor<T, B>({d}, random),
       d_bias = uniform_tensor<T, B>({d}, random);
  const infty::LayerNormInputs<T> in{rows, d, T(1e-5), x.data(), gain.data(), bias.data()};
  Kernel::forward(in, y.data(), statistics.data());
  Kernel::backward(in, statistics.data(), dy.data(),
                   infty::LayerNormGradients<T>{wanted & 1 ? dx.data() : nullptr,
                                                wanted & 2 ? d_gain.data() : nullptr,
                                                wanted & 4 ? d_bias.data() : nullptr, add});
  return {y.to_vector(), statistics.to_vector(), dx.to_vector(), d_gain.to_vector(),
          d_bias.to_vector()};
}

}  // namespace

TEMPLATE_LIST_TEST_CASE("layer_norm: the kernel is the composition", "", infty::tests::Types) {
  using T = typename TestType::T;
  using B = typename TestType::B;
  // Around the CPU's band of 64 rows and its pieces of 32 and 4, and a GPU's block of 128 threads.
  for (const Index rows : {0, 1, 5, 64, 65, 300})
    for (const Index d : {1, 2, 4, 31, 32, 33, 128, 129, 1000})
      for (const bool add : {true, false}) {
        CAPTURE(rows, d, add);
        kernel_equals_composition<infty::ComposedLayerNorm<B>>(
            [=]<class Kernel>() { return normed<Kernel, T, B>(rows, d, 0, add); }, tolerance<T>);
      }
}

TEMPLATE_LIST_TEST_CASE("layer_norm: the kernel's variance does not cancel", "",
                        infty::tests::Types) {
  using T = typename TestType::T;
  using B = typename TestType::B;
  // A mean of 1,000 costs three digits of x itself, and no more.
  kernel_equals_composition<infty::ComposedLayerNorm<B>>(
      [&]<class Kernel>() { return Numbers<T>{normed<Kernel, T, B>(20, 256, 1000)[0]}; },
      1e3 * tolerance<T>);
}

TEMPLATE_LIST_TEST_CASE("layer_norm: the kernel leaves gradients alone that nobody wants", "",
                        infty::tests::Types) {
  using T = typename TestType::T;
  using B = typename TestType::B;
  infty::tests::gradients_come_alone(2, 3, [](unsigned wanted) {
    return normed<typename B::FusedLayerNorm, T, B>(70, 40, 0, true, wanted);
  });
}

TEMPLATE_LIST_TEST_CASE("layer_norm: the kernel has the same bits with any number of threads", "",
                        infty::tests::Types) {
  using T = typename TestType::T;
  using B = typename TestType::B;
  const auto run = [] { return normed<typename B::FusedLayerNorm, T, B>(700, 70); };
  CHECK(infty::tests::with_threads(1, run) == infty::tests::with_threads(3, run));
}

#if defined(INFTY_TEST_THRUST)
TEST_CASE("layer_norm: the kernels have no race") {
  for (const Index d : {1, 300})
    CHECK(infty::tests::same_in_all_orders(
        [&]<class B>() { return normed<typename B::FusedLayerNorm, float, B>(150, d); }));
}
#endif
