// SPDX-License-Identifier: MIT
#include <vector>

#include <infty/autograd/variable.hpp>
#include <infty/core/select_rows.hpp>
#include <infty/eigen/default.hpp>

#include "support/catch.hpp"
#include "support/nearest_memory.hpp"
#include "support/states.hpp"
#include "support/types.hpp"

namespace select_rows_test {

using infty::Index;
using infty::RowCounts;
using infty::RowIds;
using infty::select_rows;

template <class T, class B>
struct Plain {
  infty::Tensor<T, B> mark;         ///< [batch, 2]
  infty::Variable<T, B> variable;   ///< [batch, 1]
  infty::RowSequences<T, B> words;  ///< [batch, L, 1]
  RowIds names;

  template <class Visitor>
  void visit(Visitor&& see) {
    see("mark", mark);
    see("variable", variable);
    see("words", words);
    see("names", names);
  }
};

struct WithStore {
  infty::Tensor<float> mark;
  infty::tests::NearestStore<float> index;

  template <class Visitor>
  void visit(Visitor&& see) {
    see("mark", mark);
    see("index", index);
  }
};

}  // namespace select_rows_test

TEMPLATE_LIST_TEST_CASE("select_rows: takes rows in any order, as often as wanted", "",
                        infty::tests::Types) {
  using namespace select_rows_test;
  using T = typename TestType::T;
  using B = typename TestType::B;
  using Tensor = infty::Tensor<T, B>;
  const Plain<T, B> state{Tensor::from({3, 2}, {1, 2, 3, 4, 5, 6}),
                          infty::Variable<T, B>(Tensor::from({3, 1}, {7, 8, 9})),
                          {Tensor::from({3, 2, 1}, {1, 2, 0, 3, 0, 0}), {2, 1, 0}},
                          {{4, 5, 6}}};
  const auto chosen = select_rows(state, {2, 0, 0, 1});
  CHECK(chosen.mark.to_vector() == std::vector<T>{5, 6, 1, 2, 1, 2, 3, 4});
  CHECK(chosen.variable.value().to_vector() == std::vector<T>{9, 7, 7, 8});
  CHECK(chosen.words.vectors.to_vector() == std::vector<T>{0, 0, 1, 2, 1, 2, 0, 3});
  CHECK(chosen.words.length == RowCounts{0, 2, 2, 1});
  CHECK(chosen.names.id == RowCounts{6, 4, 4, 5});
  CHECK(infty::batch_of(select_rows(state, {})) == 0);
  CHECK_THROWS_AS(select_rows(state, {0, 3}), infty::ShapeError);
  CHECK_THROWS_AS(select_rows(state, {-1}), infty::ShapeError);
  // A copy of its own.
  auto changed = chosen;
  changed.mark.fill(T(0));
  CHECK(state.mark.to_vector() == std::vector<T>{1, 2, 3, 4, 5, 6});
}

TEST_CASE("select_rows: takes rows of a store, too") {
  using namespace select_rows_test;
  WithStore state{infty::Tensor<float>::from({3, 1}, {1, 2, 3}), {3, 4, 2}};
  for (const Index row : {0, 1, 2})
    state.index.add(row, {static_cast<float>(row), static_cast<float>(10 * row)});
  const auto chosen = select_rows(state, {2, 1, 2});
  CHECK(chosen.mark.to_vector() == std::vector<float>{3, 2, 3});
  CHECK(chosen.index.rows() == 3);
  CHECK(chosen.index.nearest(0, 0)[1] == 20);
  CHECK(chosen.index.nearest(1, 0)[1] == 10);
  CHECK(chosen.index.nearest(2, 0)[1] == 20);
  CHECK(state.index.nearest(0, 0)[1] == 0);
}
