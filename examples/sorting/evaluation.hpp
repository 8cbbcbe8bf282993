// SPDX-License-Identifier: MIT
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <iterator>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include <infty/data/ranking.hpp>
#include <infty/nn/sampling.hpp>
#include <infty/signal/bins.hpp>

#include "settings.hpp"

namespace sorting {

using Answer = std::vector<std::int64_t>;
template <class B>
using Tokens = infty::Tensor<Index, B>;

/// Kendall's tau, (concordant - discordant pairs) / all pairs, of predictions that each saw the
/// truth before them, so that they are not one order. Place i compares the symbol that is due with
/// those still to come: a right prediction puts it before all of them, one of these in its stead
/// makes that pair discordant and says nothing of the others, and anything else says nothing. 1 if
/// all are right, 0 in the mean for guessing. The tau of the predictions read as one order would be
/// 1 for whoever repeats what it hears, with no place right.
inline double teacher_forced_tau(std::span<const std::int64_t> predicted,
                                 std::span<const std::int64_t> truth) {
  const std::size_t n = truth.size();
  double score = 0;
  for (std::size_t i = 0; i < n; ++i) {
    const auto to_come = truth.subspan(i + 1);
    if (predicted[i] == truth[i])
      score += static_cast<double>(to_come.size());
    else if (std::find(to_come.begin(), to_come.end(), predicted[i]) != to_come.end())
      score -= 1;
  }
  return score / (static_cast<double>(n) * static_cast<double>(n - 1) / 2);
}

/// How good answers are: the share of places that are right, and a tau.
class Score {
 public:
  template <class Tau>
  void add(std::span<const std::int64_t> predicted, std::span<const std::int64_t> truth,
           Tau&& tau) {
    hits_.resize(truth.size());
    for (std::size_t i = 0; i < truth.size(); ++i) hits_[i] += predicted[i] == truth[i] ? 1 : 0;
    tau_ += tau(predicted, truth);
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

/// Where the queries of the last segment looked in the LTM: one histogram over [0, 1] a layer.
struct Attention {
  std::vector<std::vector<double>> layers;
  Index writes = 0;  ///< into the LTM until then

  template <class Density, class T, class B>
  void add(const infty::Pass<T, B>& pass, Index bins, double weight) {
    std::size_t layer = 0;
    for (const auto& shown : pass.trace) {
      if (shown.name != "density") continue;
      const auto& density = shown.value.value();  // [2, B, H, L]
      const infty::Shape row{1, density.size() / 2};
      auto deviations = density.slice(1, 2).to_vector();
      for (T& sigma : deviations) sigma = std::sqrt(sigma);
      const auto share =
          infty::bin_probability<Density>(density.slice(0, 1).reshape(row),
                                          infty::Tensor<T, B>::from(row, deviations), bins)
              .to_vector();
      if (layer == layers.size()) layers.emplace_back(bins);
      for (std::size_t bin = 0; bin < share.size(); ++bin)
        layers[layer][bin] += weight * static_cast<double>(share[bin]);
      ++layer;
    }
  }
};

/// Writes into the LTM of a state's first row, of one part where there are several.
template <class State>
Index writes_to(const State& state) {
  if constexpr (requires { state.parts; })
    return writes_to(state.parts.front());
  else if constexpr (requires { state.refits; })
    return state.refits.front();
  else
    return state.writes.front();
}

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
template <class B, class Column>
Tokens<B> make_tokens(Index rows, Index columns, Column&& column) {
  std::vector<Index> all;
  for (Index row = 0; row < rows; ++row)
    for (Index i = 0; i < columns; ++i) all.push_back(static_cast<Index>(column(row, i)));
  return Tokens<B>::from(infty::Shape{rows, columns}, all);
}

/// The model's state behind the sequences, read segment by segment, without a gradient.
template <class Model>
typename Model::State read_sequences(const Model& model, const Settings& s,
                                     const infty::SortingBatch& batch, Index rows,
                                     Index first_row) {
  auto state = model.make_state(rows, first_row);
  const Index length = s.task.length;
  model.observe(state,
                make_tokens<typename Model::V::BackendType>(
                    rows, length,
                    [&](Index row, Index i) {
                      return batch.tokens[static_cast<std::size_t>(row * length + i)];
                    }),
                s.segment);
  return state;
}

/// The last segment: a separator, then the first `length` - 1 symbols of each answer.
template <class B>
Tokens<B> last_segment(const Settings& s, const Answer& answers, Index rows, Index length) {
  return make_tokens<B>(rows, length, [&](Index row, Index i) {
    return i == 0 ? s.task.symbols
                  : answers[static_cast<std::size_t>(row * s.task.symbols + i - 1)];
  });
}

/// What the model answers when it hears its own predictions instead of the truth. Plain greedy
/// choice: nothing keeps it from repeating a symbol or from saying the separator. Every prediction
/// comes from the same last segment, one symbol longer each time, behind a copy of the state: as
/// in training, what is said does not enter the memories.
template <class Model>
Answer generate(const Model& model, const Settings& s, const typename Model::State& state,
                Index rows) {
  using B = typename Model::V::BackendType;
  const Index n = s.task.symbols;
  Answer answers(static_cast<std::size_t>(rows * n), 0);
  for (Index place = 0; place < n; ++place) {
    auto branch = state;
    const auto hidden = model.forward(branch, last_segment<B>(s, answers, rows, place + 1));
    const auto scores = model.logits(narrow(hidden, place, place + 1));
    const auto next = infty::argmax(scores.value()).to_vector();
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

/// The model on the evaluation sequences. `done(sequences)` is called behind each batch.
template <class Density, class Model, class Done>
Evaluation evaluate(const Model& model, const Settings& s, Done&& done) {
  using B = typename Model::V::BackendType;
  const auto guard = infty::no_grad();
  const Index n = s.task.symbols;
  Evaluation result;
  each_evaluation_batch(s, [&](const infty::SortingBatch& batch, Index rows, Index first) {
    const auto state = read_sequences(model, s, batch, rows, first);
    auto branch = state;
    typename Model::PassType pass{.traced = true};
    const auto hidden = model.forward(branch, last_segment<B>(s, batch.answer, rows, n), pass);
    const auto scores = model.logits(hidden);
    const Answer forced = infty::argmax(scores.value()).to_vector();
    const Answer free = generate(model, s, state, rows);
    for (Index row = 0; row < rows; ++row) {
      const auto truth = answer_of(batch, row, n);
      const auto begin = static_cast<std::size_t>(row * n);
      result.forced.add(std::span(forced).subspan(begin, truth.size()), truth, teacher_forced_tau);
      result.free.add(std::span(free).subspan(begin, truth.size()), truth, infty::kendall_tau);
    }
    result.attention.template add<Density>(
        pass, s.bins, static_cast<double>(rows) / static_cast<double>(s.evaluation_sequences));
    if (const auto& past = branch.body.layers.front().mixer.past)
      result.attention.writes = writes_to(past->memory);
    done(first + rows);
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
    begin = std::max<Index>(0, begin - s.short_term.capacity);
  }
  return s.task.length - begin;
}

/// An exact counter of the last `window` symbols, scored as the models are. `done(sequences)` is
/// called behind each batch.
template <class Done>
Floor counter_floor(const Settings& s, const std::string& name, Index window, Done&& done) {
  Score forced, free;
  each_evaluation_batch(s, [&](const infty::SortingBatch& batch, Index rows, Index first) {
    const auto length = static_cast<std::size_t>(s.task.length);
    for (Index row = 0; row < rows; ++row) {
      const auto tokens =
          std::span(batch.tokens).subspan(static_cast<std::size_t>(row) * length, length);
      const auto truth = answer_of(batch, row, s.task.symbols);
      const Answer order = infty::rank_by_recent_frequency(tokens, s.task.symbols, window);
      free.add(order, truth, infty::kendall_tau);
      forced.add(infty::teacher_forced(order, truth), truth, teacher_forced_tau);
    }
    done(first + rows);
  });
  return {name,
          "counts the last " + std::to_string(window) + " symbols",
          forced.accuracy(),
          forced.tau(),
          free.accuracy(),
          free.tau()};
}

/// What guessing has in the mean: exact, not measured.
inline Floor chance_floor(const Settings& s) {
  return {"chance",
          "guesses an order",
          infty::chance_accuracy(s.task.symbols, true),
          0,
          infty::chance_accuracy(s.task.symbols, false),
          0};
}

/// Names and windows of the counters that see the last segment and the STM; that see what a model
/// without LTM may have seen, where this is something else; and that see everything.
inline std::vector<std::pair<std::string, Index>> counters_of(const Settings& s) {
  const Index recent = std::min(s.task.length, s.segment + s.short_term.capacity);
  const Index reach = reach_without_memory(s);
  std::vector<std::pair<std::string, Index>> counters{{"counter-recent", recent}};
  if (reach != recent) counters.emplace_back("counter-reach", reach);
  counters.emplace_back("counter-all", s.task.length);
  return counters;
}

/// The counters, and chance. `done(sequences)` is called behind each batch, with those of all
/// counters until then.
template <class Done>
std::vector<Floor> floors_of(const Settings& s, Done&& done) {
  std::vector<Floor> floors;
  for (const auto& [name, window] : counters_of(s)) {
    const Index before = std::ssize(floors) * s.evaluation_sequences;
    floors.push_back(
        counter_floor(s, name, window, [&](Index sequences) { done(before + sequences); }));
  }
  floors.push_back(chance_floor(s));
  return floors;
}

}  // namespace sorting
