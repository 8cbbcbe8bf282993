// SPDX-License-Identifier: MIT
#pragma once

#include <algorithm>
#include <optional>
#include <utility>

#include <infty/autograd/shape.hpp>
#include <infty/core/needs.hpp>
#include <infty/memory/memory.hpp>
#include <infty/memory/merge.hpp>
#include <infty/memory/with_memory_state.hpp>
#include <infty/nn/attention_sizes.hpp>

namespace infty {

/// The constants of a `WithMemory`.
template <class AttentionConfig, class MemoryConfig>
struct WithMemoryConfig {
  AttentionConfig attention = {};  ///< of the attention, which may have a memory itself
  /// Empty for none. Its model_dim, heads and head_dim, where it has these, are the attention's.
  std::optional<MemoryConfig> memory = MemoryConfig{};
  /// Whether the memory takes in vectors as the norm in front of the layer makes them; otherwise as
  /// they came to the layer, as in the authors' GPT-2 for language modelling.
  bool normed = true;

  /// The memory's constants, with these sizes.
  MemoryConfig resolved_memory(const AttentionSizes& sizes) const {
    MemoryConfig config = memory.value_or(MemoryConfig{});
    if constexpr (requires { config.model_dim = sizes.model_dim; })
      config.model_dim = sizes.model_dim;
    if constexpr (requires { config.heads = sizes.heads; }) config.heads = sizes.heads;
    if constexpr (requires { config.head_dim = sizes.head_dim; }) config.head_dim = sizes.head_dim;
    return config;
  }

  /// The attention's constants: some depend on whether there is a memory to take in what leaves.
  AttentionConfig resolved_attention() const {
    if constexpr (requires { attention.resolved(true); })
      return attention.resolved(memory.has_value());
    else
      return attention;
  }
};

namespace detail {

/// The decorator that attention asks for, if it does: a memory beside it changes nothing.
template <class A>
struct AroundAttention {};
template <class A>
  requires requires { typename A::template Around<A>; }
struct AroundAttention<A> {
  template <class Stack>
  using Around = typename A::template Around<Stack>;
};

}  // namespace detail

/// Attention and beside it a memory, which takes in the vectors that the former lets go. The same
/// queries read both, and `Merge` makes one of what they read, by default the sum
/// Z = Z_T + Z_LTM [Martins et al. 2022, Eq. 12].
///
/// Attention that holds a chunk, as `CachedAttention` does and says by `chunk()`, lets a row's
/// vectors go together where the next segment does not fit into the chunk; until then the memory is
/// read as it is, so that a chunk may be read token by token.
template <class A, class M, class Merge = SumMerge<typename A::Scalar, typename A::BackendType>>
class WithMemory : public detail::AroundAttention<A> {
  using T = typename A::Scalar;
  using B = typename A::BackendType;
  using X = Variable<T, B>;
  static_assert(Layer<A>, "WithMemory: the attention" INFTY_NO_VISIT);
  static_assert(detail::state_fits<A>, "WithMemory: the attention" INFTY_NO_STATE);
  static_assert(detail::makes_state<A>, "WithMemory: the attention" INFTY_NO_MAKE_STATE);
  static_assert(detail::runs<A>, "WithMemory: the attention" INFTY_NO_FORWARD);
  static_assert(
      requires(const A& a, StateOf<A>& state, const X& x, InputNorm<T, B> norm, Pass<T, B>& pass) {
        { a.attend(state, x, norm, pass) } -> std::same_as<Attended<T, B>>;
      },
      "WithMemory: the attention has no `Attended<Scalar, BackendType> attend(state, x, norm, "
      "pass) "
      "const`, which says what it has read and what it lets go");
  static_assert(
      requires(const A& a, const X& x) {
        { a.queries(x) } -> std::same_as<X>;
      },
      "WithMemory: the attention has no `queries(x) const` that returns the Variable [B, L, H D]");

  static_assert(
      requires {
        requires std::same_as<typename M::Scalar, T>;
        requires std::same_as<typename M::BackendType, B>;
      }, "WithMemory: the memory has no Scalar and BackendType that are the attention's");
  static_assert(Layer<M>, "WithMemory: the memory" INFTY_NO_VISIT);
  static_assert(
      requires(const typename M::Config& config, Random random) { M(config, random); },
      "WithMemory: the memory has no Config, the type of its constants, or cannot be made of "
      "`Memory(Config, Random)`");
  static_assert(
      requires { requires detail::state_fits<M> && remembers<M>; },
      "WithMemory: the memory has no State, or it" INFTY_NO_STATE);
  static_assert(detail::makes_state<M>, "WithMemory: the memory" INFTY_NO_MAKE_STATE);
  static_assert(
      requires(const M& m, StateOf<M>& state, const X& x, const RowCounts& counts) {
        m.write(state, x, counts);
      },
      "WithMemory: the memory has no `void write(State&, const Variable<Scalar, BackendType>& x, "
      "const RowCounts& counts) const`");
  static_assert(
      requires(const M& m, StateOf<M>& state, const X& queries) {
        { m.read(state, queries) } -> std::convertible_to<X>;
      },
      "WithMemory: the memory has no `Variable<Scalar, BackendType> read(State&, const "
      "Variable<Scalar, BackendType>& queries) const` that returns a Variable");

