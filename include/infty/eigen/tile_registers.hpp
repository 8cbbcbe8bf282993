// SPDX-License-Identifier: MIT
#pragma once

#include <cstdint>
#include <cstdlib>
#include <string_view>

#include <infty/core/config.hpp>
#include <infty/eigen/rounded_tile.hpp>

#if defined(INFTY_DOT_INSTRUCTION) && defined(__linux__)
#define INFTY_TILE_REGISTERS 1
#include <cpuid.h>
#include <sys/syscall.h>
#include <unistd.h>
#endif

// Registers of a processor that hold tiles of matrices (Intel's AMX), and its instruction that
// multiplies two of them in bfloat16. As text, like the dot instruction (eigen/rounded_tile.hpp).
namespace infty::detail {

/// Whether this processor multiplies tiles, and rounds to pairs, the system lets this process use
/// their registers, and the environment does not have INFTY_AMX=0. Asks the system at the first
/// call, for good and for all threads: from then on it refuses signal stacks (`sigaltstack`) that
/// have no room for the registers, and it says no where a thread has such a one.
inline bool has_tile_registers() {
#if defined(INFTY_TILE_REGISTERS)
  static const bool has = [] {
    const char* const asked = std::getenv("INFTY_AMX");
    if ((asked && std::string_view(asked) == "0") || !has_dot_instruction()) return false;
    constexpr unsigned of_tiles = 1u << 24, of_bfloat16 = 1u << 22;
    unsigned a = 0, b = 0, c = 0, d = 0;
    if (!__get_cpuid_count(7, 0, &a, &b, &c, &d) || !(d & of_tiles) || !(d & of_bfloat16))
      return false;
    // A process asks once, for all of its threads: they are too large to be kept for everyone.
    constexpr long request_permission = 0x1023, tile_data = 18;
    return syscall(SYS_arch_prctl, request_permission, tile_data) == 0;
  }();
  return has;
#else
  return false;
#endif
}

/// The sides of a tile: rows, and 32 bits each, floats of a sum or pairs of a factor.
inline constexpr Index tile_side = 16;
/// Columns that are multiplied at once, two tiles of them.
inline constexpr Index strip_width = 2 * tile_side;

/// A multiple of a tile's side, at least n.
constexpr Index whole_tiles(Index n) { return (n + tile_side - 1) / tile_side * tile_side; }

#if defined(INFTY_TILE_REGISTERS)
/// The registers of one thread, of whole tiles each, for as long as it lives: sums in `sum(row,
/// column)`, two rows of them by two columns, and their factors in `left(row)` and `right(column)`.
/// Within its life there may be no other one: that would end with the registers of both.
class TileRegisters {
 public:
  TileRegisters() {
    alignas(64) struct {
      std::uint8_t palette = 1, first = 0, reserved[14] = {};
      std::uint16_t row_bytes[16] = {64, 64, 64, 64, 64, 64, 64, 64};
      std::uint8_t rows[16] = {16, 16, 16, 16, 16, 16, 16, 16};
    } const layout;
    asm volatile("ldtilecfg %0" ::"m"(layout) : "memory");
  }
  ~TileRegisters() { asm volatile("tilerelease" ::: "memory"); }
  TileRegisters(const TileRegisters&) = delete;
  TileRegisters& operator=(const TileRegisters&) = delete;

  static constexpr int sum(int row, int column) { return 2 * row + column; }
  static constexpr int left(int row) { return 4 + row; }
  static constexpr int right(int column) { return 6 + column; }

  /// Makes a tile zeros.
  template <int tile>
  [[gnu::always_inline]] static void clear() {
    asm volatile("tilezero %%tmm%c0" ::"i"(tile));
  }
  /// Reads rows that are `stride` elements of four bytes apart.
  template <int tile>
  [[gnu::always_inline]] static void load(const void* from, Index stride) {
    asm volatile("tileloadd {(%1,%2,1), %%tmm%c0|%%tmm%c0, [%1+%2*1]}" ::"i"(tile), "r"(from),
                 "r"(4 * stride)
                 : "memory");
  }
  /// Writes rows that are `stride` floats apart.
  template <int tile>
  [[gnu::always_inline]] static void store(float* to, Index stride) {
    asm volatile("tilestored {%%tmm%c0, (%1,%2,1)|[%1+%2*1], %%tmm%c0}" ::"i"(tile), "r"(to),
                 "r"(4 * stride)
                 : "memory");
  }
  /// Adds the product of 16 pairs: of each element the first numbers of the pairs are multiplied
  /// and summed in their order, the second ones by themselves, both from 0 on by multiply-adds that
  /// round once, and the sum of the two is added. What is below the least normal number is 0.
  template <int row, int column>
  [[gnu::always_inline]] static void add_product() {
    asm volatile("tdpbf16ps {%%tmm%c2, %%tmm%c1, %%tmm%c0|%%tmm%c0, %%tmm%c1, %%tmm%c2}" ::"i"(
                     sum(row, column)),
                 "i"(left(row)), "i"(right(column)));
  }
};
#endif

}  // namespace infty::detail
