// SPDX-License-Identifier: MIT
#pragma once

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <filesystem>
#include <string>
#include <utility>
#include <vector>

#include <infty/train/trainer.hpp>

#include "../support/files.hpp"
#include "../support/interrupt.hpp"
#include "../support/json.hpp"
#include "../support/training.hpp"
#include "form.hpp"

namespace translation {

/// One training and what came out.
struct Run {
  std::string form;
  std::uint64_t seed = 0;
  Index parameters = 0;
  double loss = 0;  ///< mean over the last tenth of the steps, in nats a token
  Score greedy, beam;
  double seconds = 0;
};

template <class See>
void each_field(Run& run, See&& see) {
  see("form", run.form);
  see("seed", run.seed);
  see("parameters", run.parameters);
  see("loss", run.loss);
  see("greedy", run.greedy);
  see("beam", run.beam);
  see("seconds", run.seconds);
}

/// What has come of a training until now.
struct Behind {
  double loss = 0, seconds = 0;
};

template <class See>
void each_field(Behind& behind, See&& see) {
  see("loss", behind.loss);
  see("seconds", behind.seconds);
}

/// Trains, from the checkpoint on if there is one, and translates. `done(steps)` is called where it
/// begins and behind each step, with how many more are done. Throws support::Interrupted where a
/// signal came, when it is saved; infty::NonFiniteError for a loss that is no number.
template <class Done>
Run train(const Settings& s, const std::string& form, std::uint64_t seed,
          const std::filesystem::path& path, const support::Saving& saving, Done&& done) {
  using Clock = std::chrono::steady_clock;
  const Task task(s.task);
  return with_model(s, task, form, seed, [&](auto model) {
    infty::Trainer<float> trainer(model, {.steps = s.steps,
                                          .adam = {.learning_rate = s.rate},
                                          .warmup_steps = s.warmup,
                                          .max_norm = s.clip,
                                          .save_every = saving.every,
                                          .save_minutes = saving.minutes});
    infty::Random sentences(seed, 1);
    Behind behind;
    trainer.keep("sentences", sentences)
        .keep_text(
            "behind", [&] { return support::json_of(behind).dump(); },
            [&](const std::string& text) {
              const auto there = support::parse<Behind>(text, path.string() + ": behind");
              return [&behind, there] { behind = there; };
            });
    if (std::filesystem::exists(path)) trainer.load(path);
    done(trainer.steps());
    const Index counted = std::max<Index>(1, s.steps / 10);
    infty::Variable<float> loss;
    auto since = Clock::now();
    const auto passed = [&] {
      return std::chrono::duration<double>(Clock::now() - std::exchange(since, Clock::now()))
          .count();
    };
    const bool ended = trainer.run(
        [&] {
          const auto pairs = task.sample(s.batch, sentences);
          const Lesson lesson = lesson_of(pairs);
          auto state = model.make_state(s.batch);
          infty::Pass<float> pass;
          return loss = model.loss(state, sources_of(pairs), lesson.inputs, lesson.targets, pass);
        },
        {.save = [&] { trainer.save(path); },
         .stop = [] { return support::InterruptGuard::signal() != 0; },
         .stepped =
             [&](const infty::TrainStep&, const infty::Progress& progress) {
               if (progress.done() > s.steps - counted)
                 behind.loss +=
                     static_cast<double>(loss.value().item()) / static_cast<double>(counted);
               behind.seconds += passed();
               done(1);
             }});
    if (!ended) throw support::Interrupted(support::InterruptGuard::signal(), "stopped");
    Run run{.form = form,
            .seed = seed,
            .parameters = infty::count_parameters(model),
            .loss = behind.loss,
            .greedy = translate(model, s, task, 1),
            .beam = translate(model, s, task, s.search.beam)};
    run.seconds = behind.seconds + passed();
    return run;
  });
}

/// The runs that are done, kept in a file from which what was interrupted goes on.
class Runs {
 public:
  /// Reads the file, if there is one. Throws infty::IoError if it is no such file.
  explicit Runs(std::filesystem::path path) : path_(std::move(path)) {
    if (std::filesystem::exists(path_))
      support::read(support::read_json(path_), all_, path_.string());
  }

  /// The run of these, or null.
  const Run* find(const std::string& form, std::uint64_t seed) const {
    const auto at = std::find_if(all_.begin(), all_.end(), [&](const Run& run) {
      return run.form == form && run.seed == seed;
    });
    return at == all_.end() ? nullptr : &*at;
  }

  /// Adds a run and writes the file anew. Throws infty::IoError.
  void add(Run run) {
    all_.push_back(std::move(run));
    support::write_file(path_, support::json_of(all_).dump(2) + '\n');
  }

 private:
  std::filesystem::path path_;
  std::vector<Run> all_;
};

/// The mean of numbers, at least one.
inline double mean_of(const std::vector<double>& all) {
  double mean = 0;
  for (const double x : all) mean += x / static_cast<double>(all.size());
  return mean;
}

/// `0.123 ± 0.045`: mean and standard deviation, the latter of at least two.
inline std::string mean_and_spread(const std::vector<double>& all) {
  const double mean = mean_of(all);
  double square = 0;
  for (const double x : all) square += (x - mean) * (x - mean);
  char text[64];
  if (all.size() < 2)
    std::snprintf(text, sizeof text, "%.3f", mean);
  else
    std::snprintf(text, sizeof text, "%.3f ± %.3f", mean,
                  std::sqrt(square / static_cast<double>(all.size() - 1)));
  return text;
}

/// A number of every seed's run of a form, all of which are done.
template <class Get>
std::vector<double> of_seeds(const Settings& s, const Runs& runs, const std::string& form,
                             Get&& get) {
  std::vector<double> all;
  for (const std::uint64_t seed : s.seeds) all.push_back(get(*runs.find(form, seed)));
  return all;
}

/// A table in Markdown, a row a form: mean and standard deviation over the seeds.
inline std::string table(const Settings& s, const Runs& runs) {
  const std::string beam = "beam of " + std::to_string(s.search.beam);
  std::string out = "| model | parameters | loss | tokens, greedy | sentences, greedy | tokens, " +
                    beam + " | sentences, " + beam + " |\n|---|---|---|---|---|---|---|\n";
  for (const std::string& form : s.forms) {
    out +=
        "| " + form + " | " + std::to_string(runs.find(form, s.seeds.front())->parameters) + " |";
    const auto add = [&](auto&& get) {
      out += ' ' + mean_and_spread(of_seeds(s, runs, form, get)) + " |";
    };
    add([](const Run& run) { return run.loss; });
    add([](const Run& run) { return run.greedy.token; });
    add([](const Run& run) { return run.greedy.exact; });
    add([](const Run& run) { return run.beam.token; });
    add([](const Run& run) { return run.beam.exact; });
    out += '\n';
  }
  return out;
}

}  // namespace translation
