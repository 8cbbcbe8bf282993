// SPDX-License-Identifier: MIT
#pragma once

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>
#include <new>
#include <type_traits>

#include <infty/core/kernel/nearest.hpp>
#include <infty/core/number.hpp>
#include <infty/eigen/nearest_candidates.hpp>
#include <infty/eigen/nearest_scores.hpp>
#include <infty/eigen/parallel.hpp>
#include <infty/eigen/register_tile.hpp>
#include <infty/eigen/scratch.hpp>
#include <infty/eigen/transpose.hpp>

namespace infty::detail {

/// A tile of queries that meets keys of one head of one row, and the best that each has met. Keys
/// of another type are turned into T where they stay in cache: those that many queries meet a tile
/// at a time, those of few as they are loaded.
template <class T, class Stored>
struct NearestTile {
  static constexpr Index most_queries = 64;
  static constexpr Index few = 4;  ///< queries that would leave vectors empty: each goes by itself
  static constexpr Index key_tile = 84, key_block = 512;  ///< keys that many, and few, meet at once

  const NearestSize& s;
  const NearestRow<T, Stored>& row;
  Index key_head, first, count;  ///< of its queries among those of the key head
  Index begin, end;              ///< of the keys, among the row's entries
  Candidates<T>& found;          ///< of each query
  SharedFloor<T>* floors;        ///< of each query
  T* memory;

  static constexpr bool widens = !std::is_same_v<T, Stored>;

  /// Numbers in `memory`: queries turned, the numbers that scores must exceed, scores, keys.
  static Index size(Index head_dim) {
    return most_queries * (head_dim + 1) + key_block + (widens ? key_tile * head_dim : 0);
  }

  T* across() const { return memory; }                             ///< [D, most_queries]
  T* least() const { return memory + most_queries * s.head_dim; }  ///< [most_queries]
  T* scores() const { return least() + most_queries; }             ///< [key_block]
  T* widened() const { return scores() + key_block; }              ///< [key_tile, D]

  /// A query: all of a row one behind the other where they share a key head, else every H-th.
  const T* query(Index i) const {
    return row.queries +
           (s.key_heads == 1 ? first + i : (first + i) * s.heads + key_head) * s.head_dim;
  }

  void run() const {
    // Where there is no query, nothing exceeds.
    std::fill_n(least(), most_queries, math::infinity<T>);
    std::fill_n(least(), count, -math::infinity<T>);
    for (Index i = 0; i < count; ++i) found.clear(i);
    for (Index i = 0; i < count; ++i) heed_floor(i);
    if (count > few) {
      std::fill_n(across(), most_queries * s.head_dim, T(0));
      transpose(count, s.head_dim, query(0), (s.key_heads == 1 ? 1 : s.heads) * s.head_dim,
                across(), most_queries);
    }
    for (Index at = begin, n; at < end; at += n) {
      const Index entry = row.first + at, place = entry % s.block;
      n = (std::min)({end - at, s.block - place, count > few ? key_tile : key_block});
      const Stored* const keys =
          row.blocks[entry / s.block] + (key_head * s.block + place) * s.head_dim;
      const T* const offsets =
          row.offsets == nullptr ? nullptr : row.offsets[entry / s.block] + place;
      if (count > few) {
        const T* const wide = in_cache(n, keys);
        for (Index j = 0; j < count; j += 2 * Simd<T>::width)
          count - j > Simd<T>::width ? meet<tile_rows<T>, 2>(at, j, n, wide, offsets)
                                     : meet<tile_rows<T>, 1>(at, j, n, wide, offsets);
      } else {
        for (Index i = 0; i < count; ++i) meet_alone(at, i, n, keys, offsets);
      }
    }
  }

  /// A tile of n keys as numbers of type T.
  const T* in_cache(Index n, const Stored* keys) const {
    if constexpr (widens) {
      const Index all = n * s.head_dim;
      Index i = 0;
      for (; i + Simd<T>::width <= all; i += Simd<T>::width)
        Simd<T>::store(widened() + i, load_as<T>(keys + i));
      for (; i < all; ++i) widened()[i] = static_cast<T>(keys[i]);
      return widened();
    } else {
      return keys;
    }
  }