 public:
  using Scalar = typename A::Scalar;
  using BackendType = typename A::BackendType;
  using V = Variable<Scalar, BackendType>;
  using Config = WithMemoryConfig<typename A::Config, typename M::Config>;
  using Past =
      MemoryPast<Scalar, BackendType, typename M::State>;  ///< what the memory adds to a state
  using State = WithMemoryState<StateOf<A>, Past>;
  using Norm = InputNorm<Scalar, BackendType>;
  using PassType = Pass<Scalar, BackendType>;

  /// Whether both parts' states take gradients.
  static constexpr bool state_takes_gradient =
      infty::state_takes_gradient<A> && infty::state_takes_gradient<M>;

  A attention;              ///< reads first, and lets vectors go to the memory
  std::optional<M> memory;  ///< empty for none
  Merge merge;              ///< makes one of what both have read

  /// Makes attention, memory and merge of these sizes, with fresh weights of their own.
  /// @throws infty::ValueError if sizes or configuration are not valid
  explicit WithMemory(const Config& config, AttentionSizes sizes, Random random = Random(0))
      : attention(config.resolved_attention(), sizes, random),
        merge(sizes),
        config_(config),
        sizes_(sizes) {
    if (!config.memory) return;
    if constexpr (requires { config.memory->group; })
      require(config.memory->group == 1, "WithMemory", "memory.group is ", config.memory->group,
              ": it must be 1, for vectors wait, and are read, in the attention (its stride)");
    memory.emplace(config.resolved_memory(sizes), random.split(2));
    require(!detail::shows_older(memory) || detail::reads_older<A>, "WithMemory",
            "memory.waiting is short_term: this attention cannot read what waits");
  }

  /// The same of another layer of the same model, which shares what each part shares.
  WithMemory sibling(Random random) const {
    WithMemory other(*this);
    other.attention = sibling_of(attention, random, [&](Random own) {
      return A(config_.resolved_attention(), sizes_, own);
    });
    if (memory)
      other.memory.emplace(sibling_of(*memory, random.split(2), [&](Random own) {
        return M(config_.resolved_memory(sizes_), own);
      }));
    other.merge = Merge(sizes_);
    return other;
  }

  template <class Visitor>
  void visit(Visitor&& see) {
    see("attention", attention);
    see("memory", memory);
    see("merge", merge);
  }

  /// A state of fresh rows; row i draws the random numbers of stream `first_row` + i.
  /// @throws infty::ValueError unless batch >= 1
  State make_state(Index batch, Index first_row = 0) const {
    State state{infty::make_state(attention, batch, first_row), {}};
    if (memory) state.past.emplace(Past{nothing(batch), memory->make_state(batch, first_row)});
    return state;
  }

  /// Reads both behind what has left the attention, and moves both on: [B, L, d] -> [B, L, d].
  /// @throws infty::ShapeError; then the state is as it was
  V forward(State& state, const V& x, const Norm& norm, PassType& pass) const {
    return attend(state, x, norm, pass).context;
  }

  /// The state with what waits in it written, as the next `forward` would begin: so that copies of
  /// it, which read the same segment again and again, need not write it each. A chunk waits until
  /// it is full. Of a segment that is read through a norm, that norm. No gradient flows from them
  /// to what the memory makes of it.
  /// @throws as `forward`
  State settled(const State& state, const Norm& norm = {}) const {
    const auto guard = no_grad();
    return written(state, norm, 1);
  }

  /// What `forward` does, with the queries; nothing leaves where there is a memory.
  Attended<Scalar, BackendType> attend(State& state, const V& x, const Norm& norm,
                                       PassType& pass) const {
    State next = written(state, norm, x.shape().rank() == 3 ? x.dim(1) : 0);
    if constexpr (requires { memory->older(next.past->memory); })
      if (detail::shows_older(memory)) {
        pass.older = memory->older(next.past->memory);
        // What the memory takes in has been normed, or is still to be.
        if (norm && !config_.normed) pass.older.vectors = norm(pass.older.vectors);
      }
    auto attended = attention.attend(next.attention, x, norm, pass);
    pass.older = {};
    if (memory) {
      if (pass.answer)
        attended.context =
            merged(attended.context, read(next.past->memory, attended.queries, pass), x, pass);
      else if (notes_reads())
        read(next.past->memory,
             attended.queries.size() > 0 ? attended.queries : attention.queries(norm(x)), pass);
      detail::append(next.past->leaving, std::exchange(attended.leaving, {}));
    }
    state = std::move(next);
    return attended;
  }

