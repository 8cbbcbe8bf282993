// SPDX-License-Identifier: MIT
#include <cstdint>
#include <limits>
#include <numeric>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <infty/autograd/shape.hpp>

#include "fuzz/fuzz.hpp"

// Any numbers as extents, dimensions and ranges: shapes are what counting without limits says, and
// views and copies of a small tensor hold the elements that their indices say.

namespace infty::fuzz {

namespace {

using Extents = std::vector<Index>;

/// The product of extents, those of 0 left out unless `zero`; nothing where no shape has them.
std::optional<Index> product(const Extents& extents, bool zero) {
  Index size = 1;
  bool empty = false;
  for (const Index extent : extents) {
    if (extent < 0) return {};
    empty = empty || extent == 0;
    if (extent > 0 && (__builtin_mul_overflow(size, extent, &size) || size > Index{1} << 62))
      return {};
  }
  if (extents.size() > Shape::max_rank) return {};
  return zero && empty ? 0 : size;
}

/// Mostly small, sometimes any.
Index number(Input& input) {
  const int kind = input.below(8);
  return kind == 0   ? input.raw<Index>()
         : kind == 1 ? Index{1} << input.below(63)
                     : Index{input.below(8)} - 2;
}

void check_shape(Input& input) {
  Extents extents(input.below(std::size_t{8}));
  for (Index& extent : extents) extent = number(input);
  Shape shape;
  const bool ok = accepted([&] { shape = Shape(extents.begin(), extents.end()); });
  check(ok == product(extents, false).has_value(), "a shape is taken if its extents are some");
  if (!ok) return;
  const auto rank = static_cast<Index>(extents.size());
  check(shape.rank() == rank && shape.size() == *product(extents, true), "its size is the product");
  const Index i = number(input), extent = number(input), last = number(input);
  const bool there = i >= -rank && i < rank;
  check(accepted([&] { (void)shape[i]; }) == there, "a dimension is there or refused");
  Extents changed = extents;
  if (there) changed[static_cast<std::size_t>(i < 0 ? i + rank : i)] = extent;
  Shape other;
  check(accepted([&] { other = shape.with(i, extent); }) == (there && product(changed, false)),
        "an extent is replaced or refused");
  if (there && product(changed, false))
    check(other == Shape(changed.begin(), changed.end()), "the others stay");
  accepted([&] {
    const Index size = shape.size(i, last);
    const Index first = std::clamp<Index>(i < 0 ? i + rank : i, 0, rank);
    const Extents part(extents.begin() + first, extents.begin() + std::clamp(last, first, rank));
    check(size == *product(part, true), "a range of dimensions is multiplied");
  });
}

/// x[:, begin:end] by indices.
std::vector<int> columns(const Tensor<int>& x, Index begin, Index end) {
  std::vector<int> out;
  const Index inner = x.shape().size(2, x.rank());
  for (Index row = 0; row < x.dim(0); ++row)
    for (Index i = begin * inner; i < end * inner; ++i)
      out.push_back(x.data()[row * x.dim(1) * inner + i]);
  return out;
}

void check_tensor(Input& input) {
  const auto extent = [&] { return Index{input.below(4)}; };
  Tensor<int> x(Shape{extent(), extent(), extent()});
  std::iota(x.data(), x.data() + x.size(), 0);
  const auto all = x.to_vector();
  const Index begin = number(input), end = number(input), inner = x.dim(1) * x.dim(2);
  if (accepted([&] {
        const auto part = x.slice(begin, end).clone().to_vector();
        check(part == std::vector<int>(all.begin() + begin * inner, all.begin() + end * inner),
              "a slice holds its rows");
      }))
    check(0 <= begin && begin <= end && end <= x.dim(0), "a slice lies in the tensor");
  accepted([&] {
    const auto y = narrow(Variable<int>(x), begin, end);
    check(y.value().to_vector() == columns(x, begin, end), "narrow keeps its columns");
    const auto z = concat(concat(narrow(Variable<int>(x), 0, begin), y),
                          narrow(Variable<int>(x), end, x.dim(1)));
    check(z.value().to_vector() == all, "columns joined again are all");
  });
  accepted([&] {
    const auto y = x.reshape(Shape{begin, end});
    check(y.size() == x.size() && y.to_vector() == all, "another shape has the same elements");
  });
}

}  // namespace

void run(std::string_view bytes) {
  Input input(bytes);
  while (!input.empty()) input.flag() ? check_shape(input) : check_tensor(input);
}

std::vector<std::string> seeds() {
  constexpr auto most = std::numeric_limits<Index>::max();
  const auto byte = [](int n) { return bytes_of(static_cast<std::uint8_t>(n)); };
  const auto small = [&](int n) { return byte(2) + byte(n + 2); };
  return {byte(1) + byte(3) + small(2) + small(3) + small(4) + small(-1) + small(2) + small(3),
          byte(1) + byte(2) + byte(1) + byte(31) + byte(1) + byte(31) + small(0) + small(1),
          byte(1) + byte(1) + byte(0) + bytes_of(most) + small(0) + small(1) + small(1),
          byte(0) + byte(3) + byte(2) + byte(2) + small(1) + small(3),
          byte(0) + byte(2) + byte(3) + byte(2) + small(3) + small(4)};
}

}  // namespace infty::fuzz
