// SPDX-License-Identifier: MIT
#pragma once

#include <algorithm>
#include <cstddef>
#include <type_traits>
#include <utility>
#include <vector>

#include <infty/core/finite.hpp>
#include <infty/core/for_each.hpp>
#include <infty/core/moved.hpp>
#include <infty/memory/ops/nearest.hpp>
#include <infty/retrieval/datastore.hpp>
#include <infty/retrieval/index.hpp>
#include <infty/retrieval/rank.hpp>

namespace infty {

namespace detail {

/// offsets[i] = -|k_i|² / 2 of n keys (n, dim): q k + that is largest where |q - k|² is smallest.
template <class B, class Stored, class T>
void half_squares(Index n, Index dim, const Stored* keys, T* offsets) {
  B::for_each_row(n, dim, [=] INFTY_HOST_DEVICE(Index i) {
    T sum = 0;
    for (Index d = 0; d < dim; ++d) {
      const T x = static_cast<T>(keys[i * dim + d]);
      sum += x * x;
    }
    offsets[i] = -sum / 2;
  });
}

/// Copies what was found, `found` a row, to rows of k, none behind it; entries are counted from
/// `begin` on.
template <class B, class T>
void widen_found(Index rows, Index found, Index k, Index begin, const T* from, const Index* names,
                 T* scores, Index* indices) {
  for_each_element<B>(rows, k, [=] INFTY_HOST_DEVICE(Index row, Index j) {
    const bool any = j < found && names[row * found + j] >= 0;
    scores[row * k + j] = any ? from[row * found + j] : -math::infinity<T>;
    indices[row * k + j] = any ? names[row * found + j] + begin : Index{-1};
  });
}

}  // namespace detail

/// The exact search: every query meets every key, in the fused product and selection of the kNN
/// memory (`nearest`) where the backend has one. It reads the keys where the datastore has them,
/// and keeps a number for each where distances are asked for; on a backend with a memory of its own
/// it keeps a copy of the keys. The right one up to about a million keys.
///
/// Squared distances are compared as q k - |k|²/2, so two keys whose distances differ by less than
/// the rounding of that may change places at the k-th; what is returned is summed from the
/// differences.
///
/// Keys that are stored as another type than T are turned into it where they are met.
template <class T, class Backend, class Stored>
class ExactIndex {
 public:
  /// Makes an index of all that the datastore holds now.
  /// @param store  must outlive the index
  explicit ExactIndex(const Datastore<Stored>& store,
                      SearchMetric metric = SearchMetric::squared_l2)
      : store_(&store), metric_(metric) {
    update();
  }

  /// Takes in what was appended to the datastore since. No search may be under way.
  /// @throws infty::NonFiniteError where distances are asked for and the square of a key's length
  /// is no number in T; what an allocation does; then nothing has changed
  void update() {
    const Index block = store_->block(), D = dim(), end = store_->size();
    std::vector<Block> added;  // the last block anew, if it is not full, and new ones
    const std::size_t full = blocks_.size() - (size_ % block > 0 ? 1 : 0);
    Index room = room_;
    for (Index at = size_, n; at < end; at += n) {
      const Index place = at % block;
      n = (std::min)(block - place, end - at);
      Block& last = added.emplace_back();
      if (place > 0) {
        last = {blocks_.back(), squares_.back(), copies_.back()};
      } else {
        if constexpr (on_host) last.keys = store_->key(at);
        room = 0;
      }
      make_room(last, room, place, place + n);
      if constexpr (!on_host)
        Backend::from_host(last.copy.data() + place * D, store_->key(at), n * D);
      if (metric_ == SearchMetric::squared_l2) add_squares(last, at, place, n);
    }
    if (added.empty()) return;
    Tensor<const Stored*, Backend> device_blocks;
    if constexpr (!on_host) {
      std::vector<const Stored*> all(blocks_.begin(),
                                     blocks_.begin() + static_cast<std::ptrdiff_t>(full));
      for (const Block& one : added) all.push_back(one.keys);
      device_blocks = Tensor<const Stored*, Backend>::from(Shape{std::ssize(all)}, all);
    }
    const auto each = [this](const auto& f) { f(blocks_), f(offsets_), f(squares_), f(copies_); };
    each([count = full + added.size()](auto& v) {
      if (count > v.capacity()) v.reserve((std::max)(count, 2 * v.capacity()));
    });
    each([full](auto& v) { v.resize(full); });  // from here on nothing throws
    for (Block& one : added) {
      blocks_.push_back(one.keys);
      offsets_.push_back(std::as_const(one.squares).data());
      squares_.push_back(std::move(one.squares));
      copies_.push_back(std::move(one.copy));
    }
    device_blocks_ = std::move(device_blocks);
    room_ = room;
    size_ = end;
  }

  /// Keys that are searched.
  Index size() const { return size_; }
  /// D, numbers of a key.
  Index dim() const { return store_->dim(); }
  /// What makes a key near.
  SearchMetric metric() const { return metric_; }

  /// The k keys nearest to each query, exactly. Which these are of a query with NaN, or one that is
  /// so far from keys that the square of a distance is no number in T, is not said; the scores are
  /// NaN or -infinity then.
  /// @param queries  [Q, D]
  /// @throws infty::ShapeError if the shapes do not fit; infty::ValueError unless k >= 1
  Neighbours<T, Backend> search(const Tensor<T, Backend>& queries, Index k) const {
    return search(queries, k, 0, size_);
  }

