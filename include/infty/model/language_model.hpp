// SPDX-License-Identifier: MIT
#pragma once

#include <algorithm>
#include <concepts>
#include <iterator>
#include <utility>
#include <vector>

#include <infty/autograd/shape.hpp>
#include <infty/core/checked.hpp>
#include <infty/core/needs.hpp>
#include <infty/core/pool.hpp>
#include <infty/nn/sequence_layer.hpp>

namespace infty {

/// What a `LanguageModel` remembers of every row's tokens.
template <class EmbeddingState, class BodyState>
struct LanguageModelState {
  EmbeddingState embedding;  ///< of the embedding; `NoState` where it has none
  BodyState body;            ///< of all layers

  template <class Visitor>
  void visit(Visitor&& see) {
    see("embedding", embedding);
    body.visit(see);
  }
};

/// A language model of three parts: an embedding, tokens [B, L] -> [B, L, d]; a body, which is any
/// `SequenceLayer`; and a head, which scores the next token.
///
/// - The embedding has `forward(tokens, pass)`, or `forward(state, tokens, pass)` and `make_state`
///   if it remembers something, a position say.
/// - The head has `logits(hidden)`, [..., d] -> [..., vocabulary], and `losses(hidden, targets)`,
///   [B, L, d] and [B, L] -> [B, L].
template <class Embedding, class Body, class Head>
class LanguageModel {
  using T = typename Body::Scalar;
  using B = typename Body::BackendType;
  using X = Variable<T, B>;
  static_assert(Layer<Body>, "LanguageModel: the body" INFTY_NO_VISIT);
  static_assert(detail::state_fits<Body>, "LanguageModel: the body" INFTY_NO_STATE);
  static_assert(detail::makes_state<Body>, "LanguageModel: the body" INFTY_NO_MAKE_STATE);
  static_assert(detail::runs<Body>, "LanguageModel: the body" INFTY_NO_FORWARD);
  static_assert(
      requires(const Embedding& e, StateOf<Embedding>& state, const Tensor<Index, B>& tokens,
               Pass<T, B>& pass) {
        requires remembers<Embedding> && detail::makes_state<Embedding>;
        { e.forward(state, tokens, pass) } -> std::convertible_to<X>;
      } ||
          requires(const Embedding& e, const Tensor<Index, B>& tokens, Pass<T, B>& pass) {
            requires !remembers<Embedding>;
            { e.forward(tokens, pass) } -> std::convertible_to<X>;
          },
      "LanguageModel: the embedding has no `forward(tokens, pass) const`, nor State, make_state "
      "and "
      "`forward(state, tokens, pass) const`, that returns the Variable [B, L, d]");
  static_assert(
      requires(const Head& head, const X& hidden) {
        { head.logits(hidden) } -> std::convertible_to<X>;
      },
      "LanguageModel: the head has no `logits(hidden) const` that returns the Variable [..., "
      "vocabulary]");
  static_assert(
      requires(const Head& head, const X& hidden, const Tensor<Index, B>& targets) {
        { head.losses(hidden, targets) } -> std::convertible_to<X>;
      },
      "LanguageModel: the head has no `losses(hidden, targets) const` that returns the Variable "
      "[B, L]");

 public:
  using Scalar = typename Body::Scalar;
  using BackendType = typename Body::BackendType;
  using V = Variable<Scalar, BackendType>;
  using Tokens = Tensor<Index, BackendType>;
  using PassType = Pass<Scalar, BackendType>;
  using State = LanguageModelState<StateOf<Embedding>, StateOf<Body>>;

  Embedding embedding;  ///< tokens [B, L] -> [B, L, d]
  Body body;            ///< [B, L, d] -> [B, L, d]
  Head head;            ///< scores the next token

  /// Takes the three parts, which must be of one width d; copies of a part share its weights.
  LanguageModel(Embedding embedding_, Body body_, Head head_)
      : embedding(std::move(embedding_)), body(std::move(body_)), head(std::move(head_)) {}

  template <class Visitor>
  void visit(Visitor&& see) {
    see("embedding", embedding);
    body.visit(see);
    head.visit(see);
  }

  /// A state of fresh rows; row i draws its random numbers from stream `first_row` + i.
  /// @throws infty::ValueError unless 1 <= batch <= `largest_size`
  State make_state(Index batch, Index first_row = 0) const {
    require_rows("LanguageModel::make_state", batch);
    return {infty::make_state(embedding, batch, first_row),
            infty::make_state(body, batch, first_row)};
  }

