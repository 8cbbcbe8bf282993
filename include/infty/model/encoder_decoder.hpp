// SPDX-License-Identifier: MIT
#pragma once

#include <algorithm>
#include <concepts>
#include <cstddef>
#include <utility>
#include <vector>

#include <infty/autograd/shape.hpp>
#include <infty/core/checked.hpp>
#include <infty/core/needs.hpp>
#include <infty/model/blocks.hpp>
#include <infty/model/decoder_layer.hpp>
#include <infty/model/placed_embedding.hpp>
#include <infty/nn/beam_search.hpp>
#include <infty/nn/cross_entropy.hpp>
#include <infty/nn/sequence_layer.hpp>
#include <infty/nn/visible.hpp>

namespace infty {

/// The sizes of an `EncoderDecoder`, one transformer's for each side. Widths are the same; the
/// tokens of the decoder are those that it scores, and its dropout is of both sides.
struct EncoderDecoderConfig {
  TransformerConfig encoder = {};  ///< of the source; its dropout and how it ties count nothing
  TransformerConfig decoder = {};  ///< of the target
  bool share_embedding = false;    ///< one table for both, as with a vocabulary of both languages
  bool read_tokens = true;  ///< the decoder reads what came out at memory tokens in front, too

  /// Checks all constants.
  /// @throws infty::ValueError that names the first constant out of its range
  void validate() const {
    encoder.validate();
    decoder.validate();
    require(encoder.model_dim == decoder.model_dim, "EncoderDecoderConfig",
            "the encoder's model_dim is ", encoder.model_dim, ", the decoder's ", decoder.model_dim,
            ": they must be the same");
    require(!share_embedding || encoder.vocabulary == decoder.vocabulary, "EncoderDecoderConfig",
            "share_embedding: the encoder's vocabulary is ", encoder.vocabulary, ", the decoder's ",
            decoder.vocabulary, ": they must be the same");
    const auto cut_as_one = [&](const char* name, Index one, Index other) {
      require(!share_embedding || one == other, "EncoderDecoderConfig",
              "share_embedding: the encoder's ", name, " is ", one, ", the decoder's ", other,
              ": they must be the same");
    };
    cut_as_one("number of cutoffs", std::ssize(encoder.cutoffs), std::ssize(decoder.cutoffs));
    for (std::size_t i = 0; i < (std::min)(encoder.cutoffs.size(), decoder.cutoffs.size()); ++i)
      cut_as_one("cutoff", encoder.cutoffs[i], decoder.cutoffs[i]);
    cut_as_one("div_value", encoder.div_value, decoder.div_value);
    cut_as_one("embedding_dim", encoder.embedding_dim, decoder.embedding_dim);
  }
};

/// Sources for an encoder, a row each, of their own lengths, aligned to the right.
template <class Backend = EigenBackend>
struct Sources {
  Tensor<Index, Backend> tokens;  ///< [B, S], S >= 1; in front of shorter rows any token
  RowCounts length = {};          ///< [B], each in [0, S]; empty: all are S long

  /// Aligns rows of tokens, at least one row. An empty row is a source of no token.
  static Sources of(const std::vector<std::vector<Index>>& rows) {
    require<ShapeError>(!rows.empty(), "Sources", "there are no rows");
    std::size_t longest = 1;
    for (const auto& row : rows) longest = (std::max)(longest, row.size());
    std::vector<Index> all;
    RowCounts length;
    for (const auto& row : rows) {
      all.insert(all.end(), longest - row.size(), Index{0});
      all.insert(all.end(), row.begin(), row.end());
      length.push_back(std::ssize(row));
    }
    return {Tensor<Index, Backend>::from(Shape{std::ssize(rows), static_cast<Index>(longest)}, all),
            std::move(length)};
  }
};

/// What an `EncoderDecoder` remembers.
template <class EncoderState, class DecoderState>
struct EncoderDecoderState {
  EncoderState encoder;  ///< of earlier sources, where the encoder remembers any
  DecoderState decoder;  ///< of the source, as the decoder's layers read it, and of the target
  RowCounts read;        ///< tokens of the target that each row has read

