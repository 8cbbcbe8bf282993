// SPDX-License-Identifier: MIT
#include <algorithm>
#include <array>
#include <vector>

#include <infty/core/number.hpp>
#include <infty/core/tensor.hpp>
#include <infty/thrust/tile.hpp>

#include "support/catch.hpp"
#include "support/system_of.hpp"
#include "support/types.hpp"
#if !defined(INFTY_TEST_CUDA)
#include "support/item_orders.hpp"
#endif

using infty::Index;
using infty::Shape;
using infty::Tensor;
using infty::detail::AsyncRows;

namespace async_rows_test {

constexpr int places = 12, leading = 8;

/// Moves a window over the rows of a matrix (rows, columns), 8 at a time, in a ring of places; the
/// next rows are under way while those that are there go to `to`, (windows, places, columns).
struct Windows {
  static constexpr int threads = 64;
  const float* from;
  int columns;
  bool wide;
  int begin, end, windows;
  bool waits;
  float* to;

  INFTY_HOST_DEVICE std::size_t shared_bytes() const {
    return infty::detail::shared_bytes<float>(places * leading);
  }
  template <class Block>
  INFTY_HOST_DEVICE void operator()(Block& block) const {
    float* const ring = block.template shared<float>(places * leading);
    const int bytes = columns * static_cast<int>(sizeof(float));
    const auto start = [&](int window) {
      block.template start<32>(AsyncRows{from, bytes, bytes, wide, 4 * window, begin, end, 4, ring,
                                         leading * 4, 4 * window % places, places});
      block.commit();
    };
    start(0);
    start(1);
    for (int window = 0; window < windows; ++window) {
      start(window + 2);
      if (waits)
        block.template wait<1>();
      else
        block.template wait<2>();
      block.each(8 * columns, [&](int i) {
        const int row = i / columns, at = (4 * window + row) % places;
        to[(window * 8 + row) * columns + i % columns] = ring[at * leading + i % columns];
      });
    }
  }
};

constexpr int windows = 7;

template <class B>
std::vector<float> windows_of(int rows, int columns, int begin, int end, bool waits = true) {
  std::vector<float> numbers(static_cast<std::size_t>(rows * columns));
  for (std::size_t i = 0; i < numbers.size(); ++i) numbers[i] = static_cast<float>(i + 1);
  const auto from = Tensor<float, B>::from({rows, columns}, numbers);
  Tensor<float, B> to(Shape{windows, 8, columns});
  infty::detail::launch<infty::tests::system_of_t<B>>(
      1, Windows{from.data(), columns, columns % 4 == 0, begin, end, windows, waits, to.data()});
  return to.to_vector();
}

}  // namespace async_rows_test

using namespace async_rows_test;

TEMPLATE_LIST_TEST_CASE("AsyncRows: a window over rows, of which some are not there", "",
                        infty::tests::Types) {
  using B = typename TestType::B;
  for (const int columns : {1, 3, 4, 8})
    for (const auto& [begin, end] : std::vector<std::array<int, 2>>{{0, 40}, {3, 17}, {9, 10}}) {
      const auto got = windows_of<B>(40, columns, begin, end);
      bool same = true;
      for (int window = 0; window < windows; ++window)
        for (int i = 0; i < 8; ++i)
          for (int column = 0; column < columns; ++column) {
            const int row = 4 * window + i;
            const bool there = row >= begin && row < end;
            same = same && got[static_cast<std::size_t>((window * 8 + i) * columns + column)] ==
                               (there ? static_cast<float>(row * columns + column + 1) : 0);
          }
      CAPTURE(columns, begin, end);
      CHECK(same);
    }
}

#if !defined(INFTY_TEST_CUDA)
TEST_CASE("AsyncRows: a copy that is not waited for shows") {
  using Late = infty::ThrustBackend<infty::tests::Backwards>;
  const auto all_numbers = [](const std::vector<float>& x) {
    return std::none_of(x.begin(), x.end(), [](float y) { return infty::math::is_nan(y); });
  };
  CHECK(all_numbers(windows_of<Late>(40, 8, 0, 40)));
  CHECK_FALSE(all_numbers(windows_of<Late>(40, 8, 0, 40, false)));
}

TEST_CASE("AsyncRows: copies may be done early or late") {
  CHECK(infty::tests::same_in_all_orders([]<class B>() { return windows_of<B>(40, 5, 2, 33); }));
}
#endif
