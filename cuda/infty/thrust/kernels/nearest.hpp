// SPDX-License-Identifier: MIT
#pragma once

#include <algorithm>
#include <cstddef>
#include <type_traits>
#include <utility>
#include <vector>

#include <infty/core/number.hpp>
#include <infty/core/tensor.hpp>
#include <infty/memory/ops/nearest.hpp>
#include <infty/thrust/fixed_divisor.hpp>
#include <infty/thrust/kernels/nearest_tiles.hpp>
#include <infty/thrust/tile.hpp>
#include <infty/thrust/tile_product.hpp>

namespace infty {

template <class System>
struct ThrustBackend;

namespace detail {

/// Writes the k best of what all pieces have found for each query: each entry to the place that
/// its list and those of the other pieces give it.
template <class B, class T, class Stored>
void merge_nearest(const NearestSize& s, Index each, Index pieces, Index batch,
                   const NearestRow<T, Stored>* rows, const T* scores, const Index* indices,
                   const Index* held) {
  const Index k = s.k, of_row = s.queries * s.heads * k;
  B::for_each_element(batch, of_row, [=] INFTY_HOST_DEVICE(Index b, Index i) {
    rows[b].scores[i] = -math::infinity<T>;
    rows[b].indices[i] = -1;
  });
  const Index key_heads = s.key_heads, heads = s.heads;
  B::for_each_element(
      batch * key_heads * each, pieces * k, [=] INFTY_HOST_DEVICE(Index query, Index item) {
        const Index piece = item / k, j = item - piece * k, first = query * pieces;
        if (j >= held[first + piece]) return;
        const T score = scores[first * k + item];
        const Index index = indices[first * k + item];
        Index rank = j;
        for (Index p = 0; p < pieces; ++p) {
          if (p == piece) continue;
          const Index list = (first + p) * k;
          Index before = 0, end = held[first + p];  // how many come before it: in [before, end]
          while (before < end) {
            const Index middle = before + (end - before) / 2;
            if (comes_before(scores[list + middle], indices[list + middle], score, index))
              before = middle + 1;
            else
              end = middle;
          }
          rank += before;
        }
        if (rank >= k) return;
        const Index group = query / each, i = query - group * each;
        const NearestRow<T, Stored>& row = rows[group / key_heads];
        const Index to = (key_heads == 1 ? i : i * heads + group % key_heads) * k + rank;
        row.scores[to] = score;
        row.indices[to] = index;
      });
}

/// The search for the nearest keys by tiles of queries and keys in shared memory: no score is
/// written but those of what is found. Where queries are few, blocks divide the keys among them.
template <class System>
struct TiledNearest {
  using B = ThrustBackend<System>;

  /// Blocks that keep a GPU busy, and keys that are worth one.
  static constexpr Index blocks_wanted = 512, least_keys = 2048;

  /// As `ComposedNearest::search`.
  template <class T, class Stored>
  static void search(const NearestSize& s, const NearestRow<T, Stored>* rows, Index batch) {
    const auto kernel = fitted<T, Stored>(s, rows, batch);
    if (kernel.tile_rows == 0) return ComposedNearest<B>::search(s, rows, batch);
    run(kernel, rows, batch);
  }

  /// Whether such a search goes by tiles: k entries of a few queries must fit into shared memory
  /// beside the vectors, and places are counted in 32 bits. Others are left to the composition.
  template <class T, class Stored>
  static bool fits(const NearestSize& s, const NearestRow<T, Stored>* rows, Index batch) {
    return fitted<T, Stored>(s, rows, batch).tile_rows > 0;
  }

