// SPDX-License-Identifier: MIT
#include <cctype>
#include <cmath>
#include <string>
#include <vector>

#include <infty/data/text_vectors.hpp>

#include "support/catch.hpp"

TEST_CASE("text_vectors: counts of words by how few texts have them, of length 1") {
  const auto all =
      infty::text_vectors({"The mother, of (the) child", "child of", "...", "", "MOTHER"});
  REQUIRE(all.size() == 5);
  // The words as they come: the, mother, of, child.
  const double two = std::log(6. / 3) + 1, one = std::log(6. / 2) + 1;
  const double length = std::sqrt(4 * one * one + 3 * two * two);
  REQUIRE(all[0].size() == 4);
  CHECK(all[0][0] == Approx(2 * one / length).epsilon(1e-12));
  for (std::size_t i = 1; i < 4; ++i) CHECK(all[0][i] == Approx(two / length).epsilon(1e-12));
  CHECK(all[1][2] == Approx(std::sqrt(.5)).epsilon(1e-12));
  CHECK(all[1][3] == all[1][2]);
  CHECK(all[2] == std::vector<double>(4, 0));
  CHECK(all[3] == std::vector<double>(4, 0));
  CHECK(all[4] == std::vector<double>{0, 1, 0, 0});
  CHECK(infty::text_vectors({}).empty());
  // Every mark of ASCII goes from the ends, and none from within.
  std::string marks;
  for (char c = '!'; c <= '~'; ++c)
    if (std::isalnum(static_cast<unsigned char>(c)) == 0) marks += c;
  REQUIRE(marks.size() == 32);
  CHECK(infty::text_vectors({"cat " + marks + "CAT" + marks + " " + marks})[0].size() == 1);
  CHECK(infty::text_vectors({"cat c" + marks + "at"})[0].size() == 2);
}
