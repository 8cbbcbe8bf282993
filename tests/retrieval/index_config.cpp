// SPDX-License-Identifier: MIT
#include <infty/retrieval/index_config.hpp>

#include "support/catch.hpp"

using infty::Index;
using infty::IndexConfig;
using infty::IndexKind;

TEST_CASE("IndexConfig: sizes that are not given follow the keys") {
  CHECK(IndexConfig{}.lists_for(1000000) == 4000);
  CHECK(IndexConfig{}.lists_for(3) == 3);
  CHECK(IndexConfig{}.lists_for(0) == 1);
  CHECK(IndexConfig{.lists = 50}.lists_for(1000) == 50);
  CHECK(IndexConfig{}.code_for(64) == 16);
  CHECK(IndexConfig{}.code_for(10) == 2);
  CHECK(IndexConfig{}.code_for(7) == 1);
  CHECK(IndexConfig{}.code_for(1) == 1);
  CHECK(IndexConfig{.code = 5}.code_for(10) == 5);
  CHECK(IndexConfig{}.sample_for(1000000) == 256000);
  CHECK(IndexConfig{}.sample_for(100) == 100);
  CHECK(IndexConfig{.lists = 1000, .sample = 7}.sample_for(1000000) == 1000);
}

TEST_CASE("IndexConfig: the first constant out of its range is named") {
  const auto refused = [](const IndexConfig& config, const char* name) {
    CHECK_THROWS_WITH(config.validate(64), Catch::Contains(std::string(name) + " is "));
  };
  IndexConfig{}.validate(64);
  refused({.lists = -1}, "lists");
  refused({.lists = Index{1} << 40}, "lists");
  refused({.probes = 0}, "probes");
  refused({.code = 3}, "code");
  refused({.code = 128}, "code");
  refused({.sample = -1}, "sample");
  refused({.seed = -1}, "seed");
}

TEST_CASE("IndexConfig: without FAISS the message says what to install") {
  CHECK_THROWS_WITH(
      infty::raise_without_faiss("index", IndexKind::ivfpq),
      Catch::Contains("index ivfpq needs FAISS") && Catch::Contains("apt install libfaiss-dev"));
}
