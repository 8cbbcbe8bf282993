// SPDX-License-Identifier: MIT
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <iterator>
#include <limits>
#include <numbers>
#include <utility>

#include <infty/core/error.hpp>
#include <infty/core/number.hpp>
#include <infty/core/tensor.hpp>
#include <infty/data/text_tensors.hpp>

namespace infty {

/// How well a text was predicted.
struct TextScore {
  double nats = 0;   ///< -log p of all tokens, summed
  Index tokens = 0;  ///< that were predicted

  /// Mean -log p of a token; NaN where none was predicted.
  double per_token() const { return nats / static_cast<double>(tokens); }

  /// exp of that, at most the largest double.
  double perplexity() const {
    return (std::min)(std::exp(per_token()), (std::numeric_limits<double>::max)());
  }

  /// Bits for each of so many units, such as the characters or the bytes of the text.
  double bits_per(Index units) const {
    return nats / std::numbers::ln2 / static_cast<double>(units);
  }

  /// Adds what one segment lost: a loss in nats for every target of the batch, those that are
  /// ignored 0. @throws infty::ShapeError for another number of losses, infty::NonFiniteError that
  /// names the place of the first loss that is none; then nothing was added
  template <class Losses>
  void add(const TextBatch& batch, const Losses& losses) {
    require<ShapeError>(std::ssize(losses) == batch.batch * batch.length, "TextScore", "there are ",
                        std::ssize(losses), " losses for ", batch.batch, " rows of ", batch.length,
                        " targets");
    double sum = nats;
    Index at = 0;
    for (const auto loss : losses) {
      require<NonFiniteError>(math::is_finite(loss), "TextScore", "the loss of target ",
                              at % batch.length, " of row ", at / batch.length, " is ", loss);
      sum += static_cast<double>(loss);
      ++at;
    }
    nats = sum;
    tokens += batch.predicted;
  }
};

/// Reads `count` rows of a text from `first` on to their ends, segment by segment, each of their
/// tokens predicted once: for those who share the rows of a text out.
/// @param losses  losses(const TextBatch&) gives the loss of every target, [B, L], and makes the
///                rows fresh that the batch begins anew
/// @throws infty::ValueError as `BatchStream` and `BatchStream::read`, infty::NonFiniteError that
/// names the segment, and what `losses` throws
template <class Losses>
TextScore evaluate_rows(const TokenStream& stream, const BatchConfig& config, Index first,
                        Index count, Losses&& losses) {
  BatchStream batches(stream, config);
  TextScore score;
  bool last = false;
  for (Index segment = 0; !last; ++segment) {
    const TextBatch batch = batches.read(first, count);
    batches.skip();
    last = batch.last || batch.length == 0;  // no row goes on where other rows are longer
    if (batch.length == 0) continue;
    detail::explained<NonFiniteError>([&] { score.add(batch, losses(batch)); },
                                      [&](const char* what) {
                                        raise<NonFiniteError>("evaluate", "segment ", segment, ": ",
                                                              what);
                                      });
  }
  return score;
}

/// Reads a text from its beginning to its end, segment by segment, each token predicted once.
/// @param config  a batch of more rows than there are tokens has as many as these
/// @throws as `evaluate_rows`
template <class Losses>
TextScore evaluate_segments(const TokenStream& stream, BatchConfig config, Losses&& losses) {
  config.batch = (std::min)(config.batch, static_cast<Index>(stream.tokens.size()));
  return evaluate_rows(stream, config, 0, config.batch, losses);
}

/// How well a language model predicts a text, which it reads with a state of its own and without
/// dropout: `model.make_state(batch, first_row)`, `model.forward(state, tokens)`,
/// `model.losses(hidden, targets)`. @throws as `evaluate_segments`
template <class Model>
TextScore evaluate(const Model& model, const TokenStream& stream, const BatchConfig& config) {
  using Backend = typename Model::V::BackendType;
  const auto guard = no_grad();
  typename Model::State state;  // every row of the first batch is to be fresh
  return evaluate_segments(stream, config, [&](const TextBatch& batch) {
    reset_rows(model, state, batch);
    const auto hidden = model.forward(state, input_tokens<Backend>(batch));
    return model.losses(hidden, target_tokens<Backend>(batch)).value().to_vector();
  });
}

}  // namespace infty
