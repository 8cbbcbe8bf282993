// SPDX-License-Identifier: MIT
#include <limits>
#include <string>

#include <infty/core/config.hpp>
#include <infty/memory/long_term_config.hpp>

#include "support/catch.hpp"

using infty::Index;
using infty::LongTermConfig;

namespace long_term_config_tests {

using C = LongTermConfig;

/// What is said of a configuration that was changed.
template <class Change>
std::string message(Change change) {
  LongTermConfig config;
  change(config);
  try {
    config.validate();
  } catch (const infty::ValueError& error) {
    return error.what();
  }
  return "valid";
}

}  // namespace long_term_config_tests

using namespace long_term_config_tests;

TEST_CASE("LongTermConfig: the defaults are valid and say what the paper says") {
  const LongTermConfig config;
  CHECK_NOTHROW(config.validate());
  CHECK(config.resolved_head_dim() == 50);
  CHECK(LongTermConfig{.model_dim = 7, .heads = 2, .head_dim = 5}.resolved_head_dim() == 5);
}

TEST_CASE("LongTermConfig: the first constant out of its range is named") {
  constexpr double nan = std::numeric_limits<double>::quiet_NaN();
  CHECK(message([](C& c) { c.model_dim = 0; }) ==
        "[LongTermConfig] model_dim is 0: it must be at least 1");
  CHECK(message([](C& c) { c.heads = 0; }) == "[LongTermConfig] heads is 0: it must be at least 1");
  CHECK(message([](C& c) { c.heads = 7; }) ==
        "[LongTermConfig] model_dim is 300, heads is 7: head_dim must be given where heads does "
        "not divide model_dim");
  CHECK(message([](C& c) { c.head_dim = -1; }) ==
        "[LongTermConfig] head_dim is -1: it must be at least 0");
  CHECK(message([](C& c) { c.basis = 0; }) == "[LongTermConfig] basis is 0: it must be at least 1");
  CHECK(message([](C& c) { c.samples = 0; }) ==
        "[LongTermConfig] samples is 0: it must be at least 1");
  CHECK(message([](C& c) { c.bins = 0; }) == "[LongTermConfig] bins is 0: it must be at least 1");
  CHECK(message([](C& c) { c.threshold = -1; }) ==
        "[LongTermConfig] threshold is -1: it must be at least 0");
  for (const double tau : {0.0, 1.0, -.5, nan})
    CHECK(message([tau](C& c) { c.tau = tau; }).ends_with(": it must lie in (0, 1)"));
  for (const double wrong : {0.0, -1.0, nan, std::numeric_limits<double>::infinity()}) {
    CHECK(message([=](C& c) { c.ridge = wrong; }).ends_with(": it must be positive and finite"));
    CHECK(message([=](C& c) { c.sigma0 = wrong; }).starts_with("[LongTermConfig] sigma0 is "));
    CHECK(message([=](C& c) {
            c.variance_floor = wrong;
          }).starts_with("[LongTermConfig] variance_floor is "));
  }
}

TEST_CASE("LongTermConfig: constants that float has no divergence for are refused by name") {
  CHECK(message([](C& c) { c.sigma0 = 1e-30; }) ==
        "[LongTermConfig] sigma0 is 1e-30: it must lie in [0.0001, 10000]");
  CHECK(message([](C& c) { c.sigma0 = 1e300; }).starts_with("[LongTermConfig] sigma0 is 1e+300"));
  CHECK(message([](C& c) { c.mu0 = 1e300; }).starts_with("[LongTermConfig] mu0 is 1e+300"));
  CHECK(message([](C& c) { c.mu0 = -1e5; }).starts_with("[LongTermConfig] mu0 is -100000"));
  for (const double wrong : {1e-31, 1e39, 1e300})
    CHECK(message([=](C& c) {
            c.variance_floor = wrong;
          }).starts_with("[LongTermConfig] variance_floor is "));
  CHECK(message([](C& c) { c.sigma0 = 1e-4, c.variance_floor = 1e30, c.mu0 = 1e4; }) == "valid");
}

TEST_CASE("LongTermConfig: sizes whose products overflow are refused by name") {
  const auto refused = [](LongTermConfig config, const char* text) {
    CHECK_THROWS_WITH(config.validate(), Catch::Contains(text));
  };
  for (const Index huge : {Index{3037000500}, Index{1} << 62, std::numeric_limits<Index>::max()}) {
    refused({.model_dim = huge, .heads = 1}, "[LongTermConfig] model_dim is ");
    refused({.basis = huge}, "[LongTermConfig] basis is ");
  }
  for (const Index huge : {Index{1} << 62, std::numeric_limits<Index>::max()}) {
    refused({.heads = huge, .head_dim = 2}, "[LongTermConfig] heads is ");
    refused({.head_dim = huge}, "[LongTermConfig] head_dim is ");
    refused({.samples = huge}, "[LongTermConfig] samples is ");
    refused({.bins = huge}, "[LongTermConfig] bins is ");
  }
}
