// SPDX-License-Identifier: MIT
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <map>
#include <utility>
#include <vector>

#include <infty/core/error.hpp>
#include <infty/data/batch_stream.hpp>
#include <infty/data/sorting.hpp>

#include "model.hpp"

// What a task reads and asks, and how a model learns from it and answers.

namespace support {

using infty::Index;

/// Sequences that are read, and segments behind them that ask: some of their targets are known, and
/// a gradient flows through all of them, as far as a memory lets it.
struct Questions {
  std::vector<Index> tokens;            ///< (batch, length), read without a gradient; may be none
  std::vector<infty::TextBatch> asked;  ///< read one behind the other; at least one

  Index batch() const { return asked.front().batch; }
};

/// Segments of so many tokens, the last one shorter: inputs (batch, length) and targets, of which
/// those below 0 are none.
inline std::vector<infty::TextBatch> segments(Index batch, const std::vector<std::int64_t>& inputs,
                                              const std::vector<std::int64_t>& targets,
                                              Index segment) {
  const Index length = std::ssize(inputs) / batch;
  std::vector<infty::TextBatch> all;
  for (Index begin = 0; begin < length; begin += segment) {
    infty::TextBatch& out = all.emplace_back();
    out.batch = batch;
    out.length = std::min(segment, length - begin);
    for (Index row = 0; row < batch; ++row)
      for (Index i = begin; i < begin + out.length; ++i) {
        const auto at = static_cast<std::size_t>(row * length + i);
        out.inputs.push_back(inputs[at]);
        out.targets.push_back(targets[at] < 0 ? infty::ignore_index : targets[at]);
        out.predicted += targets[at] < 0 ? 0 : 1;
      }
  }
  return all;
}

/// A last segment (batch, length) that asks at every place.
inline std::vector<infty::TextBatch> asked(Index batch, const std::vector<std::int64_t>& inputs,
                                           const std::vector<std::int64_t>& answer) {
  return segments(batch, inputs, answer, std::ssize(answer) / batch);
}

/// One that says a separator and then the answer, each symbol behind the true ones before it.
inline std::vector<infty::TextBatch> dictated(Index batch, std::int64_t separator,
                                              const std::vector<std::int64_t>& answer) {
  const std::size_t length = answer.size() / static_cast<std::size_t>(batch);
  std::vector<std::int64_t> inputs(answer.size(), separator);
  for (std::size_t i = 1; i < answer.size(); ++i)
    if (i % length != 0) inputs[i] = answer[i - 1];
  return asked(batch, inputs, answer);
}

/// Sequences that are read, and their symbols, which are asked for in order.
inline Questions sample(const infty::SortingTask& task, Index batch, infty::Random& random) {
  const auto drawn = task.sample(batch, random);
  return {{drawn.tokens.begin(), drawn.tokens.end()},
          dictated(batch, task.separator(), drawn.answer)};
}

/// The same read and asked in a single segment: for whoever has nothing to remember.
inline Questions in_one(const Questions& questions) {
  const Index batch = questions.batch(), before = std::ssize(questions.tokens) / batch;
  std::vector<std::int64_t> inputs, targets;
  for (Index row = 0; row < batch; ++row) {
    const auto from = questions.tokens.begin() + row * before;
    inputs.insert(inputs.end(), from, from + before);
    targets.insert(targets.end(), static_cast<std::size_t>(before), infty::ignore_index);
    for (const infty::TextBatch& part : questions.asked) {
      const auto copy = [&](const std::vector<Index>& of, std::vector<std::int64_t>& to) {
        const auto begin = of.begin() + row * part.length;
        to.insert(to.end(), begin, begin + part.length);
      };
      copy(part.inputs, inputs);
      copy(part.targets, targets);
    }
  }
  return {{}, asked(batch, inputs, targets)};
}

/// What is made smaller by training on the segments that ask, behind what a state remembers: the
/// mean loss of all their targets together, and the mean over segments of what layers add.
inline infty::Objective<float> objective(const Model& model, Model::State& state,
                                         const std::vector<infty::TextBatch>& asked,
                                         const ObjectiveConfig& config) {
  if (asked.size() == 1) return model.objective(state, asked.front(), config);
  Index targets = 0;
  for (const infty::TextBatch& batch : asked) targets += batch.predicted;
  const float part = 1 / static_cast<float>(asked.size());
  infty::Objective<float> all;
  for (std::size_t i = 0; i < asked.size(); ++i) {
    const float share = static_cast<float>(asked[i].predicted) / static_cast<float>(targets);
    const auto one = model.objective(state, asked[i], config);
    // The total holds the loss, and the rest of it counts alike in every segment.
    const auto loss = scale(one.loss, share);
    const auto total = scale(one.loss, share - part) + scale(one.total, part);
    all = i == 0 ? infty::Objective<float>{total, loss}
                 : infty::Objective<float>{all.total + total, all.loss + loss};
  }
  return all;
}

/// Right answers, counted row by row.
struct Marks {
  /// Of the rows with so many targets: right answers, and how many rows there are.
  std::map<Index, std::pair<Index, Index>> rows;

  /// Reads what is read and then what asks, and counts.
  void add(const Model& model, Model::State& state, const Questions& questions, Index segment) {
    const Index batch = questions.batch();
    if (!questions.tokens.empty()) model.observe(state, batch, questions.tokens, segment);
    std::vector<Index> right(static_cast<std::size_t>(batch)), targets(right.size());
    for (const infty::TextBatch& part : questions.asked) {
      const auto answer = model.likeliest(state, part);
      for (std::size_t i = 0; i < answer.size(); ++i) {
        const std::size_t row = i / static_cast<std::size_t>(part.length);
        if (part.targets[i] == infty::ignore_index) continue;
        ++targets[row];
        right[row] += answer[i] == part.targets[i] ? 1 : 0;
      }
    }
    for (std::size_t row = 0; row < right.size(); ++row) {
      if (targets[row] == 0) continue;
      auto& [said, count] = rows[targets[row]];
      said += right[row];
      ++count;
    }
  }

  /// The mean over rows of the share of their answers that are right.
  double accuracy() const {
    double all = 0, mean = 0;
    for (const auto& [targets, counts] : rows) all += static_cast<double>(counts.second);
    for (const auto& [targets, counts] : rows) {
      const auto [right, count] = counts;
      mean += static_cast<double>(right) / static_cast<double>(targets * count) *
              (static_cast<double>(count) / all);
    }
    return mean;
  }
};

}  // namespace support
