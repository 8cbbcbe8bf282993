// SPDX-License-Identifier: MIT
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <type_traits>
#include <utility>
#include <vector>

#include <infty/autograd/elementwise.hpp>
#include <infty/autograd/shape.hpp>
#include <infty/autograd/softmax.hpp>
#include <infty/memory/flops.hpp>
#include <infty/memory/fwd.hpp>
#include <infty/memory/long_term_checks.hpp>
#include <infty/memory/memory.hpp>
#include <infty/memory/mixed_config.hpp>
#include <infty/memory/row_chunks.hpp>
#include <infty/nn/linear.hpp>
#include <infty/nn/pass.hpp>
#include <infty/nn/sequence_layer.hpp>

namespace infty {

/// What a `MixedMemory` remembers.
template <class PartState>
struct MixedState {
  std::vector<PartState> parts;  ///< of each memory, in their order

  template <class Visitor>
  void visit(Visitor&& see) {
    see("parts", parts);
  }
};

namespace detail {

/// The layer that has a memory's parameters.
template <class M>
auto& signal_of(M& memory) {
  if constexpr (requires { memory.signal; })
    return memory.signal;
  else
    return memory;
}

/// Whether a memory is read by a density of scores.
template <class S>
inline constexpr bool reads_scores =
    requires(const S& signal, const typename S::State& state,
             const Variable<typename S::Scalar, typename S::BackendType>& queries) {
      signal.density(state, queries);
    };

}  // namespace detail

/// Several signals of one past, each contracted in its own way: all take in all vectors. Either
/// each answers its share of the heads, or each answers all of them and a learned gate mixes what
/// they read. M is a `LongTermMemory` or a `UniformMemory`.
///
/// It has the parameters of one memory, for parts share what may be shared: the gate on what is
/// written and the map of what was read; with `MixedReading::gate` keys and values, too. Weights
/// that belong to the basis functions, as those of a density, are each part's own.
template <class M>
class MixedMemory {
  using T = typename M::Scalar;
  using B = typename M::BackendType;
  using V = Variable<T, B>;

 public:
  using Scalar = T;
  using BackendType = B;
  using Config = MixedConfig<typename M::Config>;
  using State = MixedState<typename M::State>;

  /// Whether the parts' states take gradients.
  static constexpr bool state_takes_gradient = infty::state_takes_gradient<M>;

  std::vector<M> parts;  ///< the memories, which do not map what their heads read
  V mixture;             ///< [H, P], scores of the parts, 0 at first; empty unless mixed by a gate
  Linear<T, B> out;      ///< H D -> d, what the heads have read [Martins et al. 2022, Eq. 11];
                         ///< empty without `project`

  /// Makes a memory with weights of its own. @throws infty::ValueError if the configuration is not
  /// valid
  explicit MixedMemory(Config config, Random random = Random(0)) : config_(std::move(config)) {
    config_.validate();
    for (std::size_t i = 0; i < config_.parts.size(); ++i)
      parts.emplace_back(config_.resolved_part(i), stream(random, i));
    share(random);
  }

  /// Another memory of the same configuration, with parameters of its own; both share the ridge
  /// matrices.
  MixedMemory sibling(Random random) const {
    MixedMemory other(*this);
    for (std::size_t i = 0; i < parts.size(); ++i)
      other.parts[i] = parts[i].sibling(stream(random, i));
    other.share(random);
    return other;
  }

  /// The constants as given.
  const Config& config() const { return config_; }

  template <class Visitor>
  void visit(Visitor&& see) {
    see("parts", parts);
    if (by_gate()) see("mixture", mixture);
    if (config_.project()) see("out", out);
  }

  /// A state of fresh rows; row i draws the random numbers of stream `first_row` + i.
  /// @throws infty::ValueError unless batch >= 1
  State make_state(Index batch, Index first_row = 0) const {
    State state;
    for (const M& part : parts) state.parts.push_back(part.make_state(batch, first_row));
    return state;
  }

