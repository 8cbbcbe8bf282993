// SPDX-License-Identifier: MIT
#pragma once

#include <chrono>
#include <cstdint>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include <infty/lifelong/a_gem.hpp>
#include <infty/lifelong/learn_stream.hpp>
#include <infty/lifelong/mbpa.hpp>
#include <infty/lifelong/meta_mbpa.hpp>
#include <infty/lifelong/meta_replay.hpp>
#include <infty/lifelong/multitask.hpp>
#include <infty/lifelong/online_ewc.hpp>
#include <infty/lifelong/predictor.hpp>
#include <infty/model/blocks.hpp>
#include <infty/nn/positioned_embedding.hpp>
#include <infty/nn/self_attention.hpp>

#include "../support/behind.hpp"
#include "../support/finished_runs.hpp"
#include "../support/interrupt.hpp"
#include "stream.hpp"

namespace lifelong {

/// What a run is: these tell it from all others of a folder.
struct Run {
  std::string method;
  Index order = 1;
  std::uint64_t seed = 0;

  std::string name() const { return support::run_name(method, order, seed); }
};

template <class See>
void each_field(Run& run, See&& see) {
  see("method", run.method);
  see("order", run.order);
  see("seed", run.seed);
}

/// What came out of it.
struct Cell {
  Run run;
  Index parameters = 0;
  double accuracy = 0, forgetting = 0, ahead = 0;  ///< see infty::AccuracyMatrix
  Index held = 0, bytes = 0;                       ///< examples of the memory, and bytes
  double question_seconds = 0;  ///< for a question behind the last task, by the clock
  double seconds = 0;           ///< of computing
  std::string texts = {};       ///< the fingerprint of those that are given
  std::vector<std::string> tasks = {};
  std::vector<std::vector<double>> matrix = {};  ///< row t behind task t

  std::string name() const { return run.name(); }
};

template <class See>
void each_field(Cell& cell, See&& see) {
  see("run", cell.run);
  see("parameters", cell.parameters);
  see("accuracy", cell.accuracy);
  see("forgetting", cell.forgetting);
  see("ahead", cell.ahead);
  see("held", cell.held);
  see("bytes", cell.bytes);
  see("question_seconds", cell.question_seconds);
  see("seconds", cell.seconds);
  see("texts", cell.texts);
  see("tasks", cell.tasks);
  see("matrix", cell.matrix);
}

using Model = infty::Predictor<infty::PositionedEmbedding<float>,
                               infty::Layers<infty::Block<infty::SelfAttention<float>>>,
                               infty::ClassHead<float>>;
using Learner = infty::Learner<Model>;

inline Model model_of(const Settings& s, const Stream& stream, std::uint64_t seed) {
  const infty::Random random(seed, 20);
  const infty::TransformerConfig config{.vocabulary = stream.vocabulary,
                                        .model_dim = s.width,
                                        .layers = s.layers,
                                        .heads = s.heads,
                                        .feed_forward = s.feed_forward};
  // Wider than GPT-2's at first: keys are what an encoder makes of words that it has not learned.
  return {infty::PositionedEmbedding<float>(stream.vocabulary, stream.longest, s.width,
                                            random.split(0), 1),
          infty::blocks<infty::SelfAttention<float>>(config, {}, random.split(1)),
          infty::ClassHead<float>(s.width, stream.classes, random.split(2))};
}

inline Learner learner_of(const Settings& s, const Stream& stream, const Run& run) {
  infty::LearnerConfig config{.adam = {.learning_rate = s.rate},
                              .max_norm = s.clip,
                              .memory = s.memory,
                              .seed = static_cast<Index>(run.seed % (std::uint64_t{1} << 62U))};
  const bool diverse =
      s.writing == "diversity" || (s.writing == "usual" && run.method == "meta-mbpa");
  config.memory.rule = diverse                      ? infty::WriteRule::diversity
                       : s.writing == "uncertainty" ? infty::WriteRule::score
                                                    : infty::WriteRule::probability;
  config.memory.seed = config.seed;
  return {model_of(s, stream, run.seed), s.width, config};
}

/// Calls f(method) with the method of this name.
template <class F>
auto with_method(const Settings& s, const std::string& name, F&& f) {
  const auto without_replay = infty::SparseReplayConfig{.interval = s.replay.interval, .rate = 0};
  auto inner = s.adaptation;
  inner.steps = s.support;
  inner.neighbours = s.batch;
  inner.learning_rate = s.inner_rate;
  inner.lambda = 0;
  inner.part = name == "oml-er" ? "head." : "";
  if (name == "ewc") return f(infty::OnlineEwc<Model>(s.ewc));
  if (name == "a-gem") return f(infty::AGem(s.agem_sample));
  if (name == "replay") return f(infty::ExperienceReplay(s.replay));
  if (name == "mbpa") return f(infty::Mbpa(without_replay, s.adaptation));
  if (name == "mbpa++-random") return f(infty::Mbpa(s.replay, s.adaptation, true));
  if (name == "mbpa++") return f(infty::Mbpa(s.replay, s.adaptation));
  if (name == "meta-mbpa") return f(infty::MetaMbpa<Model>(s.replay, s.adaptation, s.together));
  if (name == "oml-er" || name == "maml-er") return f(infty::MetaReplay<Model>(s.replay, inner));
  if (name == "multitask") return f(infty::Multitask());
  return f(infty::Sequential());
}

/// A method that stops between batches where a signal came.
template <class M>
struct Interruptible : M {
  void learn(Learner& learner, std::span<const infty::Example> batch) {
    support::stop_if_interrupted([] { return "stopped"; });
    M::learn(learner, batch);
  }
};

/// Learns the stream and asks about it. Calls done(1) behind each task.
/// @throws support::Interrupted where a signal came
template <class Done>
Cell cell_of(const Run& run, const Settings& s, Done&& done) {
  const double start = support::computed();
  const Stream stream = stream_of(s, run.seed, run.order);
  Learner learner = learner_of(s, stream, run);
  Cell cell{.run = run, .parameters = infty::count_parameters(learner.model)};
  cell.texts = stream.texts;
  for (const auto& task : stream.tasks) cell.tasks.push_back(task.name);
  with_method(s, run.method, [&]<class M>(M made) {
    Interruptible<M> method{std::move(made)};
    const auto matrix =
        infty::learn_stream(method, learner, stream.tasks, s.batch, learner.config().seed,
                            [&](Index, const infty::AccuracyMatrix&) { done(1); });
    for (Index t = 0; t < matrix.rows(); ++t) cell.matrix.push_back(matrix.row(t));
    cell.accuracy = matrix.mean();
    cell.forgetting = matrix.forgetting();
    cell.ahead = matrix.ahead();
    const auto& questions = stream.tasks.front().test;
    const auto begin = std::chrono::steady_clock::now();
    method.answer(learner, questions);
    const std::chrono::duration<double> took = std::chrono::steady_clock::now() - begin;
    cell.question_seconds = took.count() / static_cast<double>(questions.size());
  });
  cell.held = learner.memory.size();
  cell.bytes = learner.memory.bytes();
  cell.seconds = support::computed() - start;
  return cell;
}

}  // namespace lifelong
