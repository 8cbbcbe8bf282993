// SPDX-License-Identifier: MIT
#include <cstddef>
#include <limits>
#include <utility>
#include <vector>

#include <infty/autograd/elementwise.hpp>
#include <infty/autograd/reduce.hpp>
#include <infty/core/random.hpp>
#include <infty/testing/gradient_check.hpp>

#include "support/catch.hpp"
#include "support/tensors.hpp"

using infty::Tensor;
using infty::Variable;

namespace {

// y = x², whose gradient is given as `factor` x.
Variable<double> square(const Variable<double>& x, double factor) {
  return infty::record((x.detach() * x.detach()).detach(),
                       [x, factor](const Tensor<double>& dy) {
                         for (infty::Index i = 0; i < dy.size(); ++i)
                           x.grad().data()[i] += dy.data()[i] * factor * x.value().data()[i];
                       },
                       x);
}

}  // namespace

TEST_CASE("gradient_check: tells right from wrong") {
  const auto x = Variable<double>(Tensor<double>::from({3}, {1, -2, 0.5}), true);
  CHECK(infty::gradient_check([&] { return infty::sum(square(x, 2)); }, std::vector{x}) < 1e-9);
  // 2.001 x in place of 2 x is off by 0.001 * 2, relative to the largest gradient, 4.002
  CHECK(infty::gradient_check([&] { return infty::sum(square(x, 2.001)); }, std::vector{x}) ==
        Catch::Approx(0.002 / 4.002).epsilon(1e-4));
}

TEST_CASE("gradient_check: says which element of which input is wrong, and both values") {
  const auto x = Variable<double>(Tensor<double>::from({1, 2}, {1, 1}), true);
  const auto y = Variable<double>(Tensor<double>::from({2, 2}, {1, 1, 4, 1}), true);
  const auto loss = [&] { return infty::sum(square(x, 2)) + infty::sum(square(y, 3)); };
  const auto found = infty::gradient_check(loss, std::vector{x, y});
  CHECK_THAT(found.where, Catch::StartsWith("input 1 [2, 2], row 1, element 0: 12 by backward, "
                                            "8.0000") ||
                              Catch::StartsWith("input 1 [2, 2], row 1, element 0: 12 by backward, "
                                                "7.9999") ||
                              Catch::StartsWith("input 1 [2, 2], row 1, element 0: 12 by backward, "
                                                "8 by central differences"));
  using Named = infty::NamedParameter<double, infty::EigenBackend>;
  CHECK_THAT(infty::gradient_check(loss, std::vector<Named>{{"map.x", x}, {"map.weight", y}}).where,
             Catch::StartsWith("map.weight [2, 2], row 1, element 0: 12 by backward, "));
  CHECK(infty::gradient_check([&] { return infty::sum(square(x, 2)); }, std::vector{x}) < 1e-9);
}

TEST_CASE("gradient_check: sees a gradient that is missing altogether") {
  const auto x = Variable<double>(Tensor<double>::from({1}, {3}), true);
  CHECK(infty::gradient_check([&] { return infty::sum(x.detach() * x.detach()); },
                              std::vector{x}) == Catch::Approx(6).epsilon(1e-6));
}

TEST_CASE("gradient_check: leaves the inputs as they were") {
  const auto x = Variable<double>(Tensor<double>::from({2}, {0.1, 0.7}), true);
  infty::gradient_check([&] { return infty::sum(x * x); }, std::vector{x});
  CHECK(x.value().to_vector() == std::vector<double>{0.1, 0.7});
  CHECK(x.requires_grad());
  const Variable<double> frozen(Tensor<double>::from({2}, {0.1, 0.7}));
  CHECK(infty::gradient_check([&] { return infty::sum(frozen * frozen); }, std::vector{frozen}) <
        1e-6);
  CHECK_FALSE(frozen.requires_grad());
  CHECK_FALSE(frozen.has_grad());
}

TEST_CASE("gradient_check: leaves the inputs as they were where the function throws") {
  for (const int good : {0, 1, 2}) {
    CAPTURE(good);
    const Variable<double> x(Tensor<double>::from({2}, {1, 2}));
    int calls = 0;
    const auto loss = [&] {
      infty::require(calls++ < good, "loss", "no more of it");
      return infty::sum(x * x);
    };
    CHECK_THROWS_AS(infty::gradient_check(loss, std::vector{x}), infty::ValueError);
    CHECK(calls == good + 1);
    CHECK(x.value().to_vector() == std::vector<double>{1, 2});
    CHECK_FALSE(x.requires_grad());
    CHECK_FALSE(x.has_grad());
  }
}

