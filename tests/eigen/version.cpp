// SPDX-License-Identifier: MIT
#include <cstdio>
#include <string>

#include <infty/eigen/version.hpp>

#include "support/catch.hpp"

TEST_CASE("version: Eigen's three numbers are those that its own macro compares") {
  int major = 0, minor = 0, patch = 0;
  REQUIRE(std::sscanf(std::string(infty::eigen_version).c_str(), "%d.%d.%d", &major, &minor,
                      &patch) == 3);
  CHECK(EIGEN_VERSION_AT_LEAST(major, minor, patch));
  CHECK_FALSE(EIGEN_VERSION_AT_LEAST(major, minor, patch + 1));
}

TEST_CASE("version: one number rises with the three") {
  int major = 0, minor = 0, patch = 0;
  REQUIRE(std::sscanf(INFTY_VERSION, "%d.%d.%d", &major, &minor, &patch) == 3);
  CHECK(INFTY_VERSION_NUMBER == major * 10000 + minor * 100 + patch);
  CHECK(infty::version == INFTY_VERSION);
}
