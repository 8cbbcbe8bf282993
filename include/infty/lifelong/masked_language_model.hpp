// SPDX-License-Identifier: MIT
#pragma once

#include <cmath>
#include <cstddef>
#include <span>
#include <utility>
#include <vector>

#include <infty/autograd/activations.hpp>
#include <infty/autograd/elementwise.hpp>
#include <infty/autograd/linear.hpp>
#include <infty/autograd/reduce.hpp>
#include <infty/autograd/shape.hpp>
#include <infty/lifelong/label_losses.hpp>
#include <infty/lifelong/masking.hpp>
#include <infty/lifelong/texts_by_length.hpp>
#include <infty/nn/embedding.hpp>
#include <infty/nn/layer_norm.hpp>
#include <infty/nn/linear.hpp>

namespace infty {

/// Guesses missing words of a text from those on both sides, which is how an encoder learns to read
/// before it is asked anything [Devlin et al. 2019, §3.1]. A word in place m has the logits
/// E h_m / √d + b, h_m = norm(gelu(W x_m + c)): E is the embedding's own table, x_m what the
/// encoder makes of the place. BERT has no √d, and a table whose numbers are small instead; T5's is
/// this one. Only the words to be guessed have logits at all.
///
/// What has learned is `embedding` and `body`: a `Predictor` of these two has an encoder that has
/// read before.
template <class Embedding, class Body>
class MaskedLanguageModel {
 public:
  using Scalar = typename Body::Scalar;
  using BackendType = typename Body::BackendType;
  using V = Variable<Scalar, BackendType>;
  static_assert(SequenceLayer<Body>, "MaskedLanguageModel: the encoder is no SequenceLayer");

  Embedding embedding;                    ///< tokens [n, L] -> [n, L, d]; `tokens` has the table
  Body body;                              ///< [n, L, d] -> [n, L, d]
  Linear<Scalar, BackendType> transform;  ///< W, c: d -> d
  LayerNorm<Scalar, BackendType> norm;    ///< of what comes behind the gelu
  V bias;                                 ///< b [vocabulary], 0 at first

  /// Takes an encoder, whose weights it shares with whoever else has it, and draws a head.
  /// @param embedding_  with a member `tokens`, an `infty::Embedding`, as `PositionedEmbedding`
  MaskedLanguageModel(Embedding embedding_, Body body_, Random random)
      : embedding(std::move(embedding_)),
        body(std::move(body_)),
        transform(table().dim(1), table().dim(1), random),
        norm(table().dim(1)),
        bias(Tensor<Scalar, BackendType>::zeros(Shape{table().dim(0)}), true) {}

  template <class Visitor>
  void visit(Visitor&& see) {
    see("embedding", embedding);
    see("body", body);
    see("transform", transform);
    see("norm", norm);
    see("bias", bias);
  }

  /// The mean of -log p(word) over all words to be guessed, as a scalar to go backward from.
  /// @throws infty::ValueError if there are none, or for a text without tokens, or a token, a place
  /// or a target out of range
  V loss(std::span<const MaskedText> texts) const {
    Index guessed = 0;
    for (const MaskedText& text : texts) guessed += std::ssize(text.targets);
    require(guessed > 0, "MaskedLanguageModel::loss", "there is no word to be guessed");
    V total;
    each_group(texts, [&](const V& logits, const Tensor<Index, BackendType>& targets) {
      const V part =
          sum(detail::label_losses(logits, targets), Scalar(1) / static_cast<Scalar>(guessed));
      total = total.size() == 0 ? part : total + part;
    });
    return total;
  }

  /// The logits of all words to be guessed, [m, vocabulary]: those of the texts of each length
  /// behind each other, the shortest texts first. @throws as `loss`, but that there may be none
  std::vector<V> logits(std::span<const MaskedText> texts) const {
    std::vector<V> out;
    each_group(texts, [&](const V& logits, const auto&) { out.push_back(logits); });
    return out;
  }

 private:
  const V& table() const { return embedding.tokens.weight; }

  /// Calls f(logits [m, vocabulary], targets [m]) with what is to be guessed in the texts of each
  /// length.
  template <class F>
  void each_group(std::span<const MaskedText> texts, F&& f) const {
    const auto tokens_of = [&](std::size_t i) -> const auto& { return texts[i].tokens; };
    detail::each_length<BackendType>(
        "MaskedLanguageModel", "text", texts.size(), tokens_of,
        [&](const Tensor<Index, BackendType>& words, const std::vector<std::size_t>& rows) {
          const Index length = words.dim(1);
          std::vector<Index> places, targets;
          for (std::size_t i = 0; i < rows.size(); ++i) {
            const MaskedText& text = texts[rows[i]];
            require(text.places.size() == text.targets.size(), "MaskedLanguageModel", "text ",
                    rows[i], " has ", text.places.size(), " places and ", text.targets.size(),
                    " targets");
            for (const Index place : text.places) {
              require(place >= 0 && place < length, "MaskedLanguageModel", "text ", rows[i],
                      " has no place ", place, ": it has ", length, " tokens");
              places.push_back(static_cast<Index>(i) * length + place);
            }
            targets.insert(targets.end(), text.targets.begin(), text.targets.end());
          }
          if (places.empty()) return;
          const auto at = [](const std::vector<Index>& all) {
            return Tensor<Index, BackendType>::from(Shape{std::ssize(all)}, all);
          };
          const V read = detail::read_texts(embedding, body, words, false);
          const V chosen =
              infty::embedding(at(places), reshape(read, Shape{words.size(), table().dim(1)}));
          const V hidden = norm.forward(gelu(transform.forward(chosen)));
          const auto d = static_cast<double>(table().dim(1));
          f(linear(hidden * static_cast<Scalar>(1 / std::sqrt(d)), table(), bias), at(targets));
        });
  }
};

}  // namespace infty
