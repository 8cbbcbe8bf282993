// SPDX-License-Identifier: MIT
#pragma once

#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <numeric>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "../support/files.hpp"
#include "../support/interrupt.hpp"
#include "../support/language_model/training.hpp"
#include "../support/progress_line.hpp"
#include "attention.hpp"
#include "basis.hpp"
#include "gate.hpp"
#include "heat_map.hpp"
#include "page.hpp"
#include "retrieved.hpp"
#include "shown.hpp"
#include "space.hpp"

namespace memory_study {

namespace lm = language_model;

/// The name under which SPALM shows its gate.
inline constexpr std::string_view spalm_gate = "spalm_gate";

struct Options {
  std::filesystem::path out = "memory-study", model;
  std::string data, memory = "infty-sticky";
  std::filesystem::path dialogues;
  Index steps = 800, words = 1500, documents = 12, bins = 100, phrase = 4, predict = -1;
  Index dialogue = -1;
  support::Saving saving = {};
  std::string again = "";  ///< the command that goes on
  int threads = 0;
  bool text = true, sorting = true, fresh = false;
  BasisSettings basis;
};

/// Throws support::Interrupted, with the command that goes on, if a signal came.
inline void stop_if_interrupted(const Options& options) {
  support::stop_if_interrupted([&] {
    return "stopped, what is trained is saved in " + options.out.string() +
           "; to go on: " + options.again;
  });
}

inline void write_figure(const Options& options, const std::string& name, const std::string& csv,
                         const std::string& script) {
  for (const char* const kind : {".csv", ".gp"})  // what killed processes have left
    infty::detail::remove_unfinished(options.out / (name + kind));
  support::write_file(options.out / (name + ".csv"), csv);
  support::write_file(options.out / (name + ".gp"), script);
  support::draw_figure(options.out, name);
}

/// What is read, and how far it has come.
struct Documents {
  std::vector<Passage> all;
  const Options& options;

