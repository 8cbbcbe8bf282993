// SPDX-License-Identifier: MIT
#pragma once

#include <algorithm>
#include <cstddef>
#include <utility>

#include <infty/autograd/shape.hpp>
#include <infty/core/checked.hpp>
#include <infty/core/state.hpp>
#include <infty/nn/attended.hpp>
#include <infty/nn/attention_sizes.hpp>
#include <infty/nn/multi_head_attention.hpp>
#include <infty/nn/room_behind.hpp>
#include <infty/nn/sequence_layer.hpp>
#include <infty/nn/visible.hpp>

namespace infty {

/// The constants of a `CachedAttention`.
struct CachedAttentionConfig {
  Index capacity = 1024;  ///< most vectors of which keys and values are held, the last ones
  bool bias = true;       ///< of all four maps

  /// Checks all constants. @throws infty::ValueError that names the first out of its range
  void validate() const { require_at_least("CachedAttentionConfig", "capacity", capacity, 1); }
};

/// Keys and values of the vectors that a row has read, aligned to the right.
template <class T, class Backend = EigenBackend>
struct HeldKeysAndValues {
  Variable<T, Backend> keys, values;             ///< [batch, K, H D]; a gradient flows to them
  RowCounts length;                              ///< how many of them, the last ones, each row has
  detail::RoomBehind<T, Backend> keys_room{};    ///< for the next keys; not remembered
  detail::RoomBehind<T, Backend> values_room{};  ///< for the next values; not remembered

  template <class Visitor>
  void visit(Visitor&& see) {
    see("keys", keys);
    see("values", values);
    see("length", length);
  }
};

namespace detail {

/// Keys and values of rows that have read nothing. @throws infty::ValueError unless 1 <= batch <=
/// `largest_size`
template <class T, class B>
HeldKeysAndValues<T, B> no_keys(const char* op, Index batch, Index width) {
  require_rows(op, batch);
  const Tensor<T, B> none(Shape{batch, 0, width});
  return {Variable<T, B>(none), Variable<T, B>(none),
          RowCounts(static_cast<std::size_t>(batch), 0)};
}

/// @throws infty::ShapeError unless a state has keys and values of as many rows as x
template <class T, class B>
void require_keys(const char* op, const HeldKeysAndValues<T, B>& state, const Variable<T, B>& x,
                  Index width) {
  const Shape &keys = state.keys.shape(), &in = x.shape();
  require<ShapeError>(in.rank() == 3 && keys == state.values.shape() && keys.rank() == 3 &&
                          keys[0] == in[0] && keys[2] == width &&
                          std::ssize(state.length) == in[0] &&
                          std::all_of(state.length.begin(), state.length.end(),
                                      [&](Index n) { return n >= 0 && n <= keys[1]; }),
                      op, "x is ", in, ", the state's keys are ", keys, " of ", state.length.size(),
                      " rows: they must be [B, L, d] and [B, K, ", width, "]");
}

}  // namespace detail

/// A mixer of decoders: plain causal attention without positions [Vaswani et al. 2017, §3.2.3] that
/// holds keys and values, so that a token costs its own maps and a look at those before it. What is
/// read in pieces is what is read at once, as far as the capacity goes.
///
/// Beside a memory (`WithMemory`) the capacity is that of a chunk: a row whose chunk the next
/// segment does not fit into begins another one, without keys, and all vectors of the old one go to
/// the memory. What is read in pieces is then what `CausalAttention` beside the memory makes of the
/// chunks at once.
template <class T, class Backend = EigenBackend>
class CachedAttention {
 public:
  using Scalar = T;
  using BackendType = Backend;
  using V = Variable<T, Backend>;
  using Config = CachedAttentionConfig;
  using State = HeldKeysAndValues<T, Backend>;

  MultiHeadAttention<T, Backend> maps;  ///< of queries, keys, values and answers

  CachedAttention() = default;

