// SPDX-License-Identifier: MIT
#include <cstddef>
#include <span>
#include <vector>

#include <infty/autograd/elementwise.hpp>
#include <infty/autograd/last_uses.hpp>
#include <infty/autograd/reduce.hpp>
#include <infty/autograd/tape.hpp>
#include <infty/nn/embedding.hpp>
#include <infty/train/replay.hpp>

#include "support/catch.hpp"
#include "support/tensors.hpp"
#include "support/types.hpp"

using Catch::Matchers::Contains;
using infty::Index;
using infty::Tape;
using infty::Tensor;
using infty::Variable;

namespace last_uses_tests {

TEST_CASE("LastUses: each leaf once, behind its last use") {
  const std::vector<Variable<double>> leaves(3);
  std::vector<Variable<double>> all;
  for (int i = 0; i < 3; ++i) all.emplace_back(Tensor<double>::zeros({1}), true);
  infty::detail::LastUses uses{std::span<const Variable<double>>(all)};
  std::vector<std::size_t> done;
  const auto note = [&](std::size_t i) { done.push_back(i); };
  uses.see(all[0].identity(), 0);
  uses.see(all[2].identity(), 1);
  uses.see(all[0].identity(), 3);
  uses.see(&done, 4);  // of none
  uses.reached(-1, note);
  CHECK(done == std::vector<std::size_t>{1});
  uses.reached(0, note);
  CHECK(done == std::vector<std::size_t>{1});
  uses.reached(2, note);
  CHECK(done == std::vector<std::size_t>{1, 2});
  uses.reached(4, note);
  CHECK(done == std::vector<std::size_t>{1, 2, 0});
}

// The gradients of a backward pass, as they are when it says that they are complete.
template <class T, class B, class Loss>
std::vector<std::vector<T>> when_complete(const std::vector<Variable<T, B>>& leaves,
                                          std::vector<std::size_t>& order, Loss&& loss) {
  std::vector<std::vector<T>> seen(leaves.size());
  Tape tape;
  tape.backward(loss(), std::span<const Variable<T, B>>(leaves), [&](std::size_t i) {
    order.push_back(i);
    if (leaves[i].has_grad()) seen[i] = leaves[i].grad().to_vector();
  });
  return seen;
}

TEST_CASE("Tape: what `done` throws for any leaf leaves the tape empty") {
  infty::Random random(infty::tests::seed);
  const std::vector<Variable<double>> leaves{infty::tests::uniform_variable<double>({2}, random),
                                             infty::tests::uniform_variable<double>({2}, random)};
  for (const std::size_t at :
       {std::size_t{0}, std::size_t{1}}) {  // the first is no input of anything
    CAPTURE(at);
    Tape tape;
    const auto loss = infty::sum(leaves[1] * leaves[1]);
    CHECK_THROWS_WITH(
        tape.backward(loss, std::span<const Variable<double>>(leaves),
                      [&](std::size_t i) { infty::require(i != at, "done", "no more"); }),
        Contains("no more"));
    CHECK(tape.size() == 0);
    CHECK_THROWS_AS(tape.backward(loss), infty::ValueError);
  }
}

TEMPLATE_LIST_TEST_CASE("Tape: says when a gradient is complete, in the order of the backward pass",
                        "", infty::tests::Types) {
  using T = typename TestType::T;
  using B = typename TestType::B;
  using V = Variable<T, B>;
  infty::Random random(infty::tests::seed);
  const auto one = [&] { return infty::tests::uniform_variable<T, B>({4, 3}, random); };
  const std::vector<V> leaves{one(), one(), one(), one()};
  const V &a = leaves[0], &b = leaves[1], &unused = leaves[2], &table = leaves[3];
  V(table).set_grad_by_rows(true);
  const auto rows = Tensor<Index, B>::from({4}, {2, 0, 2, 1});
  const auto loss = [&] {
    const V first = a * b;  // the last use of b
    const V read = infty::embedding(rows, table);
    return infty::sum((first + read) * infty::sigmoid(a));  // a is used in front of it, too
  };
  std::vector<std::size_t> order;
  const auto seen = when_complete<T, B>(leaves, order, loss);
  REQUIRE(order.size() == 4);
  CHECK(order[0] == 2);
  CHECK(order[1] == 3);
  CHECK(seen[2].empty());
  CHECK_FALSE(unused.has_grad());
  for (const std::size_t i : std::vector<std::size_t>{0, 1, 3}) {
    V leaf = leaves[i];
    CHECK(leaf.grad().to_vector() == seen[i]);
    leaf.zero_grad();
  }
  {
    Tape tape;
    tape.backward(loss());
  }
  for (const std::size_t i : std::vector<std::size_t>{0, 1, 3})
    CHECK(leaves[i].grad().to_vector() == seen[i]);
}

TEST_CASE("Tape: a gradient behind its last use is refused, and welcome behind the pass") {
  using V = Variable<double>;
  const std::vector<V> leaves{V(Tensor<double>::full({2}, 3), true),
                              V(Tensor<double>::full({2}, 5), true)};
  // Adds to leaf 1, which it does not name.
  const auto careless = [&](const V& x, auto... says) {
    V y(Tensor<double>::full({}, 1), true);
    Tape::active()->push(
        y,
        [x, other = leaves[1]](const Tensor<double>&) {
          x.grad().fill(1);
          other.grad().fill(2);
        },
        x, says...);
    return y;
  };
  std::vector<std::size_t> order;
  CHECK_THROWS_WITH(when_complete(leaves, order, [&] { return careless(leaves[0]); }),
                    Contains("a gradient of [2] arrives behind the last operation"));
  CHECK(leaves[1].grad().to_vector() == std::vector<double>{0, 0});
  order.clear();
  const auto seen =
      when_complete(leaves, order, [&] { return careless(leaves[0], infty::Unlisted{}); });
  CHECK(order == std::vector<std::size_t>{0, 1});
  CHECK(seen[1] == std::vector<double>{2, 2});
}

struct State {
  Variable<double> h{Tensor<double>::zeros({2})};

  template <class Visitor>
  void visit(Visitor&& see) {
    see("h", h);
  }
};

TEST_CASE("Tape: what is computed again on a tape of its own may add to any gradient") {
  using V = Variable<double>;
  const std::vector<V> leaves{V(Tensor<double>::full({2}, 3), true)};
  const auto loss = [&] {
    State state;
    const V replayed = infty::replayed_loss(state, 3, [&](Index, State& s) {
      s.h = s.h * leaves[0] + leaves[0];
      return infty::sum(s.h);
    });
    return replayed + infty::sum(leaves[0]);  // used before that goes backward, too
  };
  std::vector<std::size_t> order;
  const auto seen = when_complete(leaves, order, loss);
  CHECK(order == std::vector<std::size_t>{0});
  // d/dw of w + (w^2 + w) + (w^3 + w^2 + w) + w.
  CHECK(seen[0] == std::vector<double>(2, 4 + 2 * 2 * 3 + 3 * 9));
}

}  // namespace last_uses_tests
