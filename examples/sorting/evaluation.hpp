// SPDX-License-Identifier: MIT
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include <infty/data/ranking.hpp>
#include <infty/signal/bins.hpp>

#include "settings.hpp"

namespace sorting {

using Answer = std::vector<std::int64_t>;
using Tokens = infty::Tensor<Index>;

/// How good answers are: the share of places that are right, and Kendall's tau with the truth.
class Score {
 public:
  void add(std::span<const std::int64_t> predicted, std::span<const std::int64_t> truth) {
    hits_.resize(truth.size());
    for (std::size_t i = 0; i < truth.size(); ++i) hits_[i] += predicted[i] == truth[i] ? 1 : 0;
    tau_ += infty::kendall_tau(predicted, truth);
    ++answers_;
  }

  std::vector<double> by_place() const {
    std::vector<double> share;
    for (const Index hits : hits_) share.push_back(static_cast<double>(hits) / answers_);
    return share;
  }
  double accuracy() const {
    Index hits = 0;
    for (const Index at_place : hits_) hits += at_place;
    return static_cast<double>(hits) / (answers_ * static_cast<double>(hits_.size()));
  }
  double tau() const { return tau_ / answers_; }

 private:
  std::vector<Index> hits_;
  double tau_ = 0, answers_ = 0;
};

/// Predictions under teacher forcing without the symbols that the truth had shown before: to say
/// one of these again is always wrong. Without this, who repeats what it hears would have the
/// order, and a tau of 1, at an accuracy of 0.
inline Answer without_shown(std::span<const std::int64_t> predicted,
                            std::span<const std::int64_t> truth) {
  Answer out(predicted.begin(), predicted.end());
  for (std::size_t i = 0; i < truth.size(); ++i)
    if (std::find(truth.begin(), truth.begin() + static_cast<std::ptrdiff_t>(i), predicted[i]) !=
        truth.begin() + static_cast<std::ptrdiff_t>(i))
      out[i] = -1;
  return out;
}

/// Where the queries of the last segment looked in the LTM: one histogram over [0, 1] a layer.
struct Attention {
  std::vector<std::vector<double>> layers;
  Index writes = 0;  ///< into the LTM until then

