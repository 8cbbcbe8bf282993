// SPDX-License-Identifier: MIT
#pragma once

#include <cmath>

#include <infty/autograd/shape.hpp>
#include <infty/core/checked.hpp>
#include <infty/nn/attention.hpp>
#include <infty/nn/linear.hpp>

namespace infty {

/// Sinusoidal encodings of the distances length - 1, ..., 0 -> [length, d]: the sines of all
/// frequencies 10000^(-2i/d), then the cosines [Dai et al. 2019; Vaswani et al. 2017, §3.5].
/// @throws infty::ValueError unless d is even and >= 2
template <class T, class B = EigenBackend>
Tensor<T, B> distance_encoding(Index length, Index d) {
  require(d >= 2 && d % 2 == 0, "distance_encoding", "d is ", d, ": it must be even, >= 2");
  Tensor<T, B> out(Shape{length, d});
  T* const to = out.data();
  const Index half = d / 2;
  B::for_each_row(length, 32 * d, [=] INFTY_HOST_DEVICE(Index row) {
    const double distance = static_cast<double>(length - 1 - row);
    for (Index i = 0; i < half; ++i) {
      const double frequency =
          std::pow(10000.0, -2 * static_cast<double>(i) / static_cast<double>(d));
      to[row * d + i] = static_cast<T>(std::sin(distance * frequency));
      to[row * d + half + i] = static_cast<T>(std::cos(distance * frequency));
    }
  });
  return out;
}

/// Multi-head attention over a segment and the memory before it, with relative positions
/// [Dai et al. 2019, §3.3]. Heads H of head_dim D; the maps have no bias.
template <class T, class Backend>
struct RelativeAttention {
  Linear<T, Backend> query, key, value;  ///< d -> H D
  Linear<T, Backend> position;           ///< d -> H D, of the distances' encodings
  Linear<T, Backend> out;                ///< H D -> d

  RelativeAttention() = default;

  /// @throws infty::ValueError unless all sizes are >= 1, and their product at most `largest_size`
  RelativeAttention(Index d, Index heads, Index head_dim, Random random)
      : query((require_sizes("RelativeAttention",
                             {{"d", d}, {"heads", heads}, {"head_dim", head_dim}}),
               d),
              heads * head_dim, random.split(0), false),
        key(d, heads * head_dim, random.split(1), false),
        value(d, heads * head_dim, random.split(2), false),
        position(d, heads * head_dim, random.split(3), false),
        out(heads * head_dim, d, random.split(4), false) {}

  /// What the heads read, before `out`.
  /// @param queries   [B, L, H D], `query.forward` of the segment
  /// @param context   [B, K, d], the memory and the segment
  /// @param u, w      [H, D], biases of the content and of the position scores
  /// @param encoding  [K, d], `distance_encoding(K, d)`
  /// @param visible   [B] or empty, as in `relative_attention`
  /// @return          [B, L, H D]
  /// @throws infty::ShapeError
  Variable<T, Backend> read(const Variable<T, Backend>& queries,
                            const Variable<T, Backend>& context, const Variable<T, Backend>& u,
                            const Variable<T, Backend>& w, const Tensor<T, Backend>& encoding,
                            const Tensor<Index, Backend>& visible) const {
    return relative_attention(queries, key.forward(context), value.forward(context),
                              position.forward(encoding), u, w, visible);
  }

  template <class Visitor>
  void visit(Visitor&& see) {
    see("query", query);
    see("key", key);
    see("value", value);
    see("position", position);
    see("out", out);
  }
};

}  // namespace infty
