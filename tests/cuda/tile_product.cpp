// SPDX-License-Identifier: MIT
#include <algorithm>
#include <array>
#include <cstddef>
#include <vector>

#include <infty/core/random.hpp>
#include <infty/thrust/tile.hpp>
#include <infty/thrust/tile_product.hpp>

#include "support/catch.hpp"
#include "support/item_orders.hpp"

using infty::Index;
using namespace infty::detail;

namespace {

/// C (m, n) += 2 A B with the factors stored as A (m, k) or Aᵀ (k, m) and Bᵀ (n, k) or B (k, n), in
/// one tile each.
template <class T, template <class> class A, template <class> class B>
struct Product {
  static constexpr int threads = 64;
  static constexpr bool a_by_rows = requires(A<T> a, ByRows<T> b) { a = b; };
  static constexpr bool b_by_rows = requires(B<T> a, ByRows<T> b) { a = b; };
  int m, n, k;
  const T *a, *b;
  bool wide;
  T* c;

  int a_rows() const { return a_by_rows ? m : k; }
  int a_columns() const { return a_by_rows ? k : m; }
  int b_rows() const { return b_by_rows ? n : k; }
  int b_columns() const { return b_by_rows ? k : n; }
  static Index elements(int rows, int columns) {
    return Index{round_up_4(rows)} * tile_leading(columns);
  }
  std::size_t shared_bytes() const {
    return infty::detail::shared_bytes<T>(elements(a_rows(), a_columns())) +
           infty::detail::shared_bytes<T>(elements(b_rows(), b_columns())) +
           infty::detail::shared_bytes<T>(elements(m, n));
  }

  template <class Block>
  void operator()(Block& block) const {
    T* const x = block.template shared<T>(elements(a_rows(), a_columns()));
    T* const y = block.template shared<T>(elements(b_rows(), b_columns()));
    T* const z = block.template shared<T>(elements(m, n));
    const auto copy = [&](const T* from, int rows, int columns, T* tile) {
      copy_tile(block,
                TileSource<T>{from, columns, columns, wide, 0, 0, rows, round_up_4(rows), tile});
    };
    copy(a, a_rows(), a_columns(), x);
    copy(b, b_rows(), b_columns(), y);
    const int leading = tile_leading(n);
    block.each(round_up_4(m) * leading, [&](int i) { z[i] = T(0); });
    for (int twice = 0; twice < 2; ++twice)
      tile_product<T>(block, round_up_4(m), round_up_4(n), round_up_4(k),
                      A<T>{x, tile_leading(a_columns())}, B<T>{y, tile_leading(b_columns())},
                      Add{z, leading});
    add_tile(block, z, round_up_4(m), FixedDivisor(n), 0, m, c, n);
  }

  struct Add {
    T* z;
    int leading;
    void operator()(int i, int j, T sum) const { z[i * leading + j] += sum; }
    void operator()(int i, int j, const Four<T>& sums) const {
      add_four(z + i * leading + j, sums);
    }
  };
};

template <class System, class T, template <class> class A, template <class> class B>
void check_product() {
  for (const auto& [m, n, k] : {std::array{1, 1, 1}, {4, 8, 12}, {7, 30, 5}, {33, 18, 64}}) {
    infty::Random random(infty::tests::seed);
    const auto draw = [&](int count) {
      std::vector<T> x;
      for (int i = 0; i < count; ++i) x.push_back(static_cast<T>(int(random.uniform() * 64)));
      return x;
    };
    const auto a = draw(m * k), b = draw(n * k);
    std::vector<T> c(static_cast<std::size_t>(m * n), T(1)), expected;
    using Kernel = Product<T, A, B>;
    const auto at = [](const std::vector<T>& x, int i) { return x[static_cast<std::size_t>(i)]; };
    for (int i = 0; i < m; ++i)
      for (int j = 0; j < n; ++j) {
        T sum = 0;
        for (int l = 0; l < k; ++l)
          sum += at(a, Kernel::a_by_rows ? i * k + l : l * m + i) *
                 at(b, Kernel::b_by_rows ? j * k + l : l * n + j);
        expected.push_back(1 + 2 * sum);  // whole numbers: there is no rounding
      }
    const bool wide = m % 4 == 0 && n % 4 == 0 && k % 4 == 0;
    launch<System>(1, Kernel{m, n, k, a.data(), b.data(), wide, c.data()});
    CAPTURE(m, n, k);
    CHECK(c == expected);
  }
}

}  // namespace

TEMPLATE_TEST_CASE("tile_product: both ways to store each factor", "", infty::Cpp,
                   infty::tests::Backwards, infty::tests::Shuffled) {
  check_product<TestType, float, ByRows, ByRows>();
  check_product<TestType, float, ByRows, ByColumns>();
  check_product<TestType, double, ByColumns, ByRows>();
  check_product<TestType, double, ByColumns, ByColumns>();
}

TEST_CASE("tile_leading: the same four columns of eight rows lie in different banks") {
  for (const int n : {1, 4, 5, 63, 64, 65, 130}) {
    const int leading = tile_leading(n);
    CHECK(leading >= n);
    std::vector<int> banks;
    for (int row = 0; row < 8; ++row) banks.push_back(row * leading % 32 / 4);
    std::sort(banks.begin(), banks.end());
    CHECK(banks == std::vector{0, 1, 2, 3, 4, 5, 6, 7});
  }
}

TEST_CASE("copy_tile: rows that are not there are zeros, the others have something added") {
  const std::vector<double> from{0, 1, 2, 3, 4, 5, 6, 7, 8, 9}, plus{10, 20};
  for (const int first : {-2, 0, 3}) {
    std::vector<double> tile(8 * static_cast<std::size_t>(tile_leading(2)), -1);
    HostBlock<32> block(0, nullptr);
    TileSource<double> source{from.data(), 2, 2, false, first, 1, 4, 8, tile.data()};
    source.plus = plus.data();
    copy_tile(block, source);
    for (int row = 0; row < 8; ++row)
      for (int column = 0; column < 4; ++column) {
        const int at = first + row;
        const double expected =
            at >= 1 && at < 4 && column < 2 ? 2 * at + column + 10 * (column + 1) : 0;
        CHECK(tile[static_cast<std::size_t>(row * tile_leading(2) + column)] == expected);
      }
  }
}
