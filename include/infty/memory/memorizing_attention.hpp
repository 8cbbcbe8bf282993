// SPDX-License-Identifier: MIT
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <optional>
#include <utility>
#include <vector>

#include <infty/autograd/shape.hpp>
#include <infty/core/checked.hpp>
#include <infty/memory/fifo.hpp>
#include <infty/memory/flops.hpp>
#include <infty/memory/key_value_store.hpp>
#include <infty/memory/memorizing_config.hpp>
#include <infty/memory/ops/nearest.hpp>
#include <infty/memory/ops/retrieved_attention.hpp>
#include <infty/nn/linear.hpp>
#include <infty/nn/local_attention.hpp>
#include <infty/nn/sequence_layer.hpp>
#include <infty/nn/unit_vectors.hpp>

namespace infty {

/// What a `MemorizingAttention` remembers. No gradient flows through it.
template <class T, class Backend, class Stored>
struct MemorizingState {
  KeyValueStore<T, Backend, Stored> memory;  ///< keys and values of each row, found by their keys
  /// [batch, cache, 2 G D], keys and values that local attention sees in front of the segment.
  RowSequences<T, Backend> cache;

  template <class Visitor>
  void visit(Visitor&& see) {
    see("memory", memory);
    see("cache", cache);
  }
};

/// The attention of a Memorizing Transformer [Wu et al. 2022]: each head attends to its local
/// context, and to the k keys among the last `capacity` of the row's past that are nearest to the
/// query, found exactly. Then the keys and values of the segment are remembered, as they are: a
/// segment does not find itself, and no gradient flows into the memory or through the choice. It
/// does reach the queries through the retrieved scores. Keys and values of memory tokens are seen
/// by the segment and not remembered.
///
///     V_a = g V_m + (1 - g) V_c
///
/// With a gate, g = sigmoid(b) of each head; jointly, g is the share that the retrieved have in one
/// softmax over both. An empty memory reads V_m = 0, and the gate still applies.
///
/// A row costs what it remembers, not the capacity. A state may come from a layer with another
/// capacity: a larger one remembers on, a smaller one sees the latest.
///
/// A pass that is traced is shown "query", "local" (V_c) and "retrieved" (V_m), [B, L, H, D], and
/// where something is remembered "retrieved_distances", [B, L, H, k], or of fewer where no row has
/// k yet: how many places in front of its query each entry stands that was found, 0 for none;
/// memory tokens in front ask from where the first word stands.
///
/// Keys and values that are remembered are kept as `Stored`: T, or `BFloat16`, which takes half of
/// the bytes of a float. Nothing else is rounded.
template <class T, class Backend, class Stored>
class MemorizingAttention {
 public:
  using Scalar = T;
  using BackendType = Backend;
  using Config = MemorizingConfig;
  using State = MemorizingState<T, Backend, Stored>;
  using V = Variable<T, Backend>;

  /// The memory takes no gradient, nor does the cache.
  static constexpr bool state_takes_gradient = false;

  Linear<T, Backend> query;       ///< d -> H D, without a bias as the others
  Linear<T, Backend> key, value;  ///< d -> G D
  Linear<T, Backend> out;         ///< H D -> d
  V temperature;  ///< s [H], empty unless normalised: scores are |s| times as large, jointly e^s
  V gate;         ///< b [H], the share of what was retrieved is sigmoid(b); empty jointly
  BucketBias<T, Backend> position;  ///< T5's bias of distances in local attention; empty for none

