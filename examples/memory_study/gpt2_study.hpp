// SPDX-License-Identifier: MIT
#pragma once

#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <list>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <system_error>
#include <utility>
#include <vector>

#include <infty/data/byte_pair_encoding.hpp>
#include <infty/model/gpt2_files.hpp>

#include "../support/gpt2/folder.hpp"
#include "../support/gpt2/model.hpp"
#include "answers_page.hpp"
#include "study.hpp"

// The figures of a GPT-2 with a memory, from a folder of Hugging Face's with `memory_config.json`,
// on texts or on dialogues about documents.

namespace memory_study {

/// Whether a folder is a GPT-2's, in Hugging Face's files. `language_model` writes no config.json.
inline bool is_gpt2(const std::filesystem::path& folder) {
  std::error_code ignored;
  return !folder.empty() && std::filesystem::exists(folder / "config.json", ignored);
}

/// A GPT-2's folder, and what of it all readings share.
struct Gpt2Folder {
  std::filesystem::path path;
  support::gpt2::MemorySettings memory;
  Index vocabulary;
  infty::BytePairEncoding encoding;

  explicit Gpt2Folder(const std::filesystem::path& folder)
      : path(folder),
        memory(support::gpt2::read_memory(folder)),
        vocabulary(infty::read_gpt2_config(folder / "config.json").vocabulary),
        encoding(infty::BytePairEncoding::from_folder(folder)) {
    support::gpt2::require_tokens(encoding, vocabulary, folder);
  }

  /// The model with the memory that it has, or with another one of the same parameters.
  std::unique_ptr<support::gpt2::Model> open(const std::string& name) const {
    auto other = memory;
    other.memory = name;
    return support::gpt2::open_model(path, other);
  }

