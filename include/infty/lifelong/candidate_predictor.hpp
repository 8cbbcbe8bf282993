// SPDX-License-Identifier: MIT
#pragma once

#include <algorithm>
#include <cstddef>
#include <iterator>
#include <map>
#include <span>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include <infty/autograd/elementwise.hpp>
#include <infty/autograd/reduce.hpp>
#include <infty/autograd/shape.hpp>
#include <infty/lifelong/example.hpp>
#include <infty/lifelong/label_losses.hpp>
#include <infty/lifelong/predictor.hpp>
#include <infty/lifelong/texts_by_length.hpp>
#include <infty/nn/embedding.hpp>
#include <infty/nn/linear.hpp>

namespace infty {

/// A model that says which of the candidates that stand behind a text fits it, such as which of
/// some relations a sentence tells of [Holla et al. 2020, §4.2]. The tokens of an example are
///
///     text separator candidate separator candidate ...
///
/// and its label is the number of the candidate that fits. Each pair, text separator candidate, is
/// read by itself, and has the score w · x_0 of its first vector; the candidates of a text have
/// probabilities by a softmax of their scores, however many there are. The paper's program learns
/// each pair by itself, as right or wrong, and answers as this does.
///
/// It is a model for a `Learner` as a `Predictor` is, and its keys are those of the texts alone.
template <class Embedding, class Body, class Gate = Ungated>
class CandidatePredictor {
 public:
  using Scalar = typename Body::Scalar;
  using BackendType = typename Body::BackendType;
  using V = Variable<Scalar, BackendType>;
  static_assert(SequenceLayer<Body>, "CandidatePredictor: the encoder is no SequenceLayer");

  Embedding embedding;               ///< tokens [n, L] -> [n, L, d]
  Body body;                         ///< [n, L, d] -> [n, L, d]
  Linear<Scalar, BackendType> head;  ///< w: d -> 1, without a bias, which a softmax does not see
  [[no_unique_address]] Gate gate;   ///< tokens [n, L] -> [n, 1, d], or none

  /// Takes an encoder and a head, and the token that stands in front of each candidate.
  CandidatePredictor(Embedding embedding_, Body body_, Linear<Scalar, BackendType> head_,
                     Index separator, Gate gate_ = Gate())
      : embedding(std::move(embedding_)),
        body(std::move(body_)),
        head(std::move(head_)),
        gate(std::move(gate_)),
        separator_(separator) {}

  template <class Visitor>
  void visit(Visitor&& see) {
    see("embedding", embedding);
    see("body", body);
    see("head", head);
    if constexpr (gated) see("gate", gate);
  }

  /// What the head reads of examples.
  struct Reading {
    std::vector<V> first;             ///< [n, 1, d], of the pairs of each length, behind the gate
    std::vector<Index> place;         ///< of each pair, in the order of the examples, among these
    std::vector<std::size_t> begins;  ///< the first pair of each example, and behind the last one
  };

  /// Whether what is read depends on the parameter of this name, and not the head alone.
  static bool reads_by(std::string_view name) { return !name.starts_with("head."); }

  /// What the head reads of examples. @throws as `answers`
  Reading read(std::span<const Example> examples) const {
    Reading out;
    std::vector<std::vector<Index>> pairs;
    for (std::size_t i = 0; i < examples.size(); ++i) {
      out.begins.push_back(pairs.size());
      add_pairs(examples[i].tokens, pairs);
      require(pairs.size() > out.begins.back(), "CandidatePredictor", "example ", i,
              " has no candidates");
    }
    out.begins.push_back(pairs.size());
    out.place.resize(pairs.size());
    Index place = 0;
    const auto tokens_of = [&](std::size_t i) -> const auto& { return pairs[i]; };
    detail::each_length<BackendType>(
        "CandidatePredictor", "pair", pairs.size(), tokens_of,
        [&](const Tensor<Index, BackendType>& words, const std::vector<std::size_t>& rows) {
          V first = narrow(detail::read_texts(embedding, body, words, true), 0, 1);
          if constexpr (gated) first = first * gate.forward(words);
          out.first.push_back(first);
          for (const std::size_t row : rows) out.place[row] = place++;
        });
    return out;
  }

  /// The mean of -log p(label) over examples, as a scalar to go backward from.
  /// @throws infty::ValueError if there are none, for one without candidates, or for a token or a
  /// label out of range; infty::ShapeError unless each has one label
  V loss(std::span<const Example> examples) const { return loss(read(examples), examples); }

  /// The same of examples that were read, of which the head may have changed since. @throws
  /// likewise, and infty::ShapeError unless as many were read
  V loss(const Reading& reading, std::span<const Example> examples) const {
    require(!examples.empty(), "CandidatePredictor::loss", "there are no examples");
    require<ShapeError>(reading.begins.size() == examples.size() + 1, "CandidatePredictor::loss",
                        "there are ", examples.size(), " examples: others were read");
    V total;
    each_count(reading, [&](const V& scores, const std::vector<std::size_t>& rows) {
      const V part = sum(detail::label_losses(scores, labels_of(examples, rows)),
                         Scalar(1) / static_cast<Scalar>(examples.size()));
      total = total.size() == 0 ? part : total + part;
    });
    return total;
  }

