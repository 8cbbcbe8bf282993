// SPDX-License-Identifier: MIT
#pragma once

#include <algorithm>
#include <cstdint>
#include <string>
#include <vector>

#include <infty/data/needle.hpp>

#include "../support/interrupt.hpp"
#include "distances.hpp"
#include "settings.hpp"
#include "sizes.hpp"
#include "task.hpp"

// The needle at any distance: facts, learnt to be told at short distances, asked for at long ones.

namespace recall {

inline infty::NeedleTask needle_of(const Settings& s) {
  return infty::NeedleTask({.keys = s.needle_keys,
                            .values = s.needle_values,
                            .fillers = s.needle_fillers,
                            .decoys = s.needle_decoys});
}

/// Facts and tokens [from, to) of what follows them, (batch, to - from), where the facts are the
/// first tokens.
inline std::vector<Index> needle_tokens(const infty::NeedleTask& task,
                                        const infty::NeedleBatch& batch, Index from, Index to) {
  const Index facts = task.length(), begin = std::min(from, facts), end = std::min(to, facts);
  const Index width = std::max<Index>(to, facts) - std::max<Index>(from, facts);
  const auto filler =
      task.filler(batch, std::max<Index>(from, facts) - facts, std::max<Index>(to, facts) - facts);
  std::vector<Index> tokens;
  for (Index row = 0; row < batch.batch(); ++row) {
    const auto fact = batch.facts.begin() + row * facts;
    tokens.insert(tokens.end(), fact + begin, fact + end);
    const auto fill = filler.begin() + row * width;
    tokens.insert(tokens.end(), fill, fill + width);
  }
  return tokens;
}

/// What stands between `from` and the question so many tokens behind the facts, and the question:
/// the last place of the last segment asks.
inline std::vector<infty::TextBatch> needle_asked(const infty::NeedleTask& task,
                                                  const infty::NeedleBatch& batch, Index from,
                                                  Index distance, Index segment) {
  const Index end = task.length() + distance, width = end - from;
  const auto before = needle_tokens(task, batch, from, end);
  std::vector<std::int64_t> inputs, targets;
  for (Index row = 0; row < batch.batch(); ++row) {
    const auto at = before.begin() + row * width;
    inputs.insert(inputs.end(), at, at + width);
    inputs.push_back(batch.questions[static_cast<std::size_t>(row)]);
    targets.insert(targets.end(), static_cast<std::size_t>(width), infty::ignore_index);
    targets.push_back(batch.answers[static_cast<std::size_t>(row)]);
  }
  return support::segments(batch.batch(), inputs, targets, segment);
}

/// The furthest that attention over the whole text is asked: its cost is the square of it.
inline constexpr Index furthest_in_one = 1024;

/// Adds the right answers of texts `first` to `first` + rows - 1, as `needle_at`.
inline void add_needles(const support::Model& model, const Settings& s, const std::string& memory,
                        Index first, Index rows, std::vector<DistancePoint>& points,
                        const Told& told) {
  const infty::NeedleTask task = needle_of(s);
  infty::Random random(0, 4);
  random.seek(static_cast<std::uint64_t>(first));
  const auto batch = task.sample(rows, random);
  auto state = model.make_state(rows, first);
  Index position = 0;  // a multiple of the segment
  try {
    for (DistancePoint& point : points) {
      // The question's segment begins where it would if the text ended with it.
      const Index end = task.length() + point.distance;
      const Index last = reads_in_one(memory) ? 0 : end / s.segment * s.segment;
      constexpr Index at_once = 64;  // segments, whose tokens are made together
      while (position < last) {
        if (const int signal = support::InterruptGuard::signal(); signal != 0)
          throw support::Interrupted(signal, "stopped");
        const Index to = std::min(last, position + at_once * s.segment);
        model.observe(state, rows, needle_tokens(task, batch, position, to), s.segment);
        told(rows * (to - position));
        position = to;
      }
      auto copy = state;
      support::Questions questions{{}, needle_asked(task, batch, last, point.distance, s.segment)};
      if (reads_in_one(memory)) questions = in_one(questions);
      support::Marks marks;
      marks.add(model, copy, questions, s.segment);
      point.right += marks.rows.at(1).first;
    }
  } catch (const infty::NonFiniteError&) {
    return;  // nothing is right from here on
  }
}

/// Right answers at each distance, of as many questions as there are rows, one a row. Each row is
/// one long text that is read once; at each distance a copy of the state is asked. The texts, and
/// so the questions, are others than those of `evaluate`. From where a state is no longer finite
/// nothing is right. Throws support::Interrupted where a signal came.
inline std::vector<DistancePoint> needle_at(const support::Model& model, const Settings& s,
                                            const std::string& memory, const Told& told) {
  std::vector<Index> distances = s.distances;
  std::sort(distances.begin(), distances.end());
  std::vector<DistancePoint> points;
  for (const Index distance : distances)
    if (!reads_in_one(memory) || distance <= furthest_in_one)
      points.push_back({distance, 0, s.needle_rows});
  for (Index first = 0; first < s.needle_rows; first += s.batch)
    add_needles(model, s, memory, first, std::min(s.batch, s.needle_rows - first), points, told);
  return points;
}

/// Trained at distances up to `--needle-trained`, drawn evenly, one a step; a gradient flows
/// through all segments.
inline Task needle_task(const Settings& s) {
  const infty::NeedleTask task = needle_of(s);
  Task out{
      .name = "needle",
      .vocabulary = task.vocabulary(),
      .length = task.length() + s.needle_trained + 1,
      .chance = 1 / static_cast<double>(s.needle_values),
      .training =
          {{.sample =
                [task, segment = s.segment, most = s.needle_trained](Index batch,
                                                                     infty::Random& random) {
                  // Apart from the draws of rows, which the task splits off.
                  infty::Random own = random.split(1).split(random.counter());
                  const Index distance = own.below(most + 1);
                  const auto drawn = task.sample(batch, random);
                  return support::Questions{{}, needle_asked(task, drawn, 0, distance, segment)};
                }}},
      .trainer = {.steps = s.needle_steps, .warmup_steps = s.warmup, .max_norm = s.clip},
      .batch = s.batch};
  out.distances = s.distances;
  out.far = [s](const support::Model& model, const std::string& memory, const Told& told) {
    return needle_at(model, s, memory, told);
  };
  out.far_tokens = s.needle_rows * *std::ranges::max_element(s.distances);
  return out;
}

}  // namespace recall
