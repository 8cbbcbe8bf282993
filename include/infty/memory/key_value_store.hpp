// SPDX-License-Identifier: MIT
#pragma once

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <limits>
#include <memory>
#include <utility>
#include <vector>

#include <infty/core/bfloat16.hpp>
#include <infty/core/checked.hpp>
#include <infty/core/for_each.hpp>
#include <infty/core/row_store.hpp>
#include <infty/core/state.hpp>
#include <infty/memory/stored_entries.hpp>

namespace infty {

namespace detail {

/// For parts p and entries i: `width` numbers from p * from_part + i * from_entry to p * to_part +
/// i * to_entry, rounded to the type that they have there.
template <class B, class From, class To>
void copy_entries(Index parts, Index n, Index width, const From* from, Index from_part,
                  Index from_entry, To* to, Index to_part, Index to_entry) {
  for_each_element<B>(parts * n, width, [=] INFTY_HOST_DEVICE(Index row, Index d) {
    const Index part = row / n, i = row % n;
    to[part * to_part + i * to_entry + d] =
        static_cast<To>(from[part * from_part + i * from_entry + d]);
  });
}

}  // namespace detail

/// Keys and values of each row of a batch, in G heads of D numbers, the oldest first: the last
/// `capacity` of those that were appended, a row by itself.
///
/// They stand in blocks of C entries, [2, G, C, D], keys and then values, which are made as entries
/// come and dropped as the last of theirs is forgotten. Copies share blocks: who first appends
/// behind the last entry does it in place, and a branch that comes second copies that one block. So
/// a fresh store holds nothing, and a copy or an append costs a pointer a block of what is stored.
///
/// Numbers of type T are kept as `Stored`, which is T or `BFloat16`: then they are rounded as they
/// come, take half of a float's bytes, and are what they were rounded to from then on: from
/// 3.39617752e38 on infinite.
template <class T, class Backend, class Stored>
class KeyValueStore {
 public:
  /// Entries [batch, L, 2, G, D] as files have them.
  using Saved = RowSequences<T, Backend>;

  static constexpr Index default_block = 512;  ///< C

  /// No rows.
  KeyValueStore() = default;

  /// Makes fresh rows. @throws infty::ValueError unless rows >= 0 and the others are >= 1, and for
  /// sizes above `largest_size`
  KeyValueStore(Index rows, Index key_heads, Index head_dim, Index block = default_block)
      : key_heads_(key_heads), head_dim_(head_dim), block_(block) {
    require(rows >= 0 && rows <= largest_size, "KeyValueStore", "rows is ", rows,
            ": it must lie in [0, ", largest_size, "]");
    require_at_least("KeyValueStore", "key_heads", key_heads, 1);
    require_at_least("KeyValueStore", "head_dim", head_dim, 1);
    require_at_least("KeyValueStore", "block", block, 1);
    require_sizes("KeyValueStore",
                  {{"key_heads", key_heads}, {"head_dim", head_dim}, {"block", block}});
    rows_.resize(static_cast<std::size_t>(rows));
  }

  Index key_heads() const { return key_heads_; }  ///< G, heads of keys and values
  Index head_dim() const { return head_dim_; }    ///< D, of a key or value
  /// Numbers of an entry, 2 G D.
  Index width() const { return 2 * key_heads_ * head_dim_; }
  /// Entries of a row. @throws infty::ShapeError if there is no such row
  Index count(Index row) const { return rows_[place("count", row)].count; }

  /// Takes in the last added.length[row] entries of each row, [batch, L, 2 G D], keys and then
  /// values, and forgets the oldest beyond the last `capacity`.
  /// @throws infty::ShapeError; then nothing has changed
  void append(const Saved& added, Index capacity) {
    const Tensor<T, Backend>& entries = added.vectors;
    const Index length = entries.rank() == 3 ? entries.dim(1) : 0;
    require<ShapeError>(
        entries.shape() == Shape{rows(), length, width()} && added.length.size() == rows_.size(),
        "KeyValueStore::append", "entries are ", entries.shape(), ": they must be [", rows(),
        ", L, ", width(), "]");
    for (const Index n : added.length)
      require<ShapeError>(n >= 0 && n <= length, "KeyValueStore::append", "a row has ", n,
                          " entries: it must have 0 to ", length);
    require_at_least("KeyValueStore::append", "capacity", capacity, 1);
    std::vector<Row> next = rows_;
    for (std::size_t row = 0; row < next.size(); ++row) {
      const Index n = (std::min)(capacity, added.length[row]);
      append_row(next[row], entries.data() + ((static_cast<Index>(row) + 1) * length - n) * width(),
                 n);
      forget(next[row], next[row].count - capacity);
    }
    rows_ = std::move(next);
  }

