// SPDX-License-Identifier: MIT
#pragma once

#include <algorithm>
#include <utility>

#include <infty/autograd/shape.hpp>
#include <infty/core/checked.hpp>
#include <infty/core/math.hpp>
#include <infty/core/needs.hpp>
#include <infty/nn/embedding.hpp>
#include <infty/nn/sequence_layer.hpp>

namespace infty {

/// The constants of a `MemoryTokens`. The defaults are those of the Memory Transformer's language
/// model, a Transformer-XL, as its authors' program has it (booydar/LM-RMT).
struct MemoryTokensConfig {
  Index tokens = 10;       ///< m, memory tokens in front of every segment [Burtsev et al. 2020]
  bool behind = false;     ///< whether they stand behind the segment as well
  bool both_ways = true;   ///< whether tokens see each other both ways (the program's mask)
  bool read_past = false;  ///< whether they see what attention holds (`read_mem_from_cache`)
  bool held = true;        ///< whether attention holds them for later segments, as it does words
  bool shifted = false;    ///< positions of keys ahead as the program's shift has them
  double deviation = 1;    ///< of the normal distribution that the first vectors are drawn from

  /// What the tokens see, as a pass says it.
  TokenRules rules() const {
    return {both_ways, read_past, held,
            shifted ? AheadPositions::shifted : AheadPositions::distance};
  }

  /// Checks all constants.
  /// @throws infty::ValueError that names the first constant out of its range
  void validate() const {
    require_at_least("MemoryTokensConfig", "tokens", tokens, 1);
    require_sizes("MemoryTokensConfig", {{"tokens", tokens}});
    require_within("MemoryTokensConfig", "deviation", deviation, 0, largest_constant);
  }
};

namespace detail {

/// 0, ..., m - 1 in every row: the tokens of m memory vectors.
template <class B>
Tensor<Index, B> memory_numbers(Index batch, Index m) {
  RowCounts all;
  for (Index i = 0; i < batch * m; ++i) all.push_back(i % m);
  return Tensor<Index, B>::from(Shape{batch, m}, all.data());
}

/// What a layer makes of [tokens; x], or of [tokens; x; tokens], whose pass knows of them and of
/// what they see; and then the pass says what it said.
/// @param answer         whether answers of vectors are wanted that are no tokens in front
/// @param answer_before  whether those in front are
/// @throws infty::ValueError if tokens ride along already that keep to other rules
template <class Inner, class T, class B>
Variable<T, B> run_with_tokens(const char* op, const Inner& inner, StateOf<Inner>& state,
                               const Variable<T, B>& tokens, const Variable<T, B>& x, bool behind,
                               const TokenRules& rules, bool answer, bool answer_before,
                               Pass<T, B>& pass) {
  require(pass.before >= 0 && pass.before <= x.dim(1) && pass.behind >= 0 &&
              pass.behind <= x.dim(1) - pass.before,
          op, "of ", x.dim(1), " vectors, ", pass.before, " and ", pass.behind,
          " are said to be memory tokens");
  require(pass.before + pass.behind == 0 || pass.tokens == rules, op, pass.before, " and ",
          pass.behind, " memory tokens ride along already, under other rules than these");
  const Index m = tokens.dim(1);
  const TokenRules old_rules = std::exchange(pass.tokens, rules);
  const bool old_answer = std::exchange(pass.answer, answer);
  const bool outer = pass.answer_before && pass.before > 0;  // whether those in front are wanted
  const bool old_answer_before = std::exchange(pass.answer_before, answer_before || outer);
  pass.before += m;
  if (behind) pass.behind += m;
  const Variable<T, B> front = concat(tokens, x);
  const Variable<T, B> y = run_layer(inner, state, behind ? concat(front, tokens) : front, pass);
  pass.before -= m;
  if (behind) pass.behind -= m;
  pass.answer_before = old_answer_before;
  pass.answer = old_answer;
  pass.tokens = old_rules;
  return y;
}

/// Shows what came out at the tokens around a segment, y [B, m + L (+ m), d].
template <class T, class B>
void show_tokens(const Variable<T, B>& y, Index m, bool behind, Pass<T, B>& pass) {
  if (!pass.traced) return;
  pass.show("memory_tokens", narrow(y, 0, m));
  if (behind) pass.show("memory_tokens_behind", narrow(y, y.dim(1) - m, y.dim(1)));
}

}  // namespace detail

/// What a `MemoryTokens` remembers: what the stack does.
template <class InnerState>
struct MemoryTokensState {
  InnerState inner;  ///< of the stack