  /// Makes the attention of a layer, with weights drawn as `Linear` draws them.
  /// @throws infty::ValueError if sizes or configuration are not valid
  explicit MemorizingAttention(Config config, AttentionSizes sizes, Random random = Random(0))
      : query((config.validate(), sizes.validate(), sizes.model_dim), sizes.inner(),
              random.split(0), false),
        config_(config),
        sizes_(sizes),
        key_heads_(config.key_heads > 0 ? config.key_heads : sizes.heads) {
    require_sizes(
        "MemorizingAttention",
        {{"capacity", config.capacity}, {"heads", key_heads_}, {"2 head_dim", 2 * sizes.head_dim}});
    require_sizes(
        "MemorizingAttention",
        {{"cache", config.cache}, {"heads", key_heads_}, {"2 head_dim", 2 * sizes.head_dim}});
    key = Linear<T, Backend>(sizes.model_dim, key_width(), random.split(1), false);
    value = Linear<T, Backend>(sizes.model_dim, key_width(), random.split(2), false);
    out = Linear<T, Backend>(sizes.inner(), sizes.model_dim, random.split(3), false);
    const auto each_head = [&](double number) {
      return V(Tensor<T, Backend>::full(Shape{sizes.heads}, static_cast<T>(number)), true);
    };
    if (config.normalized)
      temperature = each_head(joint() ? std::log(first_temperature()) : first_temperature());
    if (!joint()) gate = each_head(config.gate_bias);
    if (config.buckets > 0) position = BucketBias<T, Backend>(config.buckets, sizes.heads);
  }

  template <class Visitor>
  void visit(Visitor&& see) {
    see("query", query);
    see("key", key);
    see("value", value);
    see("out", out);
    if (temperature.size() > 0) see("temperature", temperature);
    if (gate.size() > 0) see("gate", gate);
    if (position.weight.size() > 0) see("position", position);
  }

  /// The constants as given.
  const Config& config() const { return config_; }

  /// A state of fresh rows, which hold nothing. @throws infty::ValueError unless 1 <= batch <=
  /// `largest_size`
  State make_state(Index batch, Index /*first_row*/ = 0) const {
    require_rows("MemorizingAttention::make_state", batch);
    return {KeyValueStore<T, Backend, Stored>(batch, key_heads_, sizes_.head_dim),
            fifo().make_state(batch)};
  }

  /// What each vector reads of its local context and of what the row remembers; then the segment is
  /// remembered: x [B, L, d] -> [B, L, d].
  /// @throws infty::ShapeError, infty::ValueError for memory tokens with rules of their own; then
  /// the state is as it was
  V forward(State& state, const V& x, Pass<T, Backend>& pass) const {
    check(state, x, pass);
    std::optional<NoGrad> unrecorded;
    if (!pass.answer) unrecorded.emplace();
    const V keys = unit(key.forward(x)), values = value.forward(x);
    V answer;
    if (pass.answer) answer = out.forward(read(state, x, keys, values, pass));
    state = written(state, keys, values, pass.before, x.dim(1) - pass.behind);
    return answer;
  }

  /// Of `forward` behind a full memory and a full cache: see memory/flops.hpp.
  double flops(Index batch, Index length) const {
    const Index rows = batch * length, d = sizes_.model_dim, e = sizes_.inner();
    const auto l = static_cast<double>(length), held = static_cast<double>(config_.cache);
    const double pairs = static_cast<double>(batch) * (l * held + l * (l + 1) / 2);
    return detail::product_flops(rows, 2 * (e + key_width()), d) +  // maps
           4 * pairs * static_cast<double>(e) +                     // local scores and values
           detail::product_flops(rows, config_.capacity, e) +       // the search
           detail::product_flops(rows, 2 * config_.k, e);           // what was found
  }

 private:
  bool joint() const { return config_.merge == MemorizingMerge::joint; }
  Index key_width() const { return key_heads_ * sizes_.head_dim; }
  double first_temperature() const {
    return config_.temperature > 0 ? config_.temperature : joint() ? 20. : 1.;
  }
  /// What holds the local context in front of a segment.
  Fifo<T, Backend> fifo() const { return Fifo<T, Backend>(2 * key_width(), config_.cache); }

