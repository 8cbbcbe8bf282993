// SPDX-License-Identifier: MIT
#include <vector>

#include <infty/memory/engram_hash.hpp>
#include <infty/model/presets/engram.hpp>

#include "support/catch.hpp"

TEST_CASE("presets: Engram's demo is a valid configuration, whose layers share no prime") {
  const std::vector<infty::Index> lookup{0, 1, 2, 3};
  const auto first = infty::engram_hash(infty::presets::engram_demo(lookup)),
             second = infty::engram_hash(infty::presets::engram_demo(lookup, 15));
  CHECK(first.primes.size() == 16);
  CHECK(first.primes.front() == 646403);
  CHECK(second.primes.front() > first.primes.back());
  CHECK(first.rows * 64 / 1000000 == 662);
  CHECK_THROWS_AS(infty::presets::engram_demo(lookup, 2).validate(), infty::ValueError);
}