  /// Reads a segment behind what the state remembers, and moves the state on.
  /// @param tokens  [B, L], L >= 1
  /// @param pass    what layers are told, and report
  /// @return        [B, L, d], behind the body
  /// @throws infty::ShapeError, infty::ValueError for a token out of range, infty::NonFiniteError
  /// that names the layer for NaN or infinity (while a tape records, the loss tells of these); then
  /// the state is as it was
  V forward(State& state, const Tokens& tokens, PassType& pass) const {
    check(state, tokens);
    StateOf<Embedding> places = state.embedding;
    pass.words = tokens;
    const V x = embed(places, tokens, pass);
    V y = run_layer(body, state.body, x, pass);
    state.embedding = std::move(places);
    return y;
  }

  /// Reads a segment in a pass of which nobody wants to know more than the answer.
  V forward(State& state, const Tokens& tokens) const {
    PassType pass;
    return forward(state, tokens, pass);
  }

  /// Moves the state on as `forward` does, without an answer: no gradient, and work that no state
  /// depends on is left out. For the text that only the memory is to see.
  /// @param tokens   [B, L], L >= 1
  /// @param segment  >= 0; tokens are read in segments of so many, the last one shorter; 0 reads
  ///                 them as one
  /// @throws as `forward`; infty::ValueError for a negative segment
  void observe(State& state, const Tokens& tokens, Index segment = 0) const {
    check(state, tokens);
    require(segment >= 0, "LanguageModel::observe", "segment is ", segment, ": it must be >= 0");
    const Index batch = tokens.dim(0);
    if constexpr (requires {
                    BackendType::for_each_task(BackendType::task_rows(batch, batch), [](Index) {});
                  }) {
      // Rows share nothing. Parts of a few rows go through all segments without waiting for each
      // other.
      const Index length = tokens.dim(1),
                  at_once = segment > 0 ? (std::min)(segment, length) : length,
                  rows = BackendType::task_rows(batch, at_once);
      if (rows < batch && batch_of(state) == batch) {
        PoolVector<State> parts(static_cast<std::size_t>((batch + rows - 1) / rows));
        BackendType::for_each_task(std::ssize(parts), [&](Index i) {
          const Index begin = i * rows, end = (std::min)(batch, begin + rows);
          State& part = parts[static_cast<std::size_t>(i)];
          part = take_rows(state, begin, end);
          observe_rows(part, tokens.slice(begin, end), segment);
        });
        state = join_rows(parts);
        return;
      }
    }
    State next = state;
    observe_rows(next, tokens, segment);
    state = std::move(next);
  }

  /// Scores of the next token, [..., d] -> [..., vocabulary]: logits or log probabilities, as the
  /// head has them. @throws infty::ShapeError
  V logits(const V& hidden) const { return head.logits(hidden); }

  /// The losses of next tokens, -log p: hidden [B, L, d] and targets [B, L] -> [B, L]; 0 where the
  /// target is `ignore_index`. @throws infty::ShapeError, infty::ValueError for a target out of
  /// range
  V losses(const V& hidden, const Tokens& targets) const { return head.losses(hidden, targets); }

 private:
  V embed(StateOf<Embedding>& state, const Tokens& tokens, PassType& pass) const {
    if constexpr (remembers<Embedding>)
      return embedding.forward(state, tokens, pass);
    else
      return embedding.forward(tokens, pass);
  }

  void check(const State& state, const Tokens& tokens) const {
    const Index rows = detail::checked_rows("LanguageModel", state);  // 0: nothing is remembered
    const Index batch = rows > 0 ? rows : tokens.rank() == 2 ? tokens.dim(0) : 1;
    require<ShapeError>(tokens.rank() == 2 && tokens.dim(0) == batch && tokens.dim(1) >= 1,
                        "LanguageModel", "tokens are ", tokens.shape(), ": they must be [", batch,
                        ", L], L >= 1");
  }

  void observe_rows(State& state, const Tokens& tokens, Index segment) const {
    const auto guard = no_grad();
    const Index length = tokens.dim(1), step = segment > 0 ? segment : length;
    for (Index begin = 0; begin < length; begin += step) {
      const Tokens piece = columns(tokens, begin, (std::min)(length, begin + step));
      PassType pass{.answer = false, .words = piece};
      const V x = embed(state.embedding, piece, pass);
      run_layer(body, state.body, x, pass);
    }
  }

  /// Columns [begin, end) of tokens [B, L].
  static Tokens columns(const Tokens& tokens, Index begin, Index end) {
    const Index batch = tokens.dim(0), length = tokens.dim(1), width = end - begin;
    if (width == length) return tokens;
    Tokens out(Shape{batch, width});
    detail::copy_rows<BackendType>(batch, width, tokens.data() + begin, length, out.data(), width);
    return out;
  }
};

}  // namespace infty
