// SPDX-License-Identifier: MIT
#include <limits>
#include <string>

#include <infty/model/transformer_config.hpp>

#include "support/catch.hpp"

using infty::LongTermConfig;
using infty::TransformerConfig;

TEST_CASE("TransformerConfig: the defaults are valid, and the long-term memory takes its sizes") {
  TransformerConfig config;
  CHECK_NOTHROW(config.validate());
  config.model_dim = 10;
  config.heads = 3;
  config.head_dim = 4;
  config.long_term = LongTermConfig{.model_dim = 99, .heads = 7, .basis = 6, .widths = {.1, .2}};
  const LongTermConfig memory = config.resolved_long_term();
  CHECK(memory.model_dim == 10);
  CHECK(memory.heads == 3);
  CHECK(memory.head_dim == 4);
  CHECK(memory.basis == 6);
}

TEST_CASE("TransformerConfig: vectors leave in groups of the capacity unless said otherwise") {
  TransformerConfig config;
  config.short_term = 12;
  CHECK(config.resolved_stride() == 12);
  config.long_term_stride = 5;
  CHECK(config.resolved_stride() == 5);
  config.long_term.reset();
  CHECK(config.resolved_stride() == 1);
  CHECK(TransformerConfig{.short_term = 0}.resolved_stride() == 1);
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
  CHECK(message([](C& c) { c.short_term = -1; }) ==
        "[TransformerConfig] short_term is -1: it must be at least 0");
  CHECK(message([](C& c) { c.long_term_stride = -1; }) ==
        "[TransformerConfig] long_term_stride is -1: it must be at least 0");
  for (const double wrong : {1.0, -.1, std::numeric_limits<double>::quiet_NaN()})
    CHECK(message([=](C& c) { c.dropout = wrong; }).ends_with(": it must lie in [0, 1)"));
  CHECK(message([](C& c) { c.long_term->tau = 2; }) ==
        "[LongTermConfig] tau is 2: it must lie in (0, 1)");
}
