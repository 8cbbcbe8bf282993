// SPDX-License-Identifier: MIT
#pragma once

#include <cmath>
#include <cstddef>
#include <limits>
#include <tuple>
#include <utility>

#include <infty/autograd/activations.hpp>
#include <infty/autograd/matmul.hpp>
#include <infty/core/checked.hpp>
#include <infty/core/needs.hpp>
#include <infty/memory/engram_hash.hpp>
#include <infty/memory/fwd.hpp>
#include <infty/memory/ops/ngram_rows.hpp>
#include <infty/nn/embedding.hpp>
#include <infty/nn/rms_norm.hpp>
#include <infty/nn/sequence_layer.hpp>
#include <infty/nn/short_convolution.hpp>

namespace infty {

/// What an `Engram` remembers: the last words and what its convolution has seen of them.
template <class T, class Backend>
struct EngramState {
  Tensor<T, Backend> last;    ///< [batch, N - 1], compressed ids + 1; 0 in front of the first
  Variable<T, Backend> past;  ///< [batch, (kernel - 1) dilation, d], normalised; a gradient flows

  template <class Visitor>
  void visit(Visitor&& see) {
    see("last", last);
    see("past", past);
  }
};

namespace detail {

/// √max(|s|, floor) sign s, and its slope, 0 where |s| is below the floor.
template <class T>
struct SignedRoot {
  T floor;
  INFTY_HOST_DEVICE T operator()(T s) const {
    const T size = s < T(0) ? -s : s;
    const T root = std::sqrt(size < floor ? floor : size);
    return s > T(0) ? root : s < T(0) ? -root : T(0);
  }
  INFTY_HOST_DEVICE T slope(T s) const {
    const T size = s < T(0) ? -s : s;
    return size < floor ? T(0) : T(0.5) / std::sqrt(size);
  }
};

}  // namespace detail

/// Engram [DeepSeek 2026]: a table of vectors that is looked up by the words themselves. The last
/// 2, ..., N tokens at each place, as compressed ids, are hashed to rows of tables; what stands
/// there, e, gives a value, which the hidden state h gates by how well a key meets it:
///     u = sigmoid(RMSNorm(W_K e) · RMSNorm(h) / √d) W_V e,   y = u + SiLU(conv(RMSNorm(u))).
/// A feed, or what is added in front of a block (`WithEngram`): a lookup costs the same however
/// large the tables are. With branches, of a residual stream of several, x has them side by side.
///
/// It reads tokens from `pass.words`, which a `LanguageModel` fills. Vectors that are no words,
/// memory tokens in front and behind, have no n-grams: zeros are added to them. A pass that is
/// traced is shown the sigmoid, "engram_gate" [B, L, branches].
template <class T, class Backend>
class Engram {
 public:
  using Scalar = T;
  using BackendType = Backend;
  using V = Variable<T, Backend>;
  using Config = EngramConfig;
  using State = EngramState<T, Backend>;

  Embedding<T, Backend> table;    ///< [rows of all tables, width / heads]
  Linear<T, Backend> value, key;  ///< of what is found: -> d / branches, -> d
  V key_norm;                     ///< gain of the gate's norm of keys, [M, d / M]
  V hidden_norm;                  ///< gain of the gate's norm of hidden vectors, the same
  V norm;                         ///< gain of the norm in front of the convolution, the same
  V taps;                         ///< [d, kernel], the last is the current place's

