// SPDX-License-Identifier: MIT
#pragma once

#include <algorithm>
#include <cstddef>
#include <utility>
#include <vector>

#include <infty/autograd/activations.hpp>
#include <infty/autograd/shape.hpp>
#include <infty/core/checked.hpp>
#include <infty/core/state.hpp>
#include <infty/memory/fifo.hpp>
#include <infty/memory/flops.hpp>
#include <infty/memory/fwd.hpp>
#include <infty/memory/infini_config.hpp>
#include <infty/memory/ops/associative.hpp>
#include <infty/memory/row_chunks.hpp>
#include <infty/nn/multi_head_attention.hpp>
#include <infty/nn/rotary.hpp>
#include <infty/nn/sequence_layer.hpp>

namespace infty {

/// Keys and values of the segment that is not full yet. A gradient flows through them.
template <class T, class Backend>
struct InfiniSegment {
  Variable<T, Backend> keys, values;  ///< [batch, segment - 1, H D], zeros in front
  RowCounts length;                   ///< how many each row has collected

  template <class Visitor>
  void visit(Visitor&& see) {
    see("keys", keys);
    see("values", values);
    see("length", length);
  }
};

/// What an `InfiniAttention` remembers. A gradient flows through it from segment to segment.
template <class T, class Backend>
struct InfiniState {
  InfiniSegment<T, Backend> segment;  ///< what is not written yet
  Variable<T, Backend> memory;        ///< M, [batch, H, D, D], keys by values
  Variable<T, Backend> mass;          ///< z, [batch, H, D]
  RowCounts written;                  ///< segments in the memory of each row

  template <class Visitor>
  void visit(Visitor&& see) {
    see("segment", segment);
    see("memory", memory);
    see("mass", mass);
    see("written", written);
  }
};

/// Infini-attention [Munkhdalai et al. 2024]: a mixer of causal attention over the segment and of a
/// compressive memory of all segments before it, both with the same queries, keys and values. The
/// memory is linear, M = Σ σ(k) vᵀ with σ = elu + 1, and knows of no positions; a learned gate a
/// head weighs what the two have read.
///
/// A segment is written when it is full, whatever the pieces that it came in: within it the memory
/// is read only. So tokens one by one are what the segment at once is. Memory tokens (those of the
/// pass) are attended to in their own call alone, and are not written.
///
/// A pass that is traced is shown the share of the memory in what each head reads, "memory_gate"
/// [H].
template <class T, class Backend>
class InfiniAttention {
 public:
  using Scalar = T;
  using BackendType = Backend;
  using V = Variable<T, Backend>;
  using Config = InfiniConfig;
  using State = InfiniState<T, Backend>;

  MultiHeadAttention<T, Backend> maps;  ///< of queries, keys, values and answers
  V gate;                               ///< β, [H]

  /// Makes a layer's, with weights drawn as `Linear` draws them.
  /// @throws infty::ValueError if sizes or configuration are not valid
  explicit InfiniAttention(InfiniConfig config, AttentionSizes sizes, Random random = Random(0))
      : maps((config.validate(), sizes.validate(), sizes.model_dim), sizes.heads, sizes.head_dim,
             random, config.bias),
        gate(Tensor<T, Backend>::full(Shape{sizes.heads}, static_cast<T>(config.gate)), true),
        config_(config),
        sizes_(sizes),
        turns_(config.rotary_base) {
    require_sizes("InfiniConfig", {{"segment", config.segment}, {"heads head_dim", sizes.inner()}});
    require_sizes("InfiniAttention", {{"heads", sizes.heads},
                                      {"head_dim", sizes.head_dim},
                                      {"values of a head", sizes.head_dim}});
  }

  /// The constants as given.
  const InfiniConfig& config() const { return config_; }

  template <class Visitor>
  void visit(Visitor&& see) {
    maps.visit(see);
    see("gate", gate);
  }

  /// A state of fresh rows. @throws infty::ValueError unless 1 <= batch <= `largest_size`
  State make_state(Index batch, Index /*first_row*/ = 0) const {
    require_rows("InfiniAttention::make_state", batch);
    const auto zeros = [](Shape shape) { return V(Tensor<T, Backend>::zeros(shape)); };
    const RowCounts none(static_cast<std::size_t>(batch), 0);
    const Index H = sizes_.heads, D = sizes_.head_dim;
    return {{zeros(held_shape(batch)), zeros(held_shape(batch)), none},
            zeros(Shape{batch, H, D, D}),
            zeros(Shape{batch, H, D}),
            none};
  }

