// SPDX-License-Identifier: MIT
#pragma once

#include <algorithm>
#include <type_traits>
#include <utility>
#include <vector>

#include <infty/autograd/top_k.hpp>
#include <infty/core/for_each.hpp>
#include <infty/core/kernel/chosen.hpp>
#include <infty/core/kernel/nearest.hpp>
#include <infty/core/number.hpp>
#include <infty/memory/key_value_store.hpp>

namespace infty {

namespace detail {

/// Of every row of x (rows, width), its first `held` numbers the best so far and the next `added`
/// new scores, those that come first go to its front and to `scores`, and the entries that they
/// belong to to `indices`, both (rows, k). The first new one is entry `base`.
template <class B, class T>
void keep_nearest(Index rows, Index width, Index held, Index added, Index base, Index k, T* x,
                  Index* order, Index* names, T* scores, Index* indices) {
  const Index n = held + added, kept = n < k ? n : k;
  B::for_each_row(rows, 4 * n, [=] INFTY_HOST_DEVICE(Index row) {
    T *const all = x + row * width, *const best = scores + row * k;
    Index *const at = order + row * k, *const next = names + row * k, *const to = indices + row * k;
    chosen_row_top_k<B>(n, kept, all, at);
    for (Index j = 0; j < kept; ++j) {
      best[j] = all[at[j]];
      next[j] = at[j] < held ? to[at[j]] : base + at[j] - held;
    }
    for (Index j = 0; j < kept; ++j) {
      all[j] = best[j];
      to[j] = next[j];
    }
  });
}

/// Writes what each of `added` keys adds to its scores under each of the rows of x (rows, width).
template <class B, class T>
void spread_offsets(Index rows, Index added, Index width, const T* offsets, T* x) {
  for_each_element<B>(rows, added, [=] INFTY_HOST_DEVICE(Index row, Index key) {
    x[row * width + key] = offsets[key];
  });
}

}  // namespace detail

/// The composition that defines `nearest`, from primitives: the scores of a block of keys, and the
/// best of these and of the best so far. It runs on every backend and is the oracle of the fused
/// kernels that a backend may bring.
template <class B>
struct ComposedNearest {
  template <class Own = B>
  using Kernel = typename Own::FusedNearest;

  /// Searches each row by itself.
  template <class T, class Stored>
  static void search(const NearestSize& s, const NearestRow<T, Stored>* rows, Index batch) {
    const Index n = s.queries * s.heads, D = s.head_dim;
    Index longest = 0;
    for (Index b = 0; b < batch; ++b) longest = (std::max)(longest, rows[b].count);
    const Index width = s.k + (std::min)(s.block, longest);
    const bool shared = s.key_heads == 1;  // then all heads' queries are rows of one product
    Tensor<T, B> seen(Shape{n, width});
    const Index room = std::is_same_v<T, Stored> ? 0 : (std::min)(s.block, longest);
    Tensor<T, B> widened(Shape{s.key_heads, room, D});
    Tensor<Index, B> order(Shape{n, s.k}), names(Shape{n, s.k});
    for (Index b = 0; b < batch; ++b) {
      const NearestRow<T, Stored>& row = rows[b];
      B::fill(row.scores, n * s.k, -math::infinity<T>);
      B::fill(row.indices, n * s.k, Index{-1});
      const Index end = row.first + row.count;
      for (Index at = row.first, held = 0, added; at < end; at += added) {
        added = (std::min)(s.block - at % s.block, end - at);
        if (row.offsets != nullptr)
          detail::spread_offsets<B>(n, added, width, row.offsets[at / s.block] + at % s.block,
                                    seen.data() + held);
        const Stored* const stored = row.blocks[at / s.block] + at % s.block * D;
        const T* keys = nullptr;
        if constexpr (std::is_same_v<T, Stored>) {
          keys = stored;
        } else {
          detail::copy_entries<B>(s.key_heads, added, D, stored, s.block * D, D, widened.data(),
                                  room * D, D);
          keys = std::as_const(widened).data();
        }
        B::matmul(
            {.m = shared ? n : s.queries,
             .n = added,
             .k = D,
             .a = {.leading = shared ? D : s.heads * D, .inner = D},
             .b = {.leading = D, .inner = (room > 0 ? room : s.block) * D, .transposed = true},
             .c = {.leading = shared ? width : s.heads * width, .inner = width},
             .inner = shared ? 1 : s.heads},
            T(1), row.queries, keys, row.offsets == nullptr ? T(0) : T(1), seen.data() + held);
        detail::keep_nearest<B>(n, width, held, added, at - row.first, s.k, seen.data(),
                                order.data(), names.data(), row.scores, row.indices);
        held = (std::min)(s.k, held + added);
      }
    }
  }
};

/// What a search finds.
template <class T, class B>
struct Nearest {
  Tensor<T, B> scores;       ///< [B, L, H, k], inner products, the largest first
  Tensor<Index, B> indices;  ///< [B, L, H, k], of entries from a row's oldest one on; -1 for none
};

/// The k keys of each row that have the largest inner products with each of its queries, exactly,
/// or as many as there are: of equal ones the older come first, on every backend and with any
/// number of threads. No gradient flows through a search. A backend may bring a kernel that never
/// writes all scores.
/// @param queries  [B, L, H D]; where the store has one key head, all H heads search it
/// @return k at most, and no more than the row with most entries has
/// @throws infty::ShapeError if the shapes do not fit; infty::ValueError unless k >= 1
template <class T, class B, class Stored>
Nearest<T, B> nearest(const Tensor<T, B>& queries, const StoredEntries<T, B, Stored>& stored,
                      Index heads, Index k) {
  const Index batch = static_cast<Index>(stored.count.size()), D = stored.head_dim;
  const Index length = queries.rank() == 3 ? queries.dim(1) : 0;
  require<ShapeError>(heads >= 1 && (stored.key_heads == 1 || stored.key_heads == heads), "nearest",
                      "heads are ", heads, ", of the keys ", stored.key_heads,
                      ": these must be as many, or 1");
  require<ShapeError>(queries.shape() == Shape{batch, length, heads * D}, "nearest", "queries are ",
                      queries.shape(), ": they must be [", batch, ", L, ", heads * D, "]");
  require_at_least("nearest", "k", k, 1);
  const Index most = (std::min)(k, stored.longest());
  Nearest<T, B> out{Tensor<T, B>(Shape{batch, length, heads, most}),
                    Tensor<Index, B>(Shape{batch, length, heads, most})};
  if (out.scores.empty()) return out;
  std::vector<NearestRow<T, Stored>> rows(static_cast<std::size_t>(batch));
  for (Index b = 0; b < batch; ++b) {
    const auto row = static_cast<std::size_t>(b);
    const Index found = b * length * heads * most;
    rows[row] = {queries.data() + b * length * heads * D,
                 stored.blocks.data() + b * stored.most,
                 stored.first[row],
                 stored.count[row],
                 out.scores.data() + found,
                 out.indices.data() + found};
  }
  detail::chosen_t<ComposedNearest<B>>::search(
      NearestSize{length, heads, stored.key_heads, D, stored.block, most}, rows.data(), batch);
  return out;
}

}  // namespace infty
