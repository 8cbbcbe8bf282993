// SPDX-License-Identifier: MIT
#pragma once

#include <chrono>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <map>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include <infty/lifelong/a_gem.hpp>
#include <infty/lifelong/forgetting_events.hpp>
#include <infty/lifelong/learn_stream.hpp>
#include <infty/lifelong/mbpa.hpp>
#include <infty/lifelong/meta_mbpa.hpp>
#include <infty/lifelong/meta_replay.hpp>
#include <infty/lifelong/multitask.hpp>
#include <infty/lifelong/online_ewc.hpp>

#include "../support/finished_runs.hpp"
#include "../support/interrupt.hpp"
#include "model.hpp"

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

inline infty::LearnerConfig learner_config(const Settings& s, const Run& run) {
  infty::LearnerConfig config{.adam = {.learning_rate = s.rate},
                              .max_norm = s.clip,
                              .memory = s.memory,
                              .seed = static_cast<Index>(run.seed % (std::uint64_t{1} << 62U))};
  const bool diverse =
      s.writing == "diversity" || (s.writing == "usual" && run.method == "meta-mbpa");
  const bool scored = s.writing == "uncertainty" || s.writing == "forgetting";
  config.memory.rule = diverse  ? infty::WriteRule::diversity
                       : scored ? infty::WriteRule::score
                                : infty::WriteRule::probability;
  config.memory.seed = config.seed;
  return config;
}

/// Batches of so many examples.
inline Index batches_of(const Settings& s, Index examples) {
  return (examples + s.batch - 1) / s.batch;
}

/// Batches that are learned, each task's apart.
inline Index batches_of(const Settings& s, const Stream& stream) {
  Index batches = 0;
  for (const auto& task : stream.tasks) batches += batches_of(s, std::ssize(task.training));
  return batches;
}

/// Steps of a run: batches that are learned, and before that once all examples together where it
/// is noted what is forgotten.
inline Index steps_of(const Settings& s, const Stream& stream) {
  Index all = 0;
  for (const auto& task : stream.tasks) all += std::ssize(task.training);
  return batches_of(s, stream) + (s.writing == "forgetting" ? batches_of(s, all) : 0);
}

/// Whether a method learns by episodes of `--support` batches and one more.
inline bool has_episodes(const std::string& method) {
  return method == "oml-er" || method == "maml-er" || method == "anml-er";
}

/// @throws infty::ValueError where no episode of such a method would come to its end
inline void require_episodes(const Settings& s, const Stream& stream) {
  const Index batches = batches_of(s, stream);
  for (const auto& method : s.methods)
    infty::require(!has_episodes(method) || s.support < batches, "lifelong", "--support is ",
                   s.support, ": ", method, " steps behind so many batches and one more, and ",
                   batches, " are learned");
}

/// What `infty::count_forgetting` asks of a learner, which can be stopped. Calls done(1) behind
/// each batch.
template <class Learned, class Done>
struct Watched {
  infty::Learner<Learned>& learner;
  const Done& done;
  const Learned& model = learner.model;

  void train_on(std::span<const infty::Example> batch) {
    support::stop_if_interrupted();
    learner.train_on(batch);
    done(1);
  }
};

/// How often examples of a stream were forgotten by a model that learns all of them in a drawn
/// order first, in one pass in which it is asked about all of them ten times. Those that are alike
/// share what was noted. Calls done(1) behind each batch.
/// @throws support::Interrupted where a signal came
template <class Learned, class Done>
std::function<double(const infty::Example&)> forgotten_by(const Learned& model,
                                                          const Stream& stream, const Settings& s,
                                                          const Run& run, const Done& done) {
  infty::Learner<Learned> learner(infty::clone(model), s.width, learner_config(s, run));
  std::vector<infty::Example> all;
  for (const auto& task : stream.tasks)
    all.insert(all.end(), task.training.begin(), task.training.end());
  infty::Random random(run.seed, 19);
  shuffle(all, random);
  Watched<Learned, Done> watched{learner, done};
  const auto events = infty::count_forgetting(watched, all, s.batch, 10);
  std::map<std::pair<std::vector<Index>, std::vector<Index>>, double> counts;
  for (std::size_t i = 0; i < all.size(); ++i)
    counts[{all[i].tokens, all[i].labels}] += events.counts()[i];
  return [counts = std::move(counts)](const infty::Example& example) {
    return counts.at({example.tokens, example.labels});
  };
}

/// The constants of the inner loop of oml-er, maml-er and anml-er.
inline infty::LocalAdaptationConfig inner_of(const Settings& s, const std::string& name) {
  infty::LocalAdaptationConfig inner{
      .neighbours = s.batch, .steps = s.support, .learning_rate = s.inner_rate, .lambda = 0};
  if (name == "oml-er") inner.part = "head.";
  if (name == "anml-er") inner.without = "gate.";
  return inner;
}

/// Learns as one method and answers as another.
template <class Learns, class Answers>
struct Crossed {
  Learns learns;
  Answers answers;