  /// Checks that a memory like this one made a state, and that its members have as many rows.
  /// @throws infty::ShapeError, infty::ValueError that name `op` if not
  void check(const char* op, const State& state) const {
    require(!parts.empty(), op, "the memory was moved from");
    require<ShapeError>(state.parts.size() == parts.size(), op, "the state is one of ",
                        state.parts.size(), " memories, ours are ", parts.size());
    for (std::size_t i = 0; i < parts.size(); ++i) parts[i].check(op, state.parts[i]);
    detail::checked_rows(op, state);
  }

  /// Takes in the last `counts` of every row's vectors. @param x  [batch, L, d], any L >= 0
  /// @throws what the parts throw; then the state is as it was
  void write(State& state, const V& x, const RowCounts& counts) const {
    check("write", state);
    State next = state;
    for (std::size_t i = 0; i < parts.size(); ++i) parts[i].write(next.parts[i], x, counts);
    state = std::move(next);
  }

  /// The same, all vectors of every row.
  void write(State& state, const V& x) const {
    check("write", state);
    detail::check_vectors("write", x.shape(), detail::checked_rows("write", state),
                          config_.model_dim);
    write(state, x, RowCounts(static_cast<std::size_t>(x.dim(0)), x.dim(1)));
  }

  /// What every query reads. A fresh row reads zeros. @param queries  [batch, Q, H D], projected
  /// @return  [batch, Q, d], without `project` [batch, Q, H D]
  /// @throws infty::ShapeError, infty::NonFiniteError if what is read is not finite; then the state
  /// is as it was
  V read(State& state, const V& queries) const {
    Pass<T, B> pass;
    pass.answer = false;  // nobody wants losses
    return read(state, queries, pass);
  }

  /// The same in a pass, which is shown the "density" of all queries and heads, where each part
  /// answers all heads part by part, [2, B, P H, Q], and their "mixture" [H, P]. It is given the
  /// parts' losses: their sum, or where each answers all heads their mean, so that a weight of the
  /// loss means what it means for one memory.
  V read(State& state, const V& queries, Pass<T, B>& pass) const {
    check("read", state);
    const Index batch = detail::checked_rows("read", state), count = std::ssize(parts),
                inner = config_.heads * config_.resolved_head_dim(), width = inner / count;
    detail::check_queries("read", queries.shape(), batch, inner);
    const Index length = queries.dim(1);
    const auto lost = pass.losses.size(), shown = pass.trace.size();
    const V rows = reshape(queries, Shape{batch * length, inner}),
            weights = by_gate() ? shares() : V();
    State next = state;
    V heads;
    for (Index i = 0; i < count; ++i) {
      const auto read_part = [&](const V& own) {
        const auto at = static_cast<std::size_t>(i);
        return parts[at].read(next.parts[at], own, pass);
      };
      if (by_gate()) {
        const V all = reshape(read_part(queries),
                              Shape{batch, length, config_.heads, config_.resolved_head_dim()});
        const V weighed = multiply(all, narrow(weights, i, i + 1));
        heads = i == 0 ? weighed : heads + weighed;
      } else {
        const V own = narrow(rows, i * width, (i + 1) * width);
        const V some = reshape(read_part(reshape(own, Shape{batch, length, width})),
                               Shape{batch * length, width});
        heads = i == 0 ? some : concat(heads, some);
      }
    }
    heads = reshape(heads, Shape{batch, length, inner});
    const V answer = config_.project() ? out.forward(heads) : heads;
    // The parts have seen to the state.
    detail::require_finite_read(queries.value(), queries.value(), answer.value());
    if (by_gate())
      for (auto i = lost; i < pass.losses.size(); ++i)
        pass.losses[i].value = scale(pass.losses[i].value, T(1) / static_cast<T>(count));
    if (pass.traced) {
      show_one_density(pass, shown);
      if (by_gate()) pass.show("mixture", weights);
    }
    state = std::move(next);
    return answer;
  }

  /// What each part counts for each head, softmax over the parts -> [H, P], rows that sum to 1.
  /// @throws infty::ShapeError where heads are not mixed by a gate
  V shares() const {
    require<ShapeError>(by_gate(), "shares", "reading is not gate: there is no mixture");
    return softmax(mixture);
  }

