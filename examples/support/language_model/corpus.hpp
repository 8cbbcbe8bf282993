// SPDX-License-Identifier: MIT
#pragma once

#include <cstdint>
#include <cstdio>
#include <filesystem>
#include <list>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <infty/data/batch_stream.hpp>
#include <infty/data/text.hpp>
#include <infty/io/mapped_file.hpp>

#include "../fingerprint.hpp"
#include "../progress_line.hpp"
#include "../text_parts.hpp"
#include "sample_text.hpp"
#include "tokenizer.hpp"

namespace language_model {

/// Tokens that were looked up for each token of a stream, for a model that attends to them.
struct RetrievedTokens {
  Index each = 0;                    ///< k; 0: none were looked up
  std::vector<TokenId> tokens = {};  ///< (stream, k)

  /// Gives a batch of the stream its own. A target that is ignored gets the first ones.
  void put(infty::TextBatch& batch) const {
    if (each == 0) return;
    batch.retrieved.clear();
    for (Index row = 0; row < batch.batch; ++row)
      for (Index i = 0; i < batch.length; ++i) {
        const bool there = batch.targets[static_cast<std::size_t>(row * batch.length + i)] >= 0;
        const auto at =
            tokens.begin() + (there ? batch.first[static_cast<std::size_t>(row)] + i : 0) * each;
        batch.retrieved.insert(batch.retrieved.end(), at, at + each);
      }
  }
};

/// One part of a text as tokens, and how much text that is.
struct Split {
  infty::TokenStream stream;
  RetrievedTokens retrieved = {};
  Index bytes = 0, characters = 0, unknown = 0;
};

/// Texts, kept by whoever has them.
struct Texts {
  std::list<infty::MappedFile> files;
  std::vector<std::filesystem::path> names;  ///< of the files
  std::list<std::string> made;
  std::vector<std::string_view> train, valid, test;
};

namespace detail {

/// The documents of a file or a folder.
inline std::vector<std::string_view> open_documents(const std::string& path, Texts& texts) {
  std::vector<std::string_view> documents;
  Index bytes = 0;
  for (const auto& file : infty::text_files(path)) {
    documents.push_back(texts.files.emplace_back(file).text());
    texts.names.push_back(file);
    bytes += static_cast<Index>(documents.back().size());
  }
  infty::require<infty::IoError>(bytes > 0, "documents", path, ": there is no text in it");
  return documents;
}

/// Where a text is cut: at a line's end close to the share, if there is one, so that no word and
/// no character is cut.
inline std::size_t cut_near(std::string_view text, double share) {
  const auto at = static_cast<std::size_t>(share * static_cast<double>(text.size()));
  const std::size_t line = text.find('\n', at);
  if (line != std::string_view::npos && line - at < text.size() / 100) return line + 1;
  std::size_t cut = at;
  while (cut < text.size() && (static_cast<unsigned char>(text[cut]) & 0xC0U) == 0x80) ++cut;
  const std::size_t space = text.find(' ', cut);
  return space != std::string_view::npos && space - cut < text.size() / 100 ? space : cut;
}

/// Makes three parts of all documents: one is cut 90:5:5, several are shared out in that proportion
/// of their bytes, in order.
inline void share_out(Texts& texts, const std::vector<std::string_view>& all) {
  if (all.size() == 1) {
    const std::string_view text = all.front();
    const std::size_t first = detail::cut_near(text, .9), second = detail::cut_near(text, .95);
    texts.train = {text.substr(0, first)};
    texts.valid = {text.substr(first, second - first)};
    texts.test = {text.substr(second)};
    return;
  }
  infty::require(all.size() >= 3, "documents", "--data has ", all.size(),
                 " documents: to be shared out it needs 3, or --valid and --test");
  // Each part has one document at least.
  double bytes = 0;
  for (const std::string_view document : all) bytes += static_cast<double>(document.size());
  const auto first_from = [&](double share, std::size_t least, std::size_t most) {
    std::size_t i = 0;
    for (double before = 0; i < most && (i < least || before < share * bytes); ++i)
      before += static_cast<double>(all[i].size());
    return i;
  };
  const std::size_t valid = first_from(.9, 1, all.size() - 2);
  const std::size_t test = first_from(.95, valid + 1, all.size() - 1);
  const auto part = [&](std::size_t begin, std::size_t end) {
    return std::vector(all.begin() + static_cast<std::ptrdiff_t>(begin),
                       all.begin() + static_cast<std::ptrdiff_t>(end));
  };
  texts.train = part(0, valid);
  texts.valid = part(valid, test);
  texts.test = part(test, all.size());
}

}  // namespace detail

/// Finds the three parts of the text that the settings name: separate files; one file, cut 90:5:5;
/// or the documents of a folder, shared out in that proportion of their bytes, in order.
inline Texts open_texts(const Settings& s) {
  Texts texts;
  std::vector<std::string_view> all;
  if (s.data.empty()) {
    for (std::string& tale : sample_tales())
      all.push_back(texts.made.emplace_back(std::move(tale)));
  } else {
    all = detail::open_documents(s.data, texts);
  }
  if (s.valid.empty()) {
    detail::share_out(texts, all);
    return texts;
  }
  texts.train = std::move(all);
  texts.valid = detail::open_documents(s.valid, texts);
  texts.test = detail::open_documents(s.test, texts);
  return texts;
}

inline Split make_split(const Tokenizer& tokenizer, const std::vector<std::string_view>& texts) {
  Split split;
  Index bytes = 0;
  for (const std::string_view text : texts) bytes += static_cast<Index>(text.size());
  support::ProgressLine line("tokens", bytes, 0, "byte");
  for (const std::string_view text : texts) {
    const auto ids = support::encode_parts(
        text, [&](std::string_view part) { return tokenizer.encode(part); },
        [&](Index read) { line.update(split.bytes + read); });
    split.stream.append(ids);
    split.bytes += std::ssize(text);
    split.characters += infty::count_characters(text);
    if (const auto unknown = tokenizer.unknown())
      for (const TokenId id : ids) split.unknown += id == *unknown ? 1 : 0;
  }
  return split;
}

/// A text that is ready to be trained and evaluated on.
struct Corpus {
  Tokenizer tokenizer;
  Split train, valid, test;
  std::uint64_t fingerprint = 0;  ///< of all its tokens
};

/// The tokens of texts and what makes them. Throws infty::ValueError for texts that are too short.
inline Corpus make_corpus(const Settings& s, const Texts& texts) {
  std::vector<std::string_view> held_out = texts.valid;
  held_out.insert(held_out.end(), texts.test.begin(), texts.test.end());
  Tokenizer tokenizer(s, texts.train, held_out);
  Corpus corpus{.tokenizer = std::move(tokenizer), .train = {}, .valid = {}, .test = {}};
  support::Fingerprint fingerprint;
  for (const auto& [split, of] :
       {std::pair(&corpus.train, &texts.train), std::pair(&corpus.valid, &texts.valid),
        std::pair(&corpus.test, &texts.test)}) {
    *split = make_split(corpus.tokenizer, *of);
    infty::require(!split->stream.tokens.empty(), "language_model",
                   "the text is too short: a part of it has no token");
    for (const TokenId id : split->stream.tokens) fingerprint.add(static_cast<std::uint64_t>(id));
  }
  corpus.fingerprint = fingerprint.bits();
  return corpus;
}

/// Reads the text that the settings name. Throws infty::IoError, infty::ValueError for a text that
/// is missing, empty, or too short to be cut.
inline Corpus load_corpus(const Settings& s) { return make_corpus(s, open_texts(s)); }

/// Says what the text is.
inline void describe(const Corpus& corpus) {
  std::fprintf(stderr, "vocabulary of %lld %ss\n", static_cast<long long>(corpus.tokenizer.size()),
               corpus.tokenizer.token_name());
  for (const auto& [name, split] :
       {std::pair("train", &corpus.train), std::pair("valid", &corpus.valid),
        std::pair("test", &corpus.test)})
    std::fprintf(stderr,
                 "%-5s %10lld tokens (%lld unknown), %lld characters, %lld bytes, %lld documents\n",
                 name, static_cast<long long>(split->stream.tokens.size()),
                 static_cast<long long>(split->unknown), static_cast<long long>(split->characters),
                 static_cast<long long>(split->bytes),
                 static_cast<long long>(split->stream.documents.size()));
}

}  // namespace language_model
