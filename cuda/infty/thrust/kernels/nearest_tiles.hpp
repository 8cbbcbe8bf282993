// SPDX-License-Identifier: MIT
#pragma once

#include <cstddef>
#include <type_traits>

#include <infty/core/config.hpp>
#include <infty/core/fold.hpp>
#include <infty/core/kernel/nearest.hpp>
#include <infty/thrust/fixed_divisor.hpp>
#include <infty/thrust/tile.hpp>
#include <infty/thrust/tile_product.hpp>

namespace infty::detail {

/// The best entries of a tile of queries among a piece of the keys of one head of one row. Tiles of
/// queries and of keys are multiplied in shared memory and registers; a row of scores is looked
/// through for those that are wanted only if it has some, by one thread, which replaces the worst
/// of what its query holds. No score leaves the block but those that are found.
template <class T, class Stored>
struct NearestTiles {
  static constexpr int threads = 256;

  NearestSize size;
  const NearestRow<T, Stored>* rows;  ///< in the backend's memory, as all that they point to
  Index each;                         ///< queries of a row that meet the keys of one head
  Index pieces;                       ///< that the keys of each row are divided into
  bool wide;                          ///< queries and keys are aligned for `load_four`
  T* scores;                          ///< [groups, each, pieces, k] to be written, the best first
  Index* indices;                     ///< likewise
  Index* held;                        ///< [groups, each, pieces], how many
  int tile_rows, tile_keys;
  FixedDivisor across;  ///< pieces of four in a row of a tile

  INFTY_HOST_DEVICE Index tiles() const { return (each + tile_rows - 1) / tile_rows; }
  INFTY_HOST_DEVICE int head_dim() const { return static_cast<int>(size.head_dim); }
  INFTY_HOST_DEVICE int leading() const { return tile_leading(size.head_dim); }
  INFTY_HOST_DEVICE int wanted() const { return static_cast<int>(size.k); }

  /// For so many rows and key heads together.
  Index blocks(Index groups) const { return groups * tiles() * pieces; }
  std::size_t shared_bytes() const {
    return detail::shared_bytes<T>(Index{tile_rows} * leading()) +
           detail::shared_bytes<T>(Index{tile_keys} * leading()) +
           detail::shared_bytes<T>(Index{tile_rows} * tile_leading(tile_keys)) +
           detail::shared_bytes<T>(tile_rows * size.k) +
           detail::shared_bytes<int>(tile_rows * size.k) + 2 * detail::shared_bytes<int>(tile_rows);
  }

  /// What a query holds, in shared memory: `count` of its k places, the worst of them at `worst`
  /// once they are all taken.
  struct Best {
    T* scores;
    int* indices;
    int *count, *worst;

    INFTY_HOST_DEVICE bool wants(int k, const T& score, int index) const {
      return *count < k || comes_before(score, index, scores[*worst], indices[*worst]);
    }
    INFTY_HOST_DEVICE void take(int k, const T& score, int index) const {
      const int place = *count < k ? (*count)++ : *worst;
      scores[place] = score;
      indices[place] = index;
      if (*count < k) return;
      int last = 0;
      for (int j = 1; j < k; ++j)
        if (comes_before(scores[last], indices[last], scores[j], indices[j])) last = j;
      *worst = last;
    }
  };

  template <class Block>
  INFTY_HOST_DEVICE void operator()(Block& block) const {
    const Index piece = block.index() % pieces, rest = block.index() / pieces;
    const Index group = rest / tiles();
    const int first = static_cast<int>(rest % tiles()) * tile_rows;
    const int count = each - first < tile_rows ? static_cast<int>(each - first) : tile_rows;
    const NearestRow<T, Stored>& row = rows[group / size.key_heads];
    const Index head = group % size.key_heads, D = size.head_dim;
    const Index begin = row.count * piece / pieces, end = row.count * (piece + 1) / pieces;
    const int k = wanted(), of_scores = tile_leading(tile_keys);
    T* const q = block.template shared<T>(Index{tile_rows} * leading());
    T* const keys = block.template shared<T>(Index{tile_keys} * leading());
    T* const x = block.template shared<T>(Index{tile_rows} * of_scores);
    T* const best = block.template shared<T>(tile_rows * size.k);
    int* const names = block.template shared<int>(tile_rows * size.k);
    int* const counts = block.template shared<int>(tile_rows);
    int* const worst = block.template shared<int>(tile_rows);
    const auto of = [&](int i) { return Best{best + i * k, names + i * k, counts + i, worst + i}; };

    const bool shared = size.key_heads == 1;  // all queries of a row stand one behind the other
    copy_tile(block, TileSource<T>{row.queries + (shared ? 0 : head * D),
                                   shared ? D : size.heads * D, head_dim(), wide, first, 0,
                                   static_cast<int>(each), tile_rows, q, across});
    block.each(tile_rows, [&](int i) { counts[i] = worst[i] = 0; });
    int n = 0;
    for (Index at = begin; at < end; at += n) {
      const Index entry = row.first + at, place = entry % size.block, in_block = entry / size.block;
      Index most = size.block - place < end - at ? size.block - place : end - at;
      n = most < tile_keys ? static_cast<int>(most) : tile_keys;
      copy_keys(block, row.blocks[in_block] + (head * size.block + place) * D, n, keys);
      const T* const offsets = row.offsets == nullptr ? nullptr : row.offsets[in_block] + place;
      tile_product<T>(block, tile_rows, tile_keys, round_up_4(D), ByRows<T>{q, leading()},
                      ByRows<T>{keys, leading()}, [&](int i, int j, T product) {
                        x[i * of_scores + j] = offsets && j < n ? product + offsets[j] : product;
                      });
      const int name = static_cast<int>(at - begin);
      block.template reduce_rows<int>(
          count, n, Plus{},
          [&](int i, int j) { return of(i).wants(k, x[i * of_scores + j], name + j) ? 1 : 0; },
          [&](int i, int many) {
            for (int j = 0; many > 0 && j < n; ++j) {
              if (!of(i).wants(k, x[i * of_scores + j], name + j)) continue;
              of(i).take(k, x[i * of_scores + j], name + j);
            }
          });
    }

    const Index to = (group * each + first) * pieces + piece;
    block.each(count * k, [&](int item) {
      const int i = item / k, j = item - i * k, many = counts[i];
      if (j >= many) return;
      const T score = best[item];
      const int index = names[item];
      int rank = 0;
      for (int other = i * k; other < i * k + many; ++other)
        rank += comes_before(best[other], names[other], score, index);
      const Index at = (to + i * pieces) * k + rank;
      scores[at] = score;
      indices[at] = begin + index;
    });
    block.each(count, [&](int i) { held[to + i * pieces] = counts[i]; });
  }

 private:
  /// Fills a tile with n keys, which stand one behind the other, and zeros behind them.
  template <class Block>
  INFTY_HOST_DEVICE void copy_keys(Block& block, const Stored* from, int n, T* tile) const {
    if constexpr (std::is_same_v<T, Stored>) {
      copy_tile(block, TileSource<T>{from, size.head_dim, head_dim(), wide, 0, 0, n, tile_keys,
                                     tile, across});
    } else {
      block.each(tile_keys * across.divisor(), [&](int item) {
        const int key = across.quotient(item), d = 4 * (item - key * across.divisor());
        Four<T> four;
        for (int i = 0; i < 4; ++i)
          four.x[i] = key < n && d + i < head_dim()
                          ? static_cast<T>(from[Index{key} * size.head_dim + d + i])
                          : T(0);
        store_four(tile + key * leading() + d, four);
      });
    }
  }
};

}  // namespace infty::detail
