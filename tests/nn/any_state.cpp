// SPDX-License-Identifier: MIT
#include <vector>

#include <infty/memory/no_memory.hpp>
#include <infty/memory/with_memory.hpp>
#include <infty/model/block.hpp>
#include <infty/nn/any_layer.hpp>
#include <infty/nn/cached_attention.hpp>
#include <infty/train/checkpoint.hpp>

#include "io/temporary_folder.hpp"
#include "support/catch.hpp"
#include "support/nearest_memory.hpp"
#include "support/states.hpp"
#include "support/tensors.hpp"
#include "support/types.hpp"

using infty::Index;
using infty::tests::numbers_of;

TEMPLATE_LIST_TEST_CASE("AnyState: a store of rows inside is reset, cut, joined, saved as it is",
                        "", infty::tests::Types) {
  using T = typename TestType::T;
  using B = typename TestType::B;
  using Memory = infty::WithMemory<infty::NoMemory<T, B>, infty::tests::NearestMemory<T, B>>;
  const Memory memory({.attention = {}, .memory = infty::tests::NearestConfig{.capacity = 5}},
                      {.model_dim = 4, .heads = 2, .head_dim = 3}, infty::Random(1));
  const infty::AnyLayer<T, B> any(memory);
  const infty::InputNorm<T, B> norm;
  auto known = memory.make_state(3);
  auto state = any.make_state(3);
  infty::Random random(infty::tests::seed);
  const auto step = [&](auto& a, auto& b) {
    const Index batch = infty::batch_of(a);
    const infty::Variable<T, B> x(infty::tests::uniform_tensor<T, B>({batch, 2, 4}, random));
    infty::Pass<T, B> pass;
    CHECK(any.forward(b, x, norm, pass).value().to_vector() ==
          memory.forward(a, x, norm, pass).value().to_vector());
    CHECK(numbers_of(a) == numbers_of(b));
  };
  for (int i = 0; i < 3; ++i) step(known, state);
  CHECK(infty::bytes_of(state) == infty::bytes_of(known));
  CHECK(infty::is_finite(state));
  const auto before = numbers_of(known);
  {
    auto copy = state;
    infty::reset_row(copy, 0);
    CHECK(numbers_of(copy) != before);
    CHECK(numbers_of(state) == before);
  }
  infty::reset_row(known, 1);
  infty::reset_row(state, 1);
  auto two = infty::take_rows(known, 1, 3);
  auto any_two = infty::take_rows(state, 1, 3);
  step(two, any_two);
  infty::put_rows(known, 0, two);
  infty::put_rows(state, 0, any_two);
  step(known, state);
  auto doubled = infty::join_rows(std::vector{known, known});
  auto any_doubled = infty::join_rows(std::vector{state, state});
  step(doubled, any_doubled);

  const infty::tests::TemporaryFolder folder;
  infty::save_state(folder / "state", state);
  auto loaded = any.make_state(1);
  infty::load_state(folder / "state", loaded);
  step(known, loaded);
  CHECK_THROWS_AS(infty::put_rows(loaded, 0, infty::AnyState<T, B>(infty::RowSequences<T, B>())),
                  infty::ShapeError);
}

namespace any_state {

/// Vectors in float, and a sum of them in double.
struct Sums {
  infty::Tensor<float> last;
  infty::Tensor<double> sum;

  template <class Visitor>
  void visit(Visitor&& see) {
    see("last", last);
    see("sum", sum);
  }
};

}  // namespace any_state

