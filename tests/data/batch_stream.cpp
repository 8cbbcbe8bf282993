// SPDX-License-Identifier: MIT
#include <algorithm>
#include <limits>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include <infty/core/random.hpp>
#include <infty/data/batch_stream.hpp>

#include "support/catch.hpp"

using Catch::Matchers::Contains;
using infty::BatchConfig;
using infty::BatchPosition;
using infty::BatchStream;
using infty::ignore_index;
using infty::Index;
using infty::TextBatch;
using infty::TokenId;
using infty::TokenStream;

namespace {

using Row = std::vector<Index>;

// Tokens 100, 101, ..., so that a token says where it stands.
TokenStream numbered(const std::vector<Index>& documents) {
  TokenStream stream;
  TokenId next = 100;
  for (const Index length : documents) {
    std::vector<TokenId> document;
    for (Index i = 0; i < length; ++i) document.push_back(next++);
    stream.append(document);
  }
  return stream;
}

bool same(const TextBatch& a, const TextBatch& b) {
  return a.batch == b.batch && a.length == b.length && a.inputs == b.inputs &&
         a.targets == b.targets && a.reset == b.reset && a.predicted == b.predicted &&
         a.epoch == b.epoch && a.last == b.last;
}

}  // namespace

TEST_CASE("BatchStream: rows go on from one segment to the next") {
  const auto stream = numbered({11});
  BatchStream batches(stream, {.batch = 2, .segment = 4, .start = 7});
  const auto first = batches.next();
  CHECK(first.inputs == Row{7, 100, 101, 102, 105, 106, 107, 108});
  CHECK(first.targets == Row{100, 101, 102, 103, 106, 107, 108, 109});
  CHECK(first.reset == Row{0, 1});
  CHECK(first.first == Row{0, 6});
  CHECK_FALSE(first.last);
  const auto second = batches.next();
  CHECK(second.first == Row{4, 10});
  CHECK(second.length == 2);
  CHECK(second.inputs == Row{103, 104, 109, 7});
  CHECK(second.targets == Row{104, 105, 110, ignore_index});
  CHECK(second.predicted == 3);
  CHECK(second.reset.empty());
  CHECK(second.last);
  const auto third = batches.next();
  CHECK(third.epoch == 1);
  CHECK(third.targets == first.targets);
  CHECK(third.reset == first.reset);
}

TEST_CASE("BatchStream: a segment of any length reads a row at once") {
  const auto stream = numbered({5});
  BatchStream batches(stream, {.batch = 2, .segment = std::numeric_limits<Index>::max()});
  CHECK(batches.batches_per_epoch() == 1);
  const auto all = batches.next();
  CHECK(all.targets == Row{100, 101, 102, 103, 104, ignore_index});
  CHECK(all.last);
}

TEST_CASE("BatchStream: a document begins a segment and resets its row") {
  const auto stream = numbered({3, 4, 1});
  BatchStream batches(stream, {.batch = 1, .segment = 2, .start = 7, .reset_documents = true});
  std::vector<Row> inputs, targets, reset;
  for (bool last = false; !last;) {
    const auto batch = batches.next();
    inputs.push_back(batch.inputs);
    targets.push_back(batch.targets);
    reset.push_back(batch.reset);
    last = batch.last;
  }
  CHECK(inputs == std::vector<Row>{{7, 100}, {101}, {7, 103}, {104, 105}, {7}});
  CHECK(targets == std::vector<Row>{{100, 101}, {102}, {103, 104}, {105, 106}, {107}});
  CHECK(reset == std::vector<Row>{{0}, {}, {0}, {}, {0}});
}

