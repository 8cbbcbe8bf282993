// SPDX-License-Identifier: MIT
#include <algorithm>
#include <cstdlib>
#include <limits>
#include <vector>

#include <infty/parallel/shard_tree.hpp>

#include "support/catch.hpp"

using infty::Index;
using infty::nodes_of;
using infty::ShardRange;
using infty::shards_of;

namespace shard_tree_tests {

TEST_CASE("shards_of: by hand") {
  CHECK(shards_of(8, 4, 1) == ShardRange{2, 4});
  CHECK(shards_of(6, 4, 1) == ShardRange{2, 3});  // ((0 1) 2) ((3 4) 5)
  CHECK(shards_of(6, 4, 2) == ShardRange{3, 5});
  CHECK(shards_of(7, 3, 1) == ShardRange{2, 4});
}

TEST_CASE("shards_of: every shard is of one rank, no rank has two more than another") {
  for (int ranks = 1; ranks <= 16; ++ranks)
    for (Index shards = ranks; shards <= 40; ++shards) {
      CAPTURE(ranks, shards);
      Index next = 0, least = shards, most = 0;
      for (int rank = 0; rank < ranks; ++rank) {
        const ShardRange own = shards_of(shards, ranks, rank);
        CHECK(own.first == next);
        next = own.last;
        least = std::min(least, own.count());
        most = std::max(most, own.count());
        const auto nodes = nodes_of(shards, own);
        if ((ranks & (ranks - 1)) == 0) CHECK(nodes.size() == 1);
        Index at = own.first;
        for (const ShardRange& node : nodes) {
          CHECK(node.first == at);
          at = node.last;
        }
        CHECK(at == own.last);
      }
      CHECK(next == shards);
      CHECK(least >= 1);
      CHECK(most - least <= 1);
    }
}

TEST_CASE("shards_of: of as many as an Index counts") {
  for (const Index shards : {Index{1} << 62, std::numeric_limits<Index>::max()})
    for (const int ranks : {1, 2, 3, 64, 1000}) {
      Index next = 0;
      for (int rank = 0; rank < ranks; ++rank) {
        const ShardRange own = shards_of(shards, ranks, rank);
        CHECK(own.first == next);
        CHECK(std::abs(own.count() - shards / ranks) <= 1);
        next = own.last;
      }
      CHECK(next == shards);
    }
}

TEST_CASE("nodes_of: the largest ones, by hand") {
  CHECK(nodes_of(8, {0, 8}) == std::vector<ShardRange>{{0, 8}});
  CHECK(nodes_of(8, {1, 7}) == std::vector<ShardRange>{{1, 2}, {2, 4}, {4, 6}, {6, 7}});
  CHECK(nodes_of(5, {2, 5}) == std::vector<ShardRange>{{2, 3}, {3, 5}});  // ((0 1) 2) (3 4)
}

TEST_CASE("shards_of: refuses ranks without a shard, and ranks that there are not") {
  CHECK_THROWS_AS(shards_of(3, 4, 0), infty::ValueError);
  CHECK_THROWS_AS(shards_of(3, 0, 0), infty::ValueError);
  CHECK_THROWS_AS(shards_of(3, 2, 2), infty::ValueError);
  CHECK_THROWS_AS(shards_of(3, 2, -1), infty::ValueError);
}

}  // namespace shard_tree_tests
