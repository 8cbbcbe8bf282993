// SPDX-License-Identifier: MIT
#pragma once

#include <infty/autograd/shape.hpp>
#include <infty/nn/attention_sizes.hpp>
#include <infty/nn/fwd.hpp>
#include <infty/nn/multi_head_attention.hpp>
#include <infty/nn/padding.hpp>
#include <infty/nn/pass.hpp>

namespace infty {

/// The constants of a `SelfAttention`.
struct SelfAttentionConfig {
  bool bias = true;  ///< of all four maps
};

/// A mixer of encoders: plain attention over the segment in which every vector sees every other,
/// those behind it too, without positions [Vaswani et al. 2017, §3.2.3]. It remembers nothing.
template <class T, class Backend>
struct SelfAttention {
  using Scalar = T;
  using BackendType = Backend;
  using Config = SelfAttentionConfig;

  static constexpr bool answers_first = true;  ///< see `Pass::first`

  MultiHeadAttention<T, Backend> maps;  ///< of queries, keys, values and answers

  SelfAttention() = default;

  /// Makes the four maps, with weights drawn as `Linear` draws them.
  /// @throws infty::ValueError unless the sizes are valid
  explicit SelfAttention(Config config, AttentionSizes sizes, Random random = Random(0))
      : maps((sizes.validate(), sizes.model_dim), sizes.heads, sizes.head_dim, random,
             config.bias) {}

  template <class Visitor>
  void visit(Visitor&& see) {
    maps.visit(see);
  }

  /// Padding in front of words changes no answer.
  bool reads_padded() const { return true; }

  /// Vectors [B, L, d] -> [B, L, d], each having seen all. @throws infty::ShapeError
  Variable<T, Backend> forward(const Variable<T, Backend>& x) const { return maps.forward(x, x); }

  /// The same of rows that may be padded, as the pass says: nothing sees padding. Without padding
  /// the first vectors alone answer where no others are wanted. @throws infty::ShapeError;
  /// infty::ValueError for more words than there are
  Variable<T, Backend> forward(const Variable<T, Backend>& x, const Pass<T, Backend>& pass) const {
    if (pass.visible.empty() && pass.first > 0 && x.shape().rank() == 3 && pass.first < x.dim(1))
      return maps.forward(narrow(x, 0, pass.first), x);
    if (pass.visible.empty()) return forward(x);
    const auto seen = detail::without_padding("SelfAttention", x, pass);
    return maps.forward(x, seen.vectors, {.visible = seen.visible});
  }
};

}  // namespace infty
