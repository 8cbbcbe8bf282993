// SPDX-License-Identifier: MIT
#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>
#include <vector>

#include <infty/core/random.hpp>
#include <infty/eigen/pairs.hpp>

#include "support/catch.hpp"
#include "support/tensors.hpp"

using infty::Index;
using infty::Random;
using infty::detail::has_dot_instruction;
using infty::detail::PairLayout;
using infty::detail::pairs_of;
using infty::detail::to_bfloat16;

namespace pairs_tests {

using Words = std::vector<std::uint32_t>;

/// The pairs of a matrix that lies in memory as it says, and a word that is not to be written.
Words pairs(Index rows, Index k, const std::vector<float>& x, bool along, bool fast) {
  const auto size = static_cast<std::size_t>(rows * ((k + 1) / 2));
  std::vector<float> to(size + 1, -7.f);
  const auto laid = pairs_of(rows, k, x.data(), along ? k : rows, along, to.data(), fast);
  CHECK(laid.data == to.data());
  CHECK(laid.leading == (along ? (k + 1) / 2 : rows));
  Words words;
  for (const float pair : to) words.push_back(std::bit_cast<std::uint32_t>(pair));
  CHECK(words.back() == std::bit_cast<std::uint32_t>(-7.f));
  words.pop_back();
  return words;
}

std::vector<float> any_bits(Index n, Random random) {
  std::vector<float> x(static_cast<std::size_t>(n));
  const std::uint32_t edges[] = {0x00000000, 0x80000000, 0x007fffff, 0x807fffff,
                                 0x00800000, 0x007f8000, 0x7f7fffff, 0x7f800000,
                                 0xff800000, 0x7f800001, 0x7fc00000, 0xffffffff,
                                 0x3f808000, 0x3f818000, 0x3f807fff, 0x3f808001};
  for (float& each : x) {
    const auto bits = static_cast<std::uint32_t>(std::ldexp(random.uniform(), 32));
    each = std::bit_cast<float>(bits % 4 == 0 ? edges[bits / 4 % 16] : bits);
  }
  return x;
}

}  // namespace pairs_tests

using namespace pairs_tests;

TEST_CASE(
    "pairs_of: neighbours in the order of k, rounded, and 0 for the partner that is not there") {
  Random random(infty::tests::seed);
  for (const Index rows : {1, 2, 15, 16, 33})
    for (const Index k : {1, 2, 3, 31, 32, 33, 67}) {
      const std::vector<float> x = any_bits(rows * k, random.split(static_cast<std::uint64_t>(k)));
      for (const bool along : {false, true}) {
        const Words got = pairs(rows, k, x, along, false);
        const auto rounded = [&](Index i, Index p) {
          if (p >= k) return 0u;
          const float each = x[static_cast<std::size_t>(along ? i * k + p : p * rows + i)];
          const bool normal =
              std::isnan(each) || std::abs(each) >= std::numeric_limits<float>::min();
          const float kept = normal ? each : std::copysign(0.f, each);
          return std::bit_cast<std::uint32_t>(to_bfloat16(kept)) >> 16;
        };
        for (Index i = 0; i < rows; ++i)
          for (Index p = 0; p < k; p += 2) {
            CAPTURE(rows, k, along, i, p);
            const auto at =
                static_cast<std::size_t>(along ? i * ((k + 1) / 2) + p / 2 : p / 2 * rows + i);
            CHECK(got[at] == (rounded(i, p) | rounded(i, p + 1) << 16));
          }
      }
    }
}

