// SPDX-License-Identifier: MIT
#pragma once

#include <algorithm>
#include <cstdint>
#include <filesystem>
#include <string>
#include <utility>
#include <vector>

#include <infty/train/trainer.hpp>

#include "../support/behind.hpp"
#include "../support/comparison.hpp"
#include "../support/decimal.hpp"
#include "../support/finished_runs.hpp"
#include "../support/interrupt.hpp"
#include "../support/training.hpp"
#include "form.hpp"

namespace translation {

/// One training and what came out.
struct Run {
  std::string form;
  std::uint64_t seed = 0;
  Index parameters = 0;
  double loss = 0;   ///< mean over the last tenth of the steps, in nats a token
  Index unseen = 0;  ///< sentences that are translated and were not in the training
  Score greedy, beam;
  double seconds = 0;

  std::string name() const { return support::run_name(form, seed); }
};

template <class See>
void each_field(Run& run, See&& see) {
  see("form", run.form);
  see("seed", run.seed);
  see("parameters", run.parameters);
  see("loss", run.loss);
  see("unseen", run.unseen);
  see("greedy_token", run.greedy.token);
  see("greedy_exact", run.greedy.exact);
  see("beam_token", run.beam.token);
  see("beam_exact", run.beam.exact);
  see("seconds", run.seconds);
}

/// Steps of a run: those of its training, and batches that are translated, greedily and by beams.
inline Index steps_of(const Settings& s) { return s.steps + 2 * batches_of(s); }

/// Trains, from the checkpoint on if there is one, and translates. `done(steps)` is called where it
/// begins and behind each step, with how many more are done. Throws support::Interrupted where a
/// signal came, when it is saved; infty::NonFiniteError for a loss that is no number.
template <class Done>
Run train(const Settings& s, const std::string& form, std::uint64_t seed,
          const std::filesystem::path& path, const support::Saving& saving, Done&& done) {
  const Task task(s.task);
  return with_model(s, task, form, seed, [&](auto model) {
    infty::Trainer<float> trainer(model, {.steps = s.steps,
                                          .adam = {.learning_rate = s.rate},
                                          .warmup_steps = s.warmup,
                                          .max_norm = s.clip,
                                          .save_every = saving.every,
                                          .save_minutes = saving.minutes});
    infty::Random sentences = sentences_of(seed);
    support::Behind behind;
    trainer.keep("sentences", sentences);
    support::keep(trainer, behind, path);
    if (std::filesystem::exists(path)) trainer.load(path);
    done(trainer.steps());
    infty::Variable<float> loss;
    double since = support::computed();
    const auto passed = [&] {
      const double now = support::computed();
      return now - std::exchange(since, now);
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
               behind.add_loss(static_cast<double>(loss.value().item()), progress.done(), s.steps);
               behind.seconds += passed();
               done(1);
             }});
    if (!ended) throw support::Interrupted(support::InterruptGuard::signal(), "stopped");
    const Questions questions = questions_of(s, task, seed);
    Run run{.form = form,
            .seed = seed,
            .parameters = infty::count_parameters(model),
            .loss = behind.loss,
            .unseen = questions.unseen,
            .greedy = translate(model, s, task, questions.pairs, 1, done),
            .beam = translate(model, s, task, questions.pairs, s.search.beam, done)};
    run.seconds = behind.seconds + passed();
    return run;
  });
}

using Runs = support::FinishedRuns<Run>;

/// A number of every seed's run of a form, all of which are done.
template <class Get>
std::vector<double> of_seeds(const Settings& s, const Runs& runs, const std::string& form,
                             Get&& get) {
  std::vector<double> all;
  for (const std::uint64_t seed : s.seeds)
    all.push_back(get(*runs.find(support::run_name(form, seed))));
  return all;
}

/// How many of the sentences that are translated are new, where not all are.
inline std::string not_new(const Settings& s, const Runs& runs) {
  const auto unseen = of_seeds(s, runs, s.forms.front(),
                               [](const Run& run) { return static_cast<double>(run.unseen); });
  const auto [least, most] = std::minmax_element(unseen.begin(), unseen.end());
  if (*least == static_cast<double>(s.evaluation_sequences)) return "";
  return "\nOf the " + std::to_string(s.evaluation_sequences) + " sentences that are translated " +
         support::decimal(*least, 0) +
         (*least < *most ? " to " + support::decimal(*most, 0) + ", by the seed," : "") +
         " are new; the others were in the training.\n";
}

/// A table in Markdown, a row a form: mean and standard deviation over the seeds. The last row is
/// what needs no model.
inline std::string table(const Settings& s, const Runs& runs) {
  const std::string beam = "beam of " + std::to_string(s.search.beam);
  std::string out = "| model | parameters | loss | tokens, greedy | sentences, greedy | tokens, " +
                    beam + " | sentences, " + beam + " |\n|---|---|---|---|---|---|---|\n";
  for (const std::string& form : s.forms) {
    const std::string first = support::run_name(form, s.seeds.front());
    out += "| " + form + " | " + std::to_string(runs.find(first)->parameters) + " |";
    const auto add = [&](auto&& get) {
      out += ' ' + support::mean_and_spread(of_seeds(s, runs, form, get)) + " |";
    };
    add([](const Run& run) { return run.loss; });
    add([](const Run& run) { return run.greedy.token; });
    add([](const Run& run) { return run.greedy.exact; });
    add([](const Run& run) { return run.beam.token; });
    add([](const Run& run) { return run.beam.exact; });
    out += '\n';
  }
  const Task task(s.task);
  std::vector<double> tokens, sentences;
  for (const std::uint64_t seed : s.seeds) {
    const Score floor = floor_of(s, task, seed);
    tokens.push_back(floor.token);
    sentences.push_back(floor.exact);
  }
  const std::string floor =
      ' ' + support::mean_and_spread(tokens) + " | " + support::mean_and_spread(sentences) + " |";
  return out + "| the commonest token of each place | 0 | |" + floor + floor + '\n' +
         not_new(s, runs);
}

}  // namespace translation