  void check(const State& state, const V& x, const Pass<T, Backend>& pass) const {
    const char* const op = "MemorizingAttention";
    fifo().check(op, state.cache);
    const Index batch = state.cache.vectors.dim(0);
    require<ShapeError>(state.memory.rows() == batch && state.memory.key_heads() == key_heads_ &&
                            state.memory.head_dim() == sizes_.head_dim,
                        op, "the state's memory has ", state.memory.rows(), " rows of ",
                        state.memory.key_heads(), " heads of ", state.memory.head_dim(),
                        ": they must be ", batch, ", ", key_heads_, " and ", sizes_.head_dim);
    detail::require_segment(op, x, batch, sizes_, pass);
    require_causal_tokens(op, pass);
  }

  /// Keys or queries [B, L, n D] as they are attended.
  V unit(const V& x) const {
    if (!config_.normalized) return x;
    return joint() ? unit_vectors(x, sizes_.head_dim)
                   : unit_vectors(x, sizes_.head_dim, config_.epsilon, 0);
  }

  /// What scores are multiplied by, [H, 1].
  V scores_scale() const {
    const V s = joint() ? exp(temperature) : relu(temperature) + relu(-temperature);
    return reshape(s, Shape{sizes_.heads, 1});
  }

  /// The bias of the distances 0, ..., keys - 1 -> [H, keys]; empty for none.
  V position_bias(Index keys, const V& by) const {
    if (position.weight.size() == 0) return V();
    const V bias = position.by_distance(0, keys, config_.bucket_rule());
    const double D = static_cast<double>(sizes_.head_dim);
    const double factor = config_.bias_scale > 0 ? config_.bias_scale : joint() ? std::sqrt(D) : 1.;
    const V scaled = factor == 1 ? bias : scale(bias, static_cast<T>(factor));
    return joint() || by.size() == 0 ? scaled : multiply(scaled, by);
  }

  /// What the heads read, [B, L, H D].
  V read(const State& state, const V& x, const V& keys, const V& values,
         Pass<T, Backend>& pass) const {
    const Index batch = x.dim(0), length = x.dim(1), H = sizes_.heads, D = sizes_.head_dim;
    const Shape flat{batch, length, H * D}, by_head{batch, length, H, D};
    const V all = query.forward(x);
    const V queries = config_.normalized
                          ? unit(all)
                          : scale(all, static_cast<T>(1 / std::sqrt(static_cast<double>(D))));
    const V by = config_.normalized ? scores_scale() : V();
    const V scaled =
        config_.normalized ? reshape(multiply(reshape(queries, by_head), by), flat) : queries;
    if (pass.traced) {
      pass.show("query", reshape(queries, by_head));
      if (!joint()) pass.show("memory_gate", sigmoid(gate), "head");
    }

    const V local = read_local(state, scaled, keys, values, by);
    const auto stored = state.memory.latest(config_.capacity);
    if (stored.longest() == 0) {
      if (pass.traced) {
        pass.show("local", first(local));
        pass.show("retrieved", V(Tensor<T, Backend>::zeros(by_head)));
      }
      const V whole = joint() ? first(local) : multiply(local, 1 - share());
      return reshape(whole, flat);
    }
    const auto found = nearest(queries.value(), stored, H, config_.k);
    const V retrieved = retrieved_attention(scaled, stored, found.indices, joint());
    if (pass.traced) {
      pass.show("retrieved_distances", distances(found.indices, stored.count, state, pass));
      pass.show("local", first(local));
      pass.show("retrieved", first(retrieved));
    }
    if (!joint()) return reshape(local + multiply(retrieved - local, share()), flat);
    const V g = sigmoid(last(retrieved) - last(local));  // the share of the retrieved
    const Shape rows{batch * length * H, D};
    const V close_by = reshape(first(local), rows), distant = reshape(first(retrieved), rows);
    return reshape(close_by + multiply(distant - close_by, g), flat);
  }

