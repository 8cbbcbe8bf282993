// SPDX-License-Identifier: MIT
#include <limits>
#include <optional>
#include <string>
#include <vector>

#include <infty/autograd/variable.hpp>
#include <infty/core/state.hpp>
#include <infty/eigen/default.hpp>

#include "support/catch.hpp"
#include "support/states.hpp"

using infty::Index;
using infty::RowCounts;
using infty::RowIds;
using infty::Shape;
using infty::Tensor;
using infty::Variable;
using infty::tests::numbers_of;

namespace {

struct Part {
  Tensor<float> sequence;  ///< [batch, L, 1]
  RowCounts length;        ///< which says that it is one

  template <class Visitor>
  void visit(Visitor&& see) {
    see("sequence", sequence);
    see("length", length);
  }
};

struct State {
  Variable<float> numbers;  ///< [batch, 2]
  RowCounts counts;
  RowIds names;
  std::vector<Part> parts;
  std::optional<Part> maybe;

  template <class Visitor>
  void visit(Visitor&& see) {
    see("numbers", numbers);
    see("counts", counts);
    see("names", names);
    see("parts", parts);
    see("maybe", maybe);
  }
};

State three_rows() {
  return {Tensor<float>::from({3, 2}, {1, 2, 3, 4, 5, 6}),
          {10, 20, 30},
          {{7, 8, 9}},
          {{Tensor<float>::from({3, 2, 1}, {1, 2, 3, 4, 5, 6}), {2, 2, 2}}},
          {}};
}

}  // namespace

TEST_CASE("state: members are named through structs, vectors and optionals") {
  auto state = three_rows();
  std::vector<std::string> names;
  const auto note = [&](const std::string& name, auto&) { names.push_back(name); };
  infty::for_each_member(state, note);
  CHECK(names == std::vector<std::string>{"numbers", "counts", "names", "parts.0.sequence",
                                          "parts.0.length"});
  state.maybe = state.parts[0];
  names.clear();
  infty::for_each_member(state, note);
  CHECK(names.back() == "maybe.length");
  CHECK(infty::batch_of(state) == 3);
  CHECK(infty::bytes_of(state) == 4 * 6 + 8 * 3 + 8 * 3 + 2 * (4 * 6 + 8 * 3));
}

TEST_CASE("state: a row that is reset is zero but for its name; copies keep theirs") {
  auto state = three_rows();
  const auto copy = state;
  infty::reset_row(state, 1);
  CHECK(state.numbers.value().to_vector() == std::vector<float>{1, 2, 0, 0, 5, 6});
  CHECK(state.counts == RowCounts{10, 0, 30});
  CHECK(state.names.id == RowCounts{7, 8, 9});
  CHECK(state.parts[0].sequence.to_vector() == std::vector<float>{1, 2, 0, 0, 5, 6});
  CHECK(copy.numbers.value().to_vector() == std::vector<float>{1, 2, 3, 4, 5, 6});
  CHECK(copy.counts == RowCounts{10, 20, 30});
  CHECK_THROWS_WITH(infty::reset_row(state, 3),
                    "[reset_row] row is 3: it must be one of 3 rows, from 0");
  CHECK_THROWS_AS(infty::reset_row(state, -1), infty::ShapeError);
}

TEST_CASE("state: gradients flow on to the rows that were not reset") {
  auto state = three_rows();
  const Variable<float> before = state.numbers;
  state.numbers.set_requires_grad(true);
  infty::Tape tape;
  infty::reset_row(state, 0);
  tape.backward(state.numbers, Tensor<float>::full({3, 2}, 1));
  CHECK(before.grad().to_vector() == std::vector<float>{0, 0, 1, 1, 1, 1});
}

TEST_CASE("state: gradients flow on to rows that stay and to those that are put in") {
  auto state = three_rows(), one = infty::take_rows(state, 1, 2);
  const Variable<float> before = state.numbers, put = one.numbers;
  state.numbers.set_requires_grad(true);
  one.numbers.set_requires_grad(true);
  infty::Tape tape;
  infty::put_rows(state, 2, one);
  tape.backward(state.numbers, Tensor<float>::from({3, 2}, {1, 2, 3, 4, 5, 6}));
  CHECK(before.grad().to_vector() == std::vector<float>{1, 2, 3, 4, 0, 0});
  CHECK(put.grad().to_vector() == std::vector<float>{5, 6});
  // Of sequences of other lengths the shorter one's are behind zeros.
  const Variable<float> three(Tensor<float>::full({3, 2, 1}, 1), true),
      one_short(Tensor<float>::full({1, 1, 1}, 2), true);
  infty::Tape of_short;
  of_short.backward(three.with_rows(1, one_short, 2),
                    Tensor<float>::from({3, 2, 1}, {1, 2, 3, 4, 5, 6}));
  CHECK(three.grad().to_vector() == std::vector<float>{1, 2, 0, 0, 5, 6});
  CHECK(one_short.grad().to_vector() == std::vector<float>{4});
  const Variable<float> short_rows(Tensor<float>::full({2, 1, 1}, 3), true),
      one_long(Tensor<float>::full({1, 2, 1}, 4), true);
  infty::Tape of_long;
  const auto joined = short_rows.with_rows(0, one_long, 2);
  CHECK(joined.value().to_vector() == std::vector<float>{4, 4, 0, 3});
  of_long.backward(joined, Tensor<float>::from({2, 2, 1}, {1, 2, 3, 4}));
  CHECK(short_rows.grad().to_vector() == std::vector<float>{0, 4});
  CHECK(one_long.grad().to_vector() == std::vector<float>{1, 2});
}