  /// Vectors [B, L, d] -> [B, L, d], each having seen its segment up to itself and the memory of
  /// the segments before. Moves the state on.
  /// @throws infty::ShapeError, infty::ValueError for memory tokens with rules of their own; then
  /// the state is as it was
  V forward(State& state, const V& x, Pass<T, Backend>& pass) const {
    check(state);
    detail::require_segment("InfiniAttention", x, state.memory.dim(0), sizes_, pass);
    require_causal_tokens("InfiniAttention", pass);
    const Index length = x.dim(1), before = pass.before;
    const Index words = length - before - pass.behind;
    const V queries = pass.answer ? maps.query.forward(x) : V(), keys = maps.key.forward(x),
            values = maps.value.forward(x);
    State next = state;
    Collected now{state.segment.length, state.segment.keys, state.segment.values,
                  RowCounts(state.segment.length.size(), 0)};
    now.keep_longest();
    std::vector<V> answers;
    // Pieces that end where a row's segment does. The memory tokens in front are seen by all of
    // them, those behind go with the last.
    Index done = 0;
    do {
      const Index n = (std::min)(words - done, config_.segment - now.longest());
      const Index begin = done == 0 ? 0 : before + done;
      const Index first = before + done, last = first + n;
      const Index end = done + n == words ? length : last;
      if (pass.answer) {
        const auto seen = [&](const V& held, const V& of_x) {
          const V piece = narrow(of_x, begin, end);
          return begin == 0
                     ? concat(held, piece)
                     : now.in_order(concat(held, concat(narrow(of_x, 0, before), piece)), before);
        };
        answers.push_back(attend(next, now, narrow(queries, begin, end), seen(now.keys, keys),
                                 seen(now.values, values)));
      }
      now.take(narrow(keys, first, last), narrow(values, first, last));
      if (now.longest() == config_.segment) write(next, now);
      done += n;
    } while (done < words);
    now.put_to(next.segment, config_.segment - 1);
    if (pass.traced) {
      const V share = sigmoid(gate);
      pass.show("memory_gate", config_.gate_on_local ? T(1) - share : share, "head");
    }
    state = std::move(next);
    return pass.answer ? maps.out.forward(detail::joined(std::move(answers))) : V();
  }

  /// Of `forward` behind a memory, wherever in a segment it begins: a vector sees half of one, on
  /// average. See memory/flops.hpp.
  double flops(Index batch, Index length) const {
    const Index e = sizes_.inner(), D = sizes_.head_dim;
    const double rows = static_cast<double>(batch);
    const double seen = static_cast<double>(length) * static_cast<double>(config_.segment + 1) / 2;
    return rows * (4 * detail::product_flops(length, e, sizes_.model_dim) +
                   4 * seen * static_cast<double>(e) +
                   (config_.delta ? 3 : 2) * detail::product_flops(length, e, D));
  }

 private:
  /// The segment as it fills: keys and values [B, held, H D] that end at the right, as many as the
  /// longest row has.
  struct Collected {
    RowCounts length;
    V keys, values;
    RowCounts own;  ///< how many of `length` this call has brought

    Index longest() const { return detail::most_of(length); }
    void keep_longest() {
      const Index all = keys.dim(1), begin = all - longest();
      keys = narrow(keys, begin, all);
      values = narrow(values, begin, all);
    }
    void take(const V& new_keys, const V& new_values) {
      keys = concat(keys, new_keys);
      values = concat(values, new_values);
      for (Index& n : length) n += new_keys.dim(1);
      for (Index& n : own) n += new_keys.dim(1);
    }
    /// [held; tokens; piece] -> [B, as many, H D] with the `tokens` where the call has them: behind
    /// what was held before it, in front of its own. Else a row's places would depend on where the
    /// segments of others end.
    V in_order(const V& x, Index tokens) const {
      const Index held = longest();
      return detail::pick(x, x.dim(1), [&](Index row, Index i) {
        const Index front = held - own[static_cast<std::size_t>(row)];
        if (i < front || i >= held + tokens) return i;
        return i < front + tokens ? held + i - front : i - tokens;
      });
    }
    /// Into a state of room for `most`.
    void put_to(InfiniSegment<T, Backend>& state, Index most) const {
      const auto padded = [&](const V& x) {
        if (x.dim(1) == most) return x;
        const V zeros(Tensor<T, Backend>::zeros(x.shape().with(1, most - x.dim(1))));
        return concat(zeros, x);
      };
      state = {padded(keys), padded(values), length};
    }
  };

  Shape held_shape(Index batch) const { return Shape{batch, config_.segment - 1, sizes_.inner()}; }