  template <class Density>
  void add(const infty::TransformerOutput<float>& output, Index bins, double weight) {
    layers.resize(output.densities.size(), std::vector<double>(static_cast<std::size_t>(bins)));
    for (std::size_t layer = 0; layer < layers.size(); ++layer) {
      const auto& density = output.densities[layer].value();  // [2, B, H, L]
      const infty::Shape row{1, density.size() / 2};
      auto sigma = density.slice(1, 2).clone().reshape(row);
      for (Index i = 0; i < sigma.size(); ++i) sigma.data()[i] = std::sqrt(sigma.data()[i]);
      const auto share =
          infty::bin_probability<Density>(density.slice(0, 1).reshape(row), sigma, bins)
              .to_vector();
      for (std::size_t bin = 0; bin < share.size(); ++bin)
        layers[layer][bin] += weight * static_cast<double>(share[bin]);
    }
  }
};

struct Evaluation {
  Score forced, free;
  Attention attention;
};

/// The answer to one of the sequences.
inline std::span<const std::int64_t> answer_of(const infty::SortingBatch& batch, Index row,
                                               Index symbols) {
  return std::span(batch.answer)
      .subspan(static_cast<std::size_t>(row * symbols), static_cast<std::size_t>(symbols));
}

/// A tensor [rows, columns] of column(row, i).
template <class Column>
Tokens make_tokens(Index rows, Index columns, Column&& column) {
  std::vector<Index> all;
  for (Index row = 0; row < rows; ++row)
    for (Index i = 0; i < columns; ++i) all.push_back(static_cast<Index>(column(row, i)));
  return Tokens::from(infty::Shape{rows, columns}, all);
}

/// The model's state behind the sequences, read segment by segment, without a gradient.
template <class Model>
typename Model::State read_sequences(const Model& model, const Settings& s,
                                     const infty::SortingBatch& batch, Index rows,
                                     Index first_stream) {
  auto state = model.make_state(rows, first_stream);
  for (Index begin = 0; begin < s.task.length; begin += s.segment) {
    const Index length = std::min(s.segment, s.task.length - begin);
    model.observe(state, make_tokens(rows, length, [&](Index row, Index i) {
                    return batch.tokens[static_cast<std::size_t>(row * s.task.length + begin + i)];
                  }));
  }
  return state;
}

/// The last segment: a separator, then the first `length` - 1 symbols of each answer.
inline Tokens last_segment(const Settings& s, const Answer& answers, Index rows, Index length) {
  return make_tokens(rows, length, [&](Index row, Index i) {
    return i == 0 ? s.task.symbols
                  : answers[static_cast<std::size_t>(row * s.task.symbols + i - 1)];
  });
}

/// The likeliest token at every place of logits [..., vocabulary], the first one of equals.
inline Answer likeliest(const infty::Tensor<float>& logits) {
  const auto values = logits.to_vector();
  const auto classes = static_cast<std::ptrdiff_t>(logits.dim(-1));
  Answer out;
  for (auto at = values.begin(); at != values.end(); at += classes)
    out.push_back(std::max_element(at, at + classes) - at);
  return out;
}

/// What the model answers when it hears its own predictions instead of the truth. Plain greedy
/// choice: nothing keeps it from repeating a symbol or from saying the separator. Every prediction
/// comes from the same last segment, one symbol longer each time, behind a copy of the state: as
/// in training, what is said does not enter the memories.
template <class Model>
Answer generate(const Model& model, const Settings& s, const typename Model::State& state,
                Index rows) {
  const Index n = s.task.symbols;
  Answer answers(static_cast<std::size_t>(rows * n), 0);
  for (Index place = 0; place < n; ++place) {
    auto branch = state;
    const auto output = model.forward(branch, last_segment(s, answers, rows, place + 1));
    const auto next = likeliest(model.logits(narrow(output.hidden, place, place + 1)).value());
    for (Index row = 0; row < rows; ++row)
      answers[static_cast<std::size_t>(row * n + place)] = next[static_cast<std::size_t>(row)];
  }
  return answers;
}

/// Calls f(batch, rows, first) for the evaluation sequences, batch after batch. They are the same
/// for all models, and from another stream of random numbers than the training sequences.
template <class F>
void each_evaluation_batch(const Settings& s, F&& f) {
  const infty::SortingTask task(s.task);
  infty::Random random(s.evaluation_seed, 2);
  for (Index first = 0; first < s.evaluation_sequences; first += s.batch) {
    const Index rows = std::min(s.batch, s.evaluation_sequences - first);
    f(task.sample(rows, random), rows, first);
  }
}

/// The model on the evaluation sequences.
template <class Density, class Model>
Evaluation evaluate(const Model& model, const Settings& s) {
  const auto guard = infty::no_grad();
  const Index n = s.task.symbols;
  Evaluation result;
  each_evaluation_batch(s, [&](const infty::SortingBatch& batch, Index rows, Index first) {
    const auto state = read_sequences(model, s, batch, rows, first);
    auto branch = state;
    const auto output = model.forward(branch, last_segment(s, batch.answer, rows, n));
    const Answer forced = likeliest(model.logits(output.hidden).value());
    const Answer free = generate(model, s, state, rows);
    for (Index row = 0; row < rows; ++row) {
      const auto truth = answer_of(batch, row, n);
      const auto begin = static_cast<std::size_t>(row * n);
      result.forced.add(without_shown(std::span(forced).subspan(begin, truth.size()), truth),
                        truth);
      result.free.add(std::span(free).subspan(begin, truth.size()), truth);
    }
    result.attention.template add<Density>(
        output, s.bins, static_cast<double>(rows) / static_cast<double>(s.evaluation_sequences));
    if (const auto& past = branch.layers.front().long_term)
      result.attention.writes = past->memory.writes.front();
  });
  return result;
}

/// What can be had without learning: counting, or guessing.
struct Floor {
  std::string name, what;
  double accuracy, tau, free_accuracy, free_tau;
};

/// How many of a sequence's last symbols can have reached the answer without an LTM: each layer
/// sees its segment and the STM before it, whose vectors have seen theirs in the layer below.
inline Index reach_without_memory(const Settings& s) {
  Index begin = s.task.length;
  for (Index layer = 0; layer < s.model.layers; ++layer) {
    if (begin < s.task.length) begin -= begin % s.segment;
    begin = std::max<Index>(0, begin - s.model.short_term);
  }
  return s.task.length - begin;
}

/// The floor of answering with order(sequence, draws), scored as the models are.
template <class Order>
Floor floor_of(const Settings& s, std::string name, std::string what, Order&& order) {
  Score forced, free;
  infty::Random draws(s.evaluation_seed, 3);
  each_evaluation_batch(s, [&](const infty::SortingBatch& batch, Index rows, Index) {
    for (Index row = 0; row < rows; ++row) {
      const auto length = static_cast<std::size_t>(s.task.length);
      const auto tokens =
          std::span(batch.tokens).subspan(static_cast<std::size_t>(row) * length, length);
      const auto truth = answer_of(batch, row, s.task.symbols);
      const Answer guess = order(std::span<const std::int64_t>(tokens), draws);
      free.add(guess, truth);
      forced.add(infty::teacher_forced(guess, truth), truth);
    }
  });
  return {std::move(name), std::move(what), forced.accuracy(),
          forced.tau(),    free.accuracy(), free.tau()};
}

inline Floor counter_floor(const Settings& s, std::string name, Index window) {
  return floor_of(s, std::move(name), "counts the last " + std::to_string(window) + " symbols",
                  [&](std::span<const std::int64_t> tokens, infty::Random&) {
                    return infty::rank_by_recent_frequency(tokens, s.task.symbols, window);
                  });
}

/// Accuracies of guessing are exact, the taus are measured on the evaluation sequences.
inline Floor chance_floor(const Settings& s) {
  Floor floor = floor_of(s, "chance", "guesses an order",
                         [&](std::span<const std::int64_t>, infty::Random& draws) {
                           Answer order;
                           for (Index i = 0; i < s.task.symbols; ++i)
                             order.insert(order.begin() + draws.below(i + 1), i);
                           return order;
                         });
  floor.accuracy = infty::chance_accuracy(s.task.symbols, true);
  floor.free_accuracy = infty::chance_accuracy(s.task.symbols, false);
  return floor;
}

/// Counters that see the last segment and the STM; that see what a model without LTM may have seen,
/// where this is something else; that see everything; and chance.
inline std::vector<Floor> floors_of(const Settings& s) {
  const Index recent = std::min(s.task.length, s.segment + s.model.short_term);
  const Index reach = reach_without_memory(s);
  std::vector<Floor> floors{counter_floor(s, "counter-recent", recent)};
  if (reach != recent) floors.push_back(counter_floor(s, "counter-reach", reach));
  floors.push_back(counter_floor(s, "counter-all", s.task.length));
  floors.push_back(chance_floor(s));
  return floors;
}

}  // namespace sorting
