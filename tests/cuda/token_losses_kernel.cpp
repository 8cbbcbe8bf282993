// SPDX-License-Identifier: MIT
#include <cmath>
#include <concepts>
#include <limits>
#include <vector>

#include <infty/nn/cross_entropy.hpp>

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
using infty::tests::error;
using infty::tests::tolerance;
using infty::tests::uniform_tensor;

namespace {

template <class T>
struct Results {
  std::vector<T> losses, normaliser, gradient;
  friend bool operator==(const Results&, const Results&) = default;
};

/// What a kernel makes of logits [rows, classes]; the gradient is added to what is there.
template <class Kernel, class T, class B>
Results<T> results(const std::vector<T>& logits, const std::vector<Index>& targets) {
  const auto rows = static_cast<Index>(targets.size());
  const Index classes = rows == 0 ? 1 : static_cast<Index>(logits.size()) / rows;
  Random random(infty::tests::seed);
  const auto x = Tensor<T, B>::from({rows, classes}, logits);
  const auto wanted = Tensor<Index, B>::from({rows}, targets);
  const auto d = uniform_tensor<T, B>({rows}, random);
  auto dx = uniform_tensor<T, B>({rows, classes}, random);
  Tensor<T, B> normaliser(Shape{rows}), losses(Shape{rows});
  Kernel::forward(rows, classes, x.data(), wanted.data(), infty::ignore_index, normaliser.data(),
                  losses.data());
  Kernel::backward(rows, classes, x.data(), wanted.data(), infty::ignore_index, normaliser.data(),
                   d.data(), dx.data());
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
double worst_error(const std::vector<T>& logits, const std::vector<Index>& targets) {
  using Kernel = typename infty::detail::ChosenTokenLosses<B>::type;
  const auto got = results<Kernel, T, B>(logits, targets);
  const auto expected = results<infty::ComposedTokenLosses<B>, T, B>(logits, targets);
  return std::max({error(got.losses, expected.losses), error(got.normaliser, expected.normaliser),
                   error(got.gradient, expected.gradient)});
}

}  // namespace

TEMPLATE_LIST_TEST_CASE("token_losses: the kernel is the composition", "", infty::tests::Types) {
  using T = typename TestType::T;
  using B = typename TestType::B;
  static_assert(std::same_as<typename infty::detail::ChosenTokenLosses<B>::type,
                             typename B::FusedTokenLosses>);
  Random random(infty::tests::seed);
  for (const Index rows : {0, 1, 9})
    for (const Index classes : {1, 2, 31, 256, 257, 4096, 4097, 100'003}) {
      CAPTURE(rows, classes);
      const auto targets = some_targets(rows, classes, random);
      CHECK(worst_error<T, B>(some_logits<T>(rows * classes, 5, random), targets) < tolerance<T>);
      CHECK(worst_error<T, B>(some_logits<T>(rows * classes, 5000, random), targets) <
            tolerance<T>);
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
  CHECK(worst_error<T, B>(logits, {995, 3}) < tolerance<T>);
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
      auto expected = results<Kernel, T, B>(logits, good), got = results<Kernel, T, B>(logits, bad);
      CHECK(std::isnan(got.losses[2]));
      got.losses[2] = expected.losses[2] = 0;
      got.gradient[2 * classes + 6] = expected.gradient[2 * classes + 6];
      CHECK(got == expected);
    };
    check(std::type_identity<typename infty::detail::ChosenTokenLosses<B>::type>{});
    check(std::type_identity<infty::ComposedTokenLosses<B>>{});
  }
}

#if !defined(INFTY_TEST_CUDA)
TEST_CASE("token_losses: the kernels have no race") {
  Random random(infty::tests::seed);
  for (const Index classes : {1, 9000}) {
    const auto targets = some_targets(9, classes, random);
    const auto logits = some_logits<float>(9 * classes, 5, random);
    CHECK(infty::tests::same_in_all_orders([&]<class B>() {
      return results<typename B::FusedTokenLosses, float, B>(logits, targets);
    }));
  }
}
#endif
