// SPDX-License-Identifier: MIT
#include <algorithm>
#include <cstddef>
#include <limits>
#include <vector>

#include <infty/core/random.hpp>
#include <infty/eigen/register_tile.hpp>
#include <infty/eigen/stairs.hpp>
#include <infty/eigen/tile_factors.hpp>

#include "support/catch.hpp"

using infty::Index;
using infty::Random;
using infty::detail::IndexRange;
using infty::detail::padded;
using infty::detail::product_in_cache;
using infty::detail::RoundedFactors;
using infty::detail::Simd;
using infty::detail::Stairs;
using infty::detail::TileView;

namespace stairs_tests {

/// A matrix with room behind its rows, as panels have.
template <class T>
struct Matrix {
  Index rows, columns, stride;
  std::vector<T> data;

  Matrix(Index m, Index n)
      : rows(m),
        columns(n),
        stride(padded<T>(n) + Simd<T>::width),
        data(static_cast<std::size_t>(m * stride)) {}
  T& at(Index i, Index j) { return data[static_cast<std::size_t>(i * stride + j)]; }
  T at(Index i, Index j) const { return data[static_cast<std::size_t>(i * stride + j)]; }
};

template <class T>
Matrix<T> drawn(Index m, Index n, Random& random) {
  Matrix<T> x(m, n);
  for (Index i = 0; i < m; ++i)
    for (Index j = 0; j < n; ++j) x.at(i, j) = static_cast<T>(2 * random.uniform() - 1);
  return x;
}

/// One of 0, ..., n - 1.
Index drawn_whole(Index n, Random& random) {
  return static_cast<Index>(random.uniform() * static_cast<double>(n));
}

template <class T>
Matrix<T> turned(const Matrix<T>& x) {
  Matrix<T> y(x.columns, x.rows);
  for (Index i = 0; i < x.rows; ++i)
    for (Index j = 0; j < x.columns; ++j) y.at(j, i) = x.at(i, j);
  return y;
}

/// Whether element (i, j) counts, by the definition.
bool counts(Stairs s, Index i, Index j) { return j >= s.left - i && j < s.right + i; }

/// x with zeros where nothing counts.
template <class T>
Matrix<T> triangle(Matrix<T> x, Stairs s) {
  for (Index i = 0; i < x.rows; ++i)
    for (Index j = 0; j < x.columns; ++j)
      if (!counts(s, i, j)) x.at(i, j) = 0;
  return x;
}

/// C = start + A B; A's rows or, if `along` is false, its columns lie along memory.
template <class T, class Part>
Matrix<T> product(const Matrix<T>& a, const Matrix<T>& b, bool along, Matrix<T> c,
                  const Part& part) {
  const auto left = along ? a : turned(a);
  const TileView<T> view{left.data.data(), along ? left.stride : 1, along ? 1 : left.stride};
  product_in_cache(a.rows, b.columns, a.columns, view, b.data.data(), b.stride, true, c.data.data(),
                   c.stride, part);
  return c;
}

template <class T>
bool same(const Matrix<T>& x, const Matrix<T>& y) {
  for (Index i = 0; i < x.rows; ++i)
    for (Index j = 0; j < x.columns; ++j)
      if (!(x.at(i, j) == y.at(i, j))) return false;
  return true;
}

Stairs drawn_stairs(Index m, Index n, Random& random) {
  Stairs s;
  const auto any = [&](Index most) { return drawn_whole(2 * most, random) - most; };
  if (random.uniform() < .7) s.right = any(m + n);
  if (random.uniform() < .5) s.left = any(m + n);
  return s;
}

}  // namespace stairs_tests

using namespace stairs_tests;

TEST_CASE("Stairs: rows and columns are those of the definition") {
  Random random(infty::tests::seed);
  for (int trial = 0; trial < 400; ++trial) {
    const Index m = 1 + trial % 17, n = 1 + trial % 23;
    const Stairs s = drawn_stairs(m, n, random);
    CAPTURE(m, n, s.left, s.right);
    for (Index begin = 0; begin < n; ++begin)
      for (Index end = begin + 1; end <= n; ++end) {
        const IndexRange rows = s.rows({begin, end}, m);
        for (Index i = 0; i < m; ++i)
          for (Index j = begin; j < end; ++j)
            if (counts(s, i, j)) REQUIRE((rows.begin <= i && i < rows.end));
        // No row too many: the first one has some of the columns, but where these are none.
        if (s.left - rows.begin < s.right + rows.begin && rows.begin > 0 && rows.begin < m)
          REQUIRE((s.left - rows.begin < end && s.right + rows.begin > begin));
      }
    for (Index end = 1; end <= m; ++end) {
      const IndexRange columns = s.columns(end, n);
      REQUIRE((0 <= columns.begin && columns.begin <= columns.end && columns.end <= n));
      for (Index i = 0; i < end; ++i)
        for (Index j = 0; j < n; ++j)
          if (counts(s, i, j)) REQUIRE((columns.begin <= j && j < columns.end));
    }
  }
}

