// SPDX-License-Identifier: MIT
#include <vector>

#include <infty/data/text_tensors.hpp>

#include "support/catch.hpp"
#include "support/types.hpp"

using infty::Index;
using infty::RowCounts;
using infty::Shape;
using infty::TextBatch;

namespace {

struct Counter {
  RowCounts seen;
  infty::RowIds row_id;

  template <class Visitor>
  void visit(Visitor&& see) {
    see("seen", seen);
    see("row_id", row_id);
  }
};

struct Counting {
  Counter make_state(Index batch, Index first_row) const {
    Counter made{RowCounts(static_cast<std::size_t>(batch), Index{0}), {}};
    for (Index row = 0; row < batch; ++row) made.row_id.id.push_back(first_row + row);
    return made;
  }
};

TextBatch batch_of(std::vector<Index> reset) {
  return {.batch = 2,
          .length = 3,
          .inputs = {1, 2, 3, 4, 5, 6},
          .targets = {2, 3, 4, 5, 6, infty::ignore_index},
          .predicted = 5,
          .reset = std::move(reset)};
}

}  // namespace

TEMPLATE_LIST_TEST_CASE("input_tokens, target_tokens: a batch as tensors", "",
                        infty::tests::Types) {
  using B = typename TestType::B;
  const TextBatch batch = batch_of({});
  CHECK(infty::input_tokens<B>(batch).shape() == Shape{2, 3});
  CHECK(infty::input_tokens<B>(batch).to_vector() == batch.inputs);
  CHECK(infty::target_tokens<B>(batch).shape() == Shape{2, 3});
  CHECK(infty::target_tokens<B>(batch).to_vector() == batch.targets);
  TextBatch wrong = batch;
  wrong.inputs.pop_back();
  CHECK_THROWS_AS(infty::input_tokens<B>(wrong), infty::ShapeError);
}

TEST_CASE("reset_rows: the rows that a batch begins anew, and no others") {
  const Counting model;
  Counter state{{7, 8}, {{0, 1}}};
  infty::reset_rows(model, state, batch_of({}));
  CHECK(state.seen == RowCounts{7, 8});
  infty::reset_rows(model, state, batch_of({1}));
  CHECK(state.seen == RowCounts{7, 0});
  infty::reset_rows(model, state, batch_of({0, 1}));
  CHECK(state.seen == RowCounts{0, 0});
  Counter none;  // there may be none before the first batch
  infty::reset_rows(model, none, batch_of({0, 1}));
  CHECK(none.seen == RowCounts{0, 0});
  CHECK(none.row_id.id == RowCounts{0, 1});
}

TEST_CASE("reset_rows: a part of a batch draws as its rows do in the whole one") {
  const Counting model;
  TextBatch part = batch_of({0, 1});
  part.first_row = 6;
  Counter state;
  infty::reset_rows(model, state, part);
  CHECK(state.row_id.id == RowCounts{6, 7});
  state.seen = {3, 4};
  part.reset = {1};
  infty::reset_rows(model, state, part);
  CHECK(state.seen == RowCounts{3, 0});
  CHECK(state.row_id.id == RowCounts{6, 7});
}

TEST_CASE("retrieved_tokens: as many for each place, or none") {
  TextBatch batch = batch_of({});
  CHECK(infty::retrieved_tokens(batch).empty());
  batch.retrieved = {1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12};
  const auto found = infty::retrieved_tokens(batch);
  CHECK(found.shape() == Shape{2, 3, 2});
  CHECK(found.to_vector() == batch.retrieved);
  batch.retrieved.pop_back();
  CHECK_THROWS_AS(infty::retrieved_tokens(batch), infty::ShapeError);
}
