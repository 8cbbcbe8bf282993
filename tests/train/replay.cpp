// SPDX-License-Identifier: MIT
#include "train/replay.hpp"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <functional>
#include <string>
#include <type_traits>
#include <vector>

#include <infty/core/number.hpp>
#include <infty/core/pool.hpp>
#include <infty/memory/memformer.hpp>
#include <infty/memory/recurrent_tokens.hpp>
#include <infty/memory/short_term_memory.hpp>
#include <infty/nn/any_layer.hpp>
#include <infty/nn/causal_attention.hpp>
#include <infty/train/replay.hpp>

#include "support/catch.hpp"
#include "support/states.hpp"
#include "support/tensors.hpp"
#include "support/threads.hpp"
#include "support/types.hpp"

namespace replay_tests {

using infty::ReplayConfig;

/// Slots, whatever attention is inside.
template <class A, class T = typename A::Scalar, class B = typename A::BackendType>
auto with_slots(const typename A::Config& attention) {
  using Mixer = infty::Memformer<A>;
  const Mixer mixer({.attention = attention, .slots = {.slots = 3}}, sizes, Random(1));
  return infty::RecurrentSlots<Mixer>(mixer, mixer.make_writer());
}

template <class T, class B = infty::EigenBackend>
auto with_tokens() {
  using Attention = infty::ShortTermMemory<T, B>;
  return infty::RecurrentTokens<Attention>(Attention({.capacity = 3}, sizes, Random(1)),
                                           {.tokens = 2}, 4, Random(2));
}

TEMPLATE_LIST_TEST_CASE("replayed_loss: the numbers of back-propagation through time", "",
                        infty::tests::Types) {
  using T = typename TestType::T;
  using B = typename TestType::B;
  const double tolerance = std::is_same_v<T, double> ? 1e-12 : 1e-4;
  for (const std::size_t segments : {std::size_t{1}, std::size_t{5}})
    for (const bool dropped : {false, true}) {
      CAPTURE(segments, dropped);
      const Stream<T, B> stream(segments);
      auto slots = with_slots<infty::CausalAttention<T, B>>({});
      check_equal(by_replay(slots, stream, dropped), through_time(slots, stream, dropped),
                  tolerance);
      auto tokens = with_tokens<T, B>();
      check_equal(by_replay(tokens, stream, dropped), through_time(tokens, stream, dropped),
                  tolerance);
    }
}

TEST_CASE("replayed_loss: a state whose type nobody knows is as good") {
  using Any = infty::AnyLayer<double>;
  const Stream<double, infty::EigenBackend> stream(4);
  Any body(with_tokens<double>());
  check_equal(by_replay(body, stream, true), through_time(body, stream, true), 1e-12);
}

TEST_CASE("replayed_loss: truncated, the gradient ends behind every so many segments") {
  const Stream<double, infty::EigenBackend> stream(5);
  auto body = with_slots<infty::CausalAttention<double>>({});
  const auto all = through_time(body, stream, false);
  for (const Index through : {1, 2, 3, 5, 9}) {
    CAPTURE(through);
    const auto got = by_replay(body, stream, false, through);
    check_equal(got, through_time(body, stream, false, through), 1e-12);
    CHECK((infty::tests::error(got.gradients[0], all.gradients[0]) < 1e-9) == (through >= 5));
  }
}

TEST_CASE("replayed_loss: a gradient goes on to where the state comes from, and by a factor") {
  const Stream<double, infty::EigenBackend> stream(3);
  auto body = with_slots<infty::CausalAttention<double>>({});
  Random random(3);
  const auto first = infty::tests::uniform_variable<double>({2, 3, 4}, random);
  const auto gradient = [&](bool replayed) {
    Variable<double> from = first;
    from.zero_grad();
    auto state = body.make_state(2);
    Tape tape;
    state.slots = from * from;
    state.written = {1, 1};
    const auto segment = [&](Index i, auto& s) {
      return stream.loss(body, s, static_cast<std::size_t>(i));
    };
    Variable<double> loss(Tensor<double>::zeros({}));
    if (replayed)
      loss = replayed_loss(state, 3, segment);
    else
      for (Index i = 0; i < 3; ++i) loss = loss + segment(i, state);
    tape.backward(scale(loss, 3.));
    return from.grad().to_vector();
  };
  const auto expected = gradient(false);
  CHECK(infty::tests::error(gradient(true), expected) < 1e-13);
  CHECK(infty::tests::error(std::vector<double>(expected.size(), 0.), expected) > 1e-3);
}

/// The most bytes in use at once, beyond those before, in a training step over so many segments;
/// and the bytes that a state takes.
struct Bytes {
  std::size_t peak, state;
};
Bytes bytes_of_step(Index segments, bool replayed) {
  auto body = with_slots<infty::CausalAttention<double>>({});
  Random random(1);
  const Variable<double> x(infty::tests::uniform_tensor<double>({2, 64, 4}, random));
  for_each_parameter(body, [](const std::string&, auto& p) { p.grad(); });  // are there anyway
  auto& pool = infty::HostPool::instance();
  const auto in_use = [&] { return pool.statistics().bytes_in_use; };
  const std::size_t without = in_use();
  auto state = body.make_state(2);
  const std::size_t of_state = in_use() - without;
  const auto segment = [&](Index, auto& s) {
    Pass<double> pass;
    return sum(body.forward(s, x, pass));
  };
  pool.reset_peak();
  const std::size_t before = in_use();
  {
    Tape tape;
    Variable<double> loss(Tensor<double>::zeros({}));
    if (replayed)
      loss = replayed_loss(state, segments, segment);
    else
      for (Index i = 0; i < segments; ++i) loss = loss + segment(i, state);
    tape.backward(loss);
  }
  return {pool.statistics().peak_bytes_in_use - before, of_state};
}

TEST_CASE("replayed_loss: takes the memory of a segment, and a state for each, by HostPool") {
  infty::tests::with_threads(1, [] {  // what several put aside for a moment, they do by chance
    bytes_of_step(2, true);           // what is made once, is made here
    const Bytes few = bytes_of_step(4, true), many = bytes_of_step(64, true);
    CAPTURE(few.peak, many.peak, few.state);
    CHECK(many.peak - few.peak <= 60 * few.state);
    // Otherwise every segment is kept.
    CHECK(bytes_of_step(64, false).peak > 8 * many.peak);
    CHECK(few.peak < 2 * bytes_of_step(1, false).peak);
  });
}

TEST_CASE("replayed_loss: without a tape it is the loss, and the state moves on") {
  const Stream<double, infty::EigenBackend> stream(3);
  auto body = with_tokens<double>();
  auto state = body.make_state(2), expected = state;
  const auto segment = [&](Index i, auto& s) {
    return stream.loss(body, s, static_cast<std::size_t>(i));
  };
  const auto loss = replayed_loss(state, 3, segment);
  double sum_of_all = 0;
  for (Index i = 0; i < 3; ++i) sum_of_all += segment(i, expected).value().item();
  CHECK(loss.value().item() == Approx(sum_of_all));
  CHECK_FALSE(loss.requires_grad());
  CHECK(numbers_of(state) == numbers_of(expected));
}

TEST_CASE("replayed_loss: what cannot be, or is another function the second time, is refused") {
  using Catch::Matchers::Contains;
  const Stream<double, infty::EigenBackend> stream(3);
  auto body = with_tokens<double>();
  auto state = body.make_state(2);
  const auto before = numbers_of(state);
  const auto plain = [&](Index i, auto& s) {
    return stream.loss(body, s, static_cast<std::size_t>(i));
  };
  CHECK_THROWS_WITH(replayed_loss(state, 0, plain), Contains("segments is 0"));
  CHECK_THROWS_WITH(replayed_loss(state, 1, plain, {.through = -1}), Contains("through is -1"));
  CHECK_THROWS_WITH(replayed_loss(state, 1, plain, {.tolerance = -1}), Contains("tolerance is -1"));
  const auto throws = [&](Index i, auto& s) {
    infty::require(i < 2, "segment", "stop");
    return plain(i, s);
  };
  CHECK_THROWS_WITH(replayed_loss(state, 3, throws), Contains("stop"));
  const auto wide = [&](Index, auto&) { return stream.x[0]; };
  CHECK_THROWS_AS(replayed_loss(state, 3, wide), infty::ShapeError);
  CHECK(numbers_of(state) == before);

  Random dropout(1);
  const auto forgets_random = [&](Index i, auto& s) {
    return stream.loss(body, s, static_cast<std::size_t>(i), &dropout);
  };
  Tape tape;
  const auto loss = replayed_loss(state, 3, forgets_random);
  CHECK_THROWS_WITH(tape.backward(loss), Contains("the loss of segment 2"));
}

/// A state of one number, which nobody reads.
struct OneNumber {
  Variable<double> number{Tensor<double>::zeros({1})};

