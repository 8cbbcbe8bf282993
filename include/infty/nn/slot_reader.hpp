// SPDX-License-Identifier: MIT
#pragma once

#include <optional>

#include <infty/core/checked.hpp>
#include <infty/nn/linear.hpp>
#include <infty/nn/plain_attention.hpp>

namespace infty {

/// Which parts the maps of slots have, beside their weights.
struct SlotMaps {
  bool bias = false;    ///< of every map; [Wu et al. 2022] prints none
  bool output = false;  ///< a map behind the heads; [Wu et al. 2022] prints none
};

namespace detail {

/// @throws infty::ValueError unless d, heads >= 1 and heads divide d
inline void require_slot_heads(const char* op, Index d, Index heads) {
  require(d >= 1 && heads >= 1 && d % heads == 0, op, "d is ", d, ", heads are ", heads,
          ": both must be >= 1, and heads divide d");
  require_sizes(op, {{"d", d}, {"width of a map", d}});
}

}  // namespace detail

/// The reader of a Memformer: vectors attend to slots, all of which they see, by content
/// [Wu et al. 2022, §3.2]. H heads of d / H.
template <class T, class Backend = EigenBackend>
struct SlotReader {
  using Scalar = T;
  using BackendType = Backend;
  using V = Variable<T, Backend>;

  Linear<T, Backend> query;               ///< of the vectors, d -> d
  Linear<T, Backend> key, value;          ///< of the slots, d -> d
  std::optional<Linear<T, Backend>> out;  ///< behind the heads, d -> d; empty for none
  Index heads = 1;                        ///< H

  SlotReader() = default;

  /// Makes the maps, with weights drawn as `Linear` draws them.
  /// @param d  width of vectors and slots  @param heads_  H
  /// @throws infty::ValueError unless d, heads >= 1 and heads divide d
  SlotReader(Index d, Index heads_, Random random, SlotMaps maps = {})
      : query((detail::require_slot_heads("SlotReader", d, heads_), d), d, random.split(0),
              maps.bias),
        key(d, d, random.split(1), maps.bias),
        value(d, d, random.split(2), maps.bias),
        heads(heads_) {
    if (maps.output) out.emplace(d, d, random.split(3), maps.bias);
  }

  template <class Visitor>
  void visit(Visitor&& see) {
    see("query", query);
    see("key", key);
    see("value", value);
    see("out", out);
  }

  /// What vectors [B, L, d] read of slots [B, m, d] -> [B, L, d]. @throws infty::ShapeError
  V forward(const V& x, const V& slots) const {
    const V read = scaled_dot_product_attention(query.forward(x), key.forward(slots),
                                                value.forward(slots), {.heads = heads});
    return out ? out->forward(read) : read;
  }

  /// How much of each slot vectors read, for those who look -> [B, H, L, m]; the weights of a
  /// vector sum to one. @throws as `forward`
  Tensor<T, Backend> weights(const V& x, const V& slots) const {
    const auto guard = no_grad();
    return scaled_dot_product_weights(query.forward(x), key.forward(slots), {.heads = heads});
  }
};

}  // namespace infty
