// SPDX-License-Identifier: MIT
#include <cstddef>
#include <vector>

#include <infty/autograd/reduce.hpp>
#include <infty/memory/joint_slots.hpp>
#include <infty/nn/sequence_layer.hpp>
#include <infty/testing/gradient_check.hpp>
#include <infty/testing/invariants.hpp>
#include <infty/train/checkpoint.hpp>

#include "io/temporary_folder.hpp"
#include "support/catch.hpp"
#include "support/states.hpp"
#include "support/tensors.hpp"
#include "support/types.hpp"

namespace joint_slots_tests {

using infty::EigenBackend;
using infty::Index;
using infty::JointSlots;
using infty::JointSlotsState;
using infty::Pass;
using infty::Random;
using infty::Shape;
using infty::Tensor;
using infty::Variable;
using infty::tests::numbers_of;
using infty::tests::uniform_tensor;

static_assert(infty::SequenceLayer<JointSlots<float>>);

constexpr infty::JointSlotConfig small{.slots = 3, .layers = 2, .heads = 2, .feed_forward = 5};

TEMPLATE_LIST_TEST_CASE("JointSlots: padding in front is seen by nobody", "", infty::tests::Types) {
  using T = typename TestType::T;
  using B = typename TestType::B;
  using V = Variable<T, B>;
  const JointSlots<T, B> body(small, 4, Random(1));
  auto padded = body.make_state(2), alone = body.make_state(1);
  Random random(infty::tests::seed);
  for (const Index length : {5, 2}) {
    CAPTURE(length);
    const V x(uniform_tensor<T, B>({2, length, 4}, random));
    Pass<T, B> pass;
    const V y = body.forward(padded, x, Tensor<Index, B>::from({2}, {length, 2}), pass);
    // Row 1 by itself, without what is in front of its last two words.
    const V own(narrow(x, length - 2, length).value().slice(1, 2));
    const V by_itself = body.forward(alone, own, pass);
    CHECK(infty::tests::error(narrow(y, length - 2, length).value().slice(1, 2).to_vector(),
                              by_itself.value().to_vector()) < infty::tests::tolerance<T>);
    CHECK(infty::tests::error(padded.slots.value().slice(1, 2).to_vector(),
                              alone.slots.value().to_vector()) < infty::tests::tolerance<T>);
  }
  const auto before = numbers_of(padded);
  Pass<T, B> pass, around{.before = 1};
  const V x(Tensor<T, B>::zeros({2, 3, 4}));
  CHECK_THROWS_AS(body.forward(padded, V(Tensor<T, B>::zeros({2, 3, 5})), pass), infty::ShapeError);
  CHECK_THROWS_AS(body.forward(alone, x, pass), infty::ShapeError);
  CHECK_THROWS_AS(body.forward(padded, x, around), infty::ValueError);
  CHECK(numbers_of(padded) == before);
  Pass<T, B> unanswered{.answer = false};
  CHECK(body.forward(padded, x, unanswered).size() == 0);
}

/// Words are written, and read behind a state that does not come to know of it.
struct Encoder {
  JointSlots<double> body{small, 4, Random(1)};

  auto make_state(Index batch) const { return body.make_state(batch); }
  void write(JointSlotsState<double, EigenBackend>& state, const Tensor<double>& x) const {
    Pass<double> pass;
    body.forward(state, Variable<double>(x), pass);
  }
  Variable<double> read(JointSlotsState<double, EigenBackend> state,
                        const Tensor<double>& x) const {
    Pass<double> pass;
    return body.forward(state, Variable<double>(x), pass);
  }
};

TEST_CASE("JointSlots: a batch is its rows, reset rows are fresh, states are saved and branch") {
  namespace kit = infty::testing;
  const Encoder encoder;
  Random random(infty::tests::seed);
  kit::Stream<Tensor<double>> stream;
  for (const Index length : {3, 1, 6})
    stream.pieces.push_back(uniform_tensor<double>({3, length, 4}, random));
  stream.queries = uniform_tensor<double>({3, 2, 4}, random);
  const auto through = [&](const auto& state) {
    const infty::tests::TemporaryFolder folder;
    infty::save_state(folder / "state", state);
    auto loaded = encoder.make_state(3);
    infty::load_state(folder / "state", loaded);
    return loaded;
  };
  CHECK(kit::batch_equals_rows(encoder, stream) < 1e-12);
  CHECK(kit::reset_equals_fresh(encoder, stream) < 1e-12);
  CHECK(kit::restored_equals_continued(encoder, stream, through) == 0);
  CHECK(kit::copy_branches(encoder, stream) == 0);
  auto state = encoder.make_state(3);
  for (int i = 0; i < 300; ++i) encoder.write(state, stream.pieces[0]);
  CHECK(infty::is_finite(state));
}

TEST_CASE("JointSlots: gradients through segments are those of central differences") {
  JointSlots<double> body(small, 4, Random(1));
  Random random(infty::tests::seed);
  std::vector<Variable<double>> x;
  for (const Index length : {3, 2})
    x.push_back(infty::tests::uniform_variable<double>({2, length, 4}, random));
  const auto weight = uniform_tensor<double>({2, 2, 4}, random);
  const auto loss = [&] {
    auto state = body.make_state(2);
    Pass<double> pass;
    body.forward(state, x[0], Tensor<Index>::from({2}, {2, 3}), pass);
    const auto y = body.forward(state, x[1], pass);
    return sum(y * Variable<double>(weight)) + sum(state.slots * state.slots);
  };
  auto all = infty::named_parameters<double>(body);
  for (const auto& words : x) all.push_back({"words", words});
  CHECK(fast_gradient_check(loss, all, 1e-6) < 1e-6);
}

TEST_CASE("JointSlots: configurations that cannot be are refused by name") {
  using Catch::Matchers::Contains;
  const auto make = [](infty::JointSlotConfig config, Index d = 4) {
    return JointSlots<float>(config, d, Random(1));
  };
  CHECK_THROWS_WITH(make({.slots = 0}), Contains("slots is 0"));
  CHECK_THROWS_WITH(make({.layers = 0}), Contains("layers is 0"));
  CHECK_THROWS_WITH(make({.heads = 0}), Contains("heads is 0"));
  CHECK_THROWS_WITH(make({.heads = 3}), Contains("heads are 3"));
  CHECK_THROWS_WITH(make({.heads = 2, .feed_forward = -2}), Contains("feed_forward is -2"));
  CHECK_THROWS_AS(make({.slots = infty::largest_size, .heads = 2}), infty::ValueError);
  CHECK_THROWS_AS(make(small, 0), infty::ValueError);
  CHECK_THROWS_AS(make(small).make_state(0), infty::ValueError);
}

}  // namespace joint_slots_tests
