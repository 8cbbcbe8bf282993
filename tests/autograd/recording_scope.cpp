// SPDX-License-Identifier: MIT
#include <memory>
#include <optional>
#include <thread>
#include <utility>

#include <infty/autograd/elementwise.hpp>
#include <infty/autograd/tape.hpp>

#include "support/catch.hpp"

using infty::Tape;
using infty::Tensor;
using infty::Variable;

namespace {

Variable<double> variable() { return Variable<double>(Tensor<double>::from({2}, {1, 2}), true); }

}  // namespace

TEST_CASE("recording_scope: a tape that ends before an inner one leaves this recording") {
  const auto x = variable();
  auto outer = std::make_unique<Tape>(), inner = std::make_unique<Tape>();
  outer.reset();
  CHECK(Tape::active() == inner.get());
  CHECK((x * x).requires_grad());
  inner.reset();
  CHECK(Tape::active() == nullptr);
  CHECK_FALSE((x * x).requires_grad());
}

TEST_CASE("recording_scope: of three tapes, the middle one ends first") {
  Tape outer;
  auto middle = std::make_unique<Tape>();
  {
    const Tape inner;
    middle.reset();
    CHECK(Tape::active() == &inner);
  }
  CHECK(Tape::active() == &outer);
}

TEST_CASE("recording_scope: a tape that ends in front of no_grad is not recorded on afterwards") {
  const auto x = variable();
  auto tape = std::make_unique<Tape>();
  {
    const auto guard = infty::no_grad();
    tape.reset();
  }
  CHECK(Tape::active() == nullptr);
  CHECK_FALSE((x * x).requires_grad());
}

TEST_CASE("recording_scope: a tape made under no_grad may outlive it") {
  const auto x = variable();
  std::optional<Tape> tape;
  {
    const auto guard = infty::no_grad();
    tape.emplace();
  }
  CHECK(Tape::active() == &*tape);
  CHECK((x * x).requires_grad());
  tape.reset();
  CHECK(Tape::active() == nullptr);
}

TEST_CASE("recording_scope: a tape may end on another thread, or after the thread that made it") {
  const auto x = variable();
  auto tape = std::make_unique<Tape>();
  std::thread([moved = std::move(tape)]() mutable { moved.reset(); }).join();
  CHECK(Tape::active() == nullptr);
  CHECK_FALSE((x * x).requires_grad());

  std::unique_ptr<Tape> orphan;
  Variable<double> y;
  std::thread([&] {
    orphan = std::make_unique<Tape>();
    y = x * x;
  }).join();
  CHECK(Tape::active() == nullptr);
  orphan->backward(y, Tensor<double>::full({2}, 1));
  CHECK(x.grad().to_vector() == std::vector<double>{2, 4});
  orphan.reset();
}
