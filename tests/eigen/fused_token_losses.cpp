// SPDX-License-Identifier: MIT
#include <algorithm>
#include <cmath>
#include <limits>
#include <type_traits>
#include <vector>

#include <infty/eigen/backend.hpp>
#include <infty/nn/cross_entropy.hpp>

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

using FusedLosses = EigenBackend::FusedTokenLosses;
using ComposedLosses = infty::ComposedTokenLosses<EigenBackend>;

/// Normalisers, losses and the gradient, which is added to what is there.
template <class Kernel, class T>
std::vector<std::vector<T>> lost(const Tensor<T>& logits, const std::vector<Index>& targets) {
  const Index rows = logits.dim(0), classes = logits.dim(1);
  Random random(infty::tests::seed);
  const auto d = uniform_tensor<T>({rows}, random);
  auto gradient = uniform_tensor<T>(logits.shape(), random);
  Tensor<T> normaliser({rows}), losses({rows});
  Kernel::forward(rows, classes, logits.data(), targets.data(), infty::ignore_index,
                  normaliser.data(), losses.data());
  Kernel::backward(rows, classes, logits.data(), targets.data(), infty::ignore_index,
                   normaliser.data(), d.data(), gradient.data());
  return {normaliser.to_vector(), losses.to_vector(), gradient.to_vector()};
}

std::vector<Index> spread_targets(Index rows, Index classes) {
  std::vector<Index> targets;
  for (Index row = 0; row < rows; ++row)
    targets.push_back(row % 4 == 3 ? infty::ignore_index : row * 7 % classes);
  return targets;
}

}  // namespace

TEMPLATE_TEST_CASE("FusedTokenLosses: the composition's losses and gradients", "", float, double) {
  using T = TestType;
  static_assert(std::is_same_v<infty::detail::ChosenTokenLosses<EigenBackend>::type, FusedLosses>);
  Random random(infty::tests::seed);
  // Around the pieces of 4 and 32 and the chunk of 256.
  for (const Index classes : {1, 3, 4, 31, 33, 255, 256, 257, 1000})
    for (const double range : {1e-3, 5.0, 300.0}) {
      CAPTURE(classes, range);
      const auto x = uniform_tensor<T>({50, classes}, random, -range, range);
      const auto targets = spread_targets(50, classes);
      const auto got = lost<FusedLosses, T>(x, targets);
      const auto expected = lost<ComposedLosses, T>(x, targets);
      // A loss of a few hundred takes digits from the gradient, which is its exponential.
      for (std::size_t i = 0; i < 3; ++i)
        CHECK(error(got[i], expected[i]) < (range > 100 ? 100 : 1) * tolerance<T>);
    }
}

TEMPLATE_TEST_CASE("FusedTokenLosses: infinite logits, NaN, and targets that are none", "", float,
                   double) {
  using T = TestType;
  const T infinity = std::numeric_limits<T>::infinity();
  auto x = Tensor<T>::zeros({4, 40});
  x.data()[3] = -infinity;
  x.data()[40 + 39] = std::numeric_limits<T>::quiet_NaN();
  x.data()[80 + 5] = infinity;
  const auto got = lost<FusedLosses, T>(x, {0, 0, 0, 40});
  CHECK(got[1][0] == Approx(std::log(39.0)));
  for (std::size_t row = 1; row < 4; ++row) CHECK(std::isnan(got[1][row]));
}

TEST_CASE("FusedTokenLosses: the same bits with any number of threads") {
  Random random(infty::tests::seed);
  const auto x = uniform_tensor<float>({900, 77}, random);
  const auto run = [&] { return lost<FusedLosses, float>(x, spread_targets(900, 77)); };
  CHECK(infty::tests::with_threads(1, run) == infty::tests::with_threads(3, run));
}
