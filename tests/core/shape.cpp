// SPDX-License-Identifier: MIT
#include <sstream>
#include <vector>

#include <infty/core/shape.hpp>

#include "support/catch.hpp"

using infty::Index;
using infty::Shape;
using infty::ShapeError;

TEST_CASE("Shape: rank, extents and size") {
  const Shape shape{2, 3, 4};
  CHECK(shape.rank() == 3);
  CHECK(shape.size() == 24);
  CHECK(shape[0] == 2);
  CHECK(shape[2] == 4);
  CHECK(shape[-1] == 4);
  CHECK(shape[-3] == 2);
  CHECK(std::vector<Index>(shape.begin(), shape.end()) == std::vector<Index>{2, 3, 4});
}

TEST_CASE("Shape: a scalar has no extents and one element") {
  CHECK(Shape{}.rank() == 0);
  CHECK(Shape{}.size() == 1);
  CHECK_THROWS_WITH(Shape{}[0], "[Shape] dimension 0 of []");
}

TEST_CASE("Shape: an extent of zero makes it empty") {
  CHECK(Shape{0}.size() == 0);
  CHECK(Shape{3, 0, 5}.size() == 0);
}

TEST_CASE("Shape: products of some extents") {
  const Shape shape{2, 3, 4, 5};
  CHECK(shape.size(0, 4) == 120);
  CHECK(shape.size(1, 3) == 12);
  CHECK(shape.size(2, 2) == 1);
  CHECK(shape.size(-2, 4) == 20);
  CHECK(shape.size(-4, 2) == 6);
  CHECK(shape.size(-1, 2) == 1);
  CHECK_THROWS_AS(shape.size(-5, 1), ShapeError);
  CHECK_THROWS_AS(shape.size(0, 5), ShapeError);
}

TEST_CASE("Shape: equal means equal rank and extents") {
  CHECK(Shape{2, 3} == Shape{2, 3});
  CHECK_FALSE(Shape{2, 3} == Shape{3, 2});
  CHECK_FALSE(Shape{2, 3} == Shape{2, 3, 1});
  CHECK_FALSE(Shape{} == Shape{1});
}

TEST_CASE("Shape: prints as in Python") {
  const auto text = [](const Shape& shape) { return (std::ostringstream() << shape).str(); };
  CHECK(text(Shape{2, 16, 12}) == "[2, 16, 12]");
  CHECK(text(Shape{7}) == "[7]");
  CHECK(text(Shape{}) == "[]");
}

TEST_CASE("Shape: from a range of any integers") {
  const std::vector<int> extents{4, 5};
  CHECK(Shape(extents.begin(), extents.end()) == Shape{4, 5});
}

TEST_CASE("Shape: with replaces one extent of a copy") {
  const Shape shape{2, 3};
  CHECK(shape.with(0, 7) == Shape{7, 3});
  CHECK(shape.with(-1, 0) == Shape{2, 0});
  CHECK(shape == Shape{2, 3});
  CHECK_THROWS_WITH(shape.with(2, 1), "[Shape] dimension 2 of [2, 3]");
  CHECK_THROWS_WITH(shape.with(0, -1), "[Shape] extent -1 is negative");
  CHECK_THROWS_WITH(shape.with(0, Index{1} << 62), "[Shape] more than 2^62 elements");
}

TEST_CASE("Shape: refuses what is out of range") {
  CHECK_THROWS_WITH((Shape{2, -3}), "[Shape] extent -3 is negative");
  CHECK_THROWS_WITH((Shape{1, 1, 1, 1, 1, 1, 1}), "[Shape] more than 6 dimensions");
  CHECK_THROWS_WITH((Shape{Index{1} << 40, Index{1} << 40}), "[Shape] more than 2^62 elements");
  CHECK_THROWS_WITH((Shape{2, 3}[2]), "[Shape] dimension 2 of [2, 3]");
  CHECK_THROWS_WITH((Shape{2, 3}[-3]), "[Shape] dimension -3 of [2, 3]");
  CHECK((Shape{Index{1} << 31, Index{1} << 31}.size()) == Index{1} << 62);
}
