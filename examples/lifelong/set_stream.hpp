// SPDX-License-Identifier: MIT
#pragma once

#include <algorithm>
#include <filesystem>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <infty/data/labelled_text.hpp>

#include "stream.hpp"

namespace lifelong {

/// Draws `wanted` texts of a file of a published set evenly, in the order of the file where there
/// are no more, and adds its name and bytes to a fingerprint. Calls see(text) for every one there
/// is.
/// @throws infty::IoError as `for_each_labelled_text`, or if there is no text in it
template <class See>
std::vector<infty::LabelledText> draw_texts(const std::filesystem::path& file, Index wanted,
                                            infty::Random random, support::Fingerprint& fingerprint,
                                            See&& see) {
  const infty::MappedFile mapped(file);
  fingerprint.add_text(file.filename().string());
  fingerprint.add_text(mapped.text());
  std::vector<infty::LabelledText> out;
  Index seen = 0;
  infty::for_each_labelled_text(mapped.text(), file.string(), [&](infty::LabelledText&& text) {
    see(text);
    const Index place = seen < wanted ? seen : random.below(seen + 1);
    if (seen++ < wanted)
      out.push_back(std::move(text));
    else if (place < wanted)
      out[static_cast<std::size_t>(place)] = std::move(text);
  });
  infty::require<infty::IoError>(seen > 0, "lifelong", file.string(), ": there is no text in it");
  return out;
}

/// A task a folder of --sets, with its `train.csv` and `test.csv`: so many texts of each, drawn by
/// the seed, or all that there are. Classes of a set are its own. A text is its first `length`
/// words; those that are not among the `max_vocabulary` most frequent of all `train.csv` are one
/// token. That, and how many classes there are, is the same whatever is drawn.
/// @throws infty::IoError for a file that is none of such a set; infty::ValueError for a test with
/// a class that nothing to learn from has
inline Stream set_stream(const Settings& s, std::uint64_t seed) {
  const auto each_word = [&](std::string_view text, auto&& see) {
    Index words = 0;
    infty::for_each_token(text, infty::TextUnit::word, [&](std::string_view word) {
      if (word != infty::end_of_line && words++ < s.length) see(word);
    });
  };
  const infty::Random random(seed, 13);
  support::Fingerprint fingerprint;
  std::vector<std::vector<infty::LabelledText>> training, test;
  infty::TokenCounts counts;
  std::vector<Index> classes;  // of each set
  for (const std::string& folder : s.sets) {
    const auto draws = random.split(training.size());
    const std::filesystem::path at = folder;
    Index own = 0;
    training.push_back(draw_texts(at / "train.csv", s.training, draws.split(0), fingerprint,
                                  [&](const infty::LabelledText& one) {
                                    own = std::max(own, one.label + 1);
                                    each_word(one.text,
                                              [&](std::string_view word) { counts.add(word); });
                                  }));
    classes.push_back(own);
    test.push_back(draw_texts(at / "test.csv", s.test, draws.split(1), fingerprint,
                              [](const infty::LabelledText&) {}));
  }
  const infty::Vocabulary vocabulary(counts, {.max_size = s.max_vocabulary});
  const Index unknown = vocabulary.find(infty::unknown_word).value();
  Stream out{.vocabulary = 1 + vocabulary.size(),
             .longest = 1 + s.length,
             .texts = support::as_hex(fingerprint.bits())};
  for (std::size_t t = 0; t < training.size(); ++t) {
    const auto folder = std::filesystem::path(s.sets[t] + '/').lexically_normal().parent_path();
    infty::LifelongTask task{.name = folder.filename().string()};
    const auto examples = [&](const std::vector<infty::LabelledText>& texts,
                              std::vector<infty::Example>& to) {
      for (const auto& one : texts) {
        infty::require(one.label < classes[t], "lifelong", s.sets[t], ": a test has the label ",
                       one.label + 1, ", and what is to be learned of it ", classes[t], " at most");
        infty::Example example{.tokens = {0}, .labels = {out.classes + one.label}};
        each_word(one.text, [&](std::string_view word) {
          example.tokens.push_back(1 + vocabulary.find(word).value_or(unknown));
        });
        to.push_back(std::move(example));
      }
    };
    examples(training[t], task.training);
    examples(test[t], task.test);
    infty::Random order = random.split(training.size() + t);
    shuffle(task.training, order);
    out.classes += classes[t];
    out.tasks.push_back(std::move(task));
  }
  return out;
}

}  // namespace lifelong
