// SPDX-License-Identifier: MIT
#pragma once

#include <cstddef>
#include <iterator>
#include <span>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include <infty/autograd/elementwise.hpp>
#include <infty/autograd/reduce.hpp>
#include <infty/lifelong/class_head.hpp>
#include <infty/lifelong/example.hpp>
#include <infty/lifelong/span_head.hpp>
#include <infty/lifelong/texts_by_length.hpp>
#include <infty/nn/sequence_layer.hpp>

namespace infty {

/// The gate of a `Predictor` that has none.
struct Ungated {};

/// A model that answers about a text: an embedding, tokens [n, L] -> [n, L, d], as a
/// `LanguageModel` has it; an encoder, which is any `SequenceLayer`; a head, `ClassHead` or
/// `SpanHead`; and maybe a gate, by whose answer for a text, tokens [n, L] -> [n, 1, d], all its
/// vectors are multiplied before the head sees them: a `Neuromodulator`. Each text is read by
/// itself, behind a fresh state.
///
/// Texts may be of several lengths: those of one length are computed together, and none is padded.
template <class Embedding, class Body, class Head, class Gate = Ungated>
class Predictor {
 public:
  using Scalar = typename Body::Scalar;
  using BackendType = typename Body::BackendType;
  using V = Variable<Scalar, BackendType>;
  static_assert(SequenceLayer<Body>, "Predictor: the encoder is no SequenceLayer");
  static_assert(!remembers<Embedding>, "Predictor: the embedding must not remember anything");

  Embedding embedding;              ///< tokens [n, L] -> [n, L, d]
  Body body;                        ///< [n, L, d] -> [n, L, d]
  Head head;                        ///< what is answered of it
  [[no_unique_address]] Gate gate;  ///< tokens [n, L] -> [n, 1, d], or none

  /// Takes the parts, which must be of one width d; copies of a part share its weights.
  Predictor(Embedding embedding_, Body body_, Head head_, Gate gate_ = Gate())
      : embedding(std::move(embedding_)),
        body(std::move(body_)),
        head(std::move(head_)),
        gate(std::move(gate_)) {}

  template <class Visitor>
  void visit(Visitor&& see) {
    see("embedding", embedding);
    see("body", body);
    see("head", head);
    if constexpr (gated) see("gate", gate);
  }

  /// What the head reads of examples: vectors of those of each length, behind the gate.
  struct Reading {
    std::vector<V> hidden;                       ///< [n, L, d], or [n, 1, d] of first tokens alone
    std::vector<std::vector<std::size_t>> rows;  ///< which n of the examples these are
  };

  /// Whether what is read depends on the parameter of this name, and not the head alone.
  static bool reads_by(std::string_view name) { return !name.starts_with("head."); }

  /// What the head reads of examples. @throws as `answers`
  Reading read(std::span<const Example> examples) const {
    Reading out;
    each_length(examples, [&](const V& hidden, const std::vector<std::size_t>& rows) {
      out.hidden.push_back(hidden);
      out.rows.push_back(rows);
    });
    return out;
  }

  /// The mean of -log p(labels) over examples, as a scalar to go backward from.
  /// @throws infty::ValueError if there are none, for one without tokens, or for a token or a label
  /// out of range; infty::ShapeError unless each has as many labels as the head wants
  V loss(std::span<const Example> examples) const { return loss(read(examples), examples); }

  /// The same of examples that were read, of which the head may have changed since. @throws
  /// likewise, and infty::ShapeError unless as many were read
  V loss(const Reading& reading, std::span<const Example> examples) const {
    require(!examples.empty(), "Predictor::loss", "there are no examples");
    std::size_t read = 0;
    for (const auto& rows : reading.rows) read += rows.size();
    require<ShapeError>(read == examples.size(), "Predictor::loss", "there are ", examples.size(),
                        " examples: ", read, " were read");
    V total;
    for (std::size_t i = 0; i < reading.rows.size(); ++i) {
      const V part = sum(head.losses(reading.hidden[i], labels_of(examples, reading.rows[i])),
                         Scalar(1) / static_cast<Scalar>(examples.size()));
      total = total.size() == 0 ? part : total + part;
    }
    return total;
  }

  /// -log p(labels) of each example. Errors as of `loss`, but that there may be none.
  std::vector<double> losses(std::span<const Example> examples) const {
    const auto guard = no_grad();
    std::vector<double> out(examples.size(), 0);
    each_length(examples, [&](const V& hidden, const std::vector<std::size_t>& rows) {
      const auto all = head.losses(hidden, labels_of(examples, rows)).value().to_vector();
      const std::size_t k = all.size() / rows.size();
      for (std::size_t i = 0; i < all.size(); ++i) out[rows[i / k]] += static_cast<double>(all[i]);
    });
    return out;
  }

  /// What the head answers to each example, whose labels are not looked at.
  /// @throws infty::ValueError for one without tokens, or for a token out of range;
  /// infty::NonFiniteError for a score that is NaN
  std::vector<std::vector<Index>> answers(std::span<const Example> examples) const {
    const auto guard = no_grad();
    std::vector<std::vector<Index>> out(examples.size());
    each_length(examples, [&](const V& hidden, const std::vector<std::size_t>& rows) {
      auto all = head.answers(hidden);
      for (std::size_t i = 0; i < rows.size(); ++i) out[rows[i]] = std::move(all[i]);
    });
    return out;
  }

  /// The keys of examples for an `EpisodicMemory`, [n, d]: what the encoder makes of the first
  /// token of each, before any gate. @throws as `answers`, and infty::ValueError if there are no
  /// examples
  Tensor<Scalar, BackendType> keys(std::span<const Example> examples) const {
    require(!examples.empty(), "Predictor::keys", "there are no examples");
    return detail::first_vectors("Predictor", "example", embedding, body, examples.size(),
                                 [&](std::size_t i) -> const auto& { return examples[i].tokens; });
  }

 private:
  static constexpr bool gated = !std::is_same_v<Gate, Ungated>;

  /// Calls f(hidden [n, L, d], rows) with the examples of each length, behind the gate if there is
  /// one.
  template <class F>
  void each_length(std::span<const Example> examples, F&& f) const {
    const auto tokens_of = [&](std::size_t i) -> const auto& { return examples[i].tokens; };
    detail::each_length<BackendType>(
        "Predictor", "example", examples.size(), tokens_of,
        [&](const Tensor<Index, BackendType>& words, const std::vector<std::size_t>& rows) {
          V hidden = detail::read_texts(embedding, body, words, Head::first_only);
          if constexpr (gated) hidden = hidden * gate.forward(words);
          f(hidden, rows);
        });
  }

  static Tensor<Index, BackendType> labels_of(std::span<const Example> examples,
                                              const std::vector<std::size_t>& rows) {
    std::vector<Index> out;
    for (const std::size_t row : rows) {
      require<ShapeError>(std::ssize(examples[row].labels) == Head::labels, "Predictor", "example ",
                          row, " has ", examples[row].labels.size(), " labels: the head wants ",
                          Head::labels);
      out.insert(out.end(), examples[row].labels.begin(), examples[row].labels.end());
    }
    return Tensor<Index, BackendType>::from(Shape{std::ssize(rows), Head::labels}, out);
  }
};

}  // namespace infty