  /// What tokens are as text; those that the encoding does not have by names, or numbers.
  /// @param marks  names of the tokens behind the encoding's
  TokenTexts texts(std::vector<std::string> marks) const {
    return {.decode = [this, marks = std::move(marks)](std::span<const TokenId> ids) {
      std::string text;
      for (const TokenId id : ids) {
        const auto behind = static_cast<std::size_t>(id - (vocabulary - std::ssize(marks)));
        if (id < encoding.size())
          text += encoding.decode(std::span(&id, 1));
        else
          text += behind < marks.size() ? marks[behind] : '<' + std::to_string(id) + '>';
      }
      return text;
    }};
  }
};

/// The longest documents, each cut to so many tokens, as passages in segments of the memory.
inline std::vector<Passage> text_passages(const Options& options, const Gpt2Folder& folder) {
  lm::Texts texts;
  std::vector<std::string_view> documents;
  if (options.data.empty())
    for (std::string& tale : lm::sample_tales())
      documents.push_back(texts.made.emplace_back(std::move(tale)));
  else
    documents = lm::detail::open_documents(options.data, texts);
  std::stable_sort(documents.begin(), documents.end(),
                   [](const auto& a, const auto& b) { return a.size() > b.size(); });
  std::vector<Passage> out;
  for (const std::string_view document : documents) {
    if (std::ssize(out) == options.documents) break;
    // More bytes than so many tokens have, of which hardly any is longer.
    const auto most = static_cast<std::size_t>(options.words) * 64;
    auto tokens = folder.encoding.encode(document.substr(0, most));
    if (std::ssize(tokens) > options.words) tokens.resize(static_cast<std::size_t>(options.words));
    if (!tokens.empty())
      out.push_back(
          passage_of(support::gpt2::start_of(folder.encoding), tokens, folder.memory.segment));
  }
  infty::require(!out.empty(), "memory_study", "the text has no token");
  return out;
}

/// The dialogues of a file: the one that is asked for, or the longest, and then others.
inline std::vector<DialoguePassage> dialogue_passages(const Options& options,
                                                      const Gpt2Folder& folder) {
  const Index own = folder.vocabulary - std::ssize(dialogue::mark_names);
  infty::require(own >= 1, "memory_study", folder.path.string(), " has ", folder.vocabulary,
                 " tokens: a dialogue's has ", dialogue::mark_names.size(),
                 " marks behind those of its encoding");
  infty::require(options.dialogues.extension() == ".txt", "memory_study", "--dialogues is ",
                 options.dialogues.string(),
                 ": it must be a NAME.txt, as `dialogue prepare` writes it");
  const dialogue::Tokenizer tokenizer(folder.encoding, own);
  const auto split = dialogue::read_split(options.dialogues.parent_path(),
                                          options.dialogues.stem().string(), tokenizer);
  const Index all = std::ssize(split.dialogues);
  infty::require(options.dialogue < all, "memory_study", "--dialogue is ", options.dialogue, ": ",
                 options.dialogues.string(), " has ", all, " dialogues, counted from 0");
  std::vector<DialoguePassage> out;
  for (const auto& one : split.dialogues)
    out.push_back(dialogue_passage(one, folder.memory.segment, tokenizer.marks()));
  const auto chosen =
      options.dialogue >= 0
          ? out.begin() + options.dialogue
          : std::max_element(out.begin(), out.end(), [](const auto& a, const auto& b) {
              return a.passage.inputs.size() < b.passage.inputs.size();
            });
  std::rotate(out.begin(), chosen, chosen + 1);
  if (all > options.documents) out.resize(static_cast<std::size_t>(options.documents));
  return out;
}

/// Draws what is looked at while something is said, of all dialogues and, turn by turn, of the
/// first one.
inline void draw_dialogues(const Options& options, const std::vector<Reading>& readings,
                           const std::vector<DialoguePassage>& dialogues, const TokenTexts& texts) {
  const auto& blocks = readings.front().blocks;
  const auto looked = looked_at(readings, dialogues);
  infty::require(looked.front().queries > 0, "memory_study",
                 "nothing is said behind the first chunk of any dialogue: there is nothing in the "
                 "long-term memory yet");
  std::printf("\nlayer  looks at the document (its space)  at turns (space)  outside\n");
  for (std::size_t i = 0; i < looked.size(); ++i) {
    const Looked& x = looked[i];
    const auto percent = [&](double share) { return 100 * share / x.queries; };
    std::printf("%5zu %17.1f %% (%9.1f %%) %10.1f %% (%4.1f %%) %6.1f %%\n", blocks[i] + 1,
                percent(x.document), percent(x.document_space), percent(x.turns),
                percent(x.turns_space), percent(x.outside));
  }
  write_figure(options, "looked", looked_csv(looked, blocks), looked_figure(blocks));
  const DialoguePassage& first = dialogues.front();
  const Index words = std::min<Index>(options.phrase, std::ssize(first.passage.inputs));
  const auto answers = answers_of(readings.front(), first, words);
  std::printf("\nwhat has most attention while a turn is said\n");
  for (const Answer& answer : answers) {
    std::string line;
    for (const Index at : answer.excerpts)
      line += (line.empty() ? "" : " | ") + phrase_text(texts, first.passage.inputs, at, words);
    std::printf("turn %lld: %s\n", static_cast<long long>(answer.turn + 1), line.c_str());
  }
  support::write_file(options.out / "answers.html", answers_page(first, answers, texts, words));
}

/// Everything that there is of a GPT-2's folder.
inline void study_gpt2(const Options& options) {
  const Gpt2Folder folder(options.model);
  const bool talks = !options.dialogues.empty();
  const TokenTexts texts = folder.texts(talks ? dialogue::mark_names : std::vector<std::string>{});
  std::vector<DialoguePassage> dialogues;
  Documents documents{{}, options};
  if (talks) {
    dialogues = dialogue_passages(options, folder);
    for (const DialoguePassage& one : dialogues) documents.all.push_back(one.passage);
  } else {
    documents.all = text_passages(options, folder);
  }
  const support::InterruptGuard interrupt;
  const bool long_term = support::gpt2::is_long_term(folder.memory);
  const auto read_all = [&](const std::string& memory, std::size_t count) {
    const auto model = folder.open(memory);
    const infty::LongTermConfig& constants = folder.memory.long_term;
    const MemoryKind kind{.tau = constants.tau,
                          .sticky = memory == "sticky",
                          .bins = constants.bins,
                          .threshold = constants.threshold};
    std::vector<std::size_t> blocks;
    for (const Index block : model->memory_blocks())
      blocks.push_back(static_cast<std::size_t>(block));
    return documents.shown(memory, count, [&](const auto& some, const auto& done) {
      std::vector<Reading> readings;
      for (const Passage& passage : some)
        readings.push_back(read_passage(*model, blocks, kind, passage, done));
      return readings;
    });
  };
  if (long_term) {
    const LongTermReadings readings{.plain = read_all("infty", documents.all.size()),
                                    .sticky = read_all("sticky", 1),
                                    .tau = folder.memory.long_term.tau};
    draw_long_term(options, readings, texts);
    if (talks && folder.memory.memory == "infty")
      draw_dialogues(options, readings.plain, dialogues, texts);
    else if (talks)
      draw_dialogues(options, read_all("sticky", documents.all.size()), dialogues, texts);
  }
  const bool shown = study_shown(options, *folder.open(folder.memory.memory), texts, documents);
  infty::require(long_term || shown, "memory_study", folder.path.string(),
                 " holds a GPT-2 (memory ", folder.memory.memory,
                 ") whose layers show nothing of what they read");
}

}  // namespace memory_study
