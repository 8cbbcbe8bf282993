// SPDX-License-Identifier: MIT
#include <vector>

#include <infty/memory/memory_in_front.hpp>
#include <infty/memory/short_term_memory.hpp>
#include <infty/memory/titans_memory.hpp>
#include <infty/testing/memory_invariants.hpp>

#include "io/temporary_folder.hpp"
#include "support/catch.hpp"
#include "support/states.hpp"
#include "support/tensors.hpp"
#include "support/types.hpp"

using infty::Index;
using infty::MemoryInFront;
using infty::Pass;
using infty::RowCounts;
using infty::Shape;
using infty::Tensor;
using infty::Variable;
using infty::tests::numbers_of;

namespace memory_in_front_test {

template <class T, class B>
using Attention = infty::ShortTermMemory<T, B>;
template <class T, class B>
using Titans = infty::TitansMemory<T, B>;

constexpr Index d = 4, m = 2;

template <class T, class B>
MemoryInFront<Attention<T, B>, Titans<T, B>> decorated() {
  return {Attention<T, B>({.capacity = 2}, {.model_dim = d, .heads = 2, .head_dim = 3},
                          infty::Random(1)),
          {.heads = 2, .head_dim = 3, .hidden = 4},
          m,
          d,
          infty::Random(2)};
}

/// A mixer that the kit can make.
struct Attended : MemoryInFront<infty::ShortTermMemory<double>, infty::TitansMemory<double>> {
  using Config = infty::ShortTermConfig;
  Attended(Config config, infty::AttentionSizes sizes, infty::Random random)
      : MemoryInFront(infty::ShortTermMemory<double>(config, sizes, random), {.hidden = 4}, m,
                      sizes.model_dim, random.split(9)) {}
};

}  // namespace memory_in_front_test

TEMPLATE_LIST_TEST_CASE("MemoryInFront: answers ride in front, and words are written behind", "",
                        infty::tests::Types) {
  using T = typename TestType::T;
  using B = typename TestType::B;
  using V = Variable<T, B>;
  using namespace memory_in_front_test;
  const auto layer = decorated<T, B>();
  auto state = layer.make_state(2), silent = state;
  auto attention = layer.inner.make_state(2);
  auto memory = layer.memory.make_state(2);
  const V queries = V(Tensor<T, B>::zeros({2, m, 6})) + reshape(layer.queries, {1, m, 6});
  infty::Random random(infty::tests::seed);
  for (const Index length : {3, 1, 5}) {
    CAPTURE(length);
    const V x(infty::tests::uniform_tensor<T, B>({2, length, d}, random));
    Pass<T, B> pass, unanswered{.answer = false};
    const V got = layer.forward(state, x, pass);
    // By hand.
    Pass<T, B> told{.before = m};
    const V y =
        layer.inner.forward(attention, concat(layer.memory.read(memory, queries), x), {}, told);
    const V words = narrow(y, m, m + length);
    CHECK(infty::tests::error(got.value().to_vector(), words.value().to_vector()) <
          infty::tests::tolerance<T>);
    CHECK(numbers_of(state.inner) == numbers_of(attention));
    CHECK(infty::tests::error(numbers_of(state.past.memory), numbers_of(memory)) <
          infty::tests::tolerance<T>);
    layer.memory.write(memory, words, RowCounts(2, length));

    CHECK(layer.forward(silent, x, unanswered).size() == 0);
    CHECK(numbers_of(silent) == numbers_of(state));
    CHECK(pass.before == 0);
    CHECK(pass.answer_before);
  }
}

TEST_CASE("MemoryInFront: keeps to what every layer keeps to") {
  const infty::tests::TemporaryFolder folder;
  infty::testing::require_mixer<memory_in_front_test::Attended>(
      {.capacity = 2}, folder / "state.safetensors", 1e-11);
}

TEST_CASE("MemoryInFront: other memory tokens stay where they are, and are not written") {
  using B = infty::EigenBackend;
  const auto layer = memory_in_front_test::decorated<double, B>();
  infty::Random random(5);
  const Variable<double> x(infty::tests::uniform_tensor<double>({2, 7, 4}, random));
  auto all = layer.make_state(2), left_out = all;
  Pass<double> told{.before = 2, .behind = 1},
      less{.before = 2, .behind = 1, .answer_before = false};
  const auto y = layer.forward(all, x, told);
  CHECK(y.shape() == x.shape());
  CHECK(all.past.leaving.length == RowCounts{4, 4});
  CHECK(all.past.leaving.vectors.to_vector() == narrow(y, 2, 6).value().to_vector());
  const auto shorter = layer.forward(left_out, x, less);
  CHECK(shorter.dim(1) >= 5);
  CHECK(numbers_of(left_out) == numbers_of(all));
  CHECK_FALSE(less.answer_before);
  CHECK(less.before == 2);
}

TEST_CASE("MemoryInFront: what does not fit is refused, and changes nothing") {
  using namespace memory_in_front_test;
  using Catch::Matchers::Contains;
  using B = infty::EigenBackend;
  const auto layer = decorated<double, B>();
  CHECK_THROWS_WITH((MemoryInFront<Attention<double, B>, Titans<double, B>>(layer.inner, {}, 0, d,
                                                                            infty::Random(1))),
                    Contains("tokens is 0"));
  CHECK_THROWS_AS(layer.make_state(0), infty::ValueError);
  auto state = layer.make_state(2);
  Pass<double> pass, crowded{.before = 2, .behind = 2};
  const Variable<double> x(Tensor<double>::full({2, 3, d}, 1.));
  layer.forward(state, x, pass);
  const auto before = numbers_of(state);
  CHECK_THROWS_AS(layer.forward(state, x, crowded), infty::ShapeError);
  for (const Shape& shape : {Shape{2, 3, 5}, Shape{3, 3, 4}, Shape{6, 4}})
    CHECK_THROWS_AS(layer.forward(state, Variable<double>(Tensor<double>::zeros(shape)), pass),
                    infty::ShapeError);
  CHECK(numbers_of(state) == before);
}
