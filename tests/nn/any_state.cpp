// SPDX-License-Identifier: MIT
#include <vector>

#include <infty/memory/no_memory.hpp>
#include <infty/memory/with_memory.hpp>
#include <infty/nn/any_layer.hpp>
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
