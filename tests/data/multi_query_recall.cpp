// SPDX-License-Identifier: MIT
#include <cmath>
#include <cstdint>
#include <filesystem>
#include <span>
#include <string>
#include <vector>

#include <infty/data/multi_query_recall.hpp>

#include "support/catch.hpp"
#include "support/golden_mqar.hpp"

using infty::Index;
using infty::MultiQueryRecallConfig;
using infty::MultiQueryRecallTask;
using infty::Random;

TEST_CASE("MultiQueryRecallTask: the examples of the authors' program keep to the rules") {
  for (const char* name : {"zeros", "random"}) {
    infty::tests::GoldenCase file(std::filesystem::path(INFTY_TEST_DATA) / "golden" /
                                  (std::string("mqar_example_") + name + ".safetensors"));
    CHECK(infty::tests::replay_mqar(file).worst == 0);
  }
}

TEST_CASE("MultiQueryRecallTask: examples of all sizes keep to the rules") {
  Random sizes(infty::tests::seed);
  for (int round = 0; round < 60; ++round) {
    MultiQueryRecallConfig config{.pairs = 1 + sizes.below(20),
                                  .power = sizes.uniform(),
                                  .random_non_queries = round % 2 == 1};
    config.length = 4 * config.pairs + sizes.below(30);
    config.vocabulary = 2 * (config.pairs + 1 + sizes.below(30));
    const MultiQueryRecallTask task(config);
    Random random(static_cast<std::uint64_t>(round));
    const auto batch = task.sample(5, random);
    const auto length = static_cast<std::size_t>(config.length);
    REQUIRE(batch.inputs.size() == 5 * length);
    for (std::size_t row = 0; row < batch.inputs.size(); row += length) {
      const auto given = std::span(batch.labels).subspan(row, length);
      const auto right =
          infty::tests::labels_of(config, std::span(batch.inputs).subspan(row, length), given,
                                  [](const char* what) { FAIL(what); });
      CHECK(std::vector<std::int64_t>(given.begin(), given.end()) == right);
    }
    Random again(static_cast<std::uint64_t>(round));
    task.sample(2, again);
    const auto tail = task.sample(3, again);  // row b depends on draw b alone
    CHECK(std::vector<std::int64_t>(batch.inputs.begin() + static_cast<std::ptrdiff_t>(2 * length),
                                    batch.inputs.end()) == tail.inputs);
  }
}

TEST_CASE("MultiQueryRecallTask: slots are asked by the power law, one pair's exactly") {
  const MultiQueryRecallTask task({.vocabulary = 8, .length = 10, .pairs = 1, .power = .01});
  constexpr Index count = 20000;
  Random random(infty::tests::seed);
  const auto batch = task.sample(count, random);
  double weights = 0, asked[4] = {};
  for (Index j = 0; j < 4; ++j) weights += std::pow(static_cast<double>(j + 1), -.99);
  for (std::size_t i = 0; i < batch.labels.size(); ++i)
    if (batch.labels[i] != MultiQueryRecallTask::ignored) ++asked[(i % 10 - 2) / 2];
  for (Index j = 0; j < 4; ++j) {
    const double p = std::pow(static_cast<double>(j + 1), -.99) / weights;
    CHECK(std::abs(asked[j] / count - p) < 5 * std::sqrt(p * (1 - p) / count));
  }
}

TEST_CASE("MultiQueryRecallConfig: what cannot be is refused") {
  const auto refused = [](const MultiQueryRecallConfig& config, const char* why) {
    CHECK_THROWS_WITH(MultiQueryRecallTask(config),
                      Catch::Contains(std::string("[MultiQueryRecallConfig] ") + why));
  };
  refused({.pairs = 0}, "pairs is 0");
  refused({.length = 15, .pairs = 4}, "length is 15: it must be at least 4 pairs, 4 of them");
  refused({.vocabulary = 8, .pairs = 4}, "vocabulary is 8: it must be even, and its half larger");
  refused({.vocabulary = 11, .pairs = 4}, "vocabulary is 11");
  refused({.power = std::nan("")}, "power is nan");
  refused({.power = 400}, "power is 400: the last slot weighs 10^");
  refused({.power = -1e300}, "power is -1e+300");
  for (const double power : {-190., 190.}) {  // all slots are asked, in any order
    Random draws(1);
    CHECK_NOTHROW(
        MultiQueryRecallTask({.length = 64, .pairs = 16, .power = power}).sample(9, draws));
  }
  refused({.length = Index{1} << 62}, "length is 4611686018427387904");
  Random random(1);
  CHECK(MultiQueryRecallTask({}).sample(0, random).inputs.empty());
  CHECK_THROWS_AS(MultiQueryRecallTask({}).sample(-1, random), infty::ValueError);
}
