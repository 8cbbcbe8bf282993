// SPDX-License-Identifier: MIT
#include <optional>
#include <stdexcept>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include <infty/autograd/elementwise.hpp>
#include <infty/autograd/linear.hpp>
#include <infty/autograd/reduce.hpp>
#include <infty/autograd/tape.hpp>

#include "support/catch.hpp"
#include "support/count_new.hpp"
#include "support/tensors.hpp"

using infty::Shape;
using infty::Tape;
using infty::Tensor;
using infty::Variable;
using Values = std::vector<double>;

namespace {

Variable<double> variable(const Values& values) {
  return Variable<double>(Tensor<double>::from({static_cast<infty::Index>(values.size())}, values),
                          true);
}

// y = x, whose backward pass throws.
Variable<double> explosive(const Variable<double>& x) {
  return infty::record(
      Variable<double>(x.value().clone()),
      [](const Tensor<double>&) { throw std::runtime_error("backward"); }, x);
}

}  // namespace

TEST_CASE("Tape: backward leaves the gradient of a scalar in what it was computed from") {
  const auto x = variable({1, 2, 3}), y = variable({4, 5, 6});
  Tape tape;
  const auto loss = infty::sum(x * y);
  CHECK(loss.value().item() == 32);
  CHECK(tape.size() == 2);
  tape.backward(loss);
  CHECK(x.grad().to_vector() == Values{4, 5, 6});
  CHECK(y.grad().to_vector() == Values{1, 2, 3});
  CHECK(tape.size() == 0);
}

TEST_CASE("Tape: a variable used twice gets the sum of both gradients") {
  const auto x = variable({1, 2, 3});
  Tape tape;
  tape.backward(infty::sum(x * x + infty::scale(x, 10.0)));
  CHECK(x.grad().to_vector() == Values{12, 14, 16});
}

TEST_CASE("Tape: gradients add up over backward passes until zero_grad") {
  auto x = variable({1, 2});
  const auto pass = [&] {
    Tape tape;
    tape.backward(infty::sum(x * x));
  };
  pass();
  pass();
  CHECK(x.grad().to_vector() == Values{4, 8});
  x.zero_grad();
  pass();
  CHECK(x.grad().to_vector() == Values{2, 4});
}

TEST_CASE("Tape: a tape works again after backward, and a second backward is refused") {
  const auto x = variable({1, 2});
  Tape tape;
  const auto loss = infty::sum(x * x);
  tape.backward(loss);
  CHECK_THROWS_WITH(tape.backward(loss),
                    "[backward] the output, of shape [], is not on this tape: it has gone backward "
                    "already");
  CHECK(x.grad().to_vector() == Values{2, 4});
  tape.backward(infty::sum(x));
  CHECK(x.grad().to_vector() == Values{3, 5});
}

TEST_CASE("Tape: backward from any shape, along a given gradient") {
  const auto x = variable({1, 2, 3});
  Tape tape;
  const auto y = x * x;
  tape.backward(y, Tensor<double>::from({3}, {1, 0, -1}));
  CHECK(x.grad().to_vector() == Values{2, 0, -6});
}

