// SPDX-License-Identifier: MIT
#pragma once

#include <cmath>
#include <cstdint>

#include <infty/core/fold.hpp>
#include <infty/core/math.hpp>
#include <infty/core/number.hpp>
#include <infty/thrust/kernels/attention_tensor_memory.hpp>
#include <infty/thrust/tensor_product.hpp>
#include <infty/thrust/tile_product.hpp>
#include <infty/thrust/unroll.hpp>

namespace infty::detail {

/// A block's work on a tile of queries, step by step.
template <class In, int width, class Block>
struct TensorAttentionTile : TensorAttentionMemory<width, Block> {
  using Memory = TensorAttentionMemory<width, Block>;
  using Memory::attention, Memory::work, Memory::k, Memory::r, Memory::v, Memory::bias;
  using Memory::keys, Memory::leading, Memory::of_entry, Memory::of_values, Memory::of_warp,
      Memory::places, Memory::query, Memory::warp_rows, Memory::wrapped;
  using typename Memory::Warp;
  template <int N>
  using Floats = typename Warp::template Lanes<float, N>;
  using Left = typename In::template Factor<Warp, 4>;
  using Right = typename In::template Factor<Warp, 2>;

  using Memory::Memory;

  /// What a warp keeps. A lane has rows lane / 4 and 8 more, and of 8 columns the two that it has
  /// of a product's sums; which columns of q and y these are, `load_queries` and `write` say.
  struct State {
    Floats<width / 2> q, out;  // out: relative to exp(top), to be divided by the sum
    Floats<keys / 2> p;        // scores, then weights
    Floats<2> top, sum;        // sum: of this lane's weights, not yet of its row's
    Floats<2> scale;           // of `out`, when the next values are added
  };

  /// Reads a warp's queries: of every 16 columns a lane has 4 neighbours, from 4 (lane % 4) on, as
  /// of two steps of 8.
  INFTY_HOST_DEVICE void load_queries(const Warp& warp, State& state) const {
    const AttentionSize& s = attention.size;
    warp.lanes([&](int lane) {
      INFTY_OVER_REGISTERS
      for (int side = 0; side < 2; ++side) {
        const int i = query(warp) + lane / 4 + side * 8;
        const bool there = i < attention.count_queries();
        const float* const q = attention.in.q +
                               (work->row * s.queries + (there ? i : work->first)) * s.model() +
                               work->head * s.head_dim;
        const float* const u = attention.in.u + work->head * s.head_dim;
        INFTY_OVER_REGISTERS
        for (int c = 0; c < width / 16; ++c) {
          const int column = 16 * c + lane % 4 * 4;
          const Four<float> x = four(q, column, attention.wide), y = four(u, column, false);
          INFTY_OVER_REGISTERS
          for (int l = 0; l < 4; ++l)
            state.q[lane][8 * c + l / 2 * 4 + side * 2 + l % 2] =
                there ? In::kept(x.x[l] + y.x[l]) : 0;
        }
      }
      INFTY_OVER_REGISTERS
      for (int i = 0; i < width / 2; ++i) state.out[lane][i] = 0;
      INFTY_OVER_REGISTERS
      for (int i = 0; i < 2; ++i) {
        state.top[lane][i] = -math::infinity<float>;
        state.sum[lane][i] = 0;
      }
    });
  }

  /// Computes the products with the 16 rows of r before those that the first tile of keys brings.
  INFTY_HOST_DEVICE void start_scores(const Warp& warp, const State& state) const {
    if (query(warp) >= attention.count_queries()) return;
    Floats<warp_rows / 2> sum;
    by_distance(warp, state.q, places - (warp.index() + 1) * warp_rows, sum);
    float* const mine = of_warp(warp);
    warp.exchange([&](int lane) {
      INFTY_OVER_REGISTERS
      for (int i = 0; i < warp_rows / 2; ++i) mine[keys + of_entry(lane, i)] = sum[lane][i];
    });
  }

  /// The products of a warp's queries with a tile of keys and with the rows of their distances, of
  /// which those that are new stand in the ring `base` places further than at the start.
  INFTY_HOST_DEVICE void scores(const Warp& warp, State& state, int key, int base) const {
    Floats<keys / 2> fresh;
    by_distance(warp, state.q, wrapped(base + places - keys - warp.index() * warp_rows), fresh,
                again(key));
    float* const mine = of_warp(warp);
    warp.exchange([&](int lane) {
      INFTY_OVER_REGISTERS
      for (int i = 0; i < warp_rows / 2; ++i)
        mine[of_entry(lane, i)] = mine[keys + of_entry(lane, i)];
      INFTY_OVER_REGISTERS
      for (int i = 0; i < keys / 2; ++i) mine[warp_rows + of_entry(lane, i)] = fresh[lane][i];
    });
    warp.lanes([&](int lane) {
      INFTY_OVER_REGISTERS
      for (int i = 0; i < keys / 2; ++i) {
        const int row = entry_of_sum(lane, i % 4).row;
        state.p[lane][i] = mine[of_entry(lane, i) + warp_rows - 1 - row];
      }
    });
    add_products(
        warp, state.q, [&](int tile) { return k + 8 * tile * leading; }, state.p, again(base));
  }