TEST_CASE("BatchStream: every token is a target once a pass, in order, behind its predecessor") {
  infty::Random random(infty::tests::seed);
  for (int repeat = 0; repeat < 300; ++repeat) {
    std::vector<Index> lengths;
    for (Index i = 0, count = 1 + random.below(6); i < count; ++i)
      lengths.push_back(1 + random.below(30));
    const auto stream = numbered(lengths);
    const auto size = static_cast<Index>(stream.tokens.size());
    const BatchConfig config{.batch = 1 + random.below(std::min<Index>(size, 6)),
                             .segment = 1 + random.below(20),
                             .start = 7,
                             .reset_documents = random.below(2) == 1};
    BatchStream batches(stream, config);
    const Index in_all = batches.batches_per_epoch();
    for (Index epoch = 0; epoch < 2; ++epoch) {
      std::map<Index, Row> targets_of;  // of every row
      std::map<Index, Index> before;    // the row's last target, 0 where it is to be fresh
      Index predicted = 0, count = 0;
      for (bool last = false; !last; ++count) {
        const auto batch = batches.next();
        REQUIRE(batch.epoch == epoch);
        REQUIRE(batch.length <= config.segment);
        REQUIRE(batch.length >= 1);
        for (Index row = 0; row < batch.batch; ++row) {
          const bool fresh =
              std::find(batch.reset.begin(), batch.reset.end(), row) != batch.reset.end();
          for (Index i = 0; i < batch.length; ++i) {
            const auto at = static_cast<std::size_t>(row * batch.length + i);
            const Index input = batch.inputs[at], target = batch.targets[at];
            if (target == ignore_index) continue;
            ++predicted;
            const bool begins = std::find(stream.documents.begin(), stream.documents.end(),
                                          target - 100) != stream.documents.end();
            REQUIRE(input ==
                    (target == 100 || (config.reset_documents && begins) ? 7 : target - 1));
            if (config.reset_documents && begins) {
              REQUIRE(i == 0);
              REQUIRE(fresh);
            }
            if (!fresh || i > 0) REQUIRE(target == before[row] + 1);
            before[row] = target;
            targets_of[row].push_back(target);
          }
        }
        last = batch.last;
      }
      REQUIRE(count == in_all);
      REQUIRE(predicted == size);
      Row all;
      for (const auto& [row, targets] : targets_of) {
        all.insert(all.end(), targets.begin(), targets.end());
        REQUIRE(static_cast<Index>(targets.size()) <= (size + config.batch - 1) / config.batch);
      }
      REQUIRE(std::vector<Index>(stream.tokens.begin(), stream.tokens.end()) == all);
    }
  }
}

TEST_CASE("BatchStream: goes on exactly where another one stood") {
  infty::Random random(infty::tests::seed);
  for (const bool reset : {false, true}) {
    const auto stream = numbered({40, 3, 17, 25});
    const BatchConfig config{.batch = 3, .segment = 6, .reset_documents = reset};
    BatchStream whole(stream, config), resumed(stream, config);
    for (int i = 0; i < 60; ++i) {
      BatchStream other(stream, config);
      other.seek(whole.position());
      REQUIRE(other.position() == whole.position());
      resumed.seek(other.position());
      const auto expected = whole.next();
      REQUIRE(same(resumed.next(), expected));
    }
  }
}

TEST_CASE("BatchStream: refuses what it cannot cut, and places that are none of its") {
  const auto stream = numbered({5});
  CHECK_THROWS_WITH(BatchStream(stream, {.batch = 0}), Contains("batch is 0"));
  CHECK_THROWS_WITH(BatchStream(stream, {.segment = 0}), Contains("segment is 0"));
  CHECK_THROWS_WITH(BatchStream(stream, {.batch = 6}), Contains("5 tokens for 6 rows"));
  CHECK_THROWS_WITH(BatchStream(TokenStream{}, {}), Contains("0 tokens for 1 rows"));
  CHECK_THROWS_WITH(BatchStream(TokenStream{{1, 2}, {1}}, {}), Contains("does not begin at 0"));
  CHECK_THROWS_WITH(BatchStream(TokenStream{{1, 2}, {0, 0}}, {}),
                    Contains("document 1 begins at 0"));
  CHECK_THROWS_WITH(BatchStream(TokenStream{{1, 2}, {0, 2}}, {}),
                    Contains("document 1 begins at 2"));
  BatchStream batches(stream, {.batch = 2, .segment = 2});
  const BatchPosition at = batches.position();
  CHECK_THROWS_AS(batches.seek({-1, {0, 3}}), infty::ValueError);
  CHECK_THROWS_AS(batches.seek({std::numeric_limits<Index>::max(), {0, 3}}), infty::ValueError);
  CHECK_THROWS_AS(batches.seek({0, {0}}), infty::ValueError);
  CHECK_THROWS_WITH(batches.seek({0, {0, 2}}), Contains("row 1 is at 2"));
  CHECK_THROWS_WITH(batches.seek({0, {3, 5}}), Contains("all rows are at their ends"));
  CHECK(batches.position() == at);
}