  /// Makes the layer for vectors of width `model_dim`, all branches side by side.
  /// @throws infty::ValueError if the configuration is not valid, or branches do not divide the
  /// width
  explicit Engram(Config config, Index model_dim, Random random = Random(0))
      : hash_(engram_hash(config)),
        config_(std::move(config)),
        d_(model_dim),
        compressed_(config_.compressed()) {
    const Index M = config_.branches, E = config_.width * (config_.max_ngram - 1);
    require(d_ >= 1 && d_ % M == 0, "Engram", "model_dim is ", d_, ", branches ", M,
            ": branches must divide model_dim");
    require_sizes("Engram", {{"model_dim", d_}, {"width of what is found", E}});
    require_sizes("Engram", {{"model_dim", d_}, {"reach", config_.reach() + config_.kernel}});
    require_sizes("Engram", {{"rows", hash_.rows}, {"width", config_.width / config_.heads}});
    table = Embedding<T, Backend>(hash_.rows, config_.width / config_.heads, random.split(0));
    value = Linear<T, Backend>(E, d_ / M, random.split(1));
    key = Linear<T, Backend>(E, d_, random.split(2));
    for (V* const gain : {&key_norm, &hidden_norm, &norm})
      *gain = V(Tensor<T, Backend>::full(Shape{M, d_ / M}, T(1)), true);
    taps = config_.draw_taps ? detail::uniform_parameter<T, Backend>(
                                   Shape{d_, config_.kernel}, config_.kernel, random.split(3))
                             : V(Tensor<T, Backend>::zeros(Shape{d_, config_.kernel}), true);
    const auto numbers = [](const std::vector<Index>& all) {
      return Tensor<Index, Backend>::from(Shape{static_cast<Index>(all.size())}, all);
    };
    lookup_ = numbers(config_.lookup);
    multipliers_ = numbers(hash_.multipliers);
    primes_ = numbers(hash_.primes);
    offsets_ = numbers(hash_.offsets);
  }

  /// The constants as given.
  const Config& config() const { return config_; }
  /// What it is made of: constants and width.
  std::tuple<Config, Index> configs() const { return {config_, d_}; }
  /// How rows are found.
  const EngramHash& hash() const { return hash_; }

  template <class Visitor>
  void visit(Visitor&& see) {
    see("table", table);
    see("value", value);
    see("key", key);
    see("key_norm", key_norm);
    see("hidden_norm", hidden_norm);
    see("norm", norm);
    see("taps", taps);
  }

  /// A state of fresh rows. @throws infty::ValueError unless 1 <= batch <= `largest_size`
  State make_state(Index batch, Index /*first_row*/ = 0) const {
    require_rows("Engram::make_state", batch);
    return {Tensor<T, Backend>::zeros(Shape{batch, config_.max_ngram - 1}),
            V(Tensor<T, Backend>::zeros(Shape{batch, config_.reach(), d_}))};
  }

  /// Rows of the joint table that tokens [B, L] are looked up in, behind a state ->
  /// [B, L, tables], those of 2-grams first, head by head.
  /// @throws infty::ShapeError; infty::ValueError for a token that the lookup does not have
  Tensor<Index, Backend> rows(const State& state, const Tensor<Index, Backend>& tokens) const {
    return detail::ngram_rows<Backend>(ids(state, tokens), tokens.dim(0), config_.heads,
                                       multipliers_, primes_, offsets_);
  }

