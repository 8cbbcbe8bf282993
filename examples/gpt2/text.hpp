// SPDX-License-Identifier: MIT
#pragma once

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include <infty/data/batch_stream.hpp>
#include <infty/data/byte_pair_encoding.hpp>
#include <infty/metrics/perplexity.hpp>

#include "../support/fingerprint.hpp"
#include "../support/gpt2/folder.hpp"
#include "../support/language_model/corpus.hpp"
#include "../support/progress_line.hpp"
#include "../support/text_parts.hpp"
#include "settings.hpp"

namespace gpt2 {

using infty::TokenId;
using language_model::Texts;

/// One part of a text as tokens, and how much text that is.
struct Part {
  infty::TokenStream stream;
  /// Among which words and bytes are shared out: all of the text, also those that fill no block;
  /// but the first of each document where there are no blocks.
  Index tokens = 0;
  Index bytes = 0, characters = 0, words = 0;
};

/// Whether a line is a heading of a WikiText article, ` = Title = `, and none of a section.
inline bool is_title(std::string_view line) {
  return line.starts_with(" = ") && line.ends_with(" = ") && line.size() > 6 &&
         !line.starts_with(" = = ");
}

/// A text cut in front of every article's heading.
inline std::vector<std::string_view> articles_of(std::string_view text) {
  std::vector<std::string_view> all;
  std::size_t begin = 0;
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t end = std::min(text.find('\n', at), text.size());
    if (at > begin && is_title(text.substr(at, end - at))) {
      all.push_back(text.substr(begin, at - begin));
      begin = at;
    }
    at = end + 1;
  }
  all.push_back(text.substr(begin));
  return all;
}

/// The tokens of a text as the ∞-former's authors' program has them: each line by itself without
/// its end, 1,000 lines one behind the other, cut into blocks; what does not fill one is lost.
/// Calls read(bytes) behind each group. Returns how many tokens there were before.
template <class Read>
Index add_blocks(const infty::BytePairEncoding& encoding, std::string_view text, Index block,
                 infty::TokenStream& stream, Read&& read) {
  constexpr Index group = 1000;
  std::vector<TokenId> tokens;
  Index lines = 0, all = 0;
  const auto cut = [&] {
    all += std::ssize(tokens);
    tokens.resize(tokens.size() - tokens.size() % static_cast<std::size_t>(block));
    stream.append(tokens);
    tokens.clear();
    lines = 0;
  };
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t end = std::min(text.find('\n', at), text.size());
    const auto line = encoding.encode(text.substr(at, end - at));
    tokens.insert(tokens.end(), line.begin(), line.end());
    at = end + 1;
    if (++lines < group) continue;
    cut();
    read(static_cast<Index>(std::min(at, text.size())));
  }
  cut();
  return all;
}

/// Encodes the documents of a part of the text.
inline Part make_part(const infty::BytePairEncoding& encoding, const TextSettings& s, Index segment,
                      const std::vector<std::string_view>& documents) {
  Part part;
  Index bytes = 0;
  for (const std::string_view text : documents) bytes += std::ssize(text);
  support::ProgressLine line("tokens", bytes, 0, "byte");
  const auto read = [&](Index of_text) { line.update(part.bytes + of_text); };
  for (const std::string_view text : documents) {
    if (s.exact)
      part.tokens += add_blocks(encoding, text, segment, part.stream, read);
    else
      for (const std::string_view document : s.articles ? articles_of(text) : std::vector{text})
        part.stream.append(support::encode_parts(
            document, [&](std::string_view piece) { return encoding.encode(piece); },
            [&](Index done) { read(document.data() - text.data() + done); }));
    part.bytes += std::ssize(text);
    part.characters += infty::count_characters(text);
    infty::for_each_token(text, infty::TextUnit::word, [&](std::string_view) { ++part.words; });
    line.update(part.bytes);
  }
  if (!s.exact) part.tokens = std::ssize(part.stream.tokens) - std::ssize(part.stream.documents);
  infty::require(!part.stream.tokens.empty(), "gpt2",
                 "the text is too short: a part of it has no token",
                 s.exact ? ", or no whole block" : "");
  return part;
}

/// The documents of files and folders.
inline std::vector<std::string_view> open_documents(const std::vector<std::string>& paths,
                                                    Texts& texts) {
  std::vector<std::string_view> all;
  for (const std::string& path : paths) {
    const auto some = language_model::detail::open_documents(path, texts);
    all.insert(all.end(), some.begin(), some.end());
  }
  return all;
}

/// A text that is ready to be trained and evaluated on.
struct Corpus {
  TokenId start = 0;  ///< what the first token of a document is predicted from
  Part train, valid, test;
  std::uint64_t fingerprint = 0;  ///< of all its tokens
};