TEST_CASE("TokenStream: a document without tokens is none") {
  TokenStream stream;
  stream.append(std::vector<TokenId>{});
  stream.append(std::vector<TokenId>{1, 2});
  stream.append(std::vector<TokenId>{});
  stream.append(std::vector<TokenId>{3});
  CHECK(stream.tokens == std::vector<TokenId>{1, 2, 3});
  CHECK(stream.documents == std::vector<Index>{0, 2});
}

TEST_CASE("BatchStream: a segment of any length is all that a row has left") {
  const auto stream = numbered({5});
  constexpr Index most = std::numeric_limits<Index>::max();
  BatchStream whole(stream, {.segment = most}), pieces(stream, {.segment = 2});
  CHECK(whole.next().length == 5);
  pieces.next();
  whole.seek(pieces.position());
  CHECK(whole.next().length == 3);
}

TEST_CASE("BatchStream: rows that are shared out are those of the batch") {
  for (const bool documents : {false, true}) {
    const auto stream = numbered({7, 1, 12, 3, 9, 5});  // 37 tokens
    BatchStream whole(stream, {.batch = 5, .segment = 3, .start = 7, .reset_documents = documents});
    for (int i = 0; i < 12; ++i) {
      CAPTURE(documents, i);
      const BatchPosition before = whole.position();
      std::vector<TextBatch> parts;
      for (const auto& [first, count] : {std::pair<Index, Index>{0, 2}, {2, 1}, {3, 2}})
        parts.push_back(whole.read(first, count));
      CHECK(whole.position() == before);
      const Index predicted = whole.predicted();
      BatchStream skipped = whole;
      skipped.skip();
      const TextBatch batch = whole.next();
      CHECK(skipped.position() == whole.position());
      CHECK(predicted == batch.predicted);
      Index row = 0, targets = 0;
      std::vector<Index> reset, first;
      for (const TextBatch& part : parts) {
        CHECK(part.first_row == row);
        CHECK(part.last == batch.last);
        CHECK(part.epoch == batch.epoch);
        CHECK(part.length <= batch.length);
        first.insert(first.end(), part.first.begin(), part.first.end());
        for (const Index one : part.reset) reset.push_back(row + one);
        for (Index r = 0; r < part.batch; ++r, ++row)
          for (Index k = 0; k < batch.length; ++k) {
            const auto at = static_cast<std::size_t>(row * batch.length + k);
            const auto own = static_cast<std::size_t>(r * part.length + k);
            const bool there = k < part.length;
            CHECK(batch.targets[at] == (there ? part.targets[own] : ignore_index));
            if (there) CHECK(batch.inputs[at] == part.inputs[own]);
          }
        targets += part.predicted;
      }
      CHECK(row == 5);
      CHECK(targets == predicted);
      CHECK(reset == batch.reset);
      CHECK(first == batch.first);
    }
  }
  const auto stream = numbered({5});
  const BatchStream batches(stream, {.batch = 2, .segment = 2});
  CHECK_THROWS_AS(batches.read(1, 2), infty::ValueError);
  CHECK_THROWS_AS(batches.read(-1, 1), infty::ValueError);
  CHECK_THROWS_AS(batches.read(0, 0), infty::ValueError);
}
