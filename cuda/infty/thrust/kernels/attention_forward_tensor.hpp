// SPDX-License-Identifier: MIT
#pragma once

#include <cstddef>

#include <infty/thrust/kernels/attention_tensor_memory.hpp>
#include <infty/thrust/kernels/attention_tensor_tile.hpp>
#include <infty/thrust/kernels/attention_tiles.hpp>
#include <infty/thrust/tensor_cores.hpp>
#include <infty/thrust/tile.hpp>
#include <infty/thrust/tile_product.hpp>

namespace infty::detail {

/// `AttentionForward` by tensor cores: each warp has 16 queries, and keeps them, their scores and
/// their sums in registers   [Dao 2023, "FlashAttention-2", §3].
///
/// Queries i and keys j of a tile meet at 47 distances, z = 15 - i + j. Of these the tile before,
/// 32 keys back, has had the first 15: a warp computes products with 32 rows of r a tile, and keeps
/// those with the last 16. Each query reads them from another place on, in shared memory.
///
/// @tparam In     what floats are to tensor cores: `InTf32` or `InBfloat16`
/// @tparam width  columns of a head in shared memory, D at least: 32, 64 or 128
template <class In, int width>
struct TensorAttentionForward : AttentionTiles<float> {
  using Sizes = TensorAttentionSizes<width>;
  static constexpr int threads = Sizes::threads;
  /// As many as an H100's shared memory has room for, four at most.
  static constexpr int abreast = width == 32 ? 3 : 2;

  float *y, *log_sum;
  bool wide_y;  ///< y is aligned for `load_four`

  Index blocks() const { return size.batch * size.heads * query_tiles(); }
  std::size_t shared_bytes() const { return Sizes::shared_bytes(); }

  template <class Block>
  INFTY_HOST_DEVICE void operator()(Block& block) const {
    using Tile = TensorAttentionTile<In, width, Block>;
    using Warp = typename Tile::Warp;
    using State = typename Tile::State;
    constexpr int keys = Sizes::keys, before = Sizes::places - Sizes::warp_rows;
    const Tile tile(*this, block);
    typename Block::template OfWarps<State> states;
    tile.clear(block);
    block.each_warp(states,
                    [&](const Warp& warp, State& state) { tile.load_queries(warp, state); });

    // The ring of rows of r as it was a tile ago, without the 16 that no query needs any more.
    const int end = tile.end(), lead = count_queries() - tile.work->first;
    int key = tile.work->begin / keys * keys, base = 0;
    tile.start_distances(block, lead + key - before, before, Sizes::warp_rows);
    block.commit();
    block.template wait<0>();
    block.each_warp(states,
                    [&](const Warp& warp, State& state) { tile.start_scores(warp, state); });

    const auto start_keys = [&] {
      base = tile.wrapped(base + keys);
      tile.start_keys(block, key);
      tile.start_distances(block, lead + key, keys, tile.wrapped(base + Sizes::places - keys));
    };
    start_keys();
    block.commit();
    while (key < end) {
      block.template wait<0>();
      tile.start_values(block, key);
      block.commit();
      block.each_warp(states, [&](const Warp& warp, State& state) {
        if (tile.sees(warp, key)) tile.scores(warp, state, key, base);
      });
      // What comes next is on its way while the weights are computed.
      const int here = key;
      key += keys;
      if (key < end) start_keys();
      block.commit();
      block.template wait<1>();
      block.each_warp(states, [&](const Warp& warp, State& state) {
        if (!tile.sees(warp, here)) return;
        tile.weigh(warp, state, here);
        tile.add_values(warp, state);
      });
    }
    block.each_warp(states, [&](const Warp& warp, State& state) {
      tile.write(warp, state, y, log_sum, wide_y);
    });
  }
};

/// Whether tensor cores have a kernel for such heads.
inline bool tensor_attention_fits(const AttentionSize& s) {
  return s.head_dim <= 128 && !s.mirrored;
}

/// f of `InTf32` or `InBfloat16`, as this thread's settings say.
template <class F>
void in_tensor_precision(const F& f) {
  if (gpu::allow_bf16())
    f(InBfloat16{});
  else if (gpu::allow_tf32())
    f(InTf32<1>{});
  else
    f(InTf32<2>{});
}

/// Runs `TensorAttentionForward` in that precision.
template <class System>
void tensor_attention(const AttentionTiles<float>& shared, float* y, float* log_sum) {
  const auto run = [&]<class In, int width>() {
    TensorAttentionForward<In, width> kernel{shared, y, log_sum,
                                             aligned_for_four(y, shared.size.head_dim)};
    kernel.tile_rows = TensorAttentionSizes<width>::block_rows;
    launch<System>(kernel.blocks(), kernel);
  };
  in_tensor_precision([&]<class In>(In) {
    const Index d = shared.size.head_dim;
    if (d <= 32) return run.template operator()<In, 32>();
    if (d <= 64) return run.template operator()<In, 64>();
    run.template operator()<In, 128>();
  });
}

}  // namespace infty::detail