TEST_CASE("state: rows are taken out and put in, copies either way") {
  auto state = three_rows();
  auto two = infty::take_rows(state, 1, 3);
  CHECK(infty::batch_of(two) == 2);
  CHECK(two.numbers.value().to_vector() == std::vector<float>{3, 4, 5, 6});
  CHECK(two.counts == RowCounts{20, 30});
  CHECK(two.names.id == RowCounts{8, 9});
  two.numbers.value().fill(-1);
  two.names.id = {5, 6};
  CHECK(state.numbers.value().to_vector()[2] == 3);
  infty::put_rows(state, 0, two);
  CHECK(state.numbers.value().to_vector() == std::vector<float>{-1, -1, -1, -1, 5, 6});
  CHECK(state.counts == RowCounts{20, 30, 30});
  CHECK(state.names.id == RowCounts{5, 6, 9});
  two.numbers.value().fill(7);
  CHECK(state.numbers.value().to_vector()[0] == -1);
  CHECK(infty::batch_of(infty::take_rows(state, 1, 1)) == 0);
  CHECK_THROWS_WITH(infty::take_rows(state, 2, 4), "[take_rows] [2, 4): there are 3 rows");
}

TEST_CASE("state: sequences of other lengths are put in, zeros in front of the shorter") {
  auto state = three_rows();
  auto longer = infty::take_rows(state, 0, 1);
  longer.parts[0] = {Tensor<float>::from({1, 3, 1}, {7, 8, 9}), {3}};
  infty::put_rows(state, 2, longer);
  CHECK(state.parts[0].sequence.shape() == Shape{3, 3, 1});
  CHECK(state.parts[0].sequence.to_vector() == std::vector<float>{0, 1, 2, 0, 3, 4, 7, 8, 9});
  CHECK(state.parts[0].length == RowCounts{2, 2, 3});
  auto shorter = infty::take_rows(state, 0, 1);
  shorter.parts[0] = {Tensor<float>::from({1, 1, 1}, {5}), {1}};
  infty::put_rows(state, 1, shorter);
  CHECK(state.parts[0].sequence.to_vector() == std::vector<float>{0, 1, 2, 0, 0, 5, 7, 8, 9});
}

TEST_CASE("state: rows taken apart and joined are the state") {
  const auto state = three_rows();
  std::vector parts{infty::take_rows(state, 0, 1), infty::take_rows(state, 1, 1),
                    infty::take_rows(state, 1, 3)};
  auto joined = infty::join_rows(parts);
  CHECK(infty::batch_of(joined) == 3);
  CHECK(joined.numbers.value().to_vector() == state.numbers.value().to_vector());
  CHECK(joined.counts == state.counts);
  CHECK(joined.names.id == state.names.id);
  CHECK(joined.parts[0].sequence.to_vector() == state.parts[0].sequence.to_vector());
  joined.numbers.value().fill(-1);
  CHECK(state.numbers.value().to_vector() == three_rows().numbers.value().to_vector());

  parts[0].parts[0] = {Tensor<float>::from({1, 3, 1}, {7, 8, 9}), {3}};
  CHECK(infty::join_rows(parts).parts[0].sequence.shape() == Shape{3, 3, 1});
  parts[2].parts.clear();
  CHECK_THROWS_WITH(infty::join_rows(parts), "[join_rows] the parts have different members");
  parts.clear();
  CHECK_THROWS_WITH(infty::join_rows(parts), "[join_rows] there are no parts");
}