  template <class Visitor>
  void visit(Visitor&& see) {
    see("encoder", encoder);
    see("decoder", decoder);
    see("read", read);
  }
};

/// A model of sequences from sequences [Vaswani et al. 2017]: an encoder, which is any
/// `SequenceLayer` that reads a source both ways, and a decoder, a stack of layers with a
/// `set_source(state, source, length)`: `DecoderLayer`s of a causal mixer, or `MemSizerLayer`s.
/// The source is encoded and projected once, by `read`; then a token costs the decoder alone.
///
/// - `Layers<Block<SelfAttention<T>>>` is the plain encoder; in a `MemoryTokens` it is the Memory
///   Transformer's [Burtsev et al. 2020], whose decoder reads the tokens as well.
/// - `RecurrentSlots` around `Block<Memformer<SelfAttention<T>>>`s is Memformer's [Wu et al. 2022]:
///   its slots, the encoder's state, are carried from source to source.
/// - a decoder of `MemSizerLayer`s is MemSizer's [Zhang & Cai 2022], behind a plain encoder.
template <class Encoder, class Decoder>
class EncoderDecoder {
  using T = typename Encoder::Scalar;
  using B = typename Encoder::BackendType;
  static_assert(Layer<Encoder>, "EncoderDecoder: the encoder" INFTY_NO_VISIT);
  static_assert(detail::state_fits<Encoder>, "EncoderDecoder: the encoder" INFTY_NO_STATE);
  static_assert(detail::makes_state<Encoder>, "EncoderDecoder: the encoder" INFTY_NO_MAKE_STATE);
  static_assert(detail::runs<Encoder>, "EncoderDecoder: the encoder" INFTY_NO_FORWARD);
  static_assert(Layer<Decoder>, "EncoderDecoder: the decoder" INFTY_NO_VISIT);
  static_assert(detail::runs<Decoder>, "EncoderDecoder: the decoder" INFTY_NO_FORWARD);

 public:
  using Scalar = T;
  using BackendType = B;
  using V = Variable<T, B>;
  using Tokens = Tensor<Index, B>;
  using PassType = Pass<T, B>;
  using Config = EncoderDecoderConfig;
  using State = EncoderDecoderState<StateOf<Encoder>, StateOf<Decoder>>;

  PlacedEmbedding<T, B> source;  ///< of the encoder's tokens
  PlacedEmbedding<T, B> target;  ///< of the decoder's tokens
  Encoder encoder;               ///< [B, S, d] -> [B, S, d]
  Decoder decoder;               ///< [B, L, d] -> [B, L, d], reading the source
  SoftmaxHead<T, B> head;        ///< scores the next token

  /// Makes both embeddings and the head, with fresh weights, around an encoder and a decoder, such
  /// as `blocks<SelfAttention<T>>(config.encoder, {}, random)` and
  /// `decoder_layers<CachedAttention<T>>(config.decoder, {}, random)`.
  /// @throws infty::ValueError if the configuration is not valid
  EncoderDecoder(const Config& config, Encoder encoder_, Decoder decoder_,
                 Random random = Random(0))
      : source((config.validate(), config.encoder.adaptive()), random.split(0)),
        target(config.share_embedding
                   ? source
                   : PlacedEmbedding<T, B>(config.decoder.adaptive(), random.split(1))),
        encoder(std::move(encoder_)),
        decoder(std::move(decoder_)),
        head(target, random.split(2), config.decoder),
        config_(config) {}

  /// The sizes as given.
  const Config& config() const { return config_; }

  template <class Visitor>
  void visit(Visitor&& see) {
    see("source", source);
    see("target", target);
    see("encoder", encoder);
    see("decoder", decoder);
    head.visit(see);
  }