  /// -log p(label) of each example. Errors as of `loss`, but that there may be none.
  std::vector<double> losses(std::span<const Example> examples) const {
    const auto guard = no_grad();
    std::vector<double> out(examples.size(), 0);
    each_count(read(examples), [&](const V& scores, const std::vector<std::size_t>& rows) {
      const auto all = detail::label_losses(scores, labels_of(examples, rows)).value().to_vector();
      for (std::size_t i = 0; i < rows.size(); ++i) out[rows[i]] = static_cast<double>(all[i]);
    });
    return out;
  }

  /// The number of the candidate of each example that has the highest score, the first of equals;
  /// labels are not looked at.
  /// @throws infty::ValueError for an example without candidates, or for a token out of range;
  /// infty::NonFiniteError for a score that is NaN
  std::vector<std::vector<Index>> answers(std::span<const Example> examples) const {
    const auto guard = no_grad();
    std::vector<std::vector<Index>> out(examples.size());
    each_count(read(examples), [&](const V& scores, const std::vector<std::size_t>& rows) {
      const auto all = scores.value().to_vector();
      detail::require_no_nan("CandidatePredictor", all);
      auto row = all.begin();
      for (const std::size_t i : rows) {
        const auto end = row + scores.dim(1);
        out[i] = {std::max_element(row, end) - row};
        row = end;
      }
    });
    return out;
  }

  /// The keys of examples for an `EpisodicMemory`, [n, d]: what the encoder makes of the first
  /// token of each text without its candidates, before any gate. @throws infty::ValueError if there
  /// are no examples, for one that begins with a separator, or for a token out of range
  Tensor<Scalar, BackendType> keys(std::span<const Example> examples) const {
    require(!examples.empty(), "CandidatePredictor::keys", "there are no examples");
    std::vector<std::vector<Index>> texts;
    for (const Example& e : examples)
      texts.emplace_back(e.tokens.begin(), std::find(e.tokens.begin(), e.tokens.end(), separator_));
    return detail::first_vectors("CandidatePredictor", "example", embedding, body, texts.size(),
                                 [&](std::size_t i) -> const auto& { return texts[i]; });
  }

 private:
  static constexpr bool gated = !std::is_same_v<Gate, Ungated>;

  /// Adds the pairs of a text with each of its candidates.
  void add_pairs(const std::vector<Index>& tokens, std::vector<std::vector<Index>>& pairs) const {
    const auto text_end = std::find(tokens.begin(), tokens.end(), separator_);
    for (auto at = text_end; at != tokens.end();) {
      const auto end = std::find(at + 1, tokens.end(), separator_);
      auto& pair = pairs.emplace_back(tokens.begin(), text_end);
      pair.insert(pair.end(), at, end);
      at = end;
    }
  }

  /// Calls f(scores [m, c], rows) with the examples of each number c of candidates.
  template <class F>
  void each_count(const Reading& reading, F&& f) const {
    if (reading.place.empty()) return;
    V all;  // [1, pairs]
    for (const V& first : reading.first) {
      const V some = reshape(head.forward(first), Shape{1, first.dim(0)});
      all = all.size() == 0 ? some : concat(all, some);
    }
    const V table = reshape(all, Shape{all.size(), 1});
    std::map<std::size_t, std::vector<std::size_t>> of_count;
    for (std::size_t i = 0; i + 1 < reading.begins.size(); ++i)
      of_count[reading.begins[i + 1] - reading.begins[i]].push_back(i);
    for (const auto& [count, rows] : of_count) {
      std::vector<Index> places;
      for (const std::size_t row : rows)
        for (std::size_t i = 0; i < count; ++i)
          places.push_back(reading.place[reading.begins[row] + i]);
      const Shape shape{std::ssize(rows), static_cast<Index>(count)};
      const auto at = Tensor<Index, BackendType>::from(shape, places);
      f(reshape(infty::embedding(at, table), shape), rows);
    }
  }

  static Tensor<Index, BackendType> labels_of(std::span<const Example> examples,
                                              const std::vector<std::size_t>& rows) {
    std::vector<Index> out;
    for (const std::size_t row : rows) {
      require<ShapeError>(examples[row].labels.size() == 1, "CandidatePredictor", "example ", row,
                          " has ", examples[row].labels.size(), " labels: it must have one");
      out.push_back(examples[row].labels.front());
    }
    return Tensor<Index, BackendType>::from(Shape{std::ssize(rows)}, out);
  }

  Index separator_;
};

}  // namespace infty
