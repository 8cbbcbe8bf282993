// SPDX-License-Identifier: MIT
#include <cmath>
#include <limits>
#include <type_traits>
#include <vector>

#include <infty/core/number.hpp>
#include <infty/nn/cross_entropy.hpp>

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

/// What a kernel makes of logits [rows, classes]: losses, normalisers and the gradient, which is
/// added to what is there.
template <class Kernel, class T, class B>
Numbers<T> lost(const std::vector<T>& logits, const std::vector<Index>& targets) {
  const auto rows = static_cast<Index>(targets.size());
  const Index classes = rows == 0 ? 1 : static_cast<Index>(logits.size()) / rows;
  Random random(infty::tests::seed);
  const auto x = Tensor<T, B>::from({rows, classes}, logits);
  const auto wanted = Tensor<Index, B>::from({rows}, targets);
  const auto d = uniform_tensor<T, B>({rows}, random);
  auto dx = uniform_tensor<T, B>({rows, classes}, random);
  Tensor<T, B> normaliser(Shape{rows}), losses(Shape{rows});
  const infty::TokenLossInputs<T> in{rows, classes, x.data(), wanted.data(), infty::ignore_index};
  Kernel::forward(in, normaliser.data(), losses.data());
  Kernel::backward(in, normaliser.data(), d.data(), dx.data());
  return {losses.to_vector(), normaliser.to_vector(), dx.to_vector()};
}

std::vector<Index> some_targets(Index rows, Index classes, Random& random) {
  std::vector<Index> targets;
  for (Index row = 0; row < rows; ++row)
    targets.push_back(row % 4 == 3 ? infty::ignore_index : random.below(classes));
  return targets;
}

template <class T>
std::vector<T> some_logits(Index n, double range, Random& random) {
  return uniform_tensor<T>({n}, random, -range, range).to_vector();
}

template <class T, class B>
void losses_agree(const std::vector<T>& logits, const std::vector<Index>& targets, double allowed) {
  kernel_equals_composition<infty::ComposedTokenLosses<B>>(
      [&]<class Kernel>() { return lost<Kernel, T, B>(logits, targets); }, allowed);
}

}  // namespace