  /// 1 for the rows of which f(row) holds, 0 for others, [B, 1, 1, 1].
  template <class F>
  static Tensor<T, Backend> rows_where(Index batch, F f) {
    std::vector<T> each;
    for (std::size_t row = 0; row < static_cast<std::size_t>(batch); ++row)
      each.push_back(f(row) ? T(1) : T(0));
    return Tensor<T, Backend>::from(Shape{batch, 1, 1, 1}, each);
  }

  bool has_memory(const State& state) const {
    return std::any_of(state.written.begin(), state.written.end(), [](Index n) { return n > 0; });
  }

  /// The positive features of keys or queries, [B, H, L, D].
  V features(const V& x) const { return elu_plus_one(detail::by_head(x, sizes_.heads)); }

  V look_up(const State& state, const V& phi) const {
    return associative_read(phi, state.memory, state.mass, {.floor = config_.floor});
  }

  /// What the last q.dim(1) of the keys' places have read of the segment and of the memory, joined
  /// by the gate, [B, L, H D].
  V attend(const State& state, const Collected& now, const V& q, const V& k, const V& v) const {
    const Index batch = q.dim(0), length = q.dim(1), all = k.dim(1);
    const Index H = sizes_.heads, D = sizes_.head_dim, held = all - now.longest();
    PlainAttentionOptions<Backend> options{.heads = H, .causal = true};
    RowCounts visible = now.length;
    for (Index& n : visible) n += held;
    options.visible = detail::visible<Backend>(visible, all);
    V local;
    if (config_.rotary_base > 0) {
      const auto table = turns_.reaching(all, D);
      local = scaled_dot_product_attention(rotary(q, H, table.slice(all - length, all)),
                                           rotary(k, H, table), v, options);
    } else {
      local = scaled_dot_product_attention(q, k, v, options);
    }
    const bool remembers_some = has_memory(state);
    if (!remembers_some && config_.ungated_first) return local;
    V weight = reshape(sigmoid(gate), Shape{H, 1});  // of what the memory reads
    if (config_.gate_on_local) weight = T(1) - weight;
    if (config_.ungated_first)
      weight =
          weight * V(rows_where(batch, [&](std::size_t row) { return state.written[row] > 0; }));
    const V heads = reshape(local, Shape{batch, length, H, D});
    if (!remembers_some) return reshape((T(1) - weight) * heads, local.shape());
    const V read = transpose(look_up(state, features(q)), 1, 2);
    return reshape(heads + weight * (read - heads), local.shape());
  }

  /// Writes the segment of every row that is full, which then begins another.
  void write(State& state, Collected& now) const {
    const Index batch = state.memory.dim(0), H = sizes_.heads, all = now.keys.dim(1);
    const auto full = [&](std::size_t row) { return now.length[row] == config_.segment; };
    const V phi = features(now.keys);
    V values = detail::by_head(now.values, H);
    if (config_.delta && has_memory(state)) values = values - look_up(state, phi);
    Tensor<T, Backend> share;
    const bool every = std::all_of(now.length.begin(), now.length.end(),
                                   [&](Index n) { return n == config_.segment; });
    if (!every) {  // the others collect on
      const V these(rows_where(batch, full));
      values = values * these;
      share = (V(Tensor<T, Backend>::full(Shape{batch, H, all, 1}, T(1))) * these).value();
    }
    state.memory = associative_write(state.memory, phi, values);
    state.mass = mass_write(state.mass, phi, share);
    for (std::size_t row = 0; row < now.length.size(); ++row)
      if (full(row)) {
        ++state.written[row];
        now.length[row] = now.own[row] = 0;
      }
    now.keep_longest();
    if (every) return;
    const V others(rows_where(batch, [&](std::size_t row) {
                     return now.length[row] > 0;
                   }).reshape(Shape{batch, 1, 1}));
    now.keys = now.keys * others;
    now.values = now.values * others;
  }

  /// @throws infty::ShapeError unless a layer like this one made the state
  void check(const State& state) const {
    const Index batch = detail::checked_rows("InfiniAttention", state);
    const Index H = sizes_.heads, D = sizes_.head_dim;
    require<ShapeError>(batch >= 1 && state.segment.keys.shape() == held_shape(batch) &&
                            state.segment.values.shape() == held_shape(batch) &&
                            state.memory.shape() == Shape{batch, H, D, D} &&
                            state.mass.shape() == Shape{batch, H, D},
                        "InfiniAttention", "the state holds keys ", state.segment.keys.shape(),
                        " and a memory ", state.memory.shape(),
                        ": another layer made it, ours are ", held_shape(batch), " and ",
                        Shape{batch, H, D, D});
  }

  InfiniConfig config_;
  AttentionSizes sizes_;
  RotaryTable<T, Backend> turns_;
};

}  // namespace infty
