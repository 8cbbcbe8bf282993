// SPDX-License-Identifier: MIT
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <functional>
#include <string>
#include <vector>

#include <infty/autograd/elementwise.hpp>
#include <infty/autograd/reduce.hpp>
#include <infty/autograd/tape.hpp>
#include <infty/core/random.hpp>
#include <infty/nn/attention_sizes.hpp>
#include <infty/nn/pass.hpp>
#include <infty/nn/sequence_layer.hpp>
#include <infty/train/replay.hpp>

#include "support/catch.hpp"
#include "support/states.hpp"
#include "support/tensors.hpp"

// Replay beside back-propagation through time, of any body.

namespace replay_tests {

using infty::Index;
using infty::Pass;
using infty::Random;
using infty::Shape;
using infty::Tape;
using infty::Tensor;
using infty::Variable;
using infty::tests::numbers_of;

constexpr infty::AttentionSizes sizes{.model_dim = 4, .heads = 2, .head_dim = 2};

/// A stream for a body: segments of three vectors, the last one of one, and weights of answers.
template <class T, class B>
struct Stream {
  std::vector<Variable<T, B>> x, weights;

  explicit Stream(std::size_t segments) {
    Random random(infty::tests::seed);
    for (std::size_t i = 0; i < segments; ++i) {
      const Shape shape{2, i + 1 < segments ? 3 : 1, 4};
      x.push_back(infty::tests::uniform_variable<T, B>(shape, random));
      weights.push_back(Variable<T, B>(infty::tests::uniform_tensor<T, B>(shape, random)));
    }
  }

  /// The loss of segment i: with dropout, if there is a generator, and a row reset before the
  /// third.
  template <class Body>
  Variable<T, B> loss(const Body& body, typename Body::State& state, std::size_t i,
                      Random* dropout = nullptr) const {
    if (i == 2) infty::reset_row(state, 1);
    Pass<T, B> pass{.random = dropout, .dropout = .3};
    return sum(pass.dropped(run_layer(body, state, x[i], pass)) * weights[i]);
  }
};

/// The loss, all gradients, and what the last state holds, of one way to go backward.
struct Outcome {
  double loss;
  std::vector<std::vector<double>> gradients;
  std::vector<double> state;
  double next_number = 0;  ///< of the generator
};

template <class T, class B, class Body>
Outcome outcome_of(Body& body, const Stream<T, B>& stream, bool dropped,
                   const std::function<Variable<T, B>(typename Body::State&, Random*)>& loss_of) {
  Random dropout(7);
  auto state = body.make_state(2);
  infty::zero_grad(body);
  for (Variable<T, B> x : stream.x) x.zero_grad();
  Tape tape;
  const auto loss = loss_of(state, dropped ? &dropout : nullptr);
  tape.backward(loss);
  Outcome out{static_cast<double>(loss.value().item()), {}, numbers_of(state), dropout.uniform()};
  const auto add = [&](const Variable<T, B>& x) {
    const auto gradient = x.grad().to_vector();
    out.gradients.emplace_back(gradient.begin(), gradient.end());
  };
  for_each_parameter(body, [&](const std::string&, const auto& p) { add(p); });
  for (const auto& x : stream.x) add(x);
  return out;
}

/// Through time: all segments on one tape; no gradient flows behind each `through`-th.
template <class T, class B, class Body>
Outcome through_time(Body& body, const Stream<T, B>& stream, bool dropped, Index through = 0) {
  return outcome_of<T, B>(body, stream, dropped, [&](typename Body::State& state, Random* random) {
    Variable<T, B> total(Tensor<T, B>::zeros({}));
    for (std::size_t i = 0; i < stream.x.size(); ++i) {
      if (through > 0 && static_cast<Index>(i) % through == 0)
        infty::detail::each_variable(state, [](auto& variable) { variable = variable.detach(); });
      total = total + stream.loss(body, state, i, random);
    }
    return total;
  });
}

template <class T, class B, class Body>
Outcome by_replay(Body& body, const Stream<T, B>& stream, bool dropped, Index through = 0) {
  return outcome_of<T, B>(body, stream, dropped, [&](typename Body::State& state, Random* random) {
    return infty::replayed_loss(state, static_cast<Index>(stream.x.size()),
                                [&, random](Index i, typename Body::State& s) {
                                  return stream.loss(body, s, static_cast<std::size_t>(i), random);
                                },
                                {.random = random, .through = through});
  });
}

inline void check_equal(const Outcome& got, const Outcome& expected, double tolerance) {
  CHECK(std::abs(got.loss - expected.loss) <= tolerance * std::max(1., std::abs(expected.loss)));
  CHECK(infty::tests::error(got.state, expected.state) <= tolerance);
  CHECK(got.next_number == expected.next_number);
  REQUIRE(got.gradients.size() == expected.gradients.size());
  for (std::size_t i = 0; i < got.gradients.size(); ++i) {
    CAPTURE(i);
    CHECK(infty::tests::error(got.gradients[i], expected.gradients[i]) <= tolerance);
  }
}

}  // namespace replay_tests