TEST_CASE("gradient_check: refuses what may not be written, and leaves what is in bfloat16 so") {
  const double numbers[] = {1, 2};
  const Variable<double> x(Tensor<double>::wrap(numbers, infty::Shape{2}), true);
  CHECK_THROWS_AS(infty::gradient_check([&] { return infty::sum(x * x); }, std::vector{x}),
                  infty::ValueError);
  Variable<double> stored(Tensor<double>::from({2}, {.5, .75}));
  stored.store_in_bfloat16();
  CHECK(infty::gradient_check([&] { return infty::sum(stored * stored); }, std::vector{stored}) <
        1e-9);
  REQUIRE(stored.stored_in_bfloat16());
  CHECK(stored.value().to_vector() == std::vector<double>{.5, .75});
}

TEST_CASE("gradient_check: what is not finite is infinitely wrong") {
  const auto x = Variable<double>(Tensor<double>::from({1}, {1}), true);
  const double nan = std::numeric_limits<double>::quiet_NaN();
  CHECK(infty::gradient_check([&] { return infty::sum(square(x, nan)); }, std::vector{x}) ==
        std::numeric_limits<double>::infinity());
}

TEST_CASE("fast_gradient_check: four evaluations of a right parameter, whatever its size") {
  infty::Random random(3);
  using Named = infty::NamedParameter<double, infty::EigenBackend>;
  for (const infty::Index size : {1, 2, 7, 300}) {
    CAPTURE(size);
    const Variable<double> x(infty::tests::uniform_tensor<double>({size}, random));
    int calls = 0;
    const auto loss = [&] {
      ++calls;
      return infty::sum(x * x * x);
    };
    CHECK(infty::fast_gradient_check(loss, std::vector<Named>{{"x", x}}, 1e-6) < 1e-7);
    CHECK(calls == 5);  // with the one that backward goes through
    CHECK_FALSE(x.requires_grad());
  }
}

TEST_CASE("fast_gradient_check: sees what gradient_check sees, wherever it is") {
  infty::Random random(4);
  using Named = infty::NamedParameter<double, infty::EigenBackend>;
  const Variable<double> right(infty::tests::uniform_tensor<double>({3, 5}, random));
  // One element is off by little more than is allowed, or two are exchanged.
  for (infty::Index at = 0; at < 40; ++at) {
    const infty::Index size = 1 + random.below(40), wrong = random.below(size);
    const infty::Index other = random.below(size);
    CAPTURE(at, size, wrong, other);
    const Variable<double> x(infty::tests::uniform_tensor<double>({size}, random));
    const auto loss = [&] {
      return infty::sum(right * right) +
             infty::record(
                 infty::sum(x.detach() * x.detach()).detach(),
                 [&](const Tensor<double>& dy) {
                   std::vector<double> gradient;
                   for (const double value : x.value().to_vector()) gradient.push_back(2 * value);
                   if (at % 2 == 0)
                     gradient[static_cast<std::size_t>(wrong)] += 1.5e-5;
                   else
                     std::swap(gradient[static_cast<std::size_t>(wrong)],
                               gradient[static_cast<std::size_t>(other)]);
                   for (infty::Index i = 0; i < size; ++i)
                     x.grad().data()[i] += dy.data()[0] * gradient[static_cast<std::size_t>(i)];
                 },
                 x);
    };
    const std::vector<Named> inputs{{"right", right}, {"wrong", x}};
    const auto all = infty::gradient_check(loss, inputs),
               fast = infty::fast_gradient_check(loss, inputs, 5e-6);
    CHECK((all.largest > 5e-6) == (fast.largest > 5e-6));
    if (all.largest > 5e-6) CHECK(fast.where == all.where);
  }
}

TEST_CASE("fast_gradient_check: what is not finite is infinitely wrong, and inputs stay") {
  const auto x = Variable<double>(Tensor<double>::from({2}, {1, 2}), true);
  const double nan = std::numeric_limits<double>::quiet_NaN();
  using Named = infty::NamedParameter<double, infty::EigenBackend>;
  CHECK(infty::fast_gradient_check([&] { return infty::sum(square(x, nan)); },
                                   std::vector<Named>{{"x", x}},
                                   1e-6) == std::numeric_limits<double>::infinity());
  CHECK(x.value().to_vector() == std::vector<double>{1, 2});
}