TEST_CASE("halves_of: the halves of the pairs, the upper one first, and nothing else is written") {
  Random random(infty::tests::seed);
  for (const Index rows : {1, 2, 15, 16, 33})
    for (const Index k : {1, 2, 3, 31, 32, 33, 67}) {
      const std::vector<float> x = any_bits(rows * k, random.split(static_cast<std::uint64_t>(k)));
      for (const bool along : {false, true}) {
        CAPTURE(rows, k, along);
        const Words joined = pairs(rows, k, x, along, false);
        const Index width = along ? (k + 1) / 2 : rows;
        std::vector<float> to(2 * joined.size() + 1, -7.f);
        const auto laid =
            infty::detail::halves_of(rows, k, x.data(), along ? k : rows, along, to.data());
        CHECK(laid.data == to.data());
        CHECK(laid.leading == (along ? 2 * width : width));
        Words wanted(2 * joined.size());
        for (std::size_t at = 0; at < joined.size(); ++at) {
          const auto line = static_cast<Index>(at) / width, i = static_cast<Index>(at) % width;
          const Index first = 2 * line * width + (along ? 2 * i : i);
          wanted[static_cast<std::size_t>(first)] = joined[at] & 0xffff0000u;
          wanted[static_cast<std::size_t>(first + (along ? 1 : width))] = joined[at] << 16;
        }
        Words got;
        for (const float half : to) got.push_back(std::bit_cast<std::uint32_t>(half));
        wanted.push_back(std::bit_cast<std::uint32_t>(-7.f));
        CHECK(got == wanted);
      }
    }
}

TEST_CASE("pairs_of: instructions round to the same bits") {
  if (!has_dot_instruction()) {
    WARN("left out: this processor or this program has no such instruction");
    return;
  }
  Random random(infty::tests::seed);
  for (int round = 0; round < 200; ++round) {
    const Index rows = 1 + static_cast<Index>(random.uniform() * 80);
    const Index k = 1 + static_cast<Index>(random.uniform() * 80);
    const std::vector<float> x =
        any_bits(rows * k, random.split(static_cast<std::uint64_t>(round)));
    CAPTURE(rows, k);
    for (const bool along : {false, true})
      CHECK(pairs(rows, k, x, along, true) == pairs(rows, k, x, along, false));
  }
}

TEST_CASE("rows and strips for tiles: the pairs of pairs_of, and zeros up to whole tiles") {
  Random random(infty::tests::seed);
  for (const Index rows : {1, 15, 16, 17, 32, 70})
    for (const Index k : {1, 2, 31, 32, 33, 67}) {
      const std::vector<float> x = any_bits(rows * k, random.split(static_cast<std::uint64_t>(k)));
      const Index count = (k + 1) / 2, whole = infty::detail::whole_tiles(count);
      for (const bool along : {false, true}) {
        CAPTURE(rows, k, along);
        const Words wanted = pairs(rows, k, x, along, false);
        const auto pair = [&](Index row, Index p) {
          return row < rows && p < count
                     ? wanted[static_cast<std::size_t>(along ? row * count + p : p * rows + row)]
                     : 0u;
        };
        const auto lay_out = [&](PairLayout layout) {
          const Index room = infty::detail::room_of(layout, rows, count);
          std::vector<float> to(static_cast<std::size_t>(room) + 1, -7.f);
          const auto laid = infty::detail::laid_out(layout, rows, k, x.data(), along ? k : rows,
                                                    along, to.data());
          CHECK(laid.data == to.data());
          CHECK(laid.leading == (layout == PairLayout::rows ? whole : 32 * whole));
          CHECK(to.back() == -7.f);
          Words words;
          for (const float each : to) words.push_back(std::bit_cast<std::uint32_t>(each));
          return words;
        };
        const Words by_row = lay_out(PairLayout::rows), by_strip = lay_out(PairLayout::strips);
        bool same = true;
        for (Index p = 0; p < whole; ++p) {
          for (Index row = 0; row < rows; ++row)
            same = same && by_row[static_cast<std::size_t>(row * whole + p)] == pair(row, p);
          for (Index row = 0; row < (rows + 31) / 32 * 32; ++row)
            same = same &&
                   by_strip[static_cast<std::size_t>(row / 32 * 32 * whole + p * 32 + row % 32)] ==
                       pair(row, p);
        }
        CHECK(same);
      }
    }
}
