// SPDX-License-Identifier: MIT
#pragma once

#include <infty/autograd/shape.hpp>
#include <infty/core/checked.hpp>
#include <infty/model/cross_block.hpp>
#include <infty/model/fwd.hpp>
#include <infty/nn/padding.hpp>

namespace infty {

/// How a `MemoryEncoderLayer` computes memory and sequence [Burtsev et al. 2020].
enum class MemoryEncoding {
  /// MemCtrl: maps of their own for memory and sequence, which both read the memory and the
  /// sequence as they were.
  control,
  /// MemBottleneck: the memory reads both, and then the sequence the new memory alone, so that
  /// nothing goes from word to word but through the memory.
  bottleneck
};

/// The constants of a `MemoryEncoderLayer`.
struct MemoryEncoderConfig {
  MemoryEncoding encoding = MemoryEncoding::control;  ///< which of the paper's two
  Index feed_forward = 2048;  ///< width of the feeds' inner layers [Vaswani et al. 2017, §3.3]

  /// Checks all constants. @throws infty::ValueError that names the first out of its range
  void validate() const {
    require_at_least("MemoryEncoderConfig", "feed_forward", feed_forward, 1);
    require_sizes("MemoryEncoderConfig", {{"feed_forward", feed_forward}});
  }
};

/// A layer of an encoder that is a MemCtrl or a MemBottleneck [Burtsev et al. 2020]: a block for
/// the memory tokens in front, which `MemoryTokens` puts there, and one for the sequence behind
/// them. (In the MemTransformer one block sees to both: `Block<SelfAttention>`.)
template <class T, class Backend>
struct MemoryEncoderLayer {
  using Scalar = T;
  using BackendType = Backend;
  using Config = MemoryEncoderConfig;
  using V = Variable<T, Backend>;

  CrossBlock<T, Backend> memory;                      ///< of the memory tokens
  CrossBlock<T, Backend> sequence;                    ///< of the words
  MemoryEncoding encoding = MemoryEncoding::control;  ///< what the sequence reads, and when

  MemoryEncoderLayer() = default;

  /// Makes both blocks, with weights drawn as `Linear` draws them.
  /// @throws infty::ValueError unless sizes and configuration are valid
  MemoryEncoderLayer(Config config, AttentionSizes sizes, Random random)
      : memory((config.validate(), sizes), config.feed_forward, random.split(0)),
        sequence(sizes, config.feed_forward, random.split(1)),
        encoding(config.encoding) {}

  template <class Visitor>
  void visit(Visitor&& see) {
    see("memory", memory);
    see("sequence", sequence);
  }

  /// Padding in front of words changes no answer.
  bool reads_padded() const { return true; }

  /// [B, m + L, d] -> [B, m + L, d], memory tokens first; padding, where there is any, is seen by
  /// nothing.
  /// @throws infty::ShapeError; infty::ValueError unless the pass says that there are tokens in
  /// front, and none behind
  V forward(const V& x, Pass<T, Backend>& pass) const {
    const Index m = pass.before;
    require(m >= 1 && pass.behind == 0, "MemoryEncoderLayer", m, " memory tokens are in front, ",
            pass.behind, " behind: it needs some in front, as by MemoryTokens, and none behind");
    require<ShapeError>(x.shape().rank() == 3 && x.dim(1) >= m, "MemoryEncoderLayer", "x is ",
                        x.shape(), ": it must be [B, L, d] with ", m, " memory tokens");
    const V words = narrow(x, m, x.dim(1));
    const auto all = detail::without_padding("MemoryEncoderLayer", x, pass);
    const V remembered = memory.forward(narrow(x, 0, m), all.vectors, pass, all.visible);
    const V said = encoding == MemoryEncoding::control
                       ? sequence.forward(words, all.vectors, pass, all.visible)
                       : sequence.forward(words, remembered, pass);
    return concat(remembered, said);
  }
};

}  // namespace infty
