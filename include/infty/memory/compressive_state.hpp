// SPDX-License-Identifier: MIT
#pragma once

#include <algorithm>

#include <infty/core/checked.hpp>
#include <infty/memory/attention_cache.hpp>
#include <infty/memory/compression.hpp>
#include <infty/memory/fwd.hpp>
#include <infty/memory/ops/reconstruction.hpp>

namespace infty {

/// The constants of a `CompressiveMemory`. Defaults are those of the paper's WikiText-103
/// [Rae et al. 2020, §5.2], with segments of 512.
struct CompressiveConfig {
  Index capacity = 512;             ///< least number of vectors that a row holds as they were
  Index compressed_capacity = 512;  ///< and of compressed ones, once it has seen so many
  Index rate = 4;                   ///< c, vectors that become one
  Compression compression = Compression::convolution;  ///< how a group of vectors becomes one
  /// Ignored where the compression has nothing to learn.
  ReconstructionLoss loss = ReconstructionLoss::attention;
  /// Compressed vectors leave in groups of so many, and stay readable until then; 0 stands for 1,
  /// or in front of a long-term memory for compressed_capacity, where there is one.
  Index stride = 0;

  /// The same with its stride resolved, in front of a long-term memory or, with 1, of none.
  CompressiveConfig resolved(bool long_term) const {
    CompressiveConfig config = *this;
    if (!long_term)
      config.stride = 1;
    else if (stride == 0)
      config.stride = std::max<Index>(compressed_capacity, 1);
    return config;
  }

  /// Checks all constants.
  /// @throws infty::ValueError that names the first constant out of its range
  void validate() const {
    require_at_least("CompressiveConfig", "capacity", capacity, 0);
    require_at_least("CompressiveConfig", "compressed_capacity", compressed_capacity, 0);
    require_at_least("CompressiveConfig", "rate", rate, 1);
    require_at_least("CompressiveConfig", "stride", stride, 0);
    require_sizes("CompressiveConfig", {{"capacity", capacity}});
    require_sizes("CompressiveConfig", {{"compressed_capacity", compressed_capacity}});
    require_sizes("CompressiveConfig", {{"rate", rate}});
    require_sizes("CompressiveConfig", {{"stride", stride}});
  }
};

namespace detail {

/// What a compressive memory keeps for attention: see memory/attention_cache.hpp.
template <class T, class Backend>
struct CompressiveCache {
  HeldKeys<T, Backend> memory, compressed;
  HeldPositions<T, Backend> positions;
};

}  // namespace detail

/// What a compressive memory remembers.
template <class T, class Backend>
struct CompressiveState {
  RowSequences<T, Backend> memory;      ///< vectors [batch, capacity + rate - 1, d]
  RowSequences<T, Backend> compressed;  ///< vectors [batch, compressed_capacity + stride - 1, d]
  /// [batch, capacity + rate - 1, 2] with `most_used`, else [batch, 0, 2]: the attention that each
  /// vector of the memory has got, a mean over heads summed over queries, and the number of these.
  Tensor<T, Backend> usage;
  detail::CompressiveCache<T, Backend> cache =
      {};  ///< projected keys and values; not part of what is remembered

  template <class Visitor>
  void visit(Visitor&& see) {
    see("memory", memory);
    see("compressed", compressed);
    see("usage", usage);
  }
};

namespace detail {

/// Adds to the usage of the last `count` of each row's vectors the attention that they got: means
/// over heads and sums over queries of weights [H, B, L, K], whose columns before the last L end in
/// these vectors.
template <class T, class B>
void add_usage(const AttentionSize& s, const Tensor<T, B>& weights, const RowCounts& count,
               Tensor<T, B>& usage) {
  const auto counts = Tensor<Index, B>::from(Shape{s.batch}, count.data());
  const Index* const held = counts.data();
  const T* const p = weights.data();
  T* const to = usage.data();
  const Index most = usage.dim(1), batch = s.batch, queries = s.queries, keys = s.keys,
              heads = s.heads;
  B::for_each_row(batch * most, heads * queries, [=] INFTY_HOST_DEVICE(Index at) {
    const Index row = at / most, back = most - at % most;  // 1 for the last vector
    if (back > held[row]) return;
    T sum = T(0);
    for (Index head = 0; head < heads; ++head)
      for (Index i = 0; i < queries; ++i)
        sum += p[((head * batch + row) * queries + i) * keys + keys - queries - back];
    to[2 * at] += sum / static_cast<T>(heads);
    to[2 * at + 1] += static_cast<T>(queries);
  });
}

}  // namespace detail

}  // namespace infty