  /// Turns scores into weights relative to the row's largest so far, and scales the sum of those
  /// before; `out` is yet to be.
  INFTY_HOST_DEVICE void weigh(const Warp& warp, State& state, int key) const {
    const int i0 = query(warp), begin = work->begin;
    if (key < begin || key + keys - 1 > attention.memory() + i0)
      warp.lanes([&](int lane) {
        INFTY_OVER_REGISTERS
        for (int i = 0; i < keys / 2; ++i) {
          const Entry at = entry_of_sum(lane, i % 4);
          if (!attention.visible(i0 + at.row, key + i / 4 * 8 + at.column,
                                 {begin, attention.count_keys()}))
            state.p[lane][i] = -math::infinity<float>;
        }
      });
    Floats<2> top;
    warp.lanes([&](int lane) {
      INFTY_OVER_REGISTERS
      for (int side = 0; side < 2; ++side) top[lane][side] = state.top[lane][side];
      INFTY_OVER_REGISTERS
      for (int i = 0; i < keys / 2; ++i) {
        const float p = state.p[lane][i] *= attention.factor;
        float& most = top[lane][i % 4 / 2];
        most = most > p ? most : p;
      }
    });
    warp.fold_quads(top, Larger{});
    warp.lanes([&](int lane) {
      INFTY_OVER_REGISTERS
      for (int side = 0; side < 2; ++side) {
        // Of a row that has seen nothing yet all weights are exp(-infinity).
        const float largest = top[lane][side];
        const float base = largest == -math::infinity<float> ? 0 : largest;
        const float scale = math::exp_decay(state.top[lane][side] - base);
        state.top[lane][side] = largest;
        float sum = 0;
        INFTY_OVER_REGISTERS
        for (int i = 0; i < keys / 2; ++i)
          if (i % 4 / 2 == side) sum += state.p[lane][i] = math::exp_decay(state.p[lane][i] - base);
        state.sum[lane][side] = state.sum[lane][side] * scale + sum;
        state.scale[lane][side] = scale;
      }
    });
  }

  /// Adds the weighted values. Of every 32 columns a lane reads 4 neighbours, from 4 (lane / 4) on:
  /// one for each of four products of 8 columns. A tile's values are summed apart and then added as
  /// float adds: over thousands of keys it would show that tensor cores cut sums towards zero.
  INFTY_HOST_DEVICE void add_values(const Warp& warp, State& state) const {
    INFTY_OVER_REGISTERS
    for (int column = 0; column < width; column += 32) {
      if (width == 128 && column >= attention.head_dim()) break;
      Floats<16> sum;
      set_zero<Warp, 16>(warp, sum);
      INFTY_OVER_REGISTERS
      for (int row = 0; row < keys; row += 16) {
        Left a;
        take_pairs(warp, a, [&](int lane, int i) { return state.p[lane][row / 2 + i]; });
        Floats<16> x;
        warp.lanes([&](int lane) {
          const float* const from = v + (row + lane % 4 * 2) * of_values + column + lane / 4 * 4;
          INFTY_OVER_REGISTERS
          for (int i = 0; i < 4; ++i) {
            const Four<float> four = load_four(from + (i / 2 * 8 + i % 2) * of_values);
            INFTY_OVER_REGISTERS
            for (int l = 0; l < 4; ++l) x[lane][4 * l + i] = four.x[l];
          }
        });
        INFTY_OVER_REGISTERS
        for (int l = 0; l < 4; ++l) {
          Right right;
          take_pairs(warp, right, [&](int lane, int i) { return x[lane][4 * l + i]; });
          In::multiply_add(warp, sum, 4 * l, a, right);
        }
      }
      warp.lanes([&](int lane) {
        INFTY_OVER_REGISTERS
        for (int i = 0; i < 16; ++i) {
          float& out = state.out[lane][column / 2 + i];
          out = out * state.scale[lane][i % 4 / 2] + sum[lane][i];
        }
      });
    }
  }