TEMPLATE_TEST_CASE("product_in_cache: by stairs it is the same to the bit", "", float, double) {
  using T = TestType;
  Random random(infty::tests::seed);
  for (int trial = 0; trial < 60; ++trial) {
    const auto size = [&] { return 1 + drawn_whole(90, random); };
    const Index m = size(), n = size(), k = size();
    const bool along = trial % 2 == 0;
    const auto start = drawn<T>(m, n, random);
    const infty::detail::WholeProduct whole;
    CAPTURE(trial, m, n, k, along);
    {
      const Stairs s = drawn_stairs(m, n, random);
      const auto a = drawn<T>(m, k, random), b = drawn<T>(k, n, random);
      const auto all = product(a, b, along, start, whole),
                 some = product(a, b, along, start, infty::detail::StairsOfResult(s));
      CHECK(same(triangle(some, s), triangle(all, s)));
    }
    {
      const Stairs s = drawn_stairs(n, m, random);
      const auto a = drawn<T>(m, k, random), b = drawn<T>(k, n, random);
      const auto all = product(a, b, along, start, whole),
                 some = product(a, b, along, start, infty::detail::StairsOfTurnedResult(s));
      CHECK(same(triangle(turned(some), s), triangle(turned(all), s)));
    }
    {
      const Stairs s = drawn_stairs(k, n, random);
      const auto a = drawn<T>(m, k, random), b = triangle(drawn<T>(k, n, random), s);
      CHECK(same(product(a, b, along, start, infty::detail::StairsOnTheRight(s)),
                 product(a, b, along, start, whole)));
    }
    {
      const Stairs s = drawn_stairs(m, k, random);
      const auto a = triangle(drawn<T>(m, k, random), s), b = drawn<T>(k, n, random);
      CHECK(same(product(a, b, along, start, infty::detail::StairsOnTheLeft(s)),
                 product(a, b, along, start, whole)));
    }
    {
      const Stairs s = drawn_stairs(k, m, random);
      const auto a = turned(triangle(drawn<T>(k, m, random), s)), b = drawn<T>(k, n, random);
      CHECK(same(product(a, b, along, start, infty::detail::TurnedStairsOnTheLeft(s)),
                 product(a, b, along, start, whole)));
    }
  }
}

TEST_CASE("product_in_cache: nothing that does not count is touched, and no factor of it read") {
  // A tile's rows begin where its columns first count; all of them count within a strip.
  Random random(infty::tests::seed);
  const Index m = 64, n = 128, k = 50;
  const Stairs s{.right = 64};
  const auto a = drawn<float>(m, k, random), b = drawn<float>(k, n, random);
  Matrix<float> start(m, n);
  std::fill(start.data.begin(), start.data.end(), 7.f);
  const auto c = product(a, b, true, start, infty::detail::StairsOfResult(s));
  CHECK(c.at(0, n - 1) == 7.f);  // query 0 is far from the last key

  auto left = triangle(drawn<float>(m, n, random), s);
  auto right = drawn<float>(n, k, random);
  for (Index j = 0; j < k; ++j) right.at(n - 1, j) = std::numeric_limits<float>::quiet_NaN();
  const auto sum =
      product(left, right, true, Matrix<float>(m, k), infty::detail::StairsOnTheLeft(s));
  for (Index j = 0; j < k; ++j) CHECK(sum.at(0, j) == sum.at(0, j));
}

TEST_CASE("RoundedFactors: by stairs a product is the same to the bit") {
  Random random(infty::tests::seed);
  const RoundedFactors how;
  for (int trial = 0; trial < 40; ++trial) {
    const auto size = [&] { return 1 + drawn_whole(70, random); };
    const Index m = size(), n = size(), k = size();
    CAPTURE(trial, m, n, k);
    const auto by = [&](const Matrix<float>& a, const Matrix<float>& b, const auto& part) {
      Matrix<float> c(m, n);
      std::vector<float> left(static_cast<std::size_t>(RoundedFactors::room(m, k))),
          right(static_cast<std::size_t>(RoundedFactors::room(padded<float>(n), k)));
      how.multiply(m, n, k, how.left(m, k, {a.data.data(), a.stride, 1}, left.data()),
                   RoundedFactors::right(k, n, {b.data.data(), b.stride}, right.data()), false,
                   c.data.data(), c.stride, part);
      return c;
    };
    const infty::detail::WholeProduct whole;
    const Stairs of_left = drawn_stairs(m, k, random), of_right = drawn_stairs(k, n, random);
    const auto a = drawn<float>(m, k, random), b = drawn<float>(k, n, random);
    const auto a_stairs = triangle(a, of_left), b_stairs = triangle(b, of_right);
    CHECK(same(by(a_stairs, b, infty::detail::StairsOnTheLeft(of_left)), by(a_stairs, b, whole)));
    CHECK(same(by(a, b_stairs, infty::detail::StairsOnTheRight(of_right)), by(a, b_stairs, whole)));
  }
}