  /// The last `most` entries of each row. @throws infty::ValueError unless most >= 0
  StoredEntries<T, Backend, Stored> latest(Index most) const {
    require_at_least("KeyValueStore::latest", "most", most, 0);
    StoredEntries<T, Backend, Stored> out;
    out.key_heads = key_heads_;
    out.head_dim = head_dim_;
    out.block = block_;
    for (const Row& row : rows_) {
      const Index hidden = std::max<Index>(0, row.count - most), at = row.first + hidden;
      out.first.push_back(at % block_);
      out.count.push_back(row.count - hidden);
      out.most = (std::max)(out.most, std::ssize(row.blocks) - at / block_);
    }
    out.blocks.resize(static_cast<std::size_t>(rows() * out.most));
    for (std::size_t row = 0; row < rows_.size(); ++row) {
      const auto& blocks = rows_[row].blocks;
      const Index hidden = rows_[row].count - out.count[row];
      auto to = out.blocks.begin() + static_cast<Index>(row) * out.most;
      for (Index i = (rows_[row].first + hidden) / block_; i < std::ssize(blocks); ++i) {
        const auto& block = blocks[static_cast<std::size_t>(i)];
        *to++ = std::as_const(block->entries).data();
        out.kept.push_back(block);
      }
    }
    out.device_blocks =
        Tensor<const Stored*, Backend>::from(Shape{rows(), out.most}, out.blocks.data());
    out.device_first = Tensor<Index, Backend>::from(Shape{rows()}, out.first.data());
    return out;
  }

  /// Rows of the batch.
  Index rows() const { return std::ssize(rows_); }
  /// Bytes of all entries. Blocks that are not full, of which a row has two at most, take more.
  std::size_t bytes() const {
    Index entries = 0;
    for (const Row& row : rows_) entries += row.count;
    return static_cast<std::size_t>(entries * width()) * sizeof(Stored);
  }
  /// Makes a row fresh. @throws infty::ShapeError if there is no such row
  void reset_row(Index row) { rows_[place("reset_row", row)] = {}; }
  /// Drops all rows but [begin, end). @throws infty::ShapeError if there are no such rows
  void keep_rows(Index begin, Index end) {
    require<ShapeError>(begin >= 0 && begin <= end && end <= rows(), "KeyValueStore::keep_rows",
                        "rows [", begin, ", ", end, "): there are ", rows());
    rows_ = std::vector<Row>(rows_.begin() + begin, rows_.begin() + end);
  }
  /// Replaces the rows from `at` on by another's. @throws infty::ShapeError for other heads, or if
  /// there are fewer rows
  void put_rows(Index at, const KeyValueStore& other) {
    require_alike("put_rows", other);
    place("put_rows", at, other.rows());
    std::copy(other.rows_.begin(), other.rows_.end(), rows_.begin() + at);
  }
  /// Takes another's rows behind its own. @throws infty::ShapeError for other heads
  void append_rows(const KeyValueStore& other) {
    require_alike("append_rows", other);
    rows_.insert(rows_.end(), other.rows_.begin(), other.rows_.end());
  }

  /// All entries, [batch, L, 2, G, D], those of shorter rows to the right behind zeros.
  Saved saved() const {
    Saved out;
    Index longest = 0;
    for (const Row& row : rows_) {
      longest = (std::max)(longest, row.count);
      out.length.push_back(row.count);
    }
    out.vectors = Tensor<T, Backend>::zeros(Shape{rows(), longest, 2, key_heads_, head_dim_});
    for (Index i = 0; i < rows(); ++i) {
      const Row& row = rows_[static_cast<std::size_t>(i)];
      for (Index at = row.first, end = row.first + row.count, n; at < end; at += n) {
        n = (std::min)(end - at, block_ - at % block_);
        const auto& block = row.blocks[static_cast<std::size_t>(at / block_)]->entries;
        copy_out(std::as_const(block).data() + at % block_ * head_dim_, n,
                 out.vectors.data() + ((i + 1) * longest - (end - at)) * width());
      }
    }
    return out;
  }