  /// Writes y and log_sum: of every 32 columns a lane has 8 neighbours, from 8 (lane % 4) on.
  INFTY_HOST_DEVICE void write(const Warp& warp, State& state, float* y, float* log_sum,
                               bool wide) const {
    const AttentionSize& s = attention.size;
    warp.fold_quads(state.sum, Plus{});
    warp.lanes([&](int lane) {
      INFTY_OVER_REGISTERS
      for (int side = 0; side < 2; ++side) {
        const int i = query(warp) + lane / 4 + side * 8;
        if (i >= attention.count_queries()) continue;
        const float total = state.sum[lane][side], share = 1 / total;
        float* const to = y + (work->row * s.queries + i) * s.model() + work->head * s.head_dim;
        INFTY_OVER_REGISTERS
        for (int c = 0; c < width / 16; ++c) {
          const int column = c / 2 * 32 + lane % 4 * 8 + c % 2 * 4;
          Four<float> x;
          INFTY_OVER_REGISTERS
          for (int l = 0; l < 4; ++l)
            x.x[l] = state.out[lane][4 * (c / 2 * 4 + l) + 2 * side + c % 2] * share;
          if (wide) {
            if (column < attention.head_dim()) *reinterpret_cast<Four<float>*>(to + column) = x;
          } else {
            INFTY_OVER_REGISTERS
            for (int l = 0; l < 4; ++l)
              if (column + l < attention.head_dim()) to[column + l] = x.x[l];
          }
        }
        if (lane % 4 == 0)
          log_sum[(work->row * s.queries + i) * s.heads + work->head] =
              state.top[lane][side] + std::log(total);
      }
    });
  }

 private:
  /// `tf32_half`, for no x is negative; but no compiler knows that, and so none keeps queries in
  /// TF32 from one product to the next, for which a lane of wide heads has not enough registers.
  INFTY_HOST_DEVICE static std::uint32_t again(int x) {
    if constexpr (!In::exact || width < 128) return tf32_half;
    return tf32_half + static_cast<std::uint32_t>(x >> 31);
  }
  /// Four columns of a vector, zeros from D on.
  INFTY_HOST_DEVICE Four<float> four(const float* x, int column, bool wide) const {
    const int d = attention.head_dim();
    Four<float> out{};
    if (wide) {
      if (column < d) out = load_four(x + column);
    } else {
      INFTY_OVER_REGISTERS
      for (int l = 0; l < 4; ++l)
        if (column + l < d) out.x[l] = x[column + l];
    }
    return out;
  }

  /// sum (16, 8 n) = bias + q rᵀ for the 8 n rows of r from a place on, a multiple of 16.
  template <int N>
  INFTY_HOST_DEVICE void by_distance(const Warp& warp, const Floats<width / 2>& q, int place,
                                     Floats<N>& sum, std::uint32_t round = tf32_half) const {
    warp.lanes([&](int lane) {
      INFTY_OVER_REGISTERS
      for (int i = 0; i < N; ++i)
        sum[lane][i] = bias[wrapped(place + i / 4 * 8) + entry_of_sum(lane, i % 4).column];
    });
    add_products(
        warp, q, [&](int tile) { return r + wrapped(place + 8 * tile) * leading; }, sum, round);
  }

  /// sum (16, 8 n) += q xᵀ, eight rows of x at rows(tile).
  template <int N, class Rows>
  INFTY_HOST_DEVICE void add_products(const Warp& warp, const Floats<width / 2>& q,
                                      const Rows& rows, Floats<N>& sum,
                                      std::uint32_t round = tf32_half) const {
    INFTY_OVER_REGISTERS
    for (int c = 0; c < width / 16; ++c) {
      if (width == 128 && 16 * c >= attention.head_dim()) break;
      Left a;
      warp.lanes([&](int lane) {
        INFTY_OVER_REGISTERS
        for (int p = 0; p < 4; ++p) {
          const float first = q[lane][8 * c + 2 * p], second = q[lane][8 * c + 2 * p + 1];
          if constexpr (In::exact)
            a.set(lane, p, first, second, round);
          else
            a.set_kept(lane, p, first, second);
        }
      });
      INFTY_OVER_REGISTERS
      for (int tile = 0; tile < N / 4; ++tile) {
        Floats<4> x;
        warp.lanes([&](int lane) {
          const Four<float> four =
              load_four(rows(tile) + lane / 4 * leading + 16 * c + lane % 4 * 4);
          INFTY_OVER_REGISTERS
          for (int l = 0; l < 4; ++l) x[lane][l] = four.x[l];
        });
        Right right;
        take_pairs(warp, right, [&](int lane, int i) { return x[lane][i]; });
        multiply_add_rounded<In>(warp, sum, 4 * tile, a, right);
      }
    }
  }
};

}  // namespace infty::detail