  /// Vectors that a row of the attention holds.
  Index capacity() const
    requires requires(const A& a) { a.capacity(); }
  {
    return attention.capacity();
  }
  /// d.
  Index model_dim() const { return sizes_.model_dim; }

  /// The attention's queries, of vectors as it sees them.
  V queries(const V& x) const { return attention.queries(x); }

  /// Of `forward` behind full memories. A write of a group of vectors, which comes once in several
  /// short segments, counts with its share. Where attention and memory count theirs.
  double flops(Index batch, Index length) const
    requires requires {
      attention.flops(batch, length);
      memory->read_flops(batch, length);
      memory->write_flops(batch, length);
    }
  {
    double count = attention.flops(batch, length);
    if (!memory) return count;
    Index rate = 1;  // vectors that go into one that leaves
    if constexpr (requires { attention.rate(); }) rate = attention.rate();
    Index group = std::max<Index>(1, length / rate);
    if constexpr (requires { attention.stride(); }) group = (std::max)(group, attention.stride());
    const double share =
        static_cast<double>(length) / (static_cast<double>(rate) * static_cast<double>(group));
    return count + memory->read_flops(batch, length) + share * memory->write_flops(batch, group);
  }

 private:
  bool notes_reads() const {
    if constexpr (requires { memory->notes_reads(); })
      return memory->notes_reads();
    else
      return false;
  }

  V read(typename M::State& state, const V& queries, PassType& pass) const {
    if constexpr (requires { memory->read(state, queries, pass); })
      return memory->read(state, queries, pass);
    else
      return memory->read(state, queries);
  }

  /// Of vectors in front that have not asked the memory, what attention alone has read.
  V merged(const V& attended, const V& read, const V& x, PassType& pass) const {
    const Index all = attended.dim(1), front = all - read.dim(1);
    detail::show_share(attended, read, x.dim(1), pass);
    if (front == 0) return merge.forward(attended, read);
    return concat(narrow(attended, 0, front), merge.forward(narrow(attended, front, all), read));
  }

  RowSequences<Scalar, BackendType> nothing(Index batch) const {
    return {Tensor<Scalar, BackendType>::zeros(Shape{batch, 0, sizes_.model_dim}),
            RowCounts(static_cast<std::size_t>(batch), 0)};
  }

  /// The state with what has left the attention, or leaves it for a segment of `length`, written to
  /// the memory: here and not when it left, so that the gradient of this segment's loss reaches
  /// what the memory makes of new vectors.
  State written(const State& state, const Norm& norm, Index length) const {
    require<ShapeError>(state.past.has_value() == memory.has_value(), "WithMemory",
                        "the state has ", state.past ? "a" : "no", " memory, the layer ",
                        memory ? "one" : "none");
    const Index batch = detail::checked_rows("WithMemory", state);
    State next = state;
    RowCounts over(static_cast<std::size_t>(batch), 1);
    if constexpr (detail::holds_chunk<A>)
      over = detail::begin_chunks(attention, next.attention, length);
    if (!memory) return next;
    auto& [leaving, past] = *next.past;
    const Shape& waiting = leaving.vectors.shape();
    require<ShapeError>(
        waiting.rank() == 3 && waiting == Shape{batch, waiting[1], sizes_.model_dim}, "WithMemory",
        "the state's leaving vectors are ", waiting, ": they must be [", batch, ", L, ",
        sizes_.model_dim, "]");
    for (const Index n : leaving.length)
      require<ShapeError>(n >= 0 && n <= waiting[1], "WithMemory", "a row has ", n,
                          " leaving vectors of ", waiting[1]);
    if constexpr (requires { memory->check("WithMemory", past); })
      memory->check("WithMemory", past);
    if (leaving.vectors.dim(1) == 0) return next;
    const auto ready = detail::take_sequences(leaving, over);
    if (ready.vectors.dim(1) == 0) return next;
    V vectors(ready.vectors);
    if (norm && config_.normed) vectors = detail::masked(norm(vectors), ready.length);
    memory->write(past, vectors, ready.length);
    return next;
  }

  Config config_;
  AttentionSizes sizes_;
};

}  // namespace infty