TEST_CASE("state: rows that do not fit are refused and nothing changes") {
  auto state = three_rows();
  const auto rows = infty::take_rows(state, 0, 2);
  CHECK_THROWS_WITH(infty::put_rows(state, 2, rows), "[put_rows] 2 rows at 2: there are 3");
  for (const Index at :
       {Index{-1}, std::numeric_limits<Index>::max(), std::numeric_limits<Index>::min()})
    CHECK_THROWS_AS(infty::put_rows(state, at, rows), infty::ShapeError);
  auto other = rows;
  other.parts[0].sequence = Tensor<float>::zeros({2, 2, 5});
  CHECK_THROWS_WITH(infty::put_rows(state, 0, other),
                    "[put_rows] parts.0.sequence is [3, 2, 1] and [2, 2, 5]");
  other = rows;
  other.parts.clear();
  CHECK_THROWS_AS(infty::put_rows(state, 0, other), infty::ShapeError);
  other = rows;
  other.maybe = rows.parts[0];
  CHECK_THROWS_WITH(infty::put_rows(state, 0, other),
                    "[put_rows] the rows have maybe.length, the state has not");
  CHECK(state.numbers.value().to_vector() == three_rows().numbers.value().to_vector());
}

TEST_CASE("state: what is no sequence must have the same extents, and is named where it has not") {
  auto state = three_rows();
  const auto before = numbers_of(state);
  auto wider = infty::take_rows(state, 0, 1);
  wider.numbers = Tensor<float>::from({1, 3}, {7, 8, 9});  // [rows, 2] elsewhere
  CHECK_THROWS_WITH(infty::put_rows(state, 0, wider), "[put_rows] numbers is [3, 2] and [1, 3]");
  CHECK_THROWS_WITH(infty::join_rows(std::vector{state, wider}),
                    "[join_rows] numbers is [3, 2] and [1, 3]");
  CHECK_THROWS_WITH(infty::join_rows(std::vector{wider, state}),
                    "[join_rows] numbers is [1, 3] and [3, 2]");
  auto deeper = infty::take_rows(state, 0, 1);
  deeper.parts[0].sequence = Tensor<float>::zeros({1, 2, 2});
  CHECK_THROWS_WITH(infty::join_rows(std::vector{state, deeper}),
                    "[join_rows] parts.0.sequence is [3, 2, 1] and [1, 2, 2]");
  CHECK(numbers_of(state) == before);
}

TEST_CASE("state: as many members that stand elsewhere are not taken for each other") {
  auto state = three_rows();
  auto elsewhere = three_rows();
  elsewhere.maybe = elsewhere.parts[0];
  elsewhere.parts.clear();
  CHECK_THROWS_WITH(infty::join_rows(std::vector{state, elsewhere}),
                    "[join_rows] the parts have different members");
  CHECK_THROWS_WITH(infty::put_rows(state, 0, elsewhere),
                    "[put_rows] the states differ at parts.0.sequence");
}

TEST_CASE("state: members with different numbers of rows are refused by name") {
  auto state = three_rows();
  const auto good = three_rows();
  std::string member = "counts has 2 rows, its numbers 3";
  SECTION("counts") { state.counts.pop_back(); }
  SECTION("names") {
    state.names.id.push_back(1);
    member = "names has 4 rows, its numbers 3";
  }
  SECTION("a tensor") {
    state.parts[0].sequence = Tensor<float>::zeros({2, 2, 1});
    member = "parts.0.sequence has 2 rows, its numbers 3";
  }
  SECTION("a scalar") {
    state.parts[0].sequence = Tensor<float>::zeros({});
    member = "parts.0.sequence is a scalar: it must be [batch, ...]";
  }
  const auto before = numbers_of(state);
  const std::string message = "the state's " + member;
  CHECK_THROWS_WITH(infty::batch_of(state), "[batch_of] " + message);
  CHECK_THROWS_WITH(infty::reset_row(state, 0), "[reset_row] " + message);
  CHECK_THROWS_WITH(infty::take_rows(state, 0, 1), "[take_rows] " + message);
  CHECK_THROWS_WITH(infty::join_rows(std::vector{good, state}), "[join_rows] " + message);
  CHECK_THROWS_WITH(infty::put_rows(state, 0, good), "[put_rows] " + message);
  auto whole = good;
  CHECK_THROWS_WITH(infty::put_rows(whole, 0, state), "[put_rows] " + message);
  CHECK(numbers_of(state) == before);
  CHECK(numbers_of(whole) == numbers_of(good));
}

TEST_CASE("state: a row that says it is longer than its sequence is refused") {
  auto state = three_rows();
  state.parts[0].length = {2, 3, 2};
  CHECK_THROWS_WITH(infty::batch_of(state),
                    "[batch_of] the state's parts.0.sequence is [3, 2, 1], and a row of it has 3 "
                    "vectors");
  state.parts[0].length = {2, -1, 2};
  CHECK_THROWS_AS(infty::take_rows(state, 0, 1), infty::ShapeError);
}

TEST_CASE("state: finite or not") {
  auto state = three_rows();
  CHECK(infty::is_finite(state));
  state.parts[0].sequence.data()[3] = std::numeric_limits<float>::infinity();
  CHECK_FALSE(infty::is_finite(state));
}