  /// Lets what others have found count for query i.
  void heed_floor(Index i) const {
    const T floor = floors[i].load(std::memory_order_relaxed);
    // Of equal scores the index decides, so that only what is less is of no use. A denormal number
    // would be a zero where those are not told apart from it.
    constexpr T least_normal = (std::numeric_limits<T>::min)();
    T below = std::nextafter(floor, -math::infinity<T>);
    if (below > -least_normal && below < least_normal) below = -least_normal;
    if (floor > least()[i]) least()[i] = (std::max)(least()[i], below);
  }
  /// Whether each score is wanted of query i, since there are no k to compare it with.
  bool wants_all(Index i) const { return found.held(i) < s.k && least()[i] == -math::infinity<T>; }

  /// Queries from j on, so many vectors of them, and n keys, the first of which is entry `base`.
  template <int rows, int vectors>
  void meet(Index base, Index j, Index n, const T* keys, const T* offsets) const {
    constexpr Index width = vectors * Simd<T>::width;
    const Index wide = (std::min)(width, count - j);
    bool floored = true;
    for (Index q = j; q < j + wide; ++q) floored &= !wants_all(q);
    const Index step = offsets == nullptr ? 0 : rows;
    for (; n >= rows; n -= rows, base += rows, keys += rows * s.head_dim, offsets += step) {
      const bool all = !floored && base - begin < s.k;  // heaps are not full
      if (!exceeding_products<rows, vectors>(s.head_dim, keys, offsets, across() + j, most_queries,
                                             least() + j, all, scores()))
        continue;
      using S = Simd<T>;
      for (Index i = 0; i < rows; ++i)
        for (Index q = 0; q < width; q += S::width) {
          const T* const x = scores() + i * width + q;
          std::uint64_t wanted = all ? (std::uint64_t{2} << (S::width - 1)) - 1
                                     : lanes_above(S::load(x), S::load(least() + j + q));
          for (; wanted != 0; wanted &= wanted - 1) {
            const Index lane = std::countr_zero(wanted);
            if (q + lane < wide) keep(j + q + lane, x[lane], base + i);
          }
        }
    }
    if constexpr (rows > 1) {
      if (n > 0) meet<(rows > 8 ? 8 : rows / 2), vectors>(base, j, n, keys, offsets);
    }
  }

  /// Query i and n keys: these are read once, and little else is done.
  void meet_alone(Index base, Index i, Index n, const Stored* keys, const T* offsets) const {
    using S = Simd<T>;
    T* const x = scores();
    const T* const q = query(i);
    Index j = 0;
    for (; j + 8 <= n; j += 8) dot_products<8>(s.head_dim, keys + j * s.head_dim, q, x + j);
    for (; j < n; ++j) dot_products<1>(s.head_dim, keys + j * s.head_dim, q, x + j);
    if (offsets != nullptr)
      for (j = 0; j < n; ++j) x[j] += offsets[j];
    heed_floor(i);
    for (j = 0; j + S::width <= n; j += S::width) {
      const typename S::Vector limit = least()[i] - typename S::Vector{};
      if (all_of(S::load(x + j) <= limit) && !wants_all(i)) continue;  // NaN is not
      for (Index one = j; one < j + S::width; ++one) keep(i, x[one], base + one);
    }
    for (; j < n; ++j) keep(i, x[j], base + j);
  }

  /// Takes a score in if it may be among the k best.
  void keep(Index i, T score, Index index) const {
    if ((score <= least()[i] && !wants_all(i)) || !found.add(i, score, index)) return;
    const T worst = found.cut(i);
    // Where k are NaN nothing but another one comes before any of them.
    const T bar = math::is_nan_at(&worst) ? math::infinity<T> : worst;
    if (bar > least()[i]) least()[i] = bar;
    raise_floor(floors[i], worst);
  }

  /// Writes the k best of each query, or as many as there are, and how many to `held`; from one
  /// query to the next `apart` times k.
  void write(Found<T>* to, Index* held, Index apart) const {
    for (Index i = 0; i < count; ++i) {
      if (found.held(i) > s.k) raise_floor(floors[i], found.cut(i));
      const Index n = held[i * apart] = found.held(i);
      const T* const scores = found.scores(i);
      const Index* const indices = found.indices(i);
      for (Index j = 0; j < n; ++j) to[i * apart * s.k + j] = {scores[j], indices[j]};
    }
  }
};

/// The search for the nearest keys, as a product whose result is not written: a tile of queries
/// meets tiles of keys where they stand, with the products in registers; what exceeds a query's
/// k-th best goes into its buffer. Where queries are few, several threads may divide the keys among
/// them.
struct FusedNearest {
  static constexpr Index jobs_wanted = 32;  ///< of a search
  /// Keys of a job at least, where queries are few and where they fill a tile: in each job a query
  /// has to find its first k anew.
  static constexpr Index least_keys = 4096, least_keys_of_tile = 16384;