  /// A state of fresh rows. @throws infty::ValueError unless 1 <= batch <= `largest_size`
  State make_state(Index batch, Index first_row = 0) const {
    require_rows("EncoderDecoder::make_state", batch);
    return {infty::make_state(encoder, batch, first_row),
            infty::make_state(decoder, batch, first_row),
            RowCounts(static_cast<std::size_t>(batch), 0)};
  }

  /// Encodes sources, in place of those before, and begins targets anew, with the rows' streams of
  /// random numbers. What the encoder remembers moves on. An empty source is one of which nothing
  /// is read but what is learned.
  /// @throws infty::ShapeError; infty::ValueError for a token or a length out of range, and for
  /// rows of different lengths where the encoder does not go by padding; then the state is as it
  /// was
  void read(State& state, const Sources<B>& sources, PassType& pass) const {
    RowCounts length = checked_length(state, sources);
    const Index batch = sources.tokens.dim(0), longest = sources.tokens.dim(1);
    State next{state.encoder, infty::make_state(decoder, batch), RowCounts(state.read.size(), 0)};
    detail::keep_row_ids(state.decoder, next.decoder);
    RowCounts first;
    for (const Index n : length) first.push_back(n - longest);
    pass.dropout = config_.decoder.dropout;
    pass.words = sources.tokens;
    pass.visible = detail::visible<B>(length, longest);
    const bool answer = std::exchange(pass.answer, true);
    const Index wanted = std::exchange(pass.first, 0);  // answers of the target
    const bool traced = std::exchange(pass.traced, pass.traced || config_.read_tokens);
    const std::size_t before = pass.trace.size();
    V encoded = run_layer(encoder, next.encoder, source.forward(sources.tokens, first, pass), pass);
    if (config_.read_tokens)
      for (std::size_t i = before; i < pass.trace.size(); ++i)
        if (pass.trace[i].name == "memory_tokens") {
          const V tokens = pass.trace[i].value;
          encoded = concat(encoded, tokens);  // behind the words, so that what is seen is last
          for (Index& n : length) n += tokens.dim(1);
        }
    if (!traced) pass.trace.resize(before);
    pass.traced = traced;
    pass.answer = answer;
    pass.first = wanted;
    pass.visible = {};
    set_source(next.decoder, encoded, length);
    state = std::move(next);
  }

  /// Reads tokens of the target behind those before and moves the state on.
  /// @param tokens  [B, L], L >= 1: the token that begins, or what comes before what is asked for
  /// @return        [B, L, d], for `logits` and `losses`
  /// @throws infty::ShapeError, also where no source was read; infty::ValueError for a token out of
  /// range; infty::NonFiniteError that names the layer, while no tape records; then the state is as
  /// it was
  V decode(State& state, const Tokens& tokens, PassType& pass) const {
    const Index batch = std::ssize(state.read);
    require<ShapeError>(tokens.rank() == 2 && tokens.dim(0) == batch && tokens.dim(1) >= 1,
                        "EncoderDecoder::decode", "tokens are ", tokens.shape(), ": they must be [",
                        batch, ", L], L >= 1");
    pass.dropout = config_.decoder.dropout;
    pass.words = tokens;
    const V x = target.forward(tokens, state.read, pass);
    V y = run_layer(decoder, state.decoder, x, pass);
    for (Index& n : state.read) n += tokens.dim(1);
    return y;
  }

  /// Encodes sources and scores what comes behind each token of their targets: [B, L] ->
  /// [B, L, vocabulary]. @throws as `read` and `decode`; then the state is as it was
  V forward(State& state, const Sources<B>& sources, const Tokens& targets, PassType& pass) const {
    State next = state;
    read(next, sources, pass);
    V y = logits(decode(next, targets, pass));
    state = std::move(next);
    return y;
  }