  /// Makes the four maps, with weights drawn as `Linear` draws them.
  /// @throws infty::ValueError unless configuration and sizes are valid
  explicit CachedAttention(Config config, AttentionSizes sizes, Random random = Random(0))
      : maps((config.validate(), sizes.validate(), sizes.model_dim), sizes.heads, sizes.head_dim,
             random, config.bias),
        config_(config) {}

  /// The constants as given.
  const Config& config() const { return config_; }

  template <class Visitor>
  void visit(Visitor&& see) {
    maps.visit(see);
  }

  /// A state of fresh rows. @throws infty::ValueError unless 1 <= batch <= `largest_size`
  State make_state(Index batch, Index /*first_row*/ = 0) const {
    return detail::no_keys<T, Backend>("CachedAttention::make_state", batch, width());
  }

  /// Vectors [B, L, d] -> [B, L, d], each having seen those up to itself, and moves the state on.
  /// @throws infty::ShapeError, and for memory tokens infty::ValueError; then the state is as it
  /// was
  V forward(State& state, const V& x, const Pass<T, Backend>& pass) const {
    V unused;
    return read(state, x, pass, unused);
  }

  /// What `forward` makes of x, normed first, with the queries; all of x is to leave with its
  /// chunk. @throws as there, for a segment longer than a chunk as well
  Attended<T, Backend> attend(State& state, const V& x, const InputNorm<T, Backend>& norm,
                              const Pass<T, Backend>& pass) const {
    require<ShapeError>(x.shape().rank() == 3 && x.dim(1) <= chunk(), "CachedAttention", "x is ",
                        x.shape(), ": it must be [B, L, d], L at most ", chunk(),
                        ", the capacity of a chunk");
    Attended<T, Backend> attended;
    attended.context = read(state, norm(x), pass, attended.queries);
    attended.leaving = {x.value(), RowCounts(static_cast<std::size_t>(x.dim(0)), x.dim(1))};
    return attended;
  }

  /// The queries of vectors as attention sees them, [B, L, d] -> [B, L, H D].
  V queries(const V& x) const { return maps.query.forward(x); }

  /// Most vectors of a chunk that a memory beside this takes in as one: the capacity.
  Index chunk() const { return config_.capacity; }

 private:
  Index width() const { return maps.key.weight.size() > 0 ? maps.key.weight.dim(0) : 0; }

  /// What `forward` does, with the queries where the pass wants an answer.
  V read(State& state, const V& x, const Pass<T, Backend>& pass, V& queries_of_x) const {
    detail::require_keys("CachedAttention", state, x, width());
    require(pass.before + pass.behind == 0, "CachedAttention", "there are ", pass.before, " and ",
            pass.behind, " memory tokens around the segment: it takes none");
    if (pass.answer) queries_of_x = queries(x);
    if (x.dim(1) == 0) return x;
    // Rows that were reset leave places in front that no row fills.
    Index held = 0;
    for (const Index n : state.length) held = (std::max)(held, n);
    const Index empty = state.keys.dim(1) - held;
    auto keys_room = state.keys_room, values_room = state.values_room;
    const V keys = keys_room.append(state.keys, empty, maps.key.forward(x)),
            values = values_room.append(state.values, empty, maps.value.forward(x));
    const Index all = keys.dim(1), kept = (std::min)(all, config_.capacity);
    RowCounts length = state.length;
    for (Index& n : length) n += x.dim(1);
    V y;
    if (pass.answer)
      y = maps.out.forward(
          scaled_dot_product_attention(queries_of_x, keys, values,
                                       {.heads = maps.heads,
                                        .causal = true,
                                        .visible = detail::visible<Backend>(length, all),
                                        .dropout = pass.attention_dropout,
                                        .random = pass.random}));
    for (Index& n : length) n = (std::min)(n, kept);
    state = {keys_room.last(keys, kept), values_room.last(values, kept), std::move(length),
             std::move(keys_room), std::move(values_room)};
    return y;
  }

  Config config_;
};

}  // namespace infty