/// Throws infty::IoError, infty::ValueError for a text that is missing, empty, or too short.
inline Corpus load_corpus(const infty::BytePairEncoding& encoding, const TextSettings& s,
                          Index segment) {
  Texts texts;
  const auto all = open_documents(s.data, texts);
  if (s.valid.empty()) {
    language_model::detail::share_out(texts, all);
  } else {
    texts.train = all;
    texts.valid = open_documents(s.valid, texts);
    texts.test = open_documents(s.test, texts);
  }
  Corpus corpus{.start = support::gpt2::start_of(encoding), .train = {}, .valid = {}, .test = {}};
  support::Fingerprint fingerprint;
  for (const auto& [part, documents] :
       {std::pair(&corpus.train, &texts.train), std::pair(&corpus.valid, &texts.valid),
        std::pair(&corpus.test, &texts.test)}) {
    *part = make_part(encoding, s, segment, *documents);
    fingerprint.add(part->stream.tokens.size());
    for (const TokenId id : part->stream.tokens) fingerprint.add(static_cast<std::uint64_t>(id));
    for (const Index first : part->stream.documents)
      fingerprint.add(static_cast<std::uint64_t>(first));
  }
  corpus.fingerprint = fingerprint.bits();
  return corpus;
}

inline void describe(const char* name, const Part& part) {
  std::fprintf(stderr, "%-5s %10td tokens, %td words, %td characters, %td bytes, %td documents\n",
               name, std::ssize(part.stream.tokens), part.words, part.characters, part.bytes,
               std::ssize(part.stream.documents));
}

/// The blocks of `add_blocks` one behind the other, ever again: a block is read whole, and its
/// first token is predicted from nothing. No row is ever begun anew but for the first time.
class Blocks {
 public:
  Blocks(const infty::TokenStream& stream, Index block) : stream_(&stream), block_(block) {}

  infty::TextBatch next() {
    infty::TextBatch out{.batch = 1, .length = block_, .inputs = {}, .targets = {}, .reset = {}};
    out.epoch = at_.epoch;
    Index& next = at_.next.front();
    const auto begin = stream_->tokens.begin() + next;
    out.inputs.assign(begin, begin + block_);
    out.targets.assign(begin + 1, begin + block_);
    out.targets.push_back(infty::ignore_index);
    out.predicted = block_ - 1;
    if (next == 0 && at_.epoch == 0) out.reset = {0};
    next += block_;
    out.last = next == std::ssize(stream_->tokens);
    if (out.last) at_ = {.epoch = at_.epoch + 1, .next = {0}};
    return out;
  }
  Index batches_per_epoch() const { return std::ssize(stream_->tokens) / block_; }
  const infty::BatchPosition& position() const { return at_; }

  /// Throws infty::ValueError for a place that is none.
  void seek(infty::BatchPosition position) {
    infty::require(position.epoch >= 0 && position.next.size() == 1 && position.next[0] >= 0 &&
                       position.next[0] < std::ssize(stream_->tokens) &&
                       position.next[0] % block_ == 0,
                   "gpt2", "the position is no block of the text");
    at_ = std::move(position);
  }

 private:
  const infty::TokenStream* stream_;
  Index block_;
  infty::BatchPosition at_{.epoch = 0, .next = {0}};
};

/// What a part of the text is read by, segment by segment.
class Batches {
 public:
  /// @param batch  rows, as many as there are tokens at most
  Batches(const Part& part, const TextSettings& s, Index batch, Index segment, TokenId start)
      : how_(make(part, s, batch, segment, start)) {}

  infty::TextBatch next() {
    return std::visit([](auto& how) { return how.next(); }, how_);
  }
  Index batches_per_epoch() const {
    return std::visit([](const auto& how) { return how.batches_per_epoch(); }, how_);
  }
  const infty::BatchPosition& position() const {
    return std::visit([](const auto& how) -> const auto& { return how.position(); }, how_);
  }
  void seek(const infty::BatchPosition& position) {
    std::visit([&](auto& how) { how.seek(position); }, how_);
  }

 private:
  using How = std::variant<infty::BatchStream, Blocks>;

  static How make(const Part& part, const TextSettings& s, Index batch, Index segment,
                  TokenId start) {
    if (s.exact) return Blocks(part.stream, segment);
    return infty::BatchStream(part.stream,
                              {.batch = std::min(batch, std::ssize(part.stream.tokens)),
                               .segment = segment,
                               .start = start,
                               .reset_documents = s.documents});
  }

  How how_;
};

}  // namespace gpt2