  template <class Visitor>
  void visit(Visitor&& see) {
    see("number", number);
  }
};

TEST_CASE("replayed_loss: a loss that is a number one time alone is refused") {
  OneNumber state;
  constexpr double none = infty::math::not_a_number<double>,
                   infinite = infty::math::infinity<double>;
  Variable<double> x(Tensor<double>::full({1}, 1), true);
  const auto backward = [&](double first, double second) {
    int calls = 0;
    x.zero_grad();
    Tape tape;
    const auto loss = infty::replayed_loss(state, 1, [&](Index, OneNumber&) {
      return infty::scale(x, ++calls == 1 ? first : second);
    });
    tape.backward(loss);
  };
  const auto another = Catch::Matchers::Contains("the loss of segment 0 was");
  CHECK_THROWS_WITH(backward(1, none), another);
  CHECK_THROWS_WITH(backward(1, infinite), another);
  CHECK_THROWS_WITH(backward(none, 1), another);
  CHECK_THROWS_WITH(backward(-infinite, 1), another);
  CHECK_FALSE(x.has_grad());
  backward(none, none);  // the step that reads the loss says so
  CHECK(x.has_grad());
}

TEST_CASE("replayed_loss: a refused replay leaves the random numbers where they were") {
  const Stream<double, infty::EigenBackend> stream(4);
  auto body = with_tokens<double>();
  auto state = body.make_state(2);
  Random dropout(1);
  int calls = 0;
  const auto another = [&](Index i, auto& s) {
    const auto loss = stream.loss(body, s, static_cast<std::size_t>(i), &dropout);
    return ++calls > 4 && i == 1 ? infty::scale(loss, 2.) : loss;
  };
  Tape tape;
  const auto loss = replayed_loss(state, 4, another, {.random = &dropout});
  const auto counter = dropout.counter();
  CHECK_THROWS_WITH(tape.backward(loss), Catch::Matchers::Contains("the loss of segment 1"));
  CHECK(dropout.counter() == counter);
}

TEST_CASE("replayed_loss: what segments take from the tape around them must stay as it was") {
  Variable<double> x(Tensor<double>::full({1, 4}, 3), true);
  const Stream<double, infty::EigenBackend> stream(2);
  auto body = with_tokens<double>();
  auto state = body.make_state(2);
  Tape tape;
  const auto y = infty::sum(x * x);
  const auto loss = replayed_loss(state, 2, [&](Index i, auto& s) {
    return stream.loss(body, s, static_cast<std::size_t>(i)) * y;
  });
  x.value().fill(100);
  CHECK_THROWS_WITH(tape.backward(loss), Catch::Matchers::Contains("was written"));
  CHECK_FALSE(x.has_grad());
}

}  // namespace replay_tests