TEST_CASE("Tape: backward of what it has not recorded is refused and says why") {
  auto x = variable({1, 2});
  const std::string no_gradient =
      "[backward] no gradient flows to the output, of shape []: nothing that it was computed from "
      "needs one, or no tape was there to record it";
  const auto before = infty::sum(x * x);
  std::optional<Tape> dead;
  dead.emplace();
  const auto of_dead = infty::sum(x * x);
  dead.reset();
  Tape outer;
  const auto of_outer = infty::sum(x * x);
  Tape tape;
  CHECK_THROWS_WITH(tape.backward(before), no_gradient);
  CHECK_THROWS_WITH(tape.backward(infty::sum(x.detach() * x.detach())), no_gradient);
  const std::string elsewhere = "[backward] the output, of shape [], is not on this tape: ";
  CHECK_THROWS_WITH(tape.backward(of_dead), elsewhere + "the tape that recorded it has ended");
  CHECK_THROWS_WITH(tape.backward(of_outer), elsewhere + "another tape has recorded it");
  auto cleared = infty::sum(x * x);
  tape.clear();
  CHECK_THROWS_WITH(tape.backward(cleared), elsewhere + "the tape was cleared");
  cleared.set_requires_grad(false);
  CHECK_THROWS_WITH(tape.backward(cleared), no_gradient);
  CHECK_FALSE(x.has_grad());
  CHECK(outer.size() == 2);
  const auto kept = infty::sum(x * x);
  CHECK_THROWS_AS(tape.backward(of_outer), infty::ValueError);
  CHECK(tape.size() == 2);  // nothing has changed
  tape.backward(kept);
  CHECK(x.grad().to_vector() == Values{2, 4});
}

TEST_CASE("Tape: the gradient of a leaf with respect to itself is the seed") {
  const auto x = variable({1, 2});
  Tape tape;
  tape.backward(x, Tensor<double>::from({2}, {3, 4}));
  CHECK(x.grad().to_vector() == Values{3, 4});
}

TEST_CASE("Tape: what a gradient needs and was written since is refused, and nothing changes") {
  auto a = variable({3, 1});
  Tensor<double> handle = a.value();
  Tape tape;
  const auto y = infty::sum(a * a);
  const std::string message =
      "[backward] input 1, of shape [2], of an operation whose output is [2] was written between "
      "forward and backward: the gradient needs it as it was";
  SECTION("through the variable") { a.value().fill(5); }
  SECTION("through another handle of its value") { handle.fill(5); }
  SECTION("through a view") { handle.slice(1, 2).reshape({1, 1}).fill(5); }
  SECTION("by host elements") { handle.copy_from(Tensor<double>::full({2}, 5)); }
  SECTION("by another value") { a.value() = handle.clone(); }
  SECTION("by a value of another shape") { a.value() = Tensor<double>::zeros({4}); }
  CHECK_THROWS_WITH(tape.backward(y), message);
  CHECK_THROWS_AS(tape.backward(y), infty::ValueError);
  CHECK_FALSE(a.has_grad());
  CHECK_FALSE(y.has_grad());
  CHECK(tape.size() == 2);
  tape.clear();
  tape.backward(infty::sum(a * a));
  CHECK(a.has_grad());
}

TEST_CASE("Tape: what a gradient of another tape needs and was written since is refused as well") {
  auto x = variable({3}), w = variable({2});
  Tape outer;
  const auto y = infty::sum(x * x);
  {
    Tape inner;
    inner.backward(infty::sum(y * y));
  }
  REQUIRE(y.has_grad());
  x.value().fill(100);
  CHECK_THROWS_WITH(outer.backward(infty::sum(w * w)), Catch::Matchers::Contains("was written"));
  CHECK_FALSE(x.has_grad());
}

TEST_CASE("Tape: inputs are counted from 1, and named by the operation that wants them") {
  infty::Random random(infty::tests::seed);
  const auto x = infty::tests::uniform_variable<double>({5, 3}, random);
  auto weight = variable({1, 2, 3});
  auto w = Variable<double>(weight.value().reshape({1, 3}), true);
  Tape tape;
  const auto y = infty::linear(x, w);
  weight.value().fill(2);  // whose view w is
  CHECK_THROWS_WITH(tape.backward(infty::sum(y)),
                    "[backward] input 2, of shape [1, 3], of an operation whose output is [5, 1] "
                    "was written between forward and backward: the gradient needs it as it was");
}

TEST_CASE("Tape: an output that its gradient is computed from must stay, too") {
  const auto x = variable({1, 2});
  Tape tape;
  auto y = infty::sigmoid(x);
  const auto loss = infty::sum(y);
  y.value().fill(.5);
  CHECK_THROWS_WITH(tape.backward(loss),
                    "[backward] the output of an operation, [2], was written between forward and "
                    "backward: the gradient needs it as it was");
  CHECK_FALSE(x.has_grad());
}

