// SPDX-License-Identifier: MIT
#include <stdexcept>
#include <string>
#include <vector>

#include <infty/autograd/elementwise.hpp>
#include <infty/autograd/reduce.hpp>
#include <infty/train/loss_in_parts.hpp>
#include <infty/train/train_step.hpp>

#include "support/catch.hpp"
#include "support/tensors.hpp"
#include "support/types.hpp"

namespace loss_in_parts_tests {

using infty::Index;
using infty::LossInParts;
using infty::Random;
using infty::Shape;
using infty::Tape;
using infty::Tensor;
using infty::Variable;

/// A parameter, and parts of a loss that are quadratic in it.
template <class T, class B>
struct Parts {
  Variable<T, B> weight;
  std::vector<Variable<T, B>> x;

  Parts() {
    Random random(infty::tests::seed);
    weight = Variable<T, B>(infty::tests::uniform_tensor<T, B>({3}, random), true);
    for (int i = 0; i < 3; ++i) x.emplace_back(infty::tests::uniform_tensor<T, B>({3}, random));
  }

  Variable<T, B> part(std::size_t i) const {
    const auto y = weight * x[i];
    return infty::sum(y * y);
  }

  template <class Visitor>
  void visit(Visitor&& see) {
    see("weight", weight);
  }
};

}  // namespace loss_in_parts_tests

using namespace loss_in_parts_tests;

TEMPLATE_LIST_TEST_CASE("LossInParts: a sum of parts has the sum and the gradient of one loss", "",
                        infty::tests::Types) {
  using T = typename TestType::T;
  using B = typename TestType::B;
  Parts<T, B> parts;
  T whole;
  std::vector<T> gradient;
  {
    Tape tape;
    const auto loss = parts.part(0) + parts.part(1) + parts.part(2);
    whole = loss.value().item();
    tape.backward(loss);
    gradient = parts.weight.grad().to_vector();
  }
  parts.weight.zero_grad();
  Tape tape;
  LossInParts<T, B> loss;
  for (std::size_t i = 0; i < 3; ++i)
    CHECK(loss.add([&] { return parts.part(i); }).value().item() == parts.part(i).value().item());
  CHECK(loss.count() == 3);
  const auto total = loss.total();
  CHECK(total.value().item() == Approx(whole));
  tape.backward(total);
  const auto ours = parts.weight.grad().to_vector();
  for (std::size_t i = 0; i < ours.size(); ++i) CHECK(ours[i] == Approx(gradient[i]));
}

TEST_CASE("LossInParts: a value that is written before the gradient reaches it is refused") {
  Variable<double> x(Tensor<double>::full({1}, 3), true);
  Tape tape;
  const auto y = x * x;
  LossInParts<double> parts;
  parts.add([&] { return infty::sum(y); });
  x.value().fill(100);
  CHECK_THROWS_WITH(tape.backward(parts.total()), Catch::Matchers::Contains("was written"));
  CHECK_FALSE(x.has_grad());
}

TEST_CASE("LossInParts: without a tape nothing goes backward; none and frozen parts are summed") {
  Parts<double, infty::EigenBackend> parts;
  LossInParts<double> loss;
  CHECK(loss.total().value().item() == 0);
  loss.add([&] { return parts.part(0); });
  CHECK_FALSE(parts.weight.has_grad());
  CHECK_FALSE(loss.total().requires_grad());
  Tape tape;
  LossInParts<double> frozen;
  frozen.add([&] { return infty::sum(parts.x[0]); });
  CHECK_FALSE(frozen.total().requires_grad());
}

TEST_CASE("LossInParts: train_step takes the step of one loss") {
  Parts<double, infty::EigenBackend> parts, same;
  infty::Adam<double> adam(parts), one(same);
  const auto step = infty::train_step(adam, {.max_norm = .1}, [&] {
    LossInParts<double> loss;
    for (std::size_t i = 0; i < 3; ++i) loss.add([&] { return parts.part(i); });
    return loss.total();
  });
  const auto whole = infty::train_step(one, {.max_norm = .1},
                                       [&] { return same.part(0) + same.part(1) + same.part(2); });
  CHECK(step.loss == Approx(whole.loss));
  CHECK(step.grad_norm == Approx(whole.grad_norm));
  const auto ours = parts.weight.value().to_vector(), theirs = same.weight.value().to_vector();
  for (std::size_t i = 0; i < ours.size(); ++i) CHECK(ours[i] == Approx(theirs[i]));
}

TEST_CASE("LossInParts: refuses parts of another shape, and another gradient of the total") {
  Parts<double, infty::EigenBackend> parts;
  Tape tape;
  LossInParts<double> loss;
  CHECK_THROWS_AS(loss.add([&] { return parts.weight * parts.weight; }), infty::ShapeError);
  CHECK_THROWS_AS(loss.add([]() -> Variable<double> { throw std::runtime_error("no part"); }),
                  std::runtime_error);
  CHECK(loss.count() == 0);
  CHECK_FALSE(parts.weight.has_grad());
  loss.add([&] { return parts.part(0); });
  CHECK_THROWS_WITH(tape.backward(infty::scale(loss.total(), 2.)),
                    Catch::Matchers::Contains("the gradient of the total is 2: it must be 1"));
}

TEST_CASE(
    "LossInParts: a gradient of two totals, of which each has that of the parts, is refused") {
  Parts<double, infty::EigenBackend> parts;
  Tape tape;
  LossInParts<double> loss;
  loss.add([&] { return parts.part(0); });
  const auto refused = Catch::Matchers::Contains("a second total of the same parts");
  SECTION("at once") { CHECK_THROWS_WITH(tape.backward(loss.total() + loss.total()), refused); }
  SECTION("with more parts") {
    const auto first = loss.total();
    loss.add([&] { return parts.part(1); });
    CHECK_THROWS_WITH(tape.backward(first + loss.total()), refused);
  }
  SECTION("of a copy") {
    const auto copy = loss;
    CHECK_THROWS_WITH(tape.backward(loss.total() + copy.total()), refused);
  }
  SECTION("but not where the others are only looked at") {
    const auto looked_at = loss.total().value().item();
    CHECK(looked_at == Approx(parts.part(0).value().item()));
    const auto flowed = parts.weight.grad().to_vector();
    tape.backward(loss.total());
    CHECK(parts.weight.grad().to_vector() == flowed);
  }
}
