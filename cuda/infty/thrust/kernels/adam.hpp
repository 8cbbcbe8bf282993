// SPDX-License-Identifier: MIT
#pragma once

#include <cstddef>

#include <infty/core/config.hpp>
#include <infty/core/kernel/adam.hpp>
#include <infty/thrust/tile.hpp>

namespace infty::detail {

/// A piece of a parameter a block. The list of parameters is part of the kernel, and so comes with
/// its launch: nothing is uploaded, allocated or waited for.
template <class T>
struct AdamStep {
  static constexpr int threads = 256;
  static constexpr Index piece = 4096;
  static constexpr int most = 60;  // in the 4 KB that a launch's arguments may take everywhere

  AdamFactors<T> factors;
  AdamItem<T> items[most];
  Index end[most];  // blocks of all items up to and with each
  int count;

  INFTY_HOST_DEVICE std::size_t shared_bytes() const { return 0; }

  template <class Block>
  INFTY_HOST_DEVICE void operator()(Block& block) const {
    // The first item whose blocks end behind this one; an empty item has none.
    int first = 0, last = count - 1;
    while (first < last) {
      const int middle = (first + last) / 2;
      if (end[middle] > block.index())
        last = middle;
      else
        first = middle + 1;
    }
    const AdamItem<T> item = items[first];
    const Index begin = (block.index() - (first == 0 ? 0 : end[first - 1])) * piece;
    const int n = static_cast<int>(item.size - begin < piece ? item.size - begin : piece);
    block.each(n, [&](int i) { factors(item, begin + i); });
  }
};

/// `ComposedAdam` as a tile program, 60 parameters a launch.
template <class System>
struct TiledAdam {
  template <class T>
  static void step(const AdamFactors<T>& factors, const AdamItem<T>* items, Index count) {
    using Kernel = AdamStep<T>;
    static_assert(sizeof(Kernel) + sizeof(Index) <= 4096);
    for (Index begin = 0; begin < count; begin += Kernel::most) {
      Kernel kernel{.factors = factors, .items = {}, .end = {}, .count = 0};
      Index blocks = 0;
      for (; kernel.count < Kernel::most && begin + kernel.count < count; ++kernel.count) {
        kernel.items[kernel.count] = items[begin + kernel.count];
        blocks += (items[begin + kernel.count].size + Kernel::piece - 1) / Kernel::piece;
        kernel.end[kernel.count] = blocks;
      }
      launch<System>(blocks, kernel);
    }
  }
};

}  // namespace infty::detail