TEST_CASE("Tape: what no gradient needs may be written, and anything may be read") {
  auto x = variable({1, 2}), b = variable({3, 4}), unused = variable({5, 6});
  Tape tape;
  const auto other = infty::sum(unused * unused);  // does not reach the loss
  const auto y = infty::sum(x * x + b);
  b.value().fill(7);
  unused.value().fill(7);
  x.value().to_vector();
  x.value().clone().fill(9);
  CHECK(std::as_const(x).value().data() != nullptr);
  tape.backward(y);
  CHECK(x.grad().to_vector() == Values{2, 4});
  CHECK(b.grad().to_vector() == Values{1, 1});
}

TEST_CASE("Tape: a value that a sum does not need must keep its shape") {
  auto x = variable({1, 2});
  Tape tape;
  auto y = infty::sum(x);
  x.value() = Tensor<double>::zeros({4});
  CHECK_THROWS_AS(tape.backward(y), infty::ValueError);
  tape.clear();
  y = infty::sum(x);
  y.value() = Tensor<double>::zeros({2});
  CHECK_THROWS_WITH(tape.backward(y, Tensor<double>::zeros({2})),
                    "[backward] the output of an operation was [] and is [2]: it must keep its "
                    "shape until backward");
}

TEST_CASE(
    "Tape: an output that was given another shape is refused, though nobody holds it any more") {
  const auto x = variable({1, 2, 3, 4, 5, 6});
  Tape tape;
  auto loss = infty::sum(x);
  {
    auto y = infty::scale(x, 2.0);
    SECTION("of other elements") { y.value() = Tensor<double>::zeros({4}); }
    SECTION("of the same") { y.value() = y.value().reshape({3, 2}); }
    loss = infty::sum(y);
  }
  CHECK_THROWS_WITH(tape.backward(loss), Catch::Matchers::Contains("it must keep its shape"));
  CHECK_FALSE(x.has_grad());
}

TEST_CASE("Tape: push records an output that takes its gradient later") {
  const auto x = variable({1, 2});
  Tape tape;
  Variable<double> y(x.value().clone());
  tape.push(
      y, [x](const Tensor<double>& dy) { x.grad().copy_from(dy); }, x);
  y.set_requires_grad(true);
  tape.backward(infty::sum(y));
  CHECK(x.grad().to_vector() == Values{1, 1});
}

TEST_CASE("Tape: an input that is frozen or trained again behind recording is refused") {
  auto a = variable({1, 2}), b = variable({3, 4});
  Variable<double> frozen(Tensor<double>::from({2}, {5, 6}));
  std::vector<Variable<double>> all{a, b};
  Tape tape;
  const auto y = a * b;
  auto z = infty::relu(y);
  const std::string took = "[backward] input 1, of shape [2], of an operation whose output is ";
  const std::string none =
      "took a gradient when that was recorded, and takes none now: it must "
      "stay so until backward";
  SECTION("a result, whose own inputs were written") {
    auto handle = y;
    handle.set_requires_grad(false);
    a.value().fill(100);
    CHECK_THROWS_WITH(tape.backward(infty::sum(z)), took + "[2] " + none);
  }
  SECTION("a parameter whose value is read") {
    a.set_requires_grad(false);
    CHECK_THROWS_WITH(tape.backward(infty::sum(z)), took + "[2] " + none);
  }
  SECTION("one whose value is not read") {
    const auto sum = infty::sum(a);
    a.set_requires_grad(false);
    CHECK_THROWS_WITH(tape.backward(sum), took + "[] " + none);
  }
  SECTION("one that took none") {
    const auto product = infty::sum(frozen * z);
    frozen.set_requires_grad(true);
    CHECK_THROWS_WITH(tape.backward(product),
                      took +
                          "[2] took no gradient when that was recorded, and takes one now: it "
                          "must stay so until backward");
    CHECK_FALSE(frozen.has_grad());
  }
  SECTION("one of several given as one") {
    const auto both = infty::record(
        Variable<double>(Tensor<double>::zeros({2})), [](const Tensor<double>&) {}, all);
    b.set_requires_grad(false);
    CHECK_THROWS_WITH(tape.backward(infty::sum(both)), took + "[2] " + none);
  }
  SECTION("but not where no gradient arrives, nor where it is as it was") {
    const auto unused = infty::sum(frozen * a);
    frozen.set_requires_grad(true);
    a.set_requires_grad(false);
    a.set_requires_grad(true);
    tape.backward(infty::sum(z));
    CHECK(b.grad().to_vector() == Values{1, 2});
    return;
  }
  CHECK_FALSE(a.has_grad());
  CHECK_FALSE(b.has_grad());
}

