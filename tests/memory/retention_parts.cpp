// SPDX-License-Identifier: MIT
#include <cmath>

#include <infty/memory/retention.hpp>

#include "support/catch.hpp"

namespace retention_parts {

using infty::Shape;
using infty::Tensor;

TEST_CASE("kept_by_parts: two sights of a vector, with noise of their own or the same") {
  // x0 + 2 x1 and 3 x0 + x2: shares 1/5 and 9/10 by themselves, 1 - 1 / (1 + 1/4 + 9) of both.
  const auto apart = Tensor<double>::from(Shape{2, 3}, {1, 2, 0, 3, 0, 1});
  CHECK(infty::kept_by_map(apart, 1e-7)[0] == Approx(infty::kept_by_parts({.2, .9})).epsilon(1e-9));
  CHECK(infty::kept_by_parts({.2, .9}) == Approx(1 - 1 / 10.25));
  // The same sight twice is worth no more than once.
  const auto twice = Tensor<double>::from(Shape{2, 3}, {1, 2, 0, 1, 2, 0});
  CHECK(infty::kept_by_map(twice, 1e-4)[0] == Approx(.2).epsilon(1e-3));
  CHECK(infty::kept_by_parts({.2, .2}) > .3);
  // And sights that differ in nothing but the vector give it back whole.
  const auto shared = Tensor<double>::from(Shape{2, 3}, {1, 2, 0, 3, 2, 0});
  CHECK(infty::kept_by_map(shared, 1e-7)[0] == Approx(1).epsilon(1e-6));
  CHECK(infty::kept_by_parts({.2, 9. / 13}) < .8);
  CHECK(infty::kept_by_parts({.3}) == Approx(.3));
  CHECK(infty::kept_by_parts({.3, 0, 0}) == Approx(.3));
  CHECK(infty::kept_by_parts({.3, 1}) == 1);
  CHECK(infty::kept_by_parts({}) == 0);
  for (const double wrong : {-.1, 1.1, std::nan("")})
    CHECK_THROWS_WITH(infty::kept_by_parts({.5, wrong}),
                      Catch::Contains("[kept_by_parts] a share"));
}

}  // namespace retention_parts
