// SPDX-License-Identifier: MIT
#include <cmath>
#include <cstdint>
#include <vector>

#include <infty/memory/engram_hash.hpp>

#include "support/catch.hpp"

using infty::EngramConfig;
using infty::Index;

TEST_CASE("NumpyGenerator: draws what NumPy draws") {
  // numpy.random.default_rng(seed).integers(0, (2**63 - 1) // 20 // 2, 5, dtype=numpy.int64)
  constexpr std::uint64_t n = (std::uint64_t{1} << 63U) / 40;
  const auto drawn = [](std::uint64_t seed) {
    infty::detail::NumpyGenerator random(seed);
    std::vector<std::uint64_t> numbers;
    for (int i = 0; i < 5; ++i) numbers.push_back(random.below(n));
    return numbers;
  };
  using Numbers = std::vector<std::uint64_t>;
  CHECK(drawn(0) == Numbers{146873365384713428, 62208580791115645, 9447851373112450,
                            3811013284229069, 187527349566149686});
  CHECK(drawn(5) == Numbers{185621036411486942, 186298462187248518, 118825984239814802,
                            65901311429986727, 12435573306872681});
  CHECK(drawn(1099511627779) == Numbers{178392947529757923, 229629077831095408, 109107629234678721,
                                        14953551483052509, 45114254217085484});
  // Below 3 2^61, a quarter of the draws is thrown away:
  // default_rng(7).integers(0, 3 << 61, 5, dtype=numpy.int64)
  infty::detail::NumpyGenerator random(7);
  for (const std::uint64_t expected :
       {std::uint64_t{6206502512207226871}, std::uint64_t{5365828278596935044},
        std::uint64_t{1557877273993399992}, std::uint64_t{2076408988992585337},
        std::uint64_t{6042831315724521139}})
    CHECK(random.below(std::uint64_t{3} << 61U) == expected);
}

TEST_CASE("engram_hash: primes go round the layers, multipliers are given or drawn") {
  EngramConfig config{.lookup = {0, 1, 2},
                      .pad = 0,
                      .heads = 2,
                      .width = 4,
                      .table_sizes = {4, 8},
                      .layer = 3,
                      .layers = {7, 3, 9}};
  auto hash = infty::engram_hash(config);
  // Layer 7 has 5, 7 and 11, 13; what is left from 4 on, and from 8 on, is layer 3's.
  CHECK(hash.primes == std::vector<Index>{17, 19, 23, 29});
  CHECK(hash.offsets == std::vector<Index>{0, 17, 36, 59});
  CHECK(hash.rows == 88);
  for (const Index m : hash.multipliers) CHECK(m % 2 == 1);
  const auto drawn = hash.multipliers;
  config.multipliers = {1, 3, 5};
  CHECK(infty::engram_hash(config).multipliers == config.multipliers);
  config.multipliers = {};
  config.seed = 1;
  CHECK(infty::engram_hash(config).multipliers != drawn);
  config.layers = {};
  CHECK(infty::engram_hash(config).primes == std::vector<Index>{5, 7, 11, 13});
}

TEST_CASE("EngramConfig: what cannot be is refused by name") {
  using Catch::Matchers::Contains;
  const EngramConfig good{
      .lookup = {0, 1, 1}, .pad = 0, .heads = 2, .width = 4, .table_sizes = {4, 8}};
  good.validate();
  CHECK_THROWS_WITH(EngramConfig{}.validate(), Contains("lookup is empty"));
  CHECK(EngramConfig{}.compressed() == 0);
  const auto refused = [&](auto change, const char* words) {
    EngramConfig config = good;
    change(config);
    CAPTURE(words);
    CHECK_THROWS_WITH(config.validate(), Contains(words));
  };
  refused([](auto& c) { c.lookup[1] = -1; }, "lookup has -1");
  refused([](auto& c) { c.lookup[1] = Index{1} << 24; }, "lookup has 16777216");
  refused([](auto& c) { c.pad = 3; }, "pad is 3");
  refused([](auto& c) { c.max_ngram = 1; }, "max_ngram is 1");
  refused([](auto& c) { c.heads = 0; }, "heads is 0");
  refused([](auto& c) { c.heads = Index{1} << 40; }, "heads is");
  refused([](auto& c) { c.width = 0; }, "width is 0");
  refused([](auto& c) { c.width = 5; }, "heads must divide width");
  refused([](auto& c) { c.table_sizes = {4}; }, "table_sizes has 1 numbers");
  refused([](auto& c) { c.table_sizes[0] = 0; }, "table_sizes has 0");
  refused([](auto& c) { c.table_sizes[0] = Index{1} << 33; }, "table_sizes has");
  refused([](auto& c) { c.layer = -1; }, "layer is -1");
  refused([](auto& c) { c.layer = Index{1} << 60; }, "layer is");
  refused([](auto& c) { c.seed = -1; }, "seed is -1");
  refused([](auto& c) { c.layers = {2, 3}; }, "layers does not have layer");
  refused([](auto& c) { c.multipliers = {1, 3}; }, "multipliers has 2 numbers");
  refused([](auto& c) { c.multipliers = {1, 2, 3}; }, "multipliers has 2");
  refused([](auto& c) { c.multipliers = {1, 3, Index{1} << 62 | 1}; }, "multipliers has");
  refused([](auto& c) { c.kernel = 0; }, "kernel is 0");
  refused([](auto& c) { c.dilation = -1; }, "dilation is -1");
  refused([](auto& c) { c.kernel = c.dilation = Index{1} << 40; }, "kernel");
  refused([](auto& c) { c.branches = 0; }, "branches is 0");
  refused([](auto& c) { c.gate_floor = 0; }, "gate_floor is 0");
  refused([](auto& c) { c.gate_epsilon = -1; }, "gate_epsilon is -1");
  refused([](auto& c) { c.epsilon = std::nan(""); }, "epsilon is");
}
