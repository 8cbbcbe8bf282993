// SPDX-License-Identifier: MIT
#pragma once

#include <cstddef>

#include <infty/core/config.hpp>
#include <infty/core/fold.hpp>
#include <infty/core/kernel/gradients.hpp>
#include <infty/core/tensor.hpp>
#include <infty/thrust/system.hpp>
#include <infty/thrust/tile.hpp>

namespace infty::detail {

/// Gradients of a launch and the pieces that its blocks take of them, as part of the kernel.
template <class T>
struct GradientPieces {
  static constexpr Index piece = 4096;
  static constexpr int most = 150;  // in the 4 KB that a launch's arguments may take everywhere

  GradientItem<T> items[most];
  Index end[most];  ///< blocks of all items up to and with each
  int count;

  /// As many of the items from `begin` on as a launch takes.
  static GradientPieces of(const GradientItem<T>* all, Index begin, Index count) {
    GradientPieces out{};
    Index blocks = 0;
    for (; out.count < most && begin + out.count < count; ++out.count) {
      out.items[out.count] = all[begin + out.count];
      blocks += (all[begin + out.count].size + piece - 1) / piece;
      out.end[out.count] = blocks;
    }
    return out;
  }

  Index blocks() const { return count == 0 ? 0 : end[count - 1]; }
  INFTY_HOST_DEVICE Index first_block(int item) const { return item == 0 ? 0 : end[item - 1]; }
  /// The first item whose blocks end behind this one; an empty item has none.
  INFTY_HOST_DEVICE int item_of(Index block) const {
    int first = 0, last = count - 1;
    while (first < last) {
      const int middle = (first + last) / 2;
      if (end[middle] > block)
        last = middle;
      else
        first = middle + 1;
    }
    return first;
  }
  /// Calls f(elements, n) with those of a block.
  template <class F>
  INFTY_HOST_DEVICE void with_piece(Index block, const F& f) const {
    const int at = item_of(block);
    const Index begin = (block - first_block(at)) * piece, left = items[at].size - begin;
    f(items[at].g + begin, static_cast<int>(left < piece ? left : piece));
  }
};

/// The sum of squares of a piece a block.
template <class T>
struct PieceSquares {
  static constexpr int threads = 256;
  GradientPieces<T> pieces;
  double* partial;  ///< [blocks]

  INFTY_HOST_DEVICE std::size_t shared_bytes() const { return 0; }
  template <class Block>
  INFTY_HOST_DEVICE void operator()(Block& block) const {
    pieces.with_piece(block.index(), [&](const T* g, int n) {
      const double sum = block.reduce(n, 0.0, Plus{}, [&](int i) {
        const auto value = static_cast<double>(g[i]);
        return value * value;
      });
      block.each(1, [&](int) { partial[block.index()] = sum; });
    });
  }
};

/// The sum of a gradient's pieces a block.
template <class T>
struct SumPieces {
  static constexpr int threads = 256;
  GradientPieces<T> pieces;
  const double* partial;
  double* to;  ///< [count]

  INFTY_HOST_DEVICE std::size_t shared_bytes() const { return 0; }
  template <class Block>
  INFTY_HOST_DEVICE void operator()(Block& block) const {
    const int at = static_cast<int>(block.index());
    const Index first = pieces.first_block(at);
    const double sum = block.reduce(pieces.end[at] - first, 0.0, Plus{},
                                    [&](Index i) { return partial[first + i]; });
    block.each(1, [&](int) { to[at] = sum; });
  }
};

/// A piece a block, times a number.
template <class T>
struct ScalePieces {
  static constexpr int threads = 256;
  GradientPieces<T> pieces;
  T factor;

  INFTY_HOST_DEVICE std::size_t shared_bytes() const { return 0; }
  template <class Block>
  INFTY_HOST_DEVICE void operator()(Block& block) const {
    pieces.with_piece(block.index(),
                      [&](T* g, int n) { block.each(n, [&](int i) { g[i] *= factor; }); });
  }
};

/// `ComposedGradients` as tile programs, 150 gradients a launch: two launches measure them, one
/// scales them. Sums run in an order that the sizes alone determine.
template <class System>
struct TiledGradients {
  template <class T>
  static void squares(const GradientItem<T>* items, Index count, double* to) {
    using Pieces = GradientPieces<T>;
    static_assert(sizeof(SumPieces<T>) + sizeof(Index) <= 4096);
    for (Index begin = 0; begin < count; begin += Pieces::most) {
      const Pieces pieces = Pieces::of(items, begin, count);
      Tensor<double, ThrustBackend<System>> partial(Shape{pieces.blocks()});
      launch<System>(pieces.blocks(), PieceSquares<T>{pieces, partial.data()});
      launch<System>(pieces.count, SumPieces<T>{pieces, partial.data(), to + begin});
    }
  }

  template <class T>
  static void scale(const GradientItem<T>* items, Index count, T factor) {
    using Pieces = GradientPieces<T>;
    for (Index begin = 0; begin < count; begin += Pieces::most) {
      const Pieces pieces = Pieces::of(items, begin, count);
      launch<System>(pieces.blocks(), ScalePieces<T>{pieces, factor});
    }
  }
};

}  // namespace infty::detail
