// SPDX-License-Identifier: MIT
#include <cmath>
#include <vector>

#include <infty/autograd/elementwise.hpp>
#include <infty/autograd/reduce.hpp>
#include <infty/core/state.hpp>
#include <infty/memory/gated_delta_net.hpp>
#include <infty/memory/sliding_window.hpp>
#include <infty/memory/with_engram.hpp>
#include <infty/nn/cached_attention.hpp>

#include "support/catch.hpp"
#include "support/tensors.hpp"
#include "support/types.hpp"

namespace sliding_windows {

using infty::AttentionSizes;
using infty::Index;
using infty::Pass;
using infty::Random;
using infty::RowCounts;
using infty::SlidingWindow;
using infty::Tensor;
using infty::Variable;
using infty::tests::uniform_tensor;

constexpr AttentionSizes window_sizes{.model_dim = 4, .heads = 2, .head_dim = 2};

template <class T, class B>
auto window_of(infty::GatedDeltaNet<T, B>*) {
  return SlidingWindow(infty::GatedDeltaNet<T, B>({}, window_sizes, Random(1)),
                       {.longest = 6, .kept = 2}, 4);
}

template <class T, class B>
auto window_of(infty::CachedAttention<T, B>*) {
  return SlidingWindow(infty::CachedAttention<T, B>({.capacity = 6}, window_sizes, Random(1)),
                       {.longest = 6, .kept = 2}, 4);
}

/// Rows of another age: row 0 has read two vectors more.
template <class Window, class T, class B>
auto two_rows(const Window& window, Random& random, bool older) {
  auto state = window.make_state(2);
  Pass<T, B> pass;
  window.forward(state, Variable<T, B>(uniform_tensor<T, B>({2, 2, 4}, random)), pass);
  if (!older) reset_row(state, 0);
  reset_row(state, 1);
  return state;
}

template <class Inner, class T, class B>
void check_rows() {
  const auto window = window_of(static_cast<Inner*>(nullptr));
  using Window = std::remove_const_t<decltype(window)>;
  std::vector<std::vector<T>> answers, gradients;
  for (const bool older : {false, true}) {
    Random random(infty::tests::seed);
    auto state = two_rows<Window, T, B>(window, random, older);
    const Variable<T, B> x(uniform_tensor<T, B>({2, 3, 4}, random), true),
        next(uniform_tensor<T, B>({2, 2, 4}, random));
    infty::Tape tape;
    Pass<T, B> pass;
    window.forward(state, x, pass);
    const auto y = window.forward(state, next, pass);
    CHECK(state.places == (older ? RowCounts{4, 5} : RowCounts{5, 5}));
    tape.backward(infty::sum(y * y));
    answers.push_back(y.value().slice(1, 2).to_vector());
    gradients.push_back(x.grad().slice(1, 2).to_vector());
    // No gradient flows from a window to the one before.
    const auto first = x.grad().slice(0, 1).to_vector();
    CHECK((first == std::vector<T>(first.size(), T(0))) == older);
  }
  CHECK(infty::tests::error(answers[1], answers[0]) < infty::tests::tolerance<T>);
  CHECK(infty::tests::error(gradients[1], gradients[0]) < infty::tests::tolerance<T>);
  CHECK(std::fabs(gradients[0][0]) > T(1e-6));
}

}  // namespace sliding_windows

TEMPLATE_LIST_TEST_CASE("SlidingWindow: a row goes on with its gradient where another begins again",
                        "", infty::tests::Types) {
  using namespace sliding_windows;
  using T = typename TestType::T;
  using B = typename TestType::B;
  check_rows<infty::GatedDeltaNet<T, B>, T, B>();
  check_rows<infty::CachedAttention<T, B>, T, B>();
}

TEST_CASE("SlidingWindow: what looks up tokens is not read again without them") {
  using namespace sliding_windows;
  using Stack = infty::WithEngram<infty::GatedDeltaNet<double>>;
  const infty::EngramConfig lookup{
      .lookup = {0, 1, 2, 3}, .heads = 2, .width = 4, .table_sizes = {5, 7}};
  for (const Index kept : {0, 2}) {
    const SlidingWindow<Stack> window(
        Stack(infty::GatedDeltaNet<double>({}, window_sizes, Random(1)), lookup, 4),
        {.longest = 6, .kept = kept}, 4);
    Random random(infty::tests::seed);
    auto state = window.make_state(1);
    const auto read = [&] {
      Pass<double> pass{.words = Tensor<Index>::from({1, 3}, {1, 2, 3})};
      window.forward(state, Variable<double>(uniform_tensor<double>({1, 3, 4}, random)), pass);
    };
    read();
    read();
    if (kept == 0) {
      CHECK_NOTHROW(read());
      continue;
    }
    CHECK_THROWS_WITH(read(),
                      Catch::Matchers::Contains("[SlidingWindow] vectors are read again, without "
                                                "the tokens: [Engram] pass.words"));
    CHECK(state.places == RowCounts{6});
  }
}
