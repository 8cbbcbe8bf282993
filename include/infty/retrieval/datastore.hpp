// SPDX-License-Identifier: MIT
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include <infty/core/checked.hpp>
#include <infty/core/number.hpp>
#include <infty/core/tensor.hpp>
#include <infty/retrieval/fwd.hpp>

namespace infty {

/// Keys, vectors of D numbers, and beside each the token that came next: what kNN-LM, SPALM and the
/// continuous cache look up (Khandelwal et al. 2020, section 2). It is appended to in a stream.
///
/// Keys stand in blocks of C entries, which stay where they are however many come, so that an index
/// may point to them.
template <class T>
class Datastore {
 public:
  static constexpr Index default_block = 16384;  ///< C

  /// Makes an empty datastore in memory.
  /// @throws infty::ValueError unless both are at least 1, and for sizes above `largest_size`
  explicit Datastore(Index dim, Index block = default_block) : dim_(dim), block_(block) {
    require_at_least("Datastore", "dim", dim, 1);
    require_at_least("Datastore", "block", block, 1);
    require_sizes("Datastore", {{"dim", dim}, {"block", block}});
  }

  /// D, numbers of a key.
  Index dim() const { return dim_; }
  /// Entries.
  Index size() const { return size_; }
  /// C, entries of a block.
  Index block() const { return block_; }

  /// Takes n entries in, keys [n, D] and the tokens behind them.
  /// @throws infty::ValueError for a token that is not 0 to 2^31 - 1; infty::NonFiniteError for a
  /// key with NaN or infinity; then nothing has changed
  void append(const T* keys, const Index* tokens, Index n);

  /// Takes entries in, keys [n, D], in any backend's memory, and n tokens.
  /// @throws infty::ShapeError if the shapes do not fit; then nothing has changed
  template <class B>
  void append(const Tensor<T, B>& keys, const std::vector<Index>& tokens) {
    const Index n = keys.rank() == 2 ? keys.dim(0) : 0;
    require<ShapeError>(keys.shape() == Shape{n, dim_} && std::ssize(tokens) == n,
                        "Datastore::append", "keys are ", keys.shape(), " and tokens ",
                        tokens.size(), ": they must be [n, ", dim_, "] and n");
    const std::vector<T> numbers = keys.to_vector();
    append(numbers.data(), tokens.data(), n);
  }

  /// The key of entry i, D numbers; those behind it in its block follow. @pre 0 <= i < size()
  const T* key(Index i) const {
    return keys_[static_cast<std::size_t>(i / block_)].get() + i % block_ * dim_;
  }
  /// The token of entry i. @pre 0 <= i < size()
  Index token(Index i) const {
    return tokens_[static_cast<std::size_t>(i / block_)][static_cast<std::size_t>(i % block_)];
  }

  /// The tokens of entries, of any shape; those of an index below 0, which a search gives where
  /// there is none, are `none`. @throws infty::ShapeError for an entry that is not there
  template <class B>
  Tensor<Index, B> tokens(const Tensor<Index, B>& indices, Index none = -1) const {
    std::vector<Index> out = indices.to_vector();
    for (Index& i : out) {
      require<ShapeError>(i < size_, "Datastore::tokens", "entry is ", i, ": there are ", size_);
      i = i < 0 ? none : token(i);
    }
    return Tensor<Index, B>::from(indices.shape(), out);
  }

 private:
  Index dim_, block_, size_ = 0;
  std::vector<std::unique_ptr<T[]>> keys_;
  std::vector<std::unique_ptr<std::int32_t[]>> tokens_;
};

template <class T>
void Datastore<T>::append(const T* keys, const Index* tokens, Index n) {
  constexpr Index most = (Index{1} << 31) - 1;
  for (Index i = 0; i < n; ++i)
    require(tokens[i] >= 0 && tokens[i] <= most, "Datastore::append", "token ", i, " is ",
            tokens[i], ": it must be 0 to ", most);
  for (Index i = 0; i < n * dim_; ++i)
    require<NonFiniteError>(math::is_finite(keys[i]), "Datastore::append", "key ", i / dim_,
                            " has a number that is ", keys[i]);
  // Room first: where there is none, nothing has changed.
  for (Index blocks = (size_ + n + block_ - 1) / block_; std::ssize(tokens_) < blocks;) {
    if (std::ssize(keys_) == std::ssize(tokens_))
      keys_.push_back(std::make_unique_for_overwrite<T[]>(static_cast<std::size_t>(block_ * dim_)));
    tokens_.push_back(
        std::make_unique_for_overwrite<std::int32_t[]>(static_cast<std::size_t>(block_)));
  }
  for (Index part; n > 0; n -= part, keys += part * dim_, tokens += part, size_ += part) {
    const auto block = static_cast<std::size_t>(size_ / block_);
    const Index place = size_ % block_;
    part = (std::min)(n, block_ - place);
    std::copy_n(keys, part * dim_, keys_[block].get() + place * dim_);
    std::transform(tokens, tokens + part, tokens_[block].get() + place,
                   [](Index token) { return static_cast<std::int32_t>(token); });
  }
}

}  // namespace infty