  /// What is to be added to x [B, L, d], whose words are `pass.words` -> [B, L, d]; moves on by
  /// them. @throws infty::ShapeError, infty::ValueError for a token that the lookup does not have;
  /// then the state is as it was
  V forward(State& state, const V& x, Pass<T, Backend>& pass) const {
    const Tensor<Index, Backend>& tokens = pass.words;
    require<ShapeError>(tokens.rank() == 2, "Engram", "pass.words are ", tokens.shape(),
                        ": it needs the tokens [B, L] of this "
                        "call, which a LanguageModel puts there");
    const Index batch = tokens.dim(0), words = tokens.dim(1), M = config_.branches;
    const Index length = x.shape().rank() == 3 ? x.dim(1) : 0;
    // What is in front may have been left out by a layer below.
    const Index before = length == words + pass.behind ? 0 : pass.before;
    require<ShapeError>(x.shape() == Shape{batch, words + before + pass.behind, d_}, "Engram",
                        "x is ", x.shape(), ", of ", words, " tokens in ", batch, " rows, with ",
                        pass.before, " vectors in front of them and ", pass.behind,
                        " behind: it must be [", batch, ", ", words + pass.before + pass.behind,
                        ", ", d_, "]");
    const detail::CompressedIds<T> seen = ids(state, tokens);
    const Shape apart{batch, words, M, d_ / M};
    const V found = reshape(table.forward(detail::ngram_rows<Backend>(
                                seen, batch, config_.heads, multipliers_, primes_, offsets_)),
                            Shape{batch, words, config_.width * (config_.max_ngram - 1)});
    const V keys = reshape(key.forward(found), apart),
            hidden = reshape(narrow(x, before, before + words), apart);
    const T epsilon = config_.gate_epsilon > 0 ? static_cast<T>(config_.gate_epsilon)
                                               : std::numeric_limits<T>::epsilon();
    const V meets = multiply(normed(keys, key_norm, epsilon), normed(hidden, hidden_norm, epsilon));
    const V score = matmul(
        meets, V(Tensor<T, Backend>::full(
                   Shape{d_ / M, 1}, static_cast<T>(1 / std::sqrt(static_cast<double>(d_ / M))))));
    const V open = gate(score);
    if (pass.traced)
      pass.show("engram_gate", reshape(open, Shape{batch, words, M}), "row word branch");
    const V gated = multiply(open, reshape(value.forward(found), Shape{batch, words, 1, d_ / M}));
    const V in =
        reshape(normed(gated, norm, static_cast<T>(config_.epsilon)), Shape{batch, words, d_});
    V y;
    if (pass.answer) {
      y = reshape(gated, in.shape()) +
          silu(short_convolution(in, state.past, taps, V(), config_.step()));
      const auto nothing = [&](Index n) {
        return V(Tensor<T, Backend>::zeros(Shape{batch, n, d_}));
      };
      if (before > 0) y = concat(nothing(before), y);
      if (pass.behind > 0) y = concat(y, nothing(pass.behind));
    }
    State next{detail::last_ids<Backend>(seen, state.last), concat(state.past, in)};
    next.past = narrow(next.past, words, words + config_.reach());
    state = std::move(next);
    return y;
  }

  /// The same in a pass of which nobody wants to know more than the answer.
  V forward(State& state, const V& x, Pass<T, Backend>&& pass) const {
    return forward(state, x, pass);
  }

 private:
  /// Tokens behind a state as the hashes see them.
  detail::CompressedIds<T> ids(const State& state, const Tensor<Index, Backend>& tokens) const {
    require(!config_.lookup.empty(), "Engram", "the lookup is not there: it was moved from");
    const Index batch = tokens.rank() == 2 ? tokens.dim(0) : 0, reach = config_.max_ngram - 1;
    require<ShapeError>(
        tokens.rank() == 2 && batch >= 1 && state.last.shape() == Shape{batch, reach} &&
            state.past.shape() == Shape{batch, config_.reach(), d_},
        "Engram", "tokens are ", tokens.shape(), ", the state holds ids ", state.last.shape(),
        " and values ", state.past.shape(), ": they must be [B, L], [B, ", reach, "] and [B, ",
        config_.reach(), ", ", d_, "]");
    detail::require_tokens("Engram", tokens, lookup_.size());
    return {tokens.data(),
            lookup_.data(),
            state.last.data(),
            tokens.dim(1),
            reach,
            lookup_.size(),
            compressed_,
            config_.lookup[static_cast<std::size_t>(config_.pad)]};
  }

  V normed(const V& x, const V& gain, T epsilon) const {
    const V ones(Tensor<T, Backend>::full(Shape{x.dim(-1)}, T(1)));  // gains are the branches'
    return multiply(rms_norm(x, ones, epsilon), gain);
  }

  V gate(const V& score) const {
    if (!config_.gate_root) return sigmoid(score);
    const detail::SignedRoot<T> root{static_cast<T>(config_.gate_floor)};
    return sigmoid(detail::map_keeping_input(score, root));
  }

  EngramHash hash_;
  Config config_;
  Index d_;
  Index compressed_;  ///< ids, which to count takes as long as the vocabulary is
  Tensor<Index, Backend> lookup_, multipliers_, primes_, offsets_;
};

}  // namespace infty