  template <class T, class Stored>
  static void search(const NearestSize& s, const NearestRow<T, Stored>* rows, Index batch) {
    using Tile = NearestTile<T, Stored>;
    // Queries that meet the same keys: of one head, or of all where they share a key head.
    const Index each = s.queries * (s.heads / s.key_heads), groups = batch * s.key_heads;
    const Index tiles = (each + Tile::most_queries - 1) / Tile::most_queries;
    if (groups * each == 0) return;
    Index longest = 0;
    for (Index b = 0; b < batch; ++b) longest = (std::max)(longest, rows[b].count);
    // The number of threads has no say in how the work is cut.
    const Index least = each > Tile::few ? least_keys_of_tile : least_keys;
    const Index pieces =
        std::clamp<Index>(longest / least, 1, std::max<Index>(1, jobs_wanted / (groups * tiles)));
    const auto part = [&](const NearestRow<T, Stored>& row, Index piece) {
      return row.count * piece / pieces;
    };
    // Threads are not worth while for less than some microseconds.
    const Index cost = (std::min)(each, Tile::most_queries) * (longest / pieces) * s.head_dim;
    const Index grain = std::max<Index>(1, (Index{1} << 18) / std::max<Index>(1, cost));
    Scratch<Found<T>> heaps(pieces * groups * each * s.k);
    Scratch<Index> held(pieces * groups * each);
    Scratch<SharedFloor<T>> floors(groups * each);
    for (Index i = 0; i < groups * each; ++i)
      new (floors.data() + i) SharedFloor<T>(-math::infinity<T>);
    parallel_for(groups * tiles * pieces, grain, [&](Index begin, Index end) {
      Scratch<T> scratch(Tile::size(s.head_dim));
      Candidates<T> found((std::min)(each, Tile::most_queries), s.k,
                          (longest + pieces - 1) / pieces);
      for (Index job = begin; job < end; ++job) {
        const Index piece = job % pieces, group = job / pieces / tiles;
        const Index first = job / pieces % tiles * Tile::most_queries;
        const NearestRow<T, Stored>& row = rows[group / s.key_heads];
        const Index heap = (group * each + first) * pieces + piece;
        const Tile tile{s,
                        row,
                        group % s.key_heads,
                        first,
                        (std::min)(Tile::most_queries, each - first),
                        part(row, piece),
                        part(row, piece + 1),
                        found,
                        floors.data() + group * each + first,
                        scratch.data()};
        tile.run();
        tile.write(heaps.data() + heap * s.k, held.data() + heap, pieces);
      }
    });
    parallel_for(groups * each, Tile::most_queries, [&](Index begin, Index end) {
      for (Index i = begin; i < end; ++i) {
        const Index group = i / each, query = i % each, key_head = group % s.key_heads;
        const NearestRow<T, Stored>& row = rows[group / s.key_heads];
        Found<T>* const all = heaps.data() + i * pieces * s.k;
        Found<T>* behind = all;
        for (Index piece = 0; piece < pieces; ++piece) {
          const Index n = held.data()[i * pieces + piece];
          const Found<T>* const from = all + piece * s.k;
          const T floor = floors.data()[i].load(std::memory_order_relaxed);
          behind = std::copy_if(from, from + n, behind,
                                [floor](const Found<T>& one) { return !(one.score < floor); });
        }
        const Index found = std::min<Index>(s.k, behind - all);
        std::nth_element(all, all + found, behind);
        std::sort(all, all + found);
        const Index to = (s.key_heads == 1 ? query : query * s.heads + key_head) * s.k;
        for (Index j = 0; j < s.k; ++j) {
          row.scores[to + j] = j < found ? all[j].score : -math::infinity<T>;
          row.indices[to + j] = j < found ? all[j].index : Index{-1};
        }
      }
    });
  }
};

}  // namespace infty::detail