 private:
  template <class T, class Stored>
  static NearestTiles<T, Stored> fitted(const NearestSize& s, const NearestRow<T, Stored>* rows,
                                        Index batch) {
    constexpr Index most = Index{1} << 30;
    constexpr int items = NearestTiles<T, Stored>::threads * 16;  // a 4 x 4 product a thread
    NearestTiles<T, Stored> kernel{};
    kernel.size = s;
    kernel.each = s.queries * (s.heads / s.key_heads);
    Index longest = 0;
    for (Index b = 0; b < batch; ++b) longest = (std::max)(longest, rows[b].count);
    if (kernel.each >= most || longest >= most || s.k >= most / 64 || s.head_dim >= most / 256)
      return kernel;
    kernel.across = FixedDivisor(round_up_4(s.head_dim) / 4);
    const auto fits = [&] {
      for (kernel.tile_keys = (std::min)(256, items / kernel.tile_rows); kernel.tile_keys >= 32;
           kernel.tile_keys /= 2)
        if (kernel.shared_bytes() <= shared_everywhere) return true;
      return false;
    };
    kernel.tile_rows = 64;
    while (kernel.tile_rows > 4 && kernel.tile_rows / 2 >= kernel.each) kernel.tile_rows /= 2;
    while (kernel.tile_rows >= 4 && !fits()) kernel.tile_rows /= 2;
    // A `<` behind this name would be the beginning of arguments to Clang: there is a tile_rows<T>.
    if (!(kernel.tile_rows >= 4)) {
      kernel.tile_rows = 0;
      return kernel;
    }
    const Index blocks = std::max<Index>(1, batch * s.key_heads * kernel.tiles());
    kernel.pieces =
        std::clamp<Index>(blocks_wanted / blocks, 1, std::max<Index>(1, longest / least_keys));
    return kernel;
  }

  template <class T, class Stored>
  static void run(NearestTiles<T, Stored> kernel, const NearestRow<T, Stored>* rows, Index batch) {
    const NearestSize& s = kernel.size;
    const Index groups = batch * s.key_heads, lists = groups * kernel.each * kernel.pieces;
    if (lists == 0 || s.k == 0) return;

    // What the rows point to, in the backend's memory.
    std::vector<const Stored*> blocks;
    std::vector<const T*> offsets;
    const auto blocks_of = [&](const NearestRow<T, Stored>& row) {
      return (row.first + row.count + s.block - 1) / s.block;
    };
    kernel.wide = true;
    for (Index b = 0; b < batch; ++b) {
      const Index n = blocks_of(rows[b]);
      blocks.insert(blocks.end(), rows[b].blocks, rows[b].blocks + n);
      if (rows[b].offsets != nullptr)
        offsets.insert(offsets.end(), rows[b].offsets, rows[b].offsets + n);
      kernel.wide = kernel.wide && aligned_for_four(rows[b].queries, s.head_dim);
    }
    if constexpr (std::is_same_v<T, Stored>)
      for (const T* const block : blocks)
        kernel.wide = kernel.wide && aligned_for_four(block, s.head_dim);
    const auto all_blocks =
        Tensor<const Stored*, B>::from(Shape{std::ssize(blocks)}, blocks.data());
    const auto all_offsets = Tensor<const T*, B>::from(Shape{std::ssize(offsets)}, offsets.data());
    std::vector<NearestRow<T, Stored>> here(rows, rows + batch);
    Index block = 0, offset = 0;
    for (NearestRow<T, Stored>& row : here) {
      const Index n = blocks_of(row);
      row.blocks = all_blocks.data() + block;
      block += n;
      if (row.offsets == nullptr) continue;
      row.offsets = all_offsets.data() + offset;
      offset += n;
    }
    const auto there = Tensor<NearestRow<T, Stored>, B>::from(Shape{batch}, here.data());

    Tensor<T, B> scores(Shape{lists, s.k});
    Tensor<Index, B> indices(Shape{lists, s.k}), held(Shape{lists});
    kernel.rows = there.data();
    kernel.scores = scores.data();
    kernel.indices = indices.data();
    kernel.held = held.data();
    launch<System>(kernel.blocks(groups), kernel);
    merge_nearest<B>(s, kernel.each, kernel.pieces, batch, there.data(),
                     std::as_const(scores).data(), std::as_const(indices).data(),
                     std::as_const(held).data());
  }
};

}  // namespace detail

}  // namespace infty
