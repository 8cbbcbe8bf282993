// SPDX-License-Identifier: MIT
#include <algorithm>
#include <type_traits>
#include <vector>

#include <infty/eigen/backend.hpp>
#include <infty/nn/layer_norm.hpp>

#include "support/catch.hpp"
#include "support/tensors.hpp"
#include "support/threads.hpp"
#include "support/types.hpp"

using infty::EigenBackend;
using infty::Index;
using infty::Random;
using infty::Tensor;
using infty::tests::error;
using infty::tests::tolerance;
using infty::tests::uniform_tensor;

namespace {

using FusedNorm = EigenBackend::FusedLayerNorm;
using ComposedNorm = infty::ComposedLayerNorm<EigenBackend>;
template <class T>
using NormNumbers = std::vector<std::vector<T>>;

/// y, statistics, dx, d_gain and d_bias of numbers about `mean`. What the gradients are added to,
/// or overwrite in dx, is not zero; `wanted` says by bits which are asked for.
template <class Kernel, class T>
NormNumbers<T> normed(Index rows, Index d, double mean = 0, bool add = true, int wanted = 7) {
  Random random(infty::tests::seed);
  const auto x = uniform_tensor<T>({rows, d}, random, mean - 1, mean + 1),
             gain = uniform_tensor<T>({d}, random), bias = uniform_tensor<T>({d}, random),
             dy = uniform_tensor<T>({rows, d}, random);
  Tensor<T> y(x.shape()), statistics({rows, 2});
  auto dx = uniform_tensor<T>({rows, d}, random), d_gain = uniform_tensor<T>({d}, random),
       d_bias = uniform_tensor<T>({d}, random);
  Kernel::forward(rows, d, T(1e-5), x.data(), gain.data(), bias.data(), y.data(),
                  statistics.data());
  Kernel::backward(rows, d, x.data(), gain.data(), statistics.data(), dy.data(),
                   wanted & 1 ? dx.data() : nullptr, wanted & 2 ? d_gain.data() : nullptr,
                   wanted & 4 ? d_bias.data() : nullptr, add);
  return {y.to_vector(), statistics.to_vector(), dx.to_vector(), d_gain.to_vector(),
          d_bias.to_vector()};
}

template <class T>
double norm_error(const NormNumbers<T>& got, const NormNumbers<T>& expected) {
  double worst = 0;
  for (std::size_t i = 0; i < got.size(); ++i) worst = std::max(worst, error(got[i], expected[i]));
  return worst;
}

}  // namespace

TEMPLATE_TEST_CASE("FusedLayerNorm: the composition's values and gradients", "", float, double) {
  using T = TestType;
  static_assert(std::is_same_v<infty::detail::ChosenLayerNorm<EigenBackend>::type, FusedNorm>);
  // Around the band of 64 rows and the pieces of 32 and 4 elements.
  for (const Index rows : {0, 1, 5, 63, 64, 65, 300})
    for (const Index d : {1, 2, 4, 31, 32, 33, 37, 300})
      for (const bool add : {true, false}) {
        CAPTURE(rows, d, add);
        CHECK(norm_error<T>(normed<FusedNorm, T>(rows, d, 0, add),
                            normed<ComposedNorm, T>(rows, d, 0, add)) < tolerance<T>);
      }
}

TEMPLATE_TEST_CASE("FusedLayerNorm: the variance does not cancel", "", float, double) {
  // A mean of 1,000 costs three digits of x itself, and no more.
  CHECK(error(normed<FusedNorm, TestType>(20, 256, 1000)[0],
              normed<ComposedNorm, TestType>(20, 256, 1000)[0]) < 1e3 * tolerance<TestType>);
}

TEST_CASE("FusedLayerNorm: only the gradients that are wanted") {
  const auto all = normed<FusedNorm, double>(70, 40),
             none = normed<FusedNorm, double>(70, 40, 0, true, 0);
  for (int wanted = 0; wanted < 8; ++wanted) {
    const auto some = normed<FusedNorm, double>(70, 40, 0, true, wanted);
    for (int i = 0; i < 3; ++i) {
      const auto at = static_cast<std::size_t>(2 + i);
      CHECK(some[at] == (wanted >> i & 1 ? all[at] : none[at]));
    }
  }
}

TEST_CASE("FusedLayerNorm: the same bits with any number of threads") {
  const auto run = [] { return normed<FusedNorm, float>(700, 70); };
  CHECK(infty::tests::with_threads(1, run) == infty::tests::with_threads(3, run));
}
