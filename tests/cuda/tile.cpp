// SPDX-License-Identifier: MIT
#include <algorithm>
#include <numeric>
#include <vector>

#include <infty/core/number.hpp>
#include <infty/thrust/tile.hpp>

#include "support/catch.hpp"

using infty::Index;
using infty::detail::ItemOrder;

namespace {

struct Reversed {};
struct Shuffled {};

}  // namespace

template <>
inline constexpr ItemOrder infty::detail::item_order<Reversed> = ItemOrder::reverse;
template <>
inline constexpr ItemOrder infty::detail::item_order<Shuffled> = ItemOrder::shuffled;

namespace {

constexpr int tile_size = 8;

/// to (columns, rows) = from (rows, columns)ᵀ through shared memory, and the sums of from's rows
/// within each tile, (rows, column tiles).
struct Transpose {
  static constexpr int threads = 64;
  const double* from;
  Index rows, columns;
  double *to, *sums;

  INFTY_HOST_DEVICE Index column_tiles() const { return (columns + tile_size - 1) / tile_size; }
  INFTY_HOST_DEVICE std::size_t shared_bytes() const {
    return infty::detail::shared_bytes<char>(3) +
           infty::detail::shared_bytes<double>(tile_size * tile_size);
  }
  template <class Block>
  INFTY_HOST_DEVICE void operator()(Block& block) const {
    block.template shared<char>(3);  // so that what follows has to be aligned
    double* const square = block.template shared<double>(tile_size * tile_size);
    const Index row = block.index() / column_tiles() * tile_size;
    const Index column = block.index() % column_tiles() * tile_size;
    block.each(tile_size * tile_size, [&](int i) {
      const Index r = row + i / tile_size, c = column + i % tile_size;
      square[i] = r < rows && c < columns ? from[r * columns + c] : 0;
    });
    block.each(tile_size * tile_size, [&](int i) {
      const Index r = row + i % tile_size, c = column + i / tile_size;
      if (r < rows && c < columns)
        to[c * rows + r] = square[i % tile_size * tile_size + i / tile_size];
    });
    const int count = static_cast<int>(rows - row < tile_size ? rows - row : tile_size);
    block.template reduce_rows<double>(
        count, tile_size, [](double a, double b) { return a + b; },
        [&](int r, int c) { return square[r * tile_size + c]; },
        [&](int r, double sum) { sums[(row + r) * column_tiles() + column / tile_size] = sum; });
  }
};

/// Sum of n numbers, and the place of the largest.
struct Reduce {
  static constexpr int threads = 64;
  struct Top {
    double value;
    Index at;
  };
  const double* from;
  Index n;
  double* sum;
  Index* top;

  INFTY_HOST_DEVICE std::size_t shared_bytes() const { return 0; }
  template <class Block>
  INFTY_HOST_DEVICE void operator()(Block& block) const {
    const double total = block.reduce(
        n, 100.0, [](double a, double b) { return a + b; }, [&](Index i) { return from[i]; });
    const Top first{-1, -1};
    const Top most = block.reduce(
        n, first, [](const Top& a, const Top& b) { return b.value > a.value ? b : a; },
        [&](Index i) {
          return Top{from[i], i};
        });
    block.each(1, [&](int) {
      *sum = total;
      *top = most.at;
    });
  }
};

/// Asks for one number and takes two.
struct Greedy {
  static constexpr int threads = 32;
  INFTY_HOST_DEVICE std::size_t shared_bytes() const { return 16; }
  template <class Block>
  INFTY_HOST_DEVICE void operator()(Block& block) const {
    block.template shared<double>(1);
    block.template shared<double>(1);
  }
};

/// Writes behind the first of two pieces of shared memory, or sums what it reads there.
struct Beyond {
  static constexpr int threads = 32;
  bool writes;
  float* sum;