  /// The same among the entries [begin, end) of the datastore alone, such as the last of a cache.
  /// @throws infty::ShapeError unless 0 <= begin <= end <= size() as well
  Neighbours<T, Backend> search(const Tensor<T, Backend>& queries, Index k, Index begin,
                                Index end) const {
    detail::require_search("ExactIndex::search", queries, dim(), k);
    require<ShapeError>(0 <= begin && begin <= end && end <= size_, "ExactIndex::search",
                        "entries are [", begin, ", ", end, "): they must be within [0, ", size_,
                        ")");
    const Index Q = queries.dim(0), found = (std::min)(k, end - begin);
    Neighbours<T, Backend> out{Tensor<T, Backend>(Shape{Q, k}),
                               Tensor<Index, Backend>(Shape{Q, k})};
    // The candidates of all queries are in memory at once.
    for (Index at = 0, n; at < Q; at += n) {
      n = (std::min)(most_at_once, Q - at);
      Tensor<T, Backend> scores(Shape{n, found});
      Tensor<Index, Backend> indices(Shape{n, found});
      if (found > 0) find(n, queries.data() + at * dim(), begin, end, scores, indices);
      detail::widen_found<Backend>(n, found, k, begin, std::as_const(scores).data(),
                                   std::as_const(indices).data(), out.scores.data() + at * k,
                                   out.indices.data() + at * k);
      if (metric_ == SearchMetric::squared_l2)
        detail::rank_by_keys<Backend>(n, k, dim(), metric_, queries.data() + at * dim(),
                                      detail::KeyBlocks<Stored>{places(), store_->block(), dim()},
                                      out.scores.data() + at * k, out.indices.data() + at * k);
    }
    return out;
  }

 private:
  static constexpr bool on_host = std::is_same_v<Backend, EigenBackend>;
  static constexpr Index most_at_once = 4096;

  /// A block that is not one of ours yet.
  struct Block {
    const Stored* keys = nullptr;  ///< as in `blocks_`
    Tensor<T, Backend> squares;    ///< as in `squares_`; empty for inner products
    Tensor<Stored, Backend> copy;  ///< as in `copies_`; empty on the host
  };

  /// Half squares of n keys of a block from `place` on, those of the entries from `at` on.
  void add_squares(Block& to, Index at, Index place, Index n) const {
    detail::half_squares<Backend>(n, dim(), to.keys + place * dim(), to.squares.data() + place);
    require<NonFiniteError>(detail::all_finite(to.squares.slice(place, place + n)), "ExactIndex",
                            "among the keys from ", at, " on to ", at + n,
                            " one has a length whose square is no number here");
  }

  /// Room for the first `needed` entries of a block, which has some for `room` and holds `held`. A
  /// datastore from elsewhere claims what blocks it likes: only what is there counts.
  void make_room(Block& last, Index& room, Index held, Index needed) const {
    if (needed <= room) return;
    room = (std::min)(store_->block(), (std::max)(needed, 2 * room));
    if (metric_ == SearchMetric::squared_l2) widen(last.squares, Shape{room}, held);
    if constexpr (!on_host) last.keys = widen(last.copy, Shape{room, dim()}, held * dim());
  }

  /// Makes a tensor larger, which keeps its first n numbers, and returns where they are now.
  template <class Number>
  static const Number* widen(Tensor<Number, Backend>& to, const Shape& shape, Index n) {
    Tensor<Number, Backend> wider(shape);
    Backend::copy(wider.data(), std::as_const(to).data(), n);
    to = std::move(wider);
    return std::as_const(to).data();
  }

  /// The best of the entries [begin, end) for n queries (n, D), counted from `begin` on.
  void find(Index n, const T* queries, Index begin, Index end, Tensor<T, Backend>& scores,
            Tensor<Index, Backend>& indices) const {
    const Index block = store_->block(), at = begin / block;
    const bool distances = metric_ == SearchMetric::squared_l2;
    const NearestRow<T, Stored> row{queries,
                                    blocks_.data() + at,
                                    begin % block,
                                    end - begin,
                                    scores.data(),
                                    indices.data(),
                                    distances ? offsets_.data() + at : nullptr};
    detail::chosen_t<ComposedNearest<Backend>>::search(
        NearestSize{n, 1, 1, dim(), block, scores.dim(1)}, &row, 1);
  }

  /// Where the blocks stand, for a kernel.
  const Stored* const* places() const {
    if constexpr (on_host)
      return blocks_.data();
    else
      return device_blocks_.data();
  }

  const Datastore<Stored>* store_;
  SearchMetric metric_;
  detail::ZeroWhenMoved<Index> size_;
  Index room_ = 0;                     ///< entries that the last block has memory for
  std::vector<const Stored*> blocks_;  ///< on the host, places in the backend's memory: each [C, D]
  std::vector<const T*> offsets_;      ///< likewise [C]: -|k|² / 2; null for inner products
  std::vector<Tensor<T, Backend>> squares_;
  std::vector<Tensor<Stored, Backend>>
      copies_;  ///< of the keys, where the backend cannot read ours
  Tensor<const Stored*, Backend> device_blocks_;  ///< `blocks_` in the backend's memory
};

}  // namespace infty
