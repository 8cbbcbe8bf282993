// SPDX-License-Identifier: MIT
#include <limits>
#include <string>

#include <infty/model/transformer_config.hpp>

#include "support/catch.hpp"

using infty::TransformerConfig;

TEST_CASE("TransformerConfig: the defaults are valid, and attention takes its sizes from them") {
  TransformerConfig config;
  CHECK_NOTHROW(config.validate());
  CHECK(config.attention_sizes().head_dim == 50);
  config.model_dim = 10;
  config.heads = 3;
  config.head_dim = 4;
  const infty::AttentionSizes sizes = config.attention_sizes();
  CHECK(sizes.model_dim == 10);
  CHECK(sizes.heads == 3);
  CHECK(sizes.head_dim == 4);
  CHECK(sizes.inner() == 12);
}

TEST_CASE("TransformerConfig: the first constant out of its range is named") {
  const auto message = [](auto change) {
    TransformerConfig config;
    change(config);
    try {
      config.validate();
    } catch (const infty::ValueError& error) {
      return std::string(error.what());
    }
    return std::string("valid");
  };
  using C = TransformerConfig;
  CHECK(message([](C& c) { c.vocabulary = 0; }) ==
        "[TransformerConfig] vocabulary is 0: it must be at least 1");
  CHECK(message([](C& c) { c.model_dim = 5; }) ==
        "[TransformerConfig] model_dim is 5: it must be even, for the encoding of distances");
  CHECK(message([](C& c) { c.layers = 0; }) ==
        "[TransformerConfig] layers is 0: it must be at least 1");
  CHECK(message([](C& c) { c.heads = 7; }) ==
        "[TransformerConfig] model_dim is 300, heads is 7: head_dim must be given where heads does "
        "not divide model_dim");
  CHECK(message([](C& c) { c.feed_forward = 0; }) ==
        "[TransformerConfig] feed_forward is 0: it must be at least 1");
  CHECK(message([](C& c) { c.cutoffs = {21}; }) ==
        "[AdaptiveConfig] cluster 1 is [21, 21): cutoffs must rise and lie in [1, 21)");
  for (const double wrong : {1.0, -.1, std::numeric_limits<double>::quiet_NaN()})
    CHECK(message([=](C& c) { c.dropout = wrong; }).ends_with(": it must lie in [0, 1)"));
}

TEST_CASE("TransformerConfig: sizes whose products overflow are refused by name") {
  const auto refused = [](TransformerConfig config, const char* name) {
    CHECK_THROWS_WITH(config.validate(), Catch::Contains(std::string("] ") + name + " is "));
  };
  for (const infty::Index huge :
       {infty::Index{3037000500}, infty::Index{1} << 62, infty::Index{1} << 61}) {
    refused({.model_dim = huge, .heads = 1}, "model_dim");
    refused({.model_dim = 100000000, .heads = 1, .feed_forward = huge}, "feed_forward");
    refused({.model_dim = 100000000, .heads = 1, .head_dim = huge}, "head_dim");
  }
  constexpr infty::Index most = std::numeric_limits<infty::Index>::max();
  refused({.layers = most}, "layers");
  refused({.heads = most, .head_dim = most}, "heads");
  refused({.vocabulary = most}, "vocabulary");
  refused({.embedding_dim = most}, "embedding_dim");
}