  /// The mean loss of targets behind those that are read, a scalar, in nats.
  /// @param inputs   [B, L], the token that begins and then the target without its end
  /// @param targets  [B, L], the target with its end; `ignore_index` where nothing is asked
  /// @throws as `forward`, and `losses`
  V loss(State& state, const Sources<B>& sources, const Tokens& inputs, const Tokens& targets,
         PassType& pass) const {
    State next = state;
    read(next, sources, pass);
    V mean = mean_loss(losses(decode(next, inputs, pass), targets), targets);
    state = std::move(next);
    return mean;
  }

  /// Scores of the next token, [..., d] -> [..., vocabulary]. @throws infty::ShapeError
  V logits(const V& hidden) const { return head.logits(hidden); }

  /// The losses of next tokens: [B, L, d] and [B, L] -> [B, L]; 0 where the target is
  /// `ignore_index`. @throws infty::ShapeError, infty::ValueError for a target out of range
  V losses(const V& hidden, const Tokens& targets) const { return head.losses(hidden, targets); }

  /// The likeliest targets of the sources that a state has read, which stays as it is, by
  /// `beam_search`. @param begin  the token that begins a target
  /// @throws as `beam_search` and `decode`
  std::vector<std::vector<Hypothesis>> translate(const State& state, Index begin,
                                                 const BeamSearchConfig& search) const {
    const auto guard = no_grad();
    const auto next = [this](State& rows, const std::vector<Index>& tokens) {
      PassType pass;
      const Index count = std::ssize(tokens);
      const V scores = logits(decode(rows, Tokens::from(Shape{count, 1}, tokens), pass)).value();
      return log_probabilities(scores.value().reshape(Shape{count, scores.dim(-1)}));
    };
    return beam_search(state, std::vector<Index>(state.read.size(), begin), next, search);
  }

 private:
  static constexpr bool whole =
      requires(const Decoder& d, StateOf<Decoder>& state, const V& x, const RowCounts& length) {
        d.set_source(state, x, length);
      };
  static constexpr bool layered = whole || requires(const Decoder& d, StateOf<Decoder>& state,
                                                    const V& x, const RowCounts& length) {
    d.layers.front().set_source(state.layers.front(), x, length);
  };
  static_assert(layered,
                "EncoderDecoder: neither the decoder nor the layers of it, Layers<L>, have a "
                "`void set_source(State&, const Variable<Scalar, BackendType>& source, const "
                "RowCounts& length) const`");

  void set_source(StateOf<Decoder>& state, const V& encoded, const RowCounts& length) const {
    if constexpr (whole) {
      decoder.set_source(state, encoded, length);
    } else {
      for (std::size_t i = 0; i < decoder.layers.size(); ++i)
        decoder.layers[i].set_source(state.layers[i], encoded, length);
    }
  }

  RowCounts checked_length(const State& state, const Sources<B>& sources) const {
    const char* const op = "EncoderDecoder::read";
    const Tokens& tokens = sources.tokens;
    const Index batch = std::ssize(state.read);
    require<ShapeError>(tokens.rank() == 2 && tokens.dim(0) == batch && tokens.dim(1) >= 1, op,
                        "the sources are ", tokens.shape(), ": they must be [", batch,
                        ", S], S >= 1");
    RowCounts length = sources.length;
    if (length.empty()) length.assign(static_cast<std::size_t>(batch), tokens.dim(1));
    require<ShapeError>(std::ssize(length) == batch, op, "there are ", length.size(),
                        " lengths of ", batch, " sources");
    for (std::size_t i = 0; i < length.size(); ++i) {
      const Index n = length[i];
      require(n >= 0 && n <= tokens.dim(1), op, "the source in row ", i, " is ", n,
              " long: it must lie in [0, ", tokens.dim(1), "]");
      require(n == tokens.dim(1) || reads_padded(encoder), op, "the source in row ", i, " is ", n,
              " long, of ", tokens.dim(1),
              ": the encoder does not go by padding, so they must be of one length");
    }
    return length;
  }

  Config config_;
};

}  // namespace infty