TEST_CASE("Tape: several inputs given as one are checked, each of them") {
  std::vector<Variable<double>> all{variable({1, 2}), variable({3, 4})};
  Tape tape;
  const auto y = infty::record(
      Variable<double>(Tensor<double>::zeros({2})),
      [all](const Tensor<double>& dy) {
        for (const auto& x : all) infty::detail::add_to_grad(x, dy);
      },
      all);
  all[1].value().fill(0);
  CHECK_THROWS_AS(tape.backward(y, Tensor<double>::full({2}, 1)), infty::ValueError);
}

TEST_CASE("Tape: only scalars have a gradient of their own, seeds need the output's shape") {
  const auto x = variable({1, 2, 3});
  Tape tape;
  const auto y = x * x;
  CHECK_THROWS_WITH(tape.backward(y), "[backward] loss is [3]: it must have one element");
  CHECK_THROWS_WITH(tape.backward(y, Tensor<double>::zeros({2})),
                    "[backward] seed is [2], output is [3]");
  CHECK(tape.size() == 1);
}

TEST_CASE("Tape: branches that do not reach the loss cost nothing and get nothing") {
  const auto x = variable({1, 2}), y = variable({3, 4});
  Tape tape;
  const auto unused = infty::sum(y * y);
  const auto loss = infty::sum(x);
  tape.backward(loss);
  CHECK(x.grad().to_vector() == Values{1, 1});
  CHECK_FALSE(y.has_grad());
  CHECK_FALSE(unused.has_grad());
}

TEST_CASE("Tape: constants are not differentiated") {
  const auto x = variable({1, 2});
  const Variable<double> c(Tensor<double>::from({2}, {3, 4}));
  Tape tape;
  const auto constant = c * c;
  CHECK(tape.size() == 0);
  CHECK_FALSE(constant.requires_grad());
  tape.backward(infty::sum(x * c));
  CHECK(x.grad().to_vector() == Values{3, 4});
  CHECK_FALSE(c.has_grad());
}

TEST_CASE("Tape: without one nothing is recorded") {
  const auto x = variable({1, 2});
  CHECK(Tape::active() == nullptr);
  CHECK_FALSE((x * x).requires_grad());
}

TEST_CASE("no_grad: nothing is recorded until its scope ends") {
  const auto x = variable({1, 2});
  Tape tape;
  {
    const auto guard = infty::no_grad();
    CHECK_FALSE((x * x).requires_grad());
    {
      const auto inner = infty::no_grad();
      CHECK(Tape::active() == nullptr);
    }
    CHECK(Tape::active() == nullptr);
    Tape local;
    CHECK((x * x).requires_grad());
    CHECK(local.size() == 1);
  }
  CHECK(Tape::active() == &tape);
  CHECK(tape.size() == 0);
  CHECK((x * x).requires_grad());
  CHECK(tape.size() == 1);
}

TEST_CASE("detach: no gradient flows through") {
  const auto x = variable({1, 2});
  Tape tape;
  const auto y = x * x;
  tape.backward(infty::sum(x * y.detach()));
  CHECK(x.grad().to_vector() == Values{1, 4});
}