  /// Takes what was saved in exchange, however many entries.
  /// @throws infty::ShapeError for other heads, or a row that has more entries than there are
  void restore(const Saved& saved) {
    const Shape& shape = saved.vectors.shape();
    const Index length = shape.rank() == 5 ? shape[1] : 0;
    const Index batch = shape.rank() == 5 ? shape[0] : 0;
    require<ShapeError>(shape == Shape{batch, length, 2, key_heads_, head_dim_},
                        "KeyValueStore::restore", "entries are ", shape,
                        ": they must be [batch, L, 2, ", key_heads_, ", ", head_dim_, "]");
    KeyValueStore other(batch, key_heads_, head_dim_, block_);
    other.append({saved.vectors.reshape(Shape{batch, length, width()}), saved.length},
                 (std::numeric_limits<Index>::max)());
    *this = std::move(other);
  }

  /// The same in the memory of another backend.
  template <class Other>
  KeyValueStore<T, Other, Stored> to() const {
    const Saved all = saved();
    KeyValueStore<T, Other, Stored> out(rows(), key_heads_, head_dim_, block_);
    out.restore({all.vectors.template to<Other>(), all.length});
    return out;
  }

 private:
  std::size_t place(const char* op, Index at, Index count = 1) const {
    require<ShapeError>(at >= 0 && count <= rows() && at <= rows() - count, "KeyValueStore", op,
                        " of ", count, " rows at ", at, ": there are ", rows());
    return static_cast<std::size_t>(at);
  }

  struct Block {
    Tensor<Stored, Backend> entries;  ///< [2, G, C, D]
    std::atomic<Index> filled{0};     ///< places that somebody has written, or is about to
  };
  struct Row {
    std::vector<std::shared_ptr<Block>> blocks;
    Index first = 0;  ///< entries of the first block that are forgotten
    Index count = 0;  ///< entries
  };

  void require_alike(const char* op, const KeyValueStore& other) const {
    require<ShapeError>(
        other.key_heads_ == key_heads_ && other.head_dim_ == head_dim_ && other.block_ == block_,
        op, "a KeyValueStore of ", other.key_heads_, " heads of ", other.head_dim_,
        " in blocks of ", other.block_, " does not fit one of ", key_heads_, ", ", head_dim_,
        " and ", block_);
  }

  std::shared_ptr<Block> fresh_block() const {
    const auto block = std::make_shared<Block>();
    block->entries = Tensor<Stored, Backend>(Shape{2, key_heads_, block_, head_dim_});
    return block;
  }

  /// Takes n entries [n, 2 G D] in, block by block.
  void append_row(Row& row, const T* entries, Index n) const {
    while (n > 0) {
      const Index end = row.first + row.count, at = end % block_;
      const Index part = (std::min)(n, block_ - at);
      if (end == std::ssize(row.blocks) * block_) row.blocks.push_back(fresh_block());
      auto& block = row.blocks.back();
      if (Index free = at; !block->filled.compare_exchange_strong(free, at + part)) {
        const auto own = fresh_block();  // a branch has appended here, and may be about to
        const Index stride = block_ * head_dim_;
        detail::copy_entries<Backend>(2 * key_heads_, at, head_dim_,
                                      std::as_const(block->entries).data(), stride, head_dim_,
                                      own->entries.data(), stride, head_dim_);
        own->filled = at + part;
        block = own;
      }
      copy_in(entries, part, block->entries.data() + at * head_dim_);
      row.count += part;
      entries += part * width();
      n -= part;
    }
  }

  void forget(Row& row, Index n) const {
    if (n <= 0) return;
    row.first += n;
    row.count -= n;
    const Index gone = (std::min)(row.first / block_, std::ssize(row.blocks));
    row.blocks.erase(row.blocks.begin(), row.blocks.begin() + gone);
    row.first -= gone * block_;
  }

  /// Entries [n, 2 G, D] to the places [2 G, n of C, D] of a block.
  void copy_in(const T* from, Index n, Stored* to) const {
    detail::copy_entries<Backend>(2 * key_heads_, n, head_dim_, from, head_dim_, width(), to,
                                  block_ * head_dim_, head_dim_);
  }
  void copy_out(const Stored* from, Index n, T* to) const {
    detail::copy_entries<Backend>(2 * key_heads_, n, head_dim_, from, block_ * head_dim_, head_dim_,
                                  to, head_dim_, width());
  }

  Index key_heads_ = 1, head_dim_ = 1, block_ = default_block;
  std::vector<Row> rows_;
};

}  // namespace infty