  template <class Visitor>
  void visit(Visitor&& see) {
    see("inner", inner);
  }
};

/// A decorator: m learned memory tokens in front of every segment, the same ones each time, which
/// go through all layers of any stack as words do [Burtsev et al. 2020]. Around a Transformer-XL it
/// is the Memory Transformer's language model; around an encoder, whose vectors all see each other,
/// the MemTransformer, and around `MemoryEncoderLayer`s the MemCtrl and the MemBottleneck.
///
/// A pass that is traced is shown what came out at the tokens in front, "memory_tokens"
/// [batch, m, d], and at those behind, where there are any, "memory_tokens_behind".
template <class Inner>
class MemoryTokens {
  static_assert(Layer<Inner>, "MemoryTokens: the inner layer" INFTY_NO_VISIT);
  static_assert(detail::state_fits<Inner>, "MemoryTokens: the inner layer" INFTY_NO_STATE);
  static_assert(detail::makes_state<Inner>, "MemoryTokens: the inner layer" INFTY_NO_MAKE_STATE);
  static_assert(detail::runs<Inner>, "MemoryTokens: the inner layer" INFTY_NO_FORWARD);

 public:
  using Scalar = typename Inner::Scalar;
  using BackendType = typename Inner::BackendType;
  using V = Variable<Scalar, BackendType>;
  using Config = MemoryTokensConfig;
  using State = MemoryTokensState<StateOf<Inner>>;

  Inner inner;                             ///< the stack that the tokens ride through
  Embedding<Scalar, BackendType> initial;  ///< the tokens, [m, d]

  /// Puts tokens around a stack of width d.
  /// @throws infty::ValueError if the configuration is not valid, or unless d >= 1
  MemoryTokens(Inner stack, Config config, Index d, Random random)
      : inner(std::move(stack)),
        initial((config.validate(), config.tokens), d, random, config.deviation),
        config_(config) {}

  /// The constants as given.
  const Config& config() const { return config_; }

  template <class Visitor>
  void visit(Visitor&& see) {
    see("inner", inner);
    see("initial", initial);
  }

  /// Whether padding behind the tokens changes no answer, which is the stack's to say.
  bool reads_padded() const { return infty::reads_padded(inner) && !config_.behind; }

  /// A state of fresh rows. @throws infty::ValueError unless 1 <= batch <= `largest_size`
  State make_state(Index batch, Index first_row = 0) const {
    require_rows("MemoryTokens::make_state", batch);
    return {infty::make_state(inner, batch, first_row)};
  }

  /// [B, L, d] -> [B, L, d], moving the state on.
  /// @throws infty::ShapeError; then the state is as it was
  V forward(State& state, const V& x, Pass<Scalar, BackendType>& pass) const {
    const Index m = initial.weight.dim(0), d = initial.weight.dim(1);
    require<ShapeError>(x.shape().rank() == 3 && x.dim(2) == d, "MemoryTokens", "x is ", x.shape(),
                        ": it must be [B, L, ", d, "]");
    State next = state;
    const V tokens = initial.forward(detail::memory_numbers<BackendType>(x.dim(0), m));
    const V y =
        detail::run_with_tokens("MemoryTokens", inner, next.inner, tokens, x, config_.behind,
                                config_.rules(), pass.answer, pass.traced, pass);
    V answer;
    if (pass.answer) {
      // What is in front may have been left out, if nobody looks.
      const Index all = y.dim(1), end = config_.behind ? all - m : all;
      detail::show_tokens(y, m, config_.behind, pass);
      answer = narrow(y, (std::max<Index>)(0, end - x.dim(1)), end);
    }
    state = std::move(next);
    return answer;
  }

 private:
  Config config_;
};

}  // namespace infty
