// SPDX-License-Identifier: MIT
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <filesystem>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include <infty/eigen/parallel.hpp>

#include "../support/comparison.hpp"
#include "../support/csv.hpp"
#include "../support/files.hpp"
#include "../support/finished_runs.hpp"
#include "../support/interrupt.hpp"
#include "../support/lock.hpp"
#include "../support/saving.hpp"
#include "run.hpp"

namespace dialogue {

struct CompareOptions {
  Files files;
  std::filesystem::path out = "dialogue-comparison", wordnet;
  std::vector<std::string> forms = form_names;
  std::vector<std::uint64_t> seeds{1, 2, 3};
  Index jobs = 2;
  int threads = 1;
  bool keep_models = false;
  support::Saving saving = {};
  std::string again = "";  ///< the command that goes on
};

using Runs = support::FinishedRuns<Run>;

/// A column of the paper's Table 2.
struct Measure {
  const char* name;
  double Score::*of;
};

inline const std::vector<Measure> measures{{"perplexity", &Score::table_perplexity},
                                           {"F1", &Score::f1},
                                           {"ROUGE-1", &Score::rouge1},
                                           {"ROUGE-L", &Score::rouge_l},
                                           {"METEOR", &Score::meteor}};

namespace detail {

/// The settings of a run.
inline Settings settings_of(Settings s, const std::string& form, std::uint64_t seed) {
  s.form = form;
  s.seed = seed;
  return s;
}

/// A measure of every seed's run of a form, on the test part.
inline std::vector<double> of_seeds(const CompareOptions& options, const Runs& runs,
                                    const std::string& form, const Measure& measure) {
  std::vector<double> all;
  for (const std::uint64_t seed : options.seeds)
    all.push_back(runs.find(support::run_name(form, seed))->test.*measure.of);
  return all;
}

/// Where the model of a run is until all runs are done, and where it is kept.
inline std::filesystem::path made_model(const CompareOptions& options, const std::string& name) {
  return options.out / "runs" / (name + ".model");
}
inline std::filesystem::path kept_model(const CompareOptions& options, const std::string& name) {
  return options.out / "models" / name;
}

/// Throws infty::IoError where the model of a run that is to be done would take another's place.
inline void require_place_to_keep(const CompareOptions& options, const std::string& name) {
  const auto kept = kept_model(options, name);
  infty::require<infty::IoError>(!options.keep_models || !std::filesystem::exists(kept), "dialogue",
                                 kept.string(), " is there already, and --keep-models would put ",
                                 "the model of a run in its place: give another --out");
}

/// Keeps the models of finished runs if asked, or removes them. What else is in OUT/models stays.
inline void keep_or_remove_models(const CompareOptions& options, const Runs& runs) {
  for (const auto& [name, run] : runs.all()) {
    const auto made = made_model(options, name), kept = kept_model(options, name);
    if (!options.keep_models) {
      std::filesystem::remove_all(made);
    } else if (std::filesystem::exists(made)) {
      std::filesystem::create_directories(kept.parent_path());
      std::filesystem::rename(made, kept);
    } else if (!std::filesystem::exists(kept)) {
      std::fprintf(stderr,
                   "dialogue: --keep-models keeps no %s: that run is done, and its model is gone\n",
                   kept.c_str());
    }
  }
}

/// Dialogues and answers that are scored behind a training.
inline Index scored_count(const Settings& s, const Corpus& corpus) {
  const auto test = first_of(corpus.test, s.scored);
  return std::ssize(first_of(corpus.valid, s.scored)) + std::ssize(test) +
         std::ssize(asked_answers(test, s.answers));
}

/// Trains one, from its checkpoint on if there is one, and scores it. Calls done(more) behind each
/// dialogue and answer. Throws support::Interrupted where a signal came: what was trained is saved.
template <class Done>
Run do_run(const Settings& s, const CompareOptions& options, const Corpus& corpus, const Runs& runs,
           const infty::WordNet* wordnet, Done&& done) {
  const std::string name = support::run_name(s.form, s.seed);
  const auto checkpoint = runs.checkpoint(name);
  infty::set_num_threads(options.threads);
  Training training(s, corpus, options.files, options.saving);
  if (std::filesystem::exists(checkpoint)) training.load(checkpoint);
  done(training.steps());
  const auto stop = [] { support::stop_if_interrupted([] { return std::string("stopped"); }); };
  training.run({.save = [&] { training.save(checkpoint); },
                .stop = [] { return support::InterruptGuard::signal() != 0; },
                .stepped = [&](const infty::TrainStep&, const infty::Progress&) { done(1); }});
  stop();
  const auto folder = made_model(options, name);
  std::filesystem::remove_all(folder);  // what a process that was killed has left there
  std::filesystem::create_directories(folder);
  return results_of(training, corpus, options.files, folder, wordnet, true, [&] {
    done(1);
    stop();
  });
}

}  // namespace detail

/// The table of all forms in Markdown, and what the fixed comparisons of perplexity
/// tell: each form with GPT-2 that sees the document.
inline std::string table(const CompareOptions& options, const Runs& runs) {
  std::string out = "| model | parameters |", under = "\n|---|---:|";
  for (const Measure& measure : measures) {
    out += std::string(" ") + measure.name + " |";
    under += "---:|";
  }
  out += under + '\n';
  for (const std::string& form : options.forms) {
    const std::string first = support::run_name(form, options.seeds.front());
    out += "| " + form + " | " + std::to_string(runs.find(first)->parameters) + " |";
    for (const Measure& measure : measures)
      out += ' ' + support::mean_and_spread(detail::of_seeds(options, runs, form, measure)) + " |";
    out += '\n';
  }
  const Score& test =
      runs.find(support::run_name(options.forms.front(), options.seeds.front()))->test;
  out += "\nTest part: " + std::to_string(test.dialogues) + " dialogues, " +
         std::to_string(test.predicted) + " tokens, " + std::to_string(test.answers) +
         " answers; " + std::to_string(options.seeds.size()) +
         " seeds. Perplexity as the paper's program weighs it, ROUGE its recall.\n";
  const std::string reference = "gpt2";
  if (std::find(options.forms.begin(), options.forms.end(), reference) == options.forms.end())
    return out;
  std::vector<support::Comparison> all;
  for (const std::string& form : options.forms)
    if (form != reference)
      all.push_back({measures.front().name, form, reference,
                     detail::of_seeds(options, runs, form, measures.front()),
                     detail::of_seeds(options, runs, reference, measures.front())});
  return out + support::verdicts(all, true);
}

/// Numbers of figure.png: a line a form and measure.
inline std::string figure_csv(const CompareOptions& options, const Runs& runs) {
  support::Csv csv("measure,form,mean,deviation");
  for (const Measure& measure : measures)
    for (const std::string& form : options.forms) {
      const auto spread = support::spread_of(detail::of_seeds(options, runs, form, measure));
      csv.row(measure.name, form, spread.mean, spread.deviation);
    }
  return csv.text();
}

/// Gnuplot commands that draw it: a panel a measure, bars with their deviations.
inline std::string figure(const CompareOptions& options) {
  const std::size_t count = options.forms.size();
  std::string gp =
      "set terminal pngcairo size 1200,420 font 'sans,10'\nset output 'figure.png'\n"
      "set datafile separator ','\nset border 3\nset tics nomirror out\nset grid y lc '#dddddd'\n"
      "unset key\nset boxwidth .7\nset style fill solid .6 noborder\n"
      "set xtics rotate by -40 noenhanced\nset xrange [-.6:" +
      std::to_string(count - 1) +
      ".6]\nset yrange [*:*]\nset offsets 0,0,graph .1,graph .1\n"
      "set multiplot layout 1,5 title 'Dialogue: mean and deviation over seeds'\n";
  for (std::size_t i = 0; i < measures.size(); ++i)
    gp += std::string("set title '") + measures[i].name + "'\nplot 'figure.csv' skip " +
          std::to_string(1 + i * count) + " every ::0::" + std::to_string(count - 1) +
          " using 0:3:4:xticlabel(2) with yerrorbars pt 7 ps 1.2 lw 2 lc '#c2410c'\n";
  return gp + "unset multiplot\n";
}

/// Trains and scores all forms with all seeds, those that are missing; writes the table. Returns
/// whether all are done.
inline bool compare(const Settings& s, const CompareOptions& options) {
  support::require_some_once("dialogue", "forms", options.forms);
  support::require_some_once("dialogue", "seeds", options.seeds);
  support::use_products(s.products);
  const auto lock = support::Lock::folder(options.out);
  support::require_same_settings("dialogue", s, options.out, {"form", "seed"});
  const Corpus corpus = read_corpus(options.files, s);
  for (const std::string& form : options.forms)
    validate(detail::settings_of(s, form, 1), corpus.config.places);
  const auto wordnet = open_wordnet(options.wordnet);
  Runs runs("dialogue", options.out / "runs");
  for (const auto& [name, run] : runs.all())
    require_same(run, corpus, wordnet.has_value(), options.out);
  lock.remove_unfinished({"settings.json", "runs.csv", "table.md", "figure.csv", "figure.gp"});
  runs.clean();
  support::write_file(options.out / "settings.json", support::to_json(s).dump(2) + '\n');
  std::vector<Settings> missing;
  std::vector<std::string> names;
  Index steps = 0;
  const Index trained = s.dialogues > 0 ? std::min(s.dialogues, std::ssize(corpus.train.dialogues))
                                        : std::ssize(corpus.train.dialogues);
  for (const std::uint64_t seed : options.seeds)
    for (const std::string& form : options.forms) {
      const std::string name = support::run_name(form, seed);
      if (!runs.find(name) || std::filesystem::exists(detail::made_model(options, name)))
        detail::require_place_to_keep(options, name);
      if (runs.find(name)) continue;
      missing.push_back(detail::settings_of(s, form, seed));
      names.push_back(name);
      steps += s.epochs * trained + detail::scored_count(s, corpus);
    }
  infty::set_num_threads(1);
  std::set<std::string> failed;
  {
    support::ProgressLine line("compare", steps, 0);
    const support::InterruptGuard interrupt;
    Index done = 0;
    support::do_runs(
        runs, names, options.jobs, line, failed,
        [&](std::size_t i, const auto& stepped) {
          return detail::do_run(missing[i], options, corpus, runs, wordnet ? &*wordnet : nullptr,
                                stepped);
        },
        [&](std::size_t, Index more) { line.update(done += more); }, [](std::size_t) {});
    support::stop_if_interrupted(options.out, options.again);
  }
  if (!support::none_failed("dialogue", failed.size())) return false;
  runs.clean();
  detail::keep_or_remove_models(options, runs);
  const std::string text = table(options, runs);
  support::write_file(options.out / "table.md", text);
  std::printf("%s", text.c_str());
  support::write_file(options.out / "runs.csv", support::runs_csv(runs));
  support::write_file(options.out / "figure.csv", figure_csv(options, runs));
  support::write_file(options.out / "figure.gp", figure(options));
  support::draw_figure(options.out);
  std::fprintf(stderr, "%.0f s of computing; wrote table.md, runs.csv and figure.png to %s\n",
               runs.seconds(), options.out.c_str());
  return true;
}

}  // namespace dialogue
