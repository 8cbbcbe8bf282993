// SPDX-License-Identifier: MIT
#include <algorithm>
#include <cmath>
#include <cstddef>
#include <set>
#include <vector>

#include <infty/data/k_means.hpp>

#include "support/catch.hpp"

using infty::Index;
using infty::Random;
using Points = std::vector<std::vector<double>>;

namespace k_means {

/// The least sum of squares of all ways to put points into at most k clusters.
double least_squares(const Points& points, std::size_t k) {
  double least = -1;
  std::vector<std::size_t> of(points.size(), 0);
  for (;;) {
    double sum = 0;
    for (std::size_t c = 0; c < k; ++c) {
      std::vector<double> mean(points[0].size(), 0);
      double n = 0;
      for (std::size_t i = 0; i < points.size(); ++i) n += of[i] == c ? 1 : 0;
      for (std::size_t i = 0; i < points.size(); ++i)
        for (std::size_t j = 0; of[i] == c && j < mean.size(); ++j) mean[j] += points[i][j] / n;
      for (std::size_t i = 0; i < points.size(); ++i)
        for (std::size_t j = 0; of[i] == c && j < mean.size(); ++j)
          sum += (points[i][j] - mean[j]) * (points[i][j] - mean[j]);
    }
    if (least < 0 || sum < least) least = sum;
    std::size_t at = 0;
    while (at < of.size() && ++of[at] == k) of[at++] = 0;
    if (at == of.size()) return least;
  }
}

}  // namespace k_means

TEST_CASE("k_means: the best of all ways to cluster a few points") {
  Random random(3);
  for (Index round = 0; round < 20; ++round) {
    Points points;
    for (Index i = 0; i < 7; ++i) points.push_back({random.normal(), random.normal()});
    for (const Index k : {1, 2, 3}) {
      const auto found = infty::k_means(points, k, Random(static_cast<std::uint64_t>(round)), 30);
      CHECK(found.squares ==
            Approx(k_means::least_squares(points, static_cast<std::size_t>(k))).epsilon(1e-12));
      CHECK(found.centres.size() == static_cast<std::size_t>(k));
    }
  }
}

TEST_CASE("k_means: clusters are whole, numbered as they come, and none is empty") {
  Points points;
  for (Index i = 0; i < 30; ++i)
    points.push_back({static_cast<double>(i % 3) * 10, static_cast<double>(i) * .01});
  const auto found = infty::k_means(points, 3, Random(1));
  for (Index i = 0; i < 30; ++i) CHECK(found.of[static_cast<std::size_t>(i)] == i % 3);
  for (std::size_t c = 0; c < 3; ++c) {
    CHECK(found.centres[c][0] == Approx(10. * static_cast<double>(c)).margin(1e-12));
    CHECK(found.centres[c][1] == Approx(.135 + .01 * static_cast<double>(c)));
  }
  // The same ones again, and points of which there are fewer than clusters.
  CHECK(infty::k_means(points, 3, Random(1)).of == found.of);
  const auto same = infty::k_means(Points(5, {1., 2.}), 3, Random(1));
  CHECK(std::set<Index>(same.of.begin(), same.of.end()) == std::set<Index>{0, 1, 2});
  CHECK(same.squares == 0);
  const auto own = infty::k_means({{3}, {1}, {2}}, 3, Random(1));
  CHECK(own.of == std::vector<Index>{0, 1, 2});
  CHECK(own.centres == Points{{3}, {1}, {2}});
}

TEST_CASE("k_means: what cannot be is refused") {
  const Points points{{1, 2}, {3, 4}};
  CHECK_THROWS_WITH(infty::k_means(points, 0, Random(1)), Catch::Contains("k is 0"));
  CHECK_THROWS_WITH(infty::k_means(points, 3, Random(1)), Catch::Contains("k is 3"));
  CHECK_THROWS_WITH(infty::k_means({}, 1, Random(1)), Catch::Contains("k is 1"));
  CHECK_THROWS_WITH(infty::k_means(points, 1, Random(1), 0), Catch::Contains("starts is 0"));
  CHECK_THROWS_WITH(infty::k_means(points, 1, Random(1), 1, 0), Catch::Contains("rounds is 0"));
  CHECK_THROWS_AS(infty::k_means({{1, 2}, {3}}, 1, Random(1)), infty::ShapeError);
  CHECK_THROWS_WITH(infty::k_means({{1}, {std::nan("")}}, 1, Random(1)),
                    Catch::Contains("point 1 has the number nan"));
  CHECK_THROWS_WITH(infty::k_means({{1}, {1e200}}, 2, Random(1)),
                    Catch::Contains("point 1 has the number 1e+200"));
  CHECK(infty::k_means({{1e140}, {-1e140}}, 2, Random(1)).squares == 0);
}
