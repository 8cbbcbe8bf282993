// SPDX-License-Identifier: MIT
#pragma once

#include <cstdint>

#include <infty/autograd/elementwise.hpp>
#include <infty/autograd/matmul.hpp>
#include <infty/autograd/shape.hpp>
#include <infty/autograd/softmax.hpp>
#include <infty/core/error.hpp>
#include <infty/core/random.hpp>
#include <infty/model/language_model.hpp>
#include <infty/nn/linear.hpp>
#include <infty/nn/pass.hpp>

namespace infty {

/// What SPALM makes of a hidden vector and of what was looked up for it.
template <class T, class Backend = EigenBackend>
struct SpalmMixture {
  Variable<T, Backend> mixed;      ///< z, [B, L, d], what the softmax over the vocabulary takes
  Variable<T, Backend> attention;  ///< [B, L, k], weights of the tokens, which sum to 1
  Variable<T, Backend> memory;     ///< m, [B, L, d], their vectors by these weights
  Variable<T, Backend> gate;       ///< g, [B, L], 1 where nothing of the memory is taken
};

/// Attends to the vectors of looked up tokens and mixes what is found with the hidden vector
/// [Yogatama et al. 2021, §3]: m = Σ softmax(y_j·h) y_j, g = σ(w·h), z = (1 - g) m + g h. The
/// scores are not scaled, and a token that was found twice counts twice.
template <class T, class Backend = EigenBackend>
struct SpalmGate {
  using V = Variable<T, Backend>;

  V weight;  ///< w, [d]

  /// A gate of width d with fresh weights, as those of a linear map to one number.
  /// @throws infty::ValueError unless d >= 1
  SpalmGate(Index d, Random random)
      : weight((require_at_least("SpalmGate", "d", d, 1),
                detail::uniform_parameter<T, Backend>(Shape{d}, d, random))) {}

  template <class Visitor>
  void visit(Visitor&& see) {
    see("weight", weight);
  }

  /// Mixes.
  /// @param hidden   h, [B, L, d]
  /// @param vectors  y, [B, L, k, d], of the tokens found for each place; k >= 1
  /// @throws infty::ShapeError
  SpalmMixture<T, Backend> forward(const V& hidden, const V& vectors) const {
    const Index d = weight.dim(0);
    require<ShapeError>(
        hidden.shape().rank() == 3 && hidden.dim(2) == d && vectors.shape().rank() == 4 &&
            vectors.dim(2) >= 1 &&
            vectors.shape() == Shape{hidden.dim(0), hidden.dim(1), vectors.dim(2), d},
        "SpalmGate", "hidden vectors are ", hidden.shape(), ", those of what was looked up ",
        vectors.shape(), ": they must be [B, L, ", d, "] and [B, L, k, ", d, "], k >= 1");
    const Index rows = hidden.dim(0), length = hidden.dim(1), k = vectors.dim(2);
    const V scores = matmul(vectors, reshape(hidden, {rows, length, d, 1}));  // [B, L, k, 1]
    const V attention = softmax(reshape(scores, {rows, length, 1, k}));
    const V memory = reshape(matmul(attention, vectors), {rows, length, d});
    const V gate = sigmoid(matmul(hidden, reshape(weight, {d, 1})));  // [B, L, 1]
    return {memory + multiply(gate, hidden - memory), reshape(attention, {rows, length, k}), memory,
            reshape(gate, {rows, length})};
  }
};

/// SPALM [Yogatama et al. 2021]: a language model that looks up, for each word, the tokens that
/// stood behind the contexts which a second, frozen model finds similar, attends to their
/// embeddings, and lets a gate mix what it finds with its own hidden vector. The paper's base is a
/// Transformer-XL, `Spalm<TransformerLM<ShortTermMemory<float>>>`; any language model will do whose
/// embedding has `vectors(tokens)`, [B, L] -> [B, L, d].
///
/// What was looked up comes in the pass, `pass.retrieved` [B, L, k]: the search is nobody's but the
/// caller's, and takes no gradient. `pass.trace` gets "spalm_gate" and "spalm_attention".
template <class Base>
class Spalm : public Base {
  using T = typename Base::Scalar;
  using B = typename Base::BackendType;

 public:
  using typename Base::PassType;
  using typename Base::State;
  using typename Base::Tokens;
  using typename Base::V;

  SpalmGate<T, B> gate;  ///< how much of what was looked up is taken

  /// Makes a model with fresh weights; the base's are those of a base that is made of the same.
  /// @param config  of the base, whose `model_dim` is the gate's width
  /// @param parts   what else the base is made of
  /// @throws as the base
  template <class Config, class Parts>
  explicit Spalm(const Config& config, const Parts& parts, Random random = Random(0))
      : Base(config, parts, random), gate(config.model_dim, random.split(gate_stream)) {}

  template <class Visitor>
  void visit(Visitor&& see) {
    Base::visit(see);
    see("spalm_gate", gate);
  }

  /// Reads a segment as the base does, and mixes in what was looked up. Without an answer nothing
  /// needs to be.
  /// @param tokens  [B, L]
  /// @param pass    with `retrieved` [B, L, k]
  /// @return        z, [B, L, d]
  /// @throws infty::ShapeError if nothing was looked up, or not for each word; infty::ValueError
  /// for a token out of range; as the base. Then the state is as it was
  V forward(State& state, const Tokens& tokens, PassType& pass) const {
    if (!pass.answer) return Base::forward(state, tokens, pass);
    const Tokens& found = pass.retrieved;
    require<ShapeError>(tokens.rank() == 2 && found.rank() == 3 && found.dim(2) >= 1 &&
                            found.shape() == Shape{tokens.dim(0), tokens.dim(1), found.dim(2)},
                        "Spalm", "tokens are ", tokens.shape(), ", pass.retrieved ", found.shape(),
                        ": they must be [B, L] and [B, L, k], k >= 1");
    const Index rows = tokens.dim(0), length = tokens.dim(1), k = found.dim(2);
    const V vectors = this->embedding.vectors(found.reshape({rows, length * k}));
    const V hidden = Base::forward(state, tokens, pass);
    const auto mixture = gate.forward(hidden, reshape(vectors, {rows, length, k, hidden.dim(2)}));
    pass.show("spalm_gate", mixture.gate, "row word");
    pass.show("spalm_attention", mixture.attention, "row word neighbour");
    return mixture.mixed;
  }

  /// Refuses to read a segment in a pass that nobody has put anything into.
  /// @throws infty::ShapeError, always
  V forward(State& state, const Tokens& tokens) const {
    PassType pass;
    return forward(state, tokens, pass);
  }

 private:
  static constexpr std::uint64_t gate_stream = std::uint64_t{1} << 33;  // apart from the base's
};

}  // namespace infty