  /// Calls read(passages, done) with the first `count`, and shows a line on the progress:
  /// done(tokens) is to be called behind each segment.
  template <class Read>
  auto shown(const std::string& name, std::size_t count, const Read& read) const {
    const auto passages = std::span(all).first(std::min(count, all.size()));
    Index tokens = 0, total = 0;
    for (const Passage& passage : passages) total += std::ssize(passage.inputs);
    support::ProgressLine line(name, total, 0, "token");
    return read(passages, [&](Index more) {
      line.update(tokens += more);
      stop_if_interrupted(options);
    });
  }
};

/// What a model's layers show of a segment.
template <class Model>
std::vector<Shown> shown_of(const Model& model, typename Model::State& state,
                            const Passage& passage, const Piece& piece) {
  if constexpr (takes_types<Model>)
    return model.shown(state, Passage::part(passage.inputs, piece),
                       Passage::part(passage.types, piece));
  else
    return model.shown(state, passage.batch(piece));
}

/// Reads all passages, each from a fresh state; what layers show. The passage of the pictures is
/// the first one's last segment, whose words go to `words`; the gates of SPALM to `gate`.
template <class Model>
ShownByName read_shown(const Model& model, const TokenTexts& texts, const Documents& documents,
                       std::vector<std::string>& words, GateHistogram& gate) {
  const auto read = [&](const auto& some, const auto& done) {
    ShownByName all;
    for (std::size_t i = 0; i < some.size(); ++i) {
      auto state = model.make_state(1);
      Index longest = 0;
      for (const Piece& piece : some[i].segments) longest = std::max(longest, piece.length);
      for (const Piece& piece : some[i].segments) {
        // Of a shorter last segment there would be little to see.
        const bool keep = i == 0 && (piece.begin == 0 || piece.length == longest);
        for (const Shown& shown : shown_of(model, state, some[i], piece)) {
          all[shown.name][shown.layer].add(shown, keep);
          if (shown.name == spalm_gate) gate.add(shown.values);
        }
        if (keep) words.clear();
        for (Index j = 0; keep && j < piece.length; ++j)
          words.push_back(
              squeezed(texts.of(some[i].inputs[static_cast<std::size_t>(piece.begin + j)])));
        done(piece.length);
      }
    }
    return all;
  };
  return documents.shown("what is shown", documents.all.size(), read);
}

/// The histogram of how much SPALM takes of what was looked up [Yogatama et al. 2021].
inline void draw_gate(const Options& options, const GateHistogram& gate) {
  if (gate.all() == 0) return;
  const std::string name = std::string(spalm_gate) + "_histogram";
  write_figure(options, name, gate.csv(),
               GateHistogram::figure(name, "How often the gate of SPALM has which value",
                                     "1 takes nothing of what was looked up, 0 nothing else"));
  std::printf("SPALM takes %.4f of what was looked up in the mean over %.0f words\n",
              1 - gate.mean(), gate.all());
}

/// Pictures of all that layers show which says what its dimensions are; whether there is any.
template <class Model>
bool study_shown(const Options& options, const Model& model, const TokenTexts& texts,
                 const Documents& documents) {
  constexpr Index most_words = 64;
  std::vector<std::string> words;
  GateHistogram gate(options.bins);
  const ShownByName all = read_shown(model, texts, documents, words, gate);
  draw_gate(options, gate);
  if (std::ssize(words) > most_words) words.erase(words.begin(), words.end() - most_words);
  for (const auto& [name, layers] : all) {
    std::vector<Panel> means, passages;
    for (const auto& at : three_of(layers)) {
      std::printf("%s, %s: %s\n", as_words(name).c_str(), layer_name(at->first).c_str(),
                  at->second.told().c_str());
      if (at->second.mean.sum.size() > 1) means.push_back(panel_of(at->first, at->second.mean));
      if (!at->second.passage.axes.empty())
        passages.push_back(panel_of_words(at->first, at->second.passage, most_words));
    }
    if (!means.empty())
      write_figure(options, name, panels_csv(means),
                   panels_figure(name, as_words(name) + ", the mean over all texts", means, {}));
    if (!passages.empty())
      write_figure(options, name + "_words", panels_csv(passages),
                   panels_figure(name + "_words", as_words(name) + ", in one passage", passages,
                                 std::ssize(words) == passages.front().shape.back()
                                     ? words
                                     : std::vector<std::string>()));
  }
  return !all.empty();
}

inline void study_retrieved(const Options& options, const support::Model& model, Index capacity,
                            Index depth, const Documents& documents) {
  const auto layers = three_layers(depth);
  const auto all =
      documents.shown("memorizing", documents.all.size(), [&](const auto& some, const auto& done) {
        return read_retrieved(model, capacity, some, layers, done);
      });
  infty::require(all.front().all > 0, "memory_study", "the longest document has ",
                 documents.all.front().targets.size(),
                 " tokens: nothing is retrieved for any of them");
  write_figure(options, "retrieved", retrieved_csv(all, layers), retrieved_figure(layers));
  std::printf("what is retrieved, and what would be by chance\n");
  for (std::size_t i = 0; i < all.size(); ++i)
    std::printf(
        "layer %zu: half of it within %lld tokens (%lld); %.1f %% the same token (%.1f %%)\n",
        layers[i] + 1, static_cast<long long>(Retrieved::median(all[i].count)),
        static_cast<long long>(Retrieved::median(all[i].by_chance)), 100 * all[i].same / all[i].all,
        100 * all[i].same_by_chance / all[i].all);
}

/// Readings of models with a long-term memory by the same parameters: all passages, evenly sampled
/// but in the one that has no other way, and the first one with sticky memories.
struct LongTermReadings {
  std::vector<Reading> plain, sticky;  ///< no sticky ones of a density of any shape
  double tau;
};

/// Throws infty::ValueError for a page of a word that was read with nothing in the long-term
/// memory.
/// @param least  the first word for which there is something
inline void require_remembered(const Options& options, Index least) {
  infty::require(options.predict < 0 || options.predict >= least, "memory_study", "--predict is ",
                 options.predict, ": the long-term memory is empty there, so that it must be ",
                 least, " at least");
}

/// Draws where queries look, how much of the memory words have, and the page of one word.
inline void draw_long_term(const Options& options, const LongTermReadings& readings,
                           const TokenTexts& texts) {
  const auto& [plain, sticky, tau] = readings;
  const Reading& first = plain.front();
  const SegmentRead& end = first.segments.back();
  const Index written = end.cells.front().size();
  infty::require(written > 0, "memory_study", "the longest document has ",
                 first.passage.targets.size(),
                 " tokens: none of them comes to the long-term memory");
  infty::require(options.predict < std::ssize(first.passage.targets), "memory_study",
                 "--predict is ", options.predict, ": the text has ", first.passage.targets.size(),
                 " tokens");
  require_remembered(options, first_remembered(first));

  const auto three = three_layers(std::ssize(first.blocks));
  std::vector<std::size_t> layers;
  for (const std::size_t layer : three) layers.push_back(first.blocks[layer]);
  Index most = 0;
  for (const SegmentRead& segment : first.segments)
    most = std::max(most, segment.layers.front().writes);
  const auto all = histograms(plain, options.bins, std::min<Index>(most, 4));
  write_figure(options, "attention", attention_csv(all, layers),
               attention_figure(all, layers, tau));
  for (std::size_t i = 0; i < all.size() && !sticky.empty(); ++i)
    std::printf("layer %zu: %.1f %% of attention lies outside of the memory\n", layers[i] + 1,
                100 * all[i].outside / all[i].queries);

  if (!sticky.empty()) {
    // One phrase alone, as long as all that was written, has no line in the figure.
    const Index words = std::min(options.phrase, std::max<Index>(1, written - 1));
    std::vector<LayerSpace> spaces;
    std::printf("\nphrases that sticky memories give most space, with and without them\n");
    for (std::size_t i = 0; i < three.size(); ++i) {
      auto& space = spaces.emplace_back(
          LayerSpace{layers[i], all_phrases(first, sticky.front(), three[i], words), {}});
      space.peaks = phrases_at_peaks(space.all, 6);
      for (Phrase& phrase : space.peaks) {
        phrase.text = phrase_text(texts, first.passage.inputs, phrase.first, words);
        std::printf("layer %zu %9.4f %% %9.4f %%  %s\n", layers[i] + 1, 100 * phrase.sticky,
                    100 * phrase.plain, phrase.text.c_str());
      }
    }
    write_figure(options, "space", space_csv(spaces), space_figure(spaces, words));
  }

  const Index input = options.predict >= 0 ? options.predict : best_remembered(first);
  support::write_file(options.out / "page.html", attention_page(first, texts, input));
}

/// Throws infty::ValueError for a model with a long-term memory other than the pictures are of: one
/// that contracts its past otherwise than to tau, or that does not show where it samples it.
inline void require_pictured(const lm::Settings& s, const std::filesystem::path& folder) {
  const std::string contraction = support::contraction_of(s.memory, s.contraction);
  infty::require(contraction == "fixed", "memory_study", folder.string(), " holds a model (",
                 support::model_name(s), ") whose memory contracts its past by ", contraction,
                 ": the pictures are of one whose --contraction is fixed");
  infty::require(s.memory == "infty-gibbs" || support::model_name(s) == s.memory, "memory_study",
                 folder.string(), " holds a model (", support::model_name(s),
                 ") whose layers do not show what their long-term memory writes: the pictures are "
                 "of one with no other --mixer, --feed or --tokens");
}

inline void study_long_term(const Options& options, lm::Settings s, const lm::Tokenizer& tokenizer,
                            const std::filesystem::path& folder, const TokenTexts& texts,
                            const Documents& documents) {
  // The same parameters read the same text as often as there are ways to sample what was written.
  const bool two_ways = s.memory != "infty-gibbs";
  std::vector<std::size_t> blocks(static_cast<std::size_t>(s.model.layers));
  std::iota(blocks.begin(), blocks.end(), std::size_t{0});
  const auto read_all = [&](const std::string& memory, std::size_t count) {
    s.memory = memory;
    const auto model = lm::load_model(s, tokenizer, folder);
    const MemoryKind kind{.tau = s.long_term.tau,
                          .sticky = memory == "infty-sticky",
                          .bins = s.long_term.bins,
                          .points = s.long_term.points,
                          .threshold = s.long_term.threshold,
                          .recent = s.memory_length - lm::compressed_length(s)};
    return documents.shown(memory, count, [&](const auto& some, const auto& done) {
      std::vector<Reading> readings;
      for (const Passage& passage : some)
        readings.push_back(read_passage(*model, blocks, kind, passage, done));
      return readings;
    });
  };
  LongTermReadings readings{.plain = read_all(two_ways ? "infty" : s.memory, documents.all.size()),
                            .sticky = {},
                            .tau = s.long_term.tau};
  if (two_ways) readings.sticky = read_all("infty-sticky", 1);
  draw_long_term(options, readings, texts);
}

}  // namespace memory_study
