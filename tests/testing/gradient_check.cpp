// SPDX-License-Identifier: MIT
#include <limits>
#include <vector>

#include <infty/autograd/elementwise.hpp>
#include <infty/autograd/reduce.hpp>
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

TEST_CASE("gradient_check: what is not finite is infinitely wrong") {
  const auto x = Variable<double>(Tensor<double>::from({1}, {1}), true);
  const double nan = std::numeric_limits<double>::quiet_NaN();
  CHECK(infty::gradient_check([&] { return infty::sum(square(x, nan)); }, std::vector{x}) ==
        std::numeric_limits<double>::infinity());
}