  /// How many places in front of its query each entry that was found stands, of `indices` among so
  /// many entries of each row -> [B, L, H, k]; 0 for none.
  V distances(const Tensor<Index, Backend>& indices, const RowCounts& count, const State& state,
              const Pass<T, Backend>& pass) const {
    const std::vector<Index> found = indices.to_vector();
    const auto each = static_cast<std::size_t>(indices.dim(2) * indices.dim(3)),
               length = static_cast<std::size_t>(indices.dim(1));
    std::vector<T> back;
    for (std::size_t i = 0; i < found.size(); ++i) {
      const std::size_t row = i / (each * length);
      const Index between = config_.overlapping ? 0 : state.cache.length[row],
                  place = std::max<Index>(0, static_cast<Index>(i / each % length) - pass.before);
      back.push_back(static_cast<T>(found[i] < 0 ? 0 : count[row] - found[i] + between + place));
    }
    return V(Tensor<T, Backend>::from(indices.shape(), back));
  }

  /// sigmoid(b), [H, 1].
  V share() const { return reshape(sigmoid(gate), Shape{sizes_.heads, 1}); }

  /// The answers [B, L, H, D] of what may have logarithms behind them.
  V first(const V& x) const {
    const Index D = sizes_.head_dim, rows = x.dim(0) * x.dim(1) * x.dim(2);
    if (x.dim(3) == D) return x;
    return reshape(narrow(reshape(x, Shape{rows, D + 1}), 0, D), x.shape().with(3, D));
  }
  /// The logarithms behind them, [B L H, 1].
  V last(const V& x) const {
    const Index D = sizes_.head_dim, rows = x.dim(0) * x.dim(1) * x.dim(2);
    return narrow(reshape(x, Shape{rows, D + 1}), D, D + 1);
  }

  /// What the queries read of the segment and the cache in front of it, [B, L, H, D] or with
  /// logarithms.
  V read_local(const State& state, const V& queries, const V& keys, const V& values,
               const V& by) const {
    const RowCounts& held = state.cache.length;
    const Index M =
        config_.attend_to_nothing ? config_.cache : *std::max_element(held.begin(), held.end());
    const auto all = [&](const V& own, Index part) {
      if (M == 0) return own;
      const Index w = key_width(), batch = own.dim(0);
      const V cached = narrow(V(state.cache.vectors), config_.cache - M, config_.cache);
      const V chosen = narrow(reshape(cached, Shape{batch * M, 2 * w}), part * w, (part + 1) * w);
      return concat(reshape(chosen, Shape{batch, M, w}), own);
    };
    LocalAttentionOptions<Backend> options{.heads = sizes_.heads,
                                           .key_heads = key_heads_,
                                           .window = config_.window,
                                           .strict = config_.strict,
                                           .log_sum = joint()};
    if (config_.strict) options.null_score = config_.null_score;
    if (!config_.attend_to_nothing) options.visible = detail::visible<Backend>(held, M);
    return local_attention(queries, all(keys, 0), all(values, 1),
                           position_bias(M + keys.dim(1), by), options);
  }

  /// The state with places [begin, end) of the segment's keys and values.
  State written(const State& state, const V& keys, const V& values, Index begin, Index end) const {
    const Index batch = keys.dim(0), length = end - begin, w = key_width();
    const auto flat = [&](const V& x) {
      return reshape(narrow(V(x.value()), begin, end), Shape{batch * length, w});
    };
    const RowSequences<T, Backend> entries{
        concat(flat(keys), flat(values)).value().reshape(Shape{batch, length, 2 * w}),
        RowCounts(static_cast<std::size_t>(batch), length)};
    State next = state;
    const auto leaving = fifo().write(next.cache, entries);
    next.memory.append(config_.overlapping ? entries : leaving, config_.capacity);
    return next;
  }

  Config config_;
  AttentionSizes sizes_;
  Index key_heads_;
};

}  // namespace infty
