// SPDX-License-Identifier: MIT
#pragma once

#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <span>
#include <string>
#include <vector>

#include "../support/files.hpp"
#include "../support/interrupt.hpp"
#include "../support/language_model/training.hpp"
#include "../support/progress_line.hpp"
#include "attention.hpp"
#include "basis.hpp"
#include "heat_map.hpp"
#include "page.hpp"
#include "retrieved.hpp"
#include "shown.hpp"
#include "space.hpp"

namespace memory_study {

namespace lm = language_model;

struct Options {
  std::filesystem::path out = "memory-study", model;
  std::string data, memory = "infty-sticky";
  Index steps = 800, words = 1500, documents = 12, bins = 100, phrase = 4, predict = -1;
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
  std::vector<std::span<const TokenId>> all;
  const Options& options;

  /// Calls read(documents, done) with the first `count`, and shows a line on the progress:
  /// done(tokens) is to be called behind each segment.
  template <class Read>
  auto shown(const std::string& name, std::size_t count, const Read& read) const {
    const auto documents = std::span(all).first(std::min(count, all.size()));
    Index tokens = 0, total = 0;
    for (const auto& document : documents) total += std::ssize(document);
    support::ProgressLine line(name, total, 0, "token");
    return read(documents, [&](Index more) {
      line.update(tokens += more);
      stop_if_interrupted(options);
    });
  }
};

/// Reads all documents, each from a fresh state; what layers show. The passage is the first one's
/// last segment, whose words go to `words`.
inline ShownByName read_shown(const support::Model& model, const lm::Settings& s,
                              const lm::Tokenizer& tokenizer, const Documents& documents,
                              std::vector<std::string>& words) {
  const auto read = [&](const auto& some, const auto& done) {
    ShownByName all;
    for (std::size_t i = 0; i < some.size(); ++i) {
      const auto inputs = inputs_of(tokenizer.start(), some[i]);
      auto state = model.make_state(1);
      for (Index first = 0; first < std::ssize(inputs); first += s.segment) {
        const Index count = std::min<Index>(s.segment, std::ssize(inputs) - first);
        // Of a shorter last segment there would be little to see.
        const bool keep = i == 0 && (first == 0 || count == s.segment);
        const std::vector<Index> segment(inputs.begin() + first, inputs.begin() + first + count);
        for (const Shown& shown : model.shown(state, segment))
          all[shown.name][shown.layer].add(shown, keep);
        if (keep) words.clear();
        for (std::size_t j = 0; keep && j < segment.size(); ++j)
          words.push_back(squeezed(token_text(tokenizer, segment[j])));
        done(count);
      }
    }
    return all;
  };
  return documents.shown("what is shown", documents.all.size(), read);
}

/// Pictures of all that layers show which says what its dimensions are; whether there is any.
inline bool study_shown(const Options& options, const lm::Settings& s,
                        const lm::Tokenizer& tokenizer, const std::filesystem::path& folder,
                        const Documents& documents) {
  constexpr Index most_words = 64;
  const auto model = lm::load_model(s, tokenizer, folder);
  std::vector<std::string> words;
  const ShownByName all = read_shown(*model, s, tokenizer, documents, words);
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

inline void study_retrieved(const Options& options, lm::Settings s, const lm::Tokenizer& tokenizer,
                            const std::filesystem::path& folder, const Documents& documents) {
  const auto model = lm::load_model(s, tokenizer, folder);
  const auto layers = three_layers(s.model.layers);
  const auto all =
      documents.shown(s.memory, documents.all.size(), [&](const auto& some, const auto& done) {
        return read_retrieved(*model, s, tokenizer.start(), some, layers, done);
      });
  infty::require(all.front().all > 0, "memory_study", "the longest document has ",
                 documents.all.front().size(), " tokens: nothing is retrieved for any of them");
  write_figure(options, "retrieved", retrieved_csv(all, layers), retrieved_figure(layers));
  std::printf("what is retrieved, and what would be by chance\n");
  for (std::size_t i = 0; i < all.size(); ++i)
    std::printf(
        "layer %zu: half of it within %lld tokens (%lld); %.1f %% the same token (%.1f %%)\n",
        layers[i] + 1, static_cast<long long>(Retrieved::median(all[i].count)),
        static_cast<long long>(Retrieved::median(all[i].by_chance)), 100 * all[i].same / all[i].all,
        100 * all[i].same_by_chance / all[i].all);
}

inline void study_long_term(const Options& options, lm::Settings s, const lm::Tokenizer& tokenizer,
                            const std::filesystem::path& folder, const Documents& documents) {
  // The same parameters read the same text as often as there are ways to sample what was written.
  const bool two_ways = s.memory != "infty-gibbs";
  const auto read_all = [&](const std::string& memory, std::size_t count) {
    s.memory = memory;
    const auto model = lm::load_model(s, tokenizer, folder);
    return documents.shown(memory, count, [&](const auto& some, const auto& done) {
      std::vector<Reading> readings;
      for (const auto& document : some)
        readings.push_back(read_document(*model, s, tokenizer.start(), document, done));
      return readings;
    });
  };
  const auto plain = read_all(two_ways ? "infty" : s.memory, documents.all.size());
  const Index written = plain.front().segments.back().cells.front().size();
  infty::require(written > 0, "memory_study", "the longest document has ",
                 plain.front().tokens.size(),
                 " tokens: none of them comes to the long-term memory");

  const auto layers = three_layers(s.model.layers);
  const Index most = plain.front().segments.back().layers.front().writes;
  const auto all = histograms(plain, s.model.layers, options.bins, std::min<Index>(most, 4));
  write_figure(options, "attention", attention_csv(all, layers),
               attention_figure(all, layers, s.long_term.tau));
  for (std::size_t i = 0; i < all.size() && two_ways; ++i)
    std::printf("layer %zu: %.1f %% of attention lies outside of the memory\n", layers[i] + 1,
                100 * all[i].outside / all[i].queries);

  if (two_ways) {
    const auto sticky = read_all("infty-sticky", 1);
    const Index words = std::min(options.phrase, written);
    std::vector<LayerSpace> spaces;
    std::printf("\nphrases that sticky memories give most space, with and without them\n");
    for (const std::size_t layer : layers) {
      auto& space = spaces.emplace_back(
          LayerSpace{layer, all_phrases(plain.front(), sticky.front(), layer, words), {}});
      space.peaks = phrases_at_peaks(space.all, 6);
      for (Phrase& phrase : space.peaks) {
        phrase.text = phrase_text(tokenizer, plain.front().inputs, phrase.first, words);
        std::printf("layer %zu %9.4f %% %9.4f %%  %s\n", layer + 1, 100 * phrase.sticky,
                    100 * phrase.plain, phrase.text.c_str());
      }
    }
    write_figure(options, "space", space_csv(spaces), space_figure(spaces, words));
  }

  infty::require(options.predict < std::ssize(plain.front().tokens), "memory_study",
                 "--predict is ", options.predict, ": the text has ", plain.front().tokens.size(),
                 " tokens");
  const Index input = options.predict >= 0 ? options.predict : best_remembered(plain.front());
  support::write_file(options.out / "page.html",
                      attention_page(plain.front(), tokenizer, input, s.level == "word"));
}

}  // namespace memory_study