  INFTY_HOST_DEVICE std::size_t shared_bytes() const {
    return infty::detail::shared_bytes<float>(6) + infty::detail::shared_bytes<float>(8);
  }
  template <class Block>
  INFTY_HOST_DEVICE void operator()(Block& block) const {
    float* const piece = block.template shared<float>(6);
    float* const next = block.template shared<float>(8);
    block.each(6, [&](int i) { piece[i] = 1; });
    block.each(8, [&](int i) { next[i] = 1; });
    if (writes) block.each(1, [&](int) { piece[6] = 1; });
    *sum = block.reduce(
        10, 0.f, [](float a, float b) { return a + b; }, [&](int i) { return piece[i]; });
  }
};

}  // namespace

TEMPLATE_TEST_CASE("launch: a transpose by tiles and sums of rows", "", infty::Cpp, infty::Omp,
                   Reversed, Shuffled) {
  for (const Index rows : {1, 8, 21})
    for (const Index columns : {1, 7, 16, 30}) {
      const Index tiles = (columns + tile_size - 1) / tile_size,
                  row_tiles = (rows + tile_size - 1) / tile_size;
      std::vector<double> from(static_cast<std::size_t>(rows * columns));
      std::iota(from.begin(), from.end(), 1.0);
      std::vector<double> to(from.size()), sums(static_cast<std::size_t>(rows * tiles));
      infty::detail::launch<TestType>(
          row_tiles * tiles, Transpose{from.data(), rows, columns, to.data(), sums.data()});
      bool same = true;
      for (Index r = 0; r < rows; ++r)
        for (Index c = 0; c < columns; ++c)
          same = same && to[static_cast<std::size_t>(c * rows + r)] ==
                             from[static_cast<std::size_t>(r * columns + c)];
      CHECK(same);
      for (Index r = 0; r < rows; ++r)
        for (Index t = 0; t < tiles; ++t) {
          const auto begin = from.begin() + r * columns + t * tile_size;
          const auto end = from.begin() + r * columns + std::min(columns, (t + 1) * tile_size);
          CHECK(sums[static_cast<std::size_t>(r * tiles + t)] == std::accumulate(begin, end, 0.0));
        }
    }
}

TEMPLATE_TEST_CASE("launch: the reduction of a block", "", infty::Cpp, infty::Omp, Reversed,
                   Shuffled) {
  for (const Index n : {0, 1, 2, 31, 32, 33, 63, 64, 65, 1000}) {
    std::vector<double> from(static_cast<std::size_t>(n));
    for (Index i = 0; i < n; ++i) from[static_cast<std::size_t>(i)] = double(i * 37 % 101);
    double sum = 0;
    Index top = -2;
    infty::detail::launch<TestType>(1, Reduce{from.data(), n, &sum, &top});
    CAPTURE(n);
    CHECK(sum == std::accumulate(from.begin(), from.end(), 100.0));
    REQUIRE(top >= -1);
    CHECK((n == 0 ? top == -1
                  : from[static_cast<std::size_t>(top)] ==
                        *std::max_element(from.begin(), from.end())));
  }
}

TEST_CASE("launch: no blocks are no work, and shared memory is counted") {
  infty::detail::launch<infty::Cpp>(0, Greedy{});
  CHECK_THROWS_WITH(infty::detail::launch<infty::Cpp>(1, Greedy{}),
                    "[launch] a block used 32 bytes of shared memory and asked for 16");
}

TEMPLATE_TEST_CASE("launch: what a block reads or writes behind a piece of shared memory shows", "",
                   Reversed, Shuffled) {
  float sum = 0;
  infty::detail::launch<TestType>(1, Beyond{false, &sum});
  CHECK(infty::math::is_nan(sum));
  CHECK_THROWS_WITH(infty::detail::launch<TestType>(1, Beyond{true, &sum}),
                    "[launch] a block wrote behind a piece of its shared memory");
}

TEST_CASE("launch: the orders of items visit each of them once") {
  for (const int n : {1, 2, 7, 64, 7919, 2 * 7919, 10000}) {
    std::vector<int> seen(static_cast<std::size_t>(n));
    for (int i = 0; i < n; ++i)
      ++seen[static_cast<std::size_t>(infty::detail::ordered<ItemOrder::shuffled>(i, n))];
    CHECK(std::count(seen.begin(), seen.end(), 1) == n);
  }
}
