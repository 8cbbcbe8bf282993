// SPDX-License-Identifier: MIT
#include <sstream>
#include <string>
#include <vector>

#include <infty/core/random.hpp>
#include <infty/core/tensor.hpp>
#include <infty/eigen/map.hpp>

#include "support/catch.hpp"

TEST_CASE("docs: a tensor wraps memory and lends its own") {
  std::vector<float> mine(12);
  auto x = infty::Tensor<float>::wrap(mine.data(), {3, 4});  // your twelve floats, no copy
  infty::Random random(1);
  fill_normal(x, 0, 1, random);         // seed 1, draws 0 to 11
  const auto row = x.slice(1, 2);       // [1, 4], a view
  const auto flat = x.reshape({12});    // [12], a view
  const float norm = matrix(x).norm();  // an Eigen::Map of the same memory

  CHECK(x.data() == mine.data());
  CHECK(row.data() == mine.data() + 4);
  CHECK(flat.data() == mine.data());
  CHECK(norm == Approx(matrix(flat).norm()));
}

TEST_CASE("docs: an error says the operation, what came and the rule") {
  std::string message;
  const infty::Tensor<float> x({3, 4});
  try {
    x.reshape({5});
  } catch (const infty::ShapeError& error) {
    message = error.what();
  }
  CHECK(message == "[reshape] [3, 4] to [5]: the number of elements must stay");
}