  template <class L>
  void learn(L& learner, std::span<const infty::Example> batch) {
    learns.learn(learner, batch);
  }
  template <class L>
  infty::Answers answer(L& learner, std::span<const infty::Example> examples) {
    return answers.answer(learner, examples);
  }
};
template <class Learns, class Answers>
Crossed(Learns, Answers) -> Crossed<Learns, Answers>;

/// Calls f(method) with the method of this name, but for anml-er, for a model.
template <class Model, class F>
auto with_method(const Settings& s, const std::string& name, F&& f) {
  const auto without_replay = infty::SparseReplayConfig{.interval = s.replay.interval, .rate = 0};
  const infty::Mbpa mbpa(s.replay, s.adaptation);
  const infty::MetaMbpa<Model> meta(s.replay, s.adaptation, s.together);
  if (name == "ewc") return f(infty::OnlineEwc<Model>(s.ewc));
  if (name == "a-gem") return f(infty::AGem(s.agem_sample));
  if (name == "replay") return f(infty::ExperienceReplay(s.replay));
  if (name == "mbpa") return f(infty::Mbpa(without_replay, s.adaptation));
  if (name == "mbpa++-random") return f(infty::Mbpa(s.replay, s.adaptation, true));
  if (name == "mbpa++") return f(mbpa);
  if (name == "mbpa++-once") return f(Crossed{mbpa, meta});
  if (name == "meta-mbpa") return f(meta);
  if (name == "meta-mbpa-each") return f(Crossed{meta, mbpa});
  if (name == "oml-er" || name == "maml-er")
    return f(infty::MetaReplay<Model>(s.replay, inner_of(s, name)));
  if (name == "multitask") return f(infty::Multitask());
  return f(infty::Sequential());
}

/// A method that stops between batches where a signal came, and calls done(1) behind each.
template <class M, class Done>
struct Interruptible : M {
  const Done& done;

  template <class L>
  void learn(L& learner, std::span<const infty::Example> batch) {
    support::stop_if_interrupted();
    M::learn(learner, batch);
    done(1);
  }
};

/// Learns the stream with a model and a method, and asks about it. Calls done(1) behind each of its
/// `steps_of`.
/// @throws support::Interrupted where a signal came
template <class M, class Learned, class Done>
Cell learned_by(M made, Learned model, const Stream& stream, const Run& run, const Settings& s,
                const Done& done) {
  std::function<double(const infty::Example&)> score;
  if (s.writing == "forgetting") score = forgotten_by(model, stream, s, run, done);
  infty::Learner<Learned> learner(std::move(model), s.width, learner_config(s, run));
  learner.score = std::move(score);
  Cell cell{.run = run, .parameters = infty::count_parameters(learner.model)};
  cell.texts = stream.texts;
  for (const auto& task : stream.tasks) cell.tasks.push_back(task.name);
  Interruptible<M, Done> method{std::move(made), done};
  const auto matrix =
      infty::learn_stream(method, learner, stream.tasks, s.batch, learner.config().seed);
  for (Index t = 0; t < matrix.rows(); ++t) cell.matrix.push_back(matrix.row(t));
  cell.accuracy = matrix.mean();
  cell.forgetting = matrix.forgetting();
  cell.ahead = matrix.ahead();
  const auto& questions = stream.tasks.front().test;
  const auto begin = std::chrono::steady_clock::now();
  method.answer(learner, questions);
  const std::chrono::duration<double> took = std::chrono::steady_clock::now() - begin;
  cell.question_seconds = took.count() / static_cast<double>(questions.size());
  cell.held = learner.memory.size();
  cell.bytes = learner.memory.bytes();
  return cell;
}

/// Does a run with a model of its stream, or with the same behind gates.
template <class Model, class GatedModel, class Done>
Cell cell_with(const Run& run, const Stream& stream, const Settings& s,
               const std::filesystem::path& out, const Done& done) {
  if (run.method == "anml-er")
    return learned_by(infty::MetaReplay<GatedModel>(s.replay, inner_of(s, run.method)),
                      model_of<GatedModel>(s, stream, run.seed, out), stream, run, s, done);
  return with_method<Model>(s, run.method, [&](auto method) {
    return learned_by(std::move(method), model_of<Model>(s, stream, run.seed, out), stream, run, s,
                      done);
  });
}

/// Does a run, with the encoder of the folder if one has read beforehand. Calls done(1) behind each
/// of its `steps_of`. @throws support::Interrupted where a signal came
template <class Done>
Cell cell_of(const Run& run, const Settings& s, const std::filesystem::path& out,
             const Done& done) {
  const double start = support::computed();
  const Stream stream = stream_of(s, run.seed, run.order);
  Cell cell = s.candidates > 0
                  ? cell_with<CandidateModel, GatedCandidateModel>(run, stream, s, out, done)
              : s.spans > 0 ? cell_with<SpanModel, GatedSpanModel>(run, stream, s, out, done)
                            : cell_with<Model, GatedModel>(run, stream, s, out, done);
  cell.seconds = support::computed() - start;
  return cell;
}

}  // namespace lifelong