TEST_CASE("AnyState: members of the other precision are members") {
  using State = infty::AnyState<float, infty::EigenBackend>;
  const infty::Shape shape{2, 3};
  const auto of = [&](double first) {
    std::vector<double> sum;
    for (int i = 0; i < 6; ++i) sum.push_back(first + i);
    return State(any_state::Sums{infty::Tensor<float>::from(shape, {sum.begin(), sum.end()}),
                                 infty::Tensor<double>::from(shape, sum)});
  };
  const double fine = 1 + 1e-12;  // no float
  State state = of(fine);
  CHECK(infty::bytes_of(state) == 6 * (sizeof(float) + sizeof(double)));
  const infty::tests::TemporaryFolder folder;
  infty::save_state(folder / "state", state);
  State loaded = of(0);
  infty::load_state(folder / "state", loaded);
  CHECK(loaded.get<any_state::Sums>()->sum.to_vector() ==
        std::vector<double>{fine, fine + 1, fine + 2, fine + 3, fine + 4, fine + 5});
  infty::reset_row(loaded, 0);
  CHECK(loaded.get<any_state::Sums>()->sum.to_vector() ==
        std::vector<double>{0, 0, 0, fine + 3, fine + 4, fine + 5});
  infty::put_rows(loaded, 0, infty::take_rows(state, 1, 2));
  CHECK(loaded.get<any_state::Sums>()->sum.to_vector() ==
        std::vector<double>{fine + 3, fine + 4, fine + 5, fine + 3, fine + 4, fine + 5});
}

TEST_CASE("AnyState: counts say how long the sequences beside them are, however deep they stand") {
  using Attention = infty::CachedAttention<double>;
  using Block = infty::Block<Attention>;
  const Block block{.mixer = Attention({.capacity = 16}, {.model_dim = 8, .heads = 2}),
                    .mixer_norm = infty::LayerNorm<double>(8),
                    .feed = {8, 8, infty::Random(3)},
                    .feed_norm = infty::LayerNorm<double>(8)};
  const infty::AnyLayer<double> any(block);
  infty::Random random(infty::tests::seed);
  auto known = block.make_state(2);
  auto state = any.make_state(2);
  const auto read = [&](Index length) {
    const auto x = infty::tests::uniform_variable<double>({2, length, 8}, random);
    infty::Pass<double> pass;
    CHECK(any.forward(state, x, {}, pass).value().to_vector() ==
          infty::run_layer(block, known, x, pass).value().to_vector());
    CHECK(numbers_of(known) == numbers_of(state));
  };
  read(5);
  const auto older = infty::take_rows(known, 1, 2);
  const auto older_of_any = infty::take_rows(state, 1, 2);
  infty::reset_row(known, 0);
  infty::reset_row(state, 0);
  read(3);
  infty::put_rows(known, 0, older);
  infty::put_rows(state, 0, older_of_any);
  read(2);
  CHECK(numbers_of(infty::join_rows(std::vector{older, infty::take_rows(known, 1, 2)})) ==
        numbers_of(infty::join_rows(std::vector{older_of_any, infty::take_rows(state, 1, 2)})));
  const infty::tests::TemporaryFolder folder;
  infty::save_state(folder / "state", state);
  state = any.make_state(2);
  infty::load_state(folder / "state", state);
  read(1);
  known = block.make_state(2);
  infty::load_state(folder / "state", known);  // names are those of the state inside
}

namespace any_state {

struct Slots {
  infty::Tensor<float> table;  ///< [batch, slots, width], of no sequence

  template <class Visitor>
  void visit(Visitor&& see) {
    see("table", table);
  }
};

/// A sequence with its counts, and beside them what is none.
struct SequenceAndSlots {
  infty::Tensor<float> seen;
  infty::RowCounts length;
  std::vector<Slots> slots;

  template <class Visitor>
  void visit(Visitor&& see) {
    see("seen", seen);
    see("length", length);
    see("slots", slots);
  }
};

}  // namespace any_state

TEST_CASE("AnyState: counts are not of what stands deeper than they do") {
  using State = infty::AnyState<float, infty::EigenBackend>;
  const auto ones = [](const infty::Shape& shape) { return infty::Tensor<float>::full(shape, 1); };
  const any_state::SequenceAndSlots inside{ones({1, 5, 2}), {5}, {{ones({1, 2, 3})}}};
  State state(inside);
  CHECK(infty::batch_of(state) == 1);
  CHECK(infty::batch_of(State(state)) == 1);
  infty::reset_row(state, 0);
  const auto* const now = state.get<any_state::SequenceAndSlots>();
  REQUIRE(now != nullptr);
  CHECK(now->length == infty::RowCounts{0});
  CHECK(now->slots[0].table.to_vector() == std::vector<float>(6, 0));
}