TEMPLATE_LIST_TEST_CASE("token_losses: the kernel is the composition", "", infty::tests::Types) {
  using T = typename TestType::T;
  using B = typename TestType::B;
  Random random(infty::tests::seed);
  // Around the CPU's pieces of 4 and 32 and its chunk of 256, and a GPU's piece of 4,096.
  for (const Index rows : {0, 1, 9})
    for (const Index classes : {1, 2, 3, 4, 31, 33, 255, 256, 257, 1000, 4096, 4097, 100'003})
      for (const double range : {1e-3, 5., 300., 5000.}) {
        CAPTURE(rows, classes, range);
        // A loss of a few hundred takes digits from the gradient, which is its exponential.
        losses_agree<T, B>(some_logits<T>(rows * classes, range, random),
                           some_targets(rows, classes, random),
                           (range == 300 ? 100 : 1) * tolerance<T>);
      }
}

TEMPLATE_LIST_TEST_CASE("token_losses: the kernel takes logits of minus infinity", "",
                        infty::tests::Types) {
  using T = typename TestType::T;
  using B = typename TestType::B;
  const T none = -std::numeric_limits<T>::infinity();
  Random random(infty::tests::seed);
  auto logits = some_logits<T>(2 * 1000, 3, random);
  for (std::size_t i = 0; i < 990; ++i) logits[i] = logits[1999 - i] = none;
  losses_agree<T, B>(logits, {995, 3}, tolerance<T>);
}

TEMPLATE_LIST_TEST_CASE("token_losses: infinite logits and NaN, in the kernel and composed", "",
                        infty::tests::Types) {
  using T = typename TestType::T;
  using B = typename TestType::B;
  std::vector<T> x(4 * 40, T(0));
  x[3] = -std::numeric_limits<T>::infinity();
  x[40 + 39] = std::numeric_limits<T>::quiet_NaN();
  x[80 + 5] = std::numeric_limits<T>::infinity();
  const auto check = [&]<class Kernel>(std::type_identity<Kernel>) {
    const auto losses = lost<Kernel, T, B>(x, {0, 0, 0, 40})[0];
    CHECK(losses[0] == Approx(std::log(39.0)));
    CHECK(std::isnan(losses[1]));
    CHECK_FALSE(std::isfinite(losses[2]));  // infinite in a tile program, NaN elsewhere
    CHECK((std::isnan(losses[2]) || !std::is_same_v<B, infty::EigenBackend>));
    CHECK(std::isnan(losses[3]));
  };
  check(std::type_identity<typename B::FusedTokenLosses>{});
  check(std::type_identity<infty::ComposedTokenLosses<B>>{});
}

TEMPLATE_LIST_TEST_CASE("token_losses: a bad target has a loss of NaN and harms no other row", "",
                        infty::tests::Types) {
  using T = typename TestType::T;
  using B = typename TestType::B;
  Random random(infty::tests::seed);
  const Index classes = 700;
  const auto logits = some_logits<T>(4 * classes, 3, random);
  const std::vector<Index> good{5, infty::ignore_index, 6, 699};
  for (const Index target : {Index{-1}, classes, std::numeric_limits<Index>::max() / 2}) {
    auto bad = good;
    bad[2] = target;
    const auto check = [&]<class Kernel>(std::type_identity<Kernel>) {
      auto expected = lost<Kernel, T, B>(logits, good), got = lost<Kernel, T, B>(logits, bad);
      CHECK(std::isnan(got[0][2]));
      got[0][2] = expected[0][2] = 0;
      got[2][2 * classes + 6] = expected[2][2 * classes + 6];
      CHECK(got == expected);
    };
    check(std::type_identity<typename B::FusedTokenLosses>{});
    check(std::type_identity<infty::ComposedTokenLosses<B>>{});
  }
}

TEMPLATE_LIST_TEST_CASE("token_losses: the kernel has the same bits with any number of threads", "",
                        infty::tests::Types) {
  using T = typename TestType::T;
  using B = typename TestType::B;
  Random random(infty::tests::seed);
  const auto x = some_logits<T>(900 * 77, 1, random);
  const auto targets = some_targets(900, 77, random);
  const auto run = [&] { return lost<typename B::FusedTokenLosses, T, B>(x, targets); };
  CHECK(infty::tests::with_threads(1, run) == infty::tests::with_threads(3, run));
}

#if defined(INFTY_TEST_THRUST)
TEST_CASE("token_losses by tiles: a gradient that is written is one that is added to zeros") {
  using B = infty::ThrustBackend<infty::Cpp>;
  using Kernel = B::FusedTokenLosses;
  Random random(infty::tests::seed);
  const Index rows = 9, classes = 5000;  // more than a piece
  const auto x = uniform_tensor<float, B>({rows, classes}, random, -5, 5);
  const auto targets = Tensor<Index, B>::from({rows}, some_targets(rows, classes, random));
  const auto d = uniform_tensor<float, B>({rows}, random);
  Tensor<float, B> normaliser(Shape{rows}), losses(Shape{rows});
  const infty::TokenLossInputs<float> in{rows, classes, x.data(), targets.data(),
                                         infty::ignore_index};
  Kernel::forward(in, normaliser.data(), losses.data());
  auto added = Tensor<float, B>::full({rows, classes}, 0);
  auto written = Tensor<float, B>::full({rows, classes}, infty::math::not_a_number<float>);
  Kernel::backward(in, normaliser.data(), d.data(), added.data(), true);
  Kernel::backward(in, normaliser.data(), d.data(), written.data(), false);
  CHECK(written.to_vector() == added.to_vector());
}

TEST_CASE("token_losses: the kernels have no race") {
  Random random(infty::tests::seed);
  for (const Index classes : {1, 9000}) {
    const auto targets = some_targets(9, classes, random);
    const auto logits = some_logits<float>(9 * classes, 5, random);
    CHECK(infty::tests::same_in_all_orders(
        [&]<class B>() { return lost<typename B::FusedTokenLosses, float, B>(logits, targets); }));
  }
}
#endif