  /// Whether attention beside this memory is to read what waits: see `Waiting::short_term`.
  bool shows_older() const
    requires requires(const M& part) { part.shows_older(); }
  {
    return !parts.empty() && parts.front().shows_older();
  }
  /// What waits, for that attention: of every row what waits in the part in which most does.
  /// @throws infty::ShapeError, infty::ValueError
  OlderVectors<T, B> older(const State& state) const
    requires requires(const M& part, const typename M::State& of) { part.older(of); }
  {
    check("older", state);
    const std::size_t rows = state.parts[0].held.size();
    OlderVectors<T, B> chosen{{}, RowCounts(rows, 0)};
    RowCounts begin(rows, 0), held(rows, -1);  // behind the chosen part's places, and its vectors
    Index places = 0, width = 0;
    for (std::size_t i = 0; i < parts.size(); ++i) {
      const auto own = parts[i].older(state.parts[i]);
      chosen.vectors = i == 0 ? own.vectors : concat(chosen.vectors, own.vectors);
      places += own.vectors.dim(1);
      width = (std::max)(width, own.vectors.dim(1));
      for (std::size_t row = 0; row < rows; ++row) {
        if (state.parts[i].held[row] <= held[row]) continue;
        held[row] = state.parts[i].held[row];
        chosen.length[row] = own.length[row];
        begin[row] = places;
      }
    }
    chosen.vectors = detail::pick(chosen.vectors, width, [&](Index row, Index at) {
      return (std::max)(Index{0}, begin[static_cast<std::size_t>(row)] - width + at);
    });
    return chosen;
  }

  /// Whether where a read looks decides where a part's next write samples, answer or not.
  bool notes_reads() const {
    return std::any_of(parts.begin(), parts.end(),
                       [](const M& part) { return part.notes_reads(); });
  }

  /// Of a later `write` of `length` vectors, where the parts count theirs.
  double write_flops(Index batch, Index length) const
    requires requires(const M& part) { part.write_flops(batch, length); }
  {
    double flops = 0;
    for (const M& part : parts) flops += part.write_flops(batch, length);
    return flops;
  }
  /// Of a `read` by so many queries, where the parts count theirs.
  double read_flops(Index batch, Index length) const
    requires requires(const M& part) { part.read_flops(batch, length); }
  {
    const Index inner = config_.heads * config_.resolved_head_dim();
    double flops =
        config_.project() ? detail::product_flops(batch * length, config_.model_dim, inner) : 0;
    for (const M& part : parts) flops += part.read_flops(batch, length);
    return flops;
  }

 private:
  bool by_gate() const { return config_.reading == MixedReading::gate; }

  static Random stream(const Random& random, std::size_t i) {
    return random.split(static_cast<std::uint64_t>(i));
  }

  /// Gives all parts the first one's handles of what is shared, and draws what is theirs together.
  void share(const Random& random) {
    const auto& first = detail::signal_of(parts.front());
    for (M& part : parts) {
      auto& own = detail::signal_of(part);
      own.gate_weight = first.gate_weight;
      own.gate_bias = first.gate_bias;
      if (!by_gate()) continue;
      own.key = first.key;
      own.value = first.value;
    }
    const Index count = std::ssize(parts);
    if (by_gate()) mixture = V(Tensor<T, B>::zeros(Shape{config_.heads, count}), true);
    if (config_.project())
      out = Linear<T, B>(config_.heads * config_.resolved_head_dim(), config_.model_dim,
                         stream(random, parts.size()), false);
  }

  /// Puts one density into the trace for those that the parts have shown from `begin` on.
  static void show_one_density(Pass<T, B>& pass, std::size_t begin) {
    V all;
    Shape shape;
    using Signal = std::remove_reference_t<decltype(detail::signal_of(std::declval<M&>()))>;
    constexpr bool scored = detail::reads_scores<Signal>;
    for (std::size_t i = begin; i < pass.trace.size(); ++i) {
      const V& density = pass.trace[i].value;  // [2, B, H, Q], of scores [B, H, Q, points]
      const Shape& own = density.shape();
      const V joinable =
          scored ? density : reshape(density, Shape{own[0] * own[1], own[2], own[3]});
      all = i == begin ? joinable : concat(all, joinable);
      shape = own.with(scored ? 1 : 2, all.dim(1));
    }
    pass.trace.resize(begin);
    pass.show("density", reshape(all, shape));
  }

  Config config_;
};

}  // namespace infty