TEST_CASE("Tape: the innermost records, the outer one goes on after it") {
  const auto x = variable({1, 2});
  Tape outer;
  const auto y = x * x;
  {
    Tape inner;
    CHECK(Tape::active() == &inner);
    inner.backward(infty::sum(infty::scale(x, 3.0)));
    CHECK(x.grad().to_vector() == Values{3, 3});
    CHECK(outer.size() == 1);
  }
  CHECK(Tape::active() == &outer);
  outer.backward(infty::sum(y));
  CHECK(x.grad().to_vector() == Values{5, 7});
}

TEST_CASE("Tape: one thread's tape does not record another's operations") {
  const auto x = variable({1, 2});
  Tape tape;
  bool recorded = true;
  std::thread([&] { recorded = (x * x).requires_grad(); }).join();
  CHECK_FALSE(recorded);
  CHECK(tape.size() == 0);
}

TEST_CASE("Tape: backward passes are not recorded") {
  const auto x = variable({1, 2});
  Tape tape;
  bool recorded = true;
  const auto y = infty::record(
      Variable<double>(x.value().clone()),
      [x, &recorded](const Tensor<double>&) { recorded = (x * x).requires_grad(); }, x);
  tape.backward(infty::sum(y));
  CHECK_FALSE(recorded);
  CHECK(tape.size() == 0);
}

TEST_CASE("Tape: an exception in a backward pass leaves it empty, recording, and without leaks") {
  const auto x = variable({1, 2});
  const auto in_use = [] { return infty::HostPool::instance().statistics().bytes_in_use; };
  auto forgotten = x;
  forgotten.grad();  // its memory stays
  Tape tape;
  const std::size_t before = in_use();
  {
    const auto loss = infty::sum(explosive(x * x) * x);
    CHECK_THROWS_WITH(tape.backward(loss), "backward");
    CHECK(tape.size() == 0);
    CHECK(Tape::active() == &tape);
  }
  CHECK(in_use() == before);
  forgotten.zero_grad();  // a part of it had arrived
  tape.backward(infty::sum(x * x));
  CHECK(x.grad().to_vector() == Values{2, 4});
}

TEST_CASE("Tape: clear and the end of its life give back what was recorded") {
  const auto x = variable({1, 2});
  const auto in_use = [] { return infty::HostPool::instance().statistics().bytes_in_use; };
  const std::size_t before = in_use();
  {
    Tape tape;
    infty::sum(x * x);
    CHECK(in_use() > before);
    tape.clear();
    CHECK(tape.size() == 0);
    CHECK(in_use() == before);
    infty::sum(x * x);
  }
  CHECK(in_use() == before);
}

TEST_CASE("Tape: a step asks the system for no memory after the first") {
  infty::Random random(infty::tests::seed);
  const auto x = infty::tests::uniform_tensor<float>({40, 33}, random);
  std::vector<Variable<float>> weights{infty::tests::uniform_variable<float>({64, 33}, random),
                                       infty::tests::uniform_variable<float>({64}, random),
                                       infty::tests::uniform_variable<float>({5, 64}, random)};
  const auto step = [&] {
    for (auto& weight : weights) weight.zero_grad();
    Tape tape;
    const auto hidden = infty::relu(infty::linear(Variable<float>(x), weights[0], weights[1]));
    const auto y = infty::sigmoid(infty::linear(hidden, weights[2]));
    tape.backward(infty::mean(y * y));
  };
  const auto allocations = [] {
    return infty::HostPool::instance().statistics().system_allocations;
  };
  for (auto& weight : weights)
    weight.grad();  // or the first step would take them from the blocks
                    // that its own forward pass has given back
  step();
  const std::size_t pool = allocations(), heap = infty::tests::new_calls;
  for (int i = 0; i < 5; ++i) step();
  const std::size_t pool_after = allocations(), heap_after = infty::tests::new_calls;
  CHECK(pool_after == pool);
  CHECK(heap_after == heap);
}
