// SPDX-License-Identifier: MIT
#include <cmath>
#include <vector>

#include <infty/autograd/elementwise.hpp>
#include <infty/autograd/reduce.hpp>
#include <infty/memory/ops/pool_in.hpp>
#include <infty/testing/gradient_check.hpp>

#include "support/catch.hpp"
#include "support/tensors.hpp"
#include "support/types.hpp"

namespace pooling {

using infty::Index;
using infty::Random;
using infty::RowCounts;
using infty::Shape;
using infty::Tensor;
using infty::Variable;
using infty::detail::last_means;
using infty::detail::pool_in;
using infty::detail::spread_means;

}  // namespace pooling

TEMPLATE_LIST_TEST_CASE("pool_in: means of as many vectors as each row's rate says", "",
                        infty::tests::Types) {
  using namespace pooling;
  using T = typename TestType::T;
  using B = typename TestType::B;
  // Two rows of blocks of three means, of one coordinate: rates 1 and 2.
  Tensor<double, B> sum = Tensor<double, B>::zeros({2, 1});
  auto means = Tensor<T, B>::zeros({2, 3, 1});
  const RowCounts rate{1, 2};
  const auto x = Tensor<T, B>::from({2, 4, 1}, std::vector<T>{9, 9, 1, 2, 3, 5, 7, 9});
  means =
      pool_in(Variable<T, B>(means), sum, {0, 0}, rate, Variable<T, B>(x), {2, 0}, {2, 3}).value();
  CHECK(means.to_vector() == std::vector<T>{1, 2, 0, 4, T(3.5), 0});
  CHECK(sum.to_vector() == std::vector<double>{2, 7});
  const Variable<T, B> once = spread_means(Variable<T, B>(means), {2, 3}, rate);
  // Two of three are held over the first two places and the last; one and a half as well.
  CHECK(once.value().to_vector() == std::vector<T>{1, 1, 2, 4, 4, 7});
  means =
      pool_in(Variable<T, B>(means), sum, {2, 3}, rate, Variable<T, B>(x), {0, 1}, {1, 3}).value();
  CHECK(means.to_vector() == std::vector<T>{1, 2, 9, 4, 6, 8});
  const Variable<T, B> full = spread_means(Variable<T, B>(means), {3, 6}, rate);
  CHECK(full.value().to_vector() == means.to_vector());
  const Variable<T, B> none = spread_means(Variable<T, B>(means), {0, 0}, rate);
  CHECK(none.value().to_vector() == std::vector<T>(6, 0));
}

TEMPLATE_LIST_TEST_CASE("last_means: what waits at the last places, each over what it has", "",
                        infty::tests::Types) {
  using namespace pooling;
  using T = typename TestType::T;
  using B = typename TestType::B;
  // Four rows of blocks of three means: what stands behind those that are held is of any value.
  const Variable<T, B> means(
      Tensor<T, B>::from({4, 3, 1}, std::vector<T>{1, 2, 99, 4, 3, 99, 5, 6, 7, 99, 99, 99}));
  const auto last = last_means(means, {2, 3, 6, 0}, {1, 2, 2, 4});
  CHECK(last.value().to_vector() == std::vector<T>{0, 1, 2, 0, 4, 6, 5, 6, 7, 0, 0, 0});
}

TEST_CASE("pool_in: the last of sixteen million counts as the first") {
  using namespace pooling;
  constexpr Index rate = Index{1} << 24;
  constexpr float value = .7F;
  constexpr double share = 1 / static_cast<double>(rate);
  for (const Index missing : {1000, 1}) {
    const double before = static_cast<double>(rate - missing) * static_cast<double>(value);
    auto sum = Tensor<double>::full({1, 1}, before);
    const auto means = Tensor<float>::full({1, 1, 1}, static_cast<float>(before * share));
    const Variable<float> x(Tensor<float>::full({1, missing, 1}, value));
    CHECK(pool_in(Variable<float>(means), sum, {rate - missing}, {rate}, x, {0}, {missing})
              .value()
              .item() == value);
  }
}

TEST_CASE("pool_in, spread_means, last_means: gradients are central differences") {
  using namespace pooling;
  Random random(infty::tests::seed);
  auto x = infty::tests::uniform_variable<double>({2, 5, 2}, random);
  const auto old = infty::tests::uniform_tensor<double>({2, 4, 2}, random);
  const auto weight = infty::tests::uniform_variable<double>({2, 4, 2}, random);
  const RowCounts held{1, 3}, rate{2, 4}, from{0, 2}, take{5, 3}, then{6, 6};
  const auto loss = [&] {
    auto sum = Tensor<double>::full({2, 2}, .5);
    const auto means = pool_in(Variable<double>(old), sum, held, rate, x, from, take);
    return infty::sum((spread_means(means, then, rate) + last_means(means, then, rate)) * weight);
  };
  CHECK(infty::gradient_check(loss, std::vector{x}) < 1e-8);
  // To the old means of a row that takes nothing in all of it flows, to those of others nothing.
  for (const bool wanted : {false, true}) {
    const Variable<double> waiting(old, true), given(x.value(), wanted);
    auto sum = Tensor<double>::zeros({2, 2});
    infty::Tape tape;
    tape.backward(infty::sum(pool_in(waiting, sum, held, rate, given, from, {0, 2}) * weight));
    CHECK(given.has_grad() == wanted);
    const auto by = weight.value().to_vector(), through = waiting.grad().to_vector();
    for (std::size_t i = 0; i < by.size(); ++i) CHECK(through[i] == (i < 8 ? by[i] : 0));
  }
}
