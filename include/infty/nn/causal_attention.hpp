// SPDX-License-Identifier: MIT
#pragma once

#include <infty/autograd/shape.hpp>
#include <infty/nn/attended.hpp>
#include <infty/nn/attention_sizes.hpp>
#include <infty/nn/fwd.hpp>
#include <infty/nn/multi_head_attention.hpp>
#include <infty/nn/sequence_layer.hpp>
#include <infty/nn/token_parts.hpp>

namespace infty {

/// The constants of a `CausalAttention`.
struct CausalAttentionConfig {
  bool bias = true;  ///< of all four maps
};

/// A mixer: plain causal attention over the segment, without positions, as in GPT-2
/// [Radford et al. 2019]. It remembers nothing, and lets the whole segment go to a memory beside
/// it.
template <class T, class Backend>
struct CausalAttention {
  using Scalar = T;
  using BackendType = Backend;
  using V = Variable<T, Backend>;
  using Config = CausalAttentionConfig;

  MultiHeadAttention<T, Backend> maps;  ///< of queries, keys, values and answers

  CausalAttention() = default;

  /// Makes the four maps, with weights drawn as `Linear` draws them.
  /// @throws infty::ValueError unless the sizes are valid
  explicit CausalAttention(Config config, AttentionSizes sizes, Random random = Random(0))
      : maps((sizes.validate(), sizes.model_dim), sizes.heads, sizes.head_dim, random,
             config.bias) {}

  template <class Visitor>
  void visit(Visitor&& see) {
    maps.visit(see);
  }

  /// Vectors [B, L, d] -> [B, L, d], each having seen those up to itself. @throws infty::ShapeError
  V forward(const V& x) const {
    Pass<T, Backend> pass;
    return forward(x, pass);
  }

  /// The same in a pass that may say that memory tokens see each other both ways.
  V forward(const V& x, Pass<T, Backend>& pass) const { return read(queries(x), x, pass); }

  /// What `forward` makes of x, normed first, with the queries; the words of x leave, and memory
  /// tokens if they are held.
  Attended<T, Backend> attend(NoState&, const V& x, const InputNorm<T, Backend>& norm,
                              Pass<T, Backend>& pass) const {
    Attended<T, Backend> attended;
    if (pass.answer) {
      const V normed = norm(x);
      attended.queries = queries(normed);
      attended.context = read(attended.queries, normed, pass);
    }
    const bool all = pass.tokens.held;
    const auto words = narrow(x, all ? 0 : pass.before, x.dim(1) - (all ? 0 : pass.behind)).value();
    attended.leaving = {words, RowCounts(static_cast<std::size_t>(x.dim(0)), words.dim(1))};
    return attended;
  }

  /// The queries of vectors as attention sees them, [B, L, d] -> [B, L, H D].
  V queries(const V& x) const { return maps.query.forward(x); }

 private:
  V read(const V& queries_of_x, const V& x, const Pass<T, Backend>& pass) const {
    const V keys = maps.key.forward(x), values = maps.value.forward(x);
    if (detail::tokens_are_causal(pass, 0))
      return maps.out.forward(
          scaled_dot_product_attention(queries_of_x, keys, values, options(true, pass)));
    return maps.out.forward(detail::read_parts<T, Backend>(
        x.dim(1), 0, pass, [&](Index begin, Index end, Index, bool tokens) {
          return scaled_dot_product_attention(narrow(queries_of_x, begin, end),
                                              narrow(keys, 0, end), narrow(values, 0, end),
                                              options(!tokens, pass));
        }));
  }

  PlainAttentionOptions<Backend> options(bool causal, const Pass<T, Backend>& pass) const {
    return {.heads = maps.heads,
            .causal = causal,
            .dropout = pass.attention_dropout,
            .random = pass.random};
  }
};

}  // namespace infty
