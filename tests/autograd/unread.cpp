// SPDX-License-Identifier: MIT
#include <cstddef>
#include <functional>
#include <memory>
#include <utility>
#include <vector>

#include <infty/autograd/activations.hpp>
#include <infty/autograd/elementwise.hpp>
#include <infty/autograd/matmul.hpp>
#include <infty/autograd/reduce.hpp>
#include <infty/autograd/shape.hpp>
#include <infty/autograd/softmax.hpp>
#include <infty/autograd/tape.hpp>
#include <infty/autograd/unread.hpp>
#include <infty/core/random.hpp>
#include <infty/nn/dropout.hpp>

#include "support/catch.hpp"
#include "support/tensors.hpp"

namespace unread_tests {

using infty::Index;
using infty::Shape;
using infty::Tape;
using infty::Tensor;
using infty::Unread;
using infty::Variable;

const Shape wide{2, 64, 1024};
constexpr std::size_t wide_bytes = 2 * 64 * 1024 * sizeof(double);

std::size_t bytes_in_use() { return infty::HostPool::instance().statistics().bytes_in_use; }

Variable<double> leaf() {
  infty::Random random(5);
  return infty::tests::uniform_variable<double>(wide, random);
}

/// Values of the size of `wide` that a tape keeps of an operation between two others which need
/// none, when nobody else holds any.
double values_kept(const std::function<Variable<double>(const Variable<double>&)>& operation) {
  const auto x = leaf();
  const std::size_t before = bytes_in_use();
  Tape tape;
  const auto loss = infty::sum(operation(infty::scale(x, 0.5)));
  const double kept = static_cast<double>(bytes_in_use() - before) / wide_bytes;
  tape.backward(loss);
  CHECK(x.has_grad());
  return kept;
}

TEST_CASE("Unread: an operation that reads no value keeps none") {
  infty::Random random(3);
  const auto kept_by = [](const auto& operation) { return values_kept(operation); };
  using V = const Variable<double>&;
  CHECK(kept_by([](V x) { return x + x; }) < 0.1);
  CHECK(kept_by([](V x) { return x - infty::scale(x, 2.0); }) < 0.1);
  CHECK(kept_by([](V x) { return 1.0 - x / 3.0; }) < 0.1);
  CHECK(kept_by([](V x) { return infty::transpose(x, 0, 2); }) < 0.1);
  CHECK(kept_by([](V x) { return infty::reshape(x, Shape{128, 1024}); }) < 0.1);
  CHECK(kept_by([](V x) { return infty::narrow(infty::concat(x, x), 3, 60); }) < 0.1);
  CHECK(kept_by([&](V x) { return infty::dropout(x, 0.5, random); }) < 0.1);
  CHECK(kept_by([&](V x) { return infty::add_dropped(x, x, 0.5, random); }) < 0.1);
}

TEST_CASE("Unread: an activation keeps its input or its output, not both") {
  using V = const Variable<double>&;
  const std::vector<std::pair<const char*, std::function<Variable<double>(V)>>> all{
      {"sigmoid", [](V x) { return infty::sigmoid(x); }},
      {"softplus", [](V x) { return infty::softplus(x); }},
      {"relu", [](V x) { return infty::relu(x); }},
      {"exp", [](V x) { return infty::exp(x); }},
      {"tanh", [](V x) { return infty::tanh(x); }},
      {"gelu", [](V x) { return infty::gelu(x); }},
      {"gelu by tanh", [](V x) { return infty::gelu(x, infty::Approximate::tanh); }},
      {"silu", [](V x) { return infty::silu(x); }},
      {"elu_plus_one", [](V x) { return infty::elu_plus_one(x); }},
      {"softmax", [](V x) { return infty::softmax(x); }}};
  for (const auto& [name, operation] : all) {
    CAPTURE(name);
    const double kept = values_kept(operation);
    CHECK(kept >= 1);
    CHECK(kept < 1.1);
  }
}

TEST_CASE("Unread: a product keeps the factor that the other one's gradient is made of, no other") {
  infty::Random random(4);
  for (const Shape& of_factor : {Shape{1024, 3}, Shape{2, 1024, 3}}) {
    CAPTURE(of_factor);
    const Tensor<double> numbers = infty::tests::uniform_tensor<double>(of_factor, random);
    const Variable<double> fixed(numbers), trained(numbers, true);
    const auto times = [](const Variable<double>& factor) {
      return [&](const Variable<double>& x) { return infty::matmul(x, factor); };
    };
    CHECK(values_kept(times(fixed)) < 0.1);
    CHECK(values_kept(times(trained)) > 0.99);
    CHECK(trained.has_grad());
    CHECK(!fixed.has_grad());
  }
}

TEST_CASE("Unread: what a chain of operations keeps does not grow with it") {
  const auto x = leaf();
  const std::size_t before = bytes_in_use();
  Tape tape;
  Variable<double> y = x;
  for (int i = 0; i < 100; ++i) y = infty::scale(y + y, 0.5);
  const std::size_t kept = bytes_in_use() - before;
  CHECK(kept < 2 * wide_bytes);  // y itself, and what 200 operations are made of
  CHECK(tape.size() == 200);
  tape.backward(infty::sum(y));
  CHECK(x.grad().to_vector() == std::vector<double>(wide_bytes / sizeof(double), 1.0));
}

TEST_CASE("Unread: who holds a variable still has its value and its gradient behind the pass") {
  const auto x = leaf();
  Tape tape;
  const auto y = infty::scale(x, 3.0);
  tape.backward(infty::sum(infty::scale(y, 2.0)));
  CHECK(y.value().to_vector()[7] == 3 * x.value().to_vector()[7]);
  CHECK(y.grad().to_vector()[7] == 2);
  CHECK(x.grad().to_vector()[7] == 6);
}

TEST_CASE("Unread: a parameter that nobody holds any more takes its gradient with it") {
  const auto x = leaf();
  Tape tape;
  auto loss = infty::sum(x);
  {
    const auto gone = leaf();
    loss = loss + infty::sum(infty::scale(gone, 2.0));
  }
  tape.backward(loss);
  CHECK(x.grad().to_vector()[0] == 1);
}

TEST_CASE("Unread: no variable made later is taken for one that is gone") {
  auto gone = std::make_unique<Variable<double>>(leaf());
  const Unread<double, infty::EigenBackend> seen(*gone);
  CHECK(seen.identity() == gone->identity());
  gone.reset();
  std::vector<Variable<double>> others;
  for (int i = 0; i < 100; ++i) {
    others.push_back(leaf());
    CHECK_FALSE(others.back().identity() == seen.identity());
  }
}

TEST_CASE("Unread: it has the extents and the gradient, and none arrives where none was taken") {
  const auto x = leaf();
  const Unread<double, infty::EigenBackend> seen(x);
  CHECK(seen.shape() == wide);
  CHECK(seen.dim(-1) == 1024);
  CHECK(seen.size() == x.size());
  CHECK(seen.requires_grad());
  CHECK_FALSE(seen.has_grad());
  seen.grad().fill(2);
  CHECK(x.has_grad());
  CHECK(x.grad().to_vector()[5] == 2);

  const Variable<double> constant(Tensor<double>::zeros(Shape{3}));
  const Unread<double, infty::EigenBackend> none(constant);
  CHECK_FALSE(none.requires_grad());
  CHECK_FALSE(none.has_grad());
  CHECK_THROWS_WITH(none.grad(),
                    "[Unread] a gradient of [3] arrives for a variable that took none when it "
                    "became unread");
}

TEST_CASE("Unread: an input that takes a gradient only later is refused") {
  const auto x = leaf();
  Variable<double> late(Tensor<double>::zeros(wide));
  Tape tape;
  const auto loss = infty::sum(x + late);
  late.set_requires_grad(true);
  CHECK_THROWS_AS(tape.backward(loss), infty::ValueError);
  CHECK_FALSE(x.has_grad());
  late.set_requires_grad(false);
  tape.backward(loss);
  CHECK(x.has_grad());
}

}  // namespace unread_tests
