// SPDX-License-Identifier: MIT
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <infty/metrics/wordnet.hpp>

#include "../support/finished_runs.hpp"
#include "../support/progress_line.hpp"
#include "folder.hpp"
#include "scoring.hpp"
#include "training.hpp"

namespace dialogue {

/// One training and what came out.
struct Run {
  std::string form;
  std::uint64_t seed = 0;
  std::string data;       ///< what tells the text from others
  std::string base;       ///< what tells the base from others
  bool synonyms = false;  ///< whether METEOR had WordNet's
  Index parameters = 0, memory_parameters = 0, steps = 0, tokens = 0;
  Score valid, test;
  double seconds = 0;

  std::string name() const { return support::run_name(form, seed); }
};

template <class See>
void each_field(Run& run, See&& see) {
  see("form", run.form);
  see("seed", run.seed);
  see("data", run.data);
  see("base", run.base);
  see("synonyms", run.synonyms);
  see("parameters", run.parameters);
  see("memory_parameters", run.memory_parameters);
  see("steps", run.steps);
  see("tokens", run.tokens);
  each_score("valid_", run.valid, see);
  each_score("test_", run.test, see);
  see("seconds", run.seconds);
}

/// Throws infty::ValueError unless a finished run is on this text and base, and scored as here.
inline void require_same(const Run& run, const Corpus& corpus, bool synonyms,
                         const std::filesystem::path& out) {
  const auto same = [&](bool is, const char* what) {
    infty::require(is, "dialogue", out.string(), " holds a run ", what,
                   ": give another --out, or begin anew");
  };
  same(run.data == fingerprint_of(corpus), "on another text");
  same(run.base == corpus.base, "on another --base");
  same(run.synonyms == synonyms, run.synonyms ? "with --wordnet" : "without --wordnet");
}

/// WordNet's files for METEOR's synonyms, if a folder is given. Throws infty::IoError.
inline std::optional<infty::WordNet> open_wordnet(const std::filesystem::path& folder) {
  return folder.empty() ? std::nullopt : std::optional<infty::WordNet>(folder);
}

/// Scores a part of the data, with a line on the progress unless it is silent: how well it is
/// predicted and, where answers are asked for, what is said. `behind()` is called behind each
/// dialogue and answer, and may throw.
/// @param answering  a model of the same weights that reads in pieces, or null for no answers
template <class Behind>
Score score_split(const char* name, bool silent, const Model& model, const Model* answering,
                  const Settings& s, const Tokenizer& tokenizer, const Split& split,
                  const infty::WordNet* wordnet, std::vector<Answer>* kept, Behind&& behind) {
  Score score;
  const auto dialogues = first_of(split, s.scored);
  const auto shown = [&](const std::string& what, Index total, const char* unit, auto&& work) {
    std::optional<support::ProgressLine> line;
    if (!silent) line.emplace(what, total, 0, unit);
    Index done = 0;
    work([&](Index more) {
      done += more;
      if (line) line->update(done);
      behind();
    });
  };
  shown(name, std::ssize(dialogues), "dialogue",
        [&](const auto& done) { add_perplexity(score, model, s, tokenizer, dialogues, done); });
  if (answering)
    shown(std::string(name) + ", said", std::ssize(asked_answers(dialogues, s.answers)), "answer",
          [&](const auto& done) {
            add_answers(score, *answering, s, tokenizer, dialogues, wordnet, kept, done);
          });
  return score;
}

/// What has come of a training that is done: its model is written to a folder, which is there, and
/// scored as it is opened there. `behind()` as above.
template <class Behind>
Run results_of(const Training& training, const Corpus& corpus, const Files& files,
               const std::filesystem::path& folder, const infty::WordNet* wordnet, bool silent,
               Behind&& behind) {
  const Settings& s = training.settings();
  save_trained(folder, training.model(), s, corpus.tokenizer, files.base);
  const Trained trained = open_trained(folder);
  const auto scored = [&](const char* name, const Split& split, const Model* answering) {
    return score_split(name, silent, training.model(), answering, s, corpus.tokenizer, split,
                       wordnet, nullptr, behind);
  };
  return {.form = s.form,
          .seed = s.seed,
          .data = fingerprint_of(corpus),
          .base = corpus.base,
          .synonyms = wordnet != nullptr,
          .parameters = training.model().parameters(),
          .memory_parameters = training.model().memory_parameters(),
          .steps = training.steps(),
          .tokens = training.position().tokens,
          .valid = scored("valid", corpus.valid, nullptr),
          .test = scored("test", corpus.test, trained.model.get()),
          .seconds = training.position().seconds};
}

}  // namespace dialogue
