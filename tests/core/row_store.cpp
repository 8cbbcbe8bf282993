// SPDX-License-Identifier: MIT
#include <limits>
#include <string>
#include <vector>

#include <infty/core/state.hpp>
#include <infty/eigen/default.hpp>
#include <infty/memory/to.hpp>
#include <infty/train/checkpoint.hpp>

#include "io/temporary_folder.hpp"
#include "support/catch.hpp"
#include "support/nearest_memory.hpp"
#include "support/states.hpp"

using infty::Index;
using infty::RowCounts;
using infty::Tensor;
using infty::tests::NearestStore;
using infty::tests::numbers_of;

namespace {

/// A state with a tensor, an index, and one more index in a part of it.
struct Indexed {
  Tensor<float> mark;  ///< [batch, 1]
  NearestStore<float> index;
  std::vector<infty::tests::NearestState<float, infty::EigenBackend>> parts;

  template <class Visitor>
  void visit(Visitor&& see) {
    see("mark", mark);
    see("index", index);
    see("parts", parts);
  }
};

/// Three rows of 2, 0 and 4 vectors of two numbers.
Indexed three_indexed() {
  Indexed state{Tensor<float>::from({3, 1}, {1, 2, 3}), {3, 4, 2}, {{{3, 4, 2}}}};
  state.index.add(0, {3, 30});
  state.index.add(0, {1, 10});
  for (const float x : {5.f, 9.f, 7.f, 8.f, 6.f}) state.index.add(2, {x, 10 * x});
  state.parts[0].store.add(1, {4, 40});
  return state;
}

float found(const Indexed& state, Index row, float key) { return state.index.nearest(row, key)[1]; }

}  // namespace

TEST_CASE("RowStore: is a member of a state as a tensor is") {
  const auto state = three_indexed();
  CHECK(infty::batch_of(state) == 3);
  CHECK(infty::bytes_of(state) == 4 * 3 + 4 * 3 * (2 + 4) + 4 * 3);
  std::vector<std::string> names;
  infty::for_each_member(state, [&](const std::string& name, auto&) { names.push_back(name); });
  CHECK(names == std::vector<std::string>{"mark", "index.vectors", "index.length",
                                          "parts.0.store.vectors", "parts.0.store.length"});
  CHECK(infty::is_finite(state));
  auto wrong = state;
  wrong.parts[0].store.add(2, {1, std::numeric_limits<float>::quiet_NaN()});
  CHECK_FALSE(infty::is_finite(wrong));
  wrong = state;
  wrong.parts[0].store.keep_rows(0, 2);
  CHECK_THROWS_WITH(infty::batch_of(wrong),
                    "[batch_of] the state's parts.0.store has 2 rows, its mark 3");
}

TEST_CASE("RowStore: rows are reset, taken out, put in and joined; copies keep theirs") {
  const auto before = three_indexed();
  auto state = before;
  infty::reset_row(state, 2);
  CHECK(found(state, 2, 6.4f) == 0);
  CHECK(found(before, 2, 6.4f) == 60);
  CHECK(found(state, 0, 1.9f) == 10);

  const auto two = infty::take_rows(before, 1, 3);
  CHECK(infty::batch_of(two) == 2);
  CHECK(found(two, 1, 100) == 90);
  infty::put_rows(state, 0, two);
  CHECK(found(state, 0, 3) == 0);
  CHECK(found(state, 1, 5.2f) == 60);  // the oldest, 5, was one too many
  CHECK(state.parts[0].store.nearest(0, 0)[1] == 40);
  CHECK(state.parts[0].store.nearest(1, 0)[1] == 0);

  const std::vector parts{infty::take_rows(before, 0, 1), infty::take_rows(before, 1, 3)};
  CHECK(numbers_of(infty::join_rows(parts)) == numbers_of(before));
  CHECK(infty::batch_of(infty::join_rows(std::vector{before, before})) == 6);
}

TEST_CASE("RowStore: one that does not fit is refused, and nothing has changed") {
  auto state = three_indexed();
  auto other = infty::take_rows(state, 0, 1);
  other.parts[0].store = {1, 4, 3};
  const auto before = numbers_of(state);
  CHECK_THROWS_WITH(infty::put_rows(state, 0, other),
                    "[NearestStore] vectors of 3 numbers, wanted are 2");
  CHECK(numbers_of(state) == before);
  CHECK_THROWS_AS(infty::join_rows(std::vector{state, other}), infty::ShapeError);
}

TEST_CASE("RowStore: is saved, loaded and moved by what it tells of itself") {
  const infty::tests::TemporaryFolder folder;
  const auto state = three_indexed();
  infty::save_state(folder / "state", state);
  Indexed loaded{Tensor<float>::zeros({1, 1}), {1, 4, 2}, {{{1, 4, 2}}}};
  infty::load_state(folder / "state", loaded);
  CHECK(numbers_of(loaded) == numbers_of(state));
  CHECK(found(loaded, 2, 6.4f) == 60);
  loaded.index.add(2, {1, 11});  // the next of them that goes is the oldest, 9
  CHECK(found(loaded, 2, 100) == 80);

  Indexed wider{Tensor<float>::zeros({1, 1}), {1, 4, 2}, {{{1, 4, 5}}}};
  const auto before = numbers_of(wider);
  CHECK_THROWS_AS(infty::load_state(folder / "state", wider), infty::IoError);
  CHECK(numbers_of(wider) == before);

  const infty::tests::NearestState<float, infty::EigenBackend> part{state.index};
  CHECK(numbers_of(infty::to<infty::EigenBackend>(part)) == numbers_of(part));
}
