// SPDX-License-Identifier: MIT
#pragma once

#include <memory>
#include <span>
#include <tuple>
#include <utility>
#include <vector>

#include <infty/core/config.hpp>
#include <infty/core/error.hpp>
#include <infty/parallel/communicator.hpp>
#include <infty/parallel/messages.hpp>
#include <infty/parallel/shard_tree.hpp>
#include <infty/parallel/tree_sum.hpp>

namespace infty {

/// A global batch, cut into a fixed number of shards that ranks share out among themselves: rank r
/// has those of `own()`. What is computed of a shard depends on nothing but the shard, and sums
/// over shards are those of one tree, so that nothing that comes out depends on the number of
/// ranks.
template <Communicator C>
class Shards {
 public:
  /// Shares `count` shards out over the ranks of a communicator, which must outlive this.
  /// @param bucket_bytes  of gradients that are sent while the rest of the backward pass of a
  /// rank's last shard goes on, on a thread of their own, the same on all ranks; 0: all at once,
  /// behind it. It changes no bit of the tree's sums.
  /// @throws infty::ValueError for fewer shards than ranks, or unless bucket_bytes >= 0
  Shards(C& ranks, Index count, Reduction reduction = Reduction::tree, Index bucket_bytes = 0)
      : ranks_(&ranks),
        count_(count),
        reduction_(reduction),
        bucket_bytes_(bucket_bytes),
        own_(shards_of(count, ranks.size(), ranks.rank())) {
    require_at_least("Shards", "bucket_bytes", bucket_bytes, 0);
  }

  // A move copies as well, so that none is left without memory for sums.
  Shards(const Shards&) = default;             ///< The same shards; they share the memory of sums.
  Shards& operator=(const Shards&) = default;  ///< The same shards; they share the memory of sums.

  /// The ranks.
  C& ranks() const { return *ranks_; }
  /// How many shards there are on all ranks together.
  Index count() const { return count_; }
  /// The shards of this rank.
  ShardRange own() const { return own_; }
  /// How vectors are summed.
  Reduction reduction() const { return reduction_; }
  /// Bytes of gradients that are sent at once; 0: all.
  Index bucket_bytes() const { return bucket_bytes_; }

  /// The rows of a shard of a batch of `rows`: as many as any other has, or one more or less.
  /// @throws infty::ValueError unless there is such a shard, and a row for each
  ShardRange rows_of(Index shard, Index rows) const {
    require(0 <= shard && shard < count_, "Shards::rows_of", "the shard is ", shard,
            ": it must lie in [0, ", count_, ')');
    require(rows >= count_, "Shards::rows_of", "there are ", rows, " rows for ", count_,
            " shards: each needs one");
    // ⌊rows s / count⌋, whose product may be no Index.
    const auto first = [&](Index s) { return rows / count_ * s + rows % count_ * s / count_; };
    return {first(shard), first(shard + 1)};
  }

  /// What the gradients of steps are summed in: memory that stays for the next step, and that
  /// copies of this share.
  template <class T>
  detail::ShardSum<T>& gradients() const {
    return std::get<detail::ShardSum<T>>(*gradients_);
  }

  /// Computes the sum over all shards of `make(shard, out)`, as `tree_sum` or `fast_sum` does.
  template <class T, class Make>
  std::vector<T> sum(Index size, Make&& make) const {
    return reduction_ == Reduction::tree
               ? tree_sum<T>(*ranks_, count_, size, std::forward<Make>(make))
               : fast_sum<T>(*ranks_, count_, size, std::forward<Make>(make));
  }

  /// Computes the sum of small values, one a shard, along the tree, however vectors are summed.
  /// @param own  of the shards of this rank, in their order
  /// @throws infty::ShapeError for another number of them
  template <class T>
  T sum_of(const std::vector<T>& own) const {
    require<ShapeError>(static_cast<Index>(own.size()) == own_.count(), "Shards::sum_of",
                        "there are ", own.size(), " values for ", own_.count(), " shards");
    return tree_sum<T>(*ranks_, count_, 1,
                       [&](Index shard, std::span<T> out) {
                         out[0] = own[static_cast<std::size_t>(shard - own_.first)];
                       })
        .front();
  }

 private:
  C* ranks_;
  Index count_;
  Reduction reduction_;
  Index bucket_bytes_;
  ShardRange own_;
  std::shared_ptr<std::tuple<detail::ShardSum<float>, detail::ShardSum<double>>> gradients_ =
      std::make_shared<std::tuple<detail::ShardSum<float>, detail::ShardSum<double>>>();
};

}  // namespace infty
