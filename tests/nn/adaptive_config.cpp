// SPDX-License-Identifier: MIT
#include <limits>
#include <vector>

#include <infty/nn/adaptive_config.hpp>

#include "support/catch.hpp"

using infty::AdaptiveConfig;
using infty::Index;

TEST_CASE("AdaptiveConfig: clusters and their widths") {
  const AdaptiveConfig config{
      .vocabulary = 60, .model_dim = 16, .cutoffs = {20, 45}, .div_value = 3};
  config.validate();
  CHECK(config.clusters() == 3);
  CHECK(std::vector{config.begin(0), config.begin(1), config.begin(2)} ==
        std::vector<Index>{0, 20, 45});
  CHECK(std::vector{config.size(0), config.size(1), config.size(2)} ==
        std::vector<Index>{20, 25, 15});
  CHECK(std::vector{config.width(0), config.width(1), config.width(2)} ==
        std::vector<Index>{16, 5, 1});
  CHECK(config.projected());
  const auto bounds = config.bounds();
  for (Index token = -2; token < 62; ++token) {
    Index expected = -1;
    for (Index i = 0; i < config.clusters(); ++i)
      if (token >= config.begin(i) && token < config.end(i)) expected = i;
    CHECK(bounds.cluster_of(token) == expected);
  }
}

TEST_CASE("AdaptiveConfig: without cutoffs one cluster, projected only to another width") {
  AdaptiveConfig config{.vocabulary = 7, .model_dim = 4};
  CHECK(config.clusters() == 1);
  CHECK(config.size(0) == 7);
  CHECK(config.projected() == false);
  config.embedding_dim = 3;
  CHECK(config.width(0) == 3);
  CHECK(config.projected());
}

TEST_CASE("AdaptiveConfig: what cannot be is refused") {
  AdaptiveConfig config{.vocabulary = 10, .model_dim = 8, .cutoffs = {4, 4}};
  CHECK_THROWS_WITH(config.validate(),
                    "[AdaptiveConfig] cluster 1 is [4, 4): cutoffs must rise and lie in [1, 10)");
  config.cutoffs = {0};
  CHECK_THROWS_AS(config.validate(), infty::ValueError);
  config.cutoffs = {4, 10};
  CHECK_THROWS_AS(config.validate(), infty::ValueError);
  config.cutoffs = {3, 6};
  config.div_value = 4;
  CHECK_THROWS_WITH(config.validate(),
                    "[AdaptiveConfig] div_value is 4: no width is left for cluster 2");
  config.div_value = 0;
  CHECK_THROWS_AS(config.validate(), infty::ValueError);
  config = {.vocabulary = 10, .model_dim = 8, .deviation = -1};
  CHECK_THROWS_WITH(config.validate(),
                    "[AdaptiveConfig] deviation is -1: it must lie in [0, 1e+30]");
  config.deviation = std::numeric_limits<double>::quiet_NaN();
  CHECK_THROWS_AS(config.validate(), infty::ValueError);
  config = {.vocabulary = 100, .model_dim = 8};
  for (Index i = 1; i <= 16; ++i) config.cutoffs.push_back(i);
  CHECK_THROWS_WITH(config.validate(), "[AdaptiveConfig] there are 16 cutoffs: there may be 15");
}

TEST_CASE("AdaptiveConfig: cutoffs and sizes at the ends of their type are refused") {
  constexpr Index least = std::numeric_limits<Index>::min(),
                  most = std::numeric_limits<Index>::max();
  for (const std::vector<Index>& cutoffs :
       {std::vector<Index>{least}, {1, least}, {most}, {1, most}, {most, least}}) {
    const AdaptiveConfig config{.vocabulary = 10, .model_dim = 8, .cutoffs = cutoffs};
    CHECK_THROWS_WITH(config.validate(), Catch::Contains("cutoffs must rise and lie in [1, 10)"));
  }
  CHECK_THROWS_WITH((AdaptiveConfig{.vocabulary = most, .model_dim = most}.validate()),
                    Catch::Contains("[AdaptiveConfig] vocabulary is 9223372036854775807: it must"));
  CHECK_THROWS_WITH(
      (AdaptiveConfig{.vocabulary = Index{1} << 40, .model_dim = Index{1} << 30}.validate()),
      "[AdaptiveConfig] vocabulary is 1099511627776: with model_dim = 1073741824 "
      "there would be more than 72057594037927936 numbers");
  CHECK_NOTHROW(
      (AdaptiveConfig{.vocabulary = Index{1} << 28, .model_dim = Index{1} << 28}.validate()));
}
