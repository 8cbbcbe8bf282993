// SPDX-License-Identifier: MIT
#pragma once

#include <algorithm>
#include <cstddef>
#include <filesystem>
#include <functional>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "evaluate.hpp"

namespace language_model {

/// Where tokens stand in a text of several documents: the file of each, the byte, and what is
/// around it.
class TextPlaces {
 public:
  struct Place {
    std::string file;
    Index offset = 0;
    std::string before, after;  ///< the text itself, also where tokens are unknown words
  };

  /// @param documents  views of what `texts` holds; all must outlive this
  TextPlaces(const Tokenizer& tokenizer, const Texts& texts,
             std::vector<std::string_view> documents)
      : tokenizer_(&tokenizer), texts_(&texts), documents_(std::move(documents)) {}

  /// The place of a token, the i-th of a document, with so many tokens in front and behind.
  Place find(std::size_t document, Index i, Index around) {
    const std::string_view text = documents_[document];
    auto at = offsets_.find(document);
    if (at == offsets_.end()) at = offsets_.emplace(document, tokenizer_->offsets(text)).first;
    const auto begin_of = [&offsets = at->second, &text](Index token) {
      return token < std::ssize(offsets) ? offsets[static_cast<std::size_t>(token)]
                                         : std::ssize(text);
    };
    const auto part = [&](Index first, Index last) {
      const Index begin = begin_of(first);
      return std::string(text.substr(static_cast<std::size_t>(begin),
                                     static_cast<std::size_t>(begin_of(last) - begin)));
    };
    Place place = file_of(text);
    place.offset += begin_of(i);
    place.before = part(std::max<Index>(0, i - around), i);
    place.after = part(i + 1, i + 1 + around);
    return place;
  }

 private:
  /// The file of a document, and where it begins in it.
  Place file_of(std::string_view text) const {
    for (auto [file, name] = std::pair(texts_->files.begin(), texts_->names.begin());
         file != texts_->files.end(); ++file, ++name)
      if (const Index begin = distance(file->text(), text); begin >= 0)
        return {name->string(), begin, {}, {}};
    Index number = 1;
    for (auto made = texts_->made.begin(); made != texts_->made.end(); ++made, ++number)
      if (const Index begin = distance(*made, text); begin >= 0)
        return {"tale " + std::to_string(number) + " of the program's own", begin, {}, {}};
    return {};
  }

  /// Where a part begins in a whole; -1 if it is none of it.
  static Index distance(std::string_view whole, std::string_view part) {
    const bool inside = std::less_equal<>()(whole.data(), part.data()) &&
                        std::less_equal<>()(part.data() + part.size(), whole.data() + whole.size());
    return inside ? part.data() - whole.data() : -1;
  }

  const Tokenizer* tokenizer_;
  const Texts* texts_;
  std::vector<std::string_view> documents_;
  std::map<std::size_t, std::vector<Index>> offsets_;  ///< of the documents that were asked for
};

/// The text that a datastore was made of, read again: its manifest says which that is and how it
/// was cut, so that nothing of it is kept beside the keys.
class StoreSource {
 public:
  using Place = TextPlaces::Place;

  /// A neighbour as a reader sees it.
  struct Context {
    std::string token;
    Place place;
  };

  /// @throws infty::IoError unless the text is where it was, and as it was
  StoreSource(const StoreOrigin& origin, const Tokenizer& tokenizer,
              const std::filesystem::path& folder)
      : tokenizer_(&tokenizer) {
    const bool of_training =
        origin.text == "train" || origin.text == "valid" || origin.text == "test";
    infty::require<infty::IoError>(
        (of_training && open(origin,
                             [&](Texts& texts) {
                               texts = open_texts(settings_of(std::filesystem::path(origin.model)));
                               return origin.text == "train"   ? texts.train
                                      : origin.text == "valid" ? texts.valid
                                                               : texts.test;
                             })) ||
            (std::filesystem::exists(origin.text) &&
             open(origin,
                  [&](Texts& texts) { return detail::open_documents(origin.text, texts); })),
        "language_model", folder.string(), " was made of ", origin.text, ", by the model in ",
        origin.model, ": that text is not there any more, or is another");
    infty::BatchStream batches(stream_, {.batch = std::min(origin.batch, tokens()),
                                         .segment = origin.segment,
                                         .start = tokenizer.start(),
                                         .reset_documents = origin.documents});
    for (bool last = false; !last;) {
      const TextBatch batch = batches.next();
      last = batch.last;
      for (Index place = 0; place < std::ssize(batch.targets); ++place)
        if (batch.targets[static_cast<std::size_t>(place)] >= 0)
          entries_.push_back(batch.first[static_cast<std::size_t>(place / batch.length)] +
                             place % batch.length);
    }
  }

  /// The token behind the key of an entry, what stands around it, and where.
  /// @throws infty::IoError if the text has no such entry
  Context context(Index entry, Index words) {
    infty::require<infty::IoError>(entry >= 0 && entry < std::ssize(entries_), "language_model",
                                   "the datastore has entry ", entry, ", its text ",
                                   entries_.size(), " of them: it is damaged");
    const Index at = entries_[static_cast<std::size_t>(entry)];
    const auto next = std::upper_bound(stream_.documents.begin(), stream_.documents.end(), at);
    const auto document = numbers_[static_cast<std::size_t>(next - 1 - stream_.documents.begin())];
    const TokenId token = stream_.tokens[static_cast<std::size_t>(at)];
    return {tokenizer_->decode(std::span(&token, 1)),
            places_->find(document, at - *(next - 1), words)};
  }

 private:
  Index tokens() const { return std::ssize(stream_.tokens); }

  /// Opens a text and says whether it is the one that the datastore was made of.
  template <class Documents>
  bool open(const StoreOrigin& origin, Documents&& open_documents) {
    texts_ = {};
    stream_ = {};
    numbers_.clear();
    const std::vector<std::string_view> documents = open_documents(texts_);
    for (std::size_t i = 0; i < documents.size(); ++i) {
      const auto ids = tokenizer_->encode(documents[i]);
      stream_.append(ids);
      if (!ids.empty()) numbers_.push_back(i);
    }
    places_.emplace(*tokenizer_, texts_, documents);
    return fingerprint_of(stream_) == origin.stream;
  }

  const Tokenizer* tokenizer_;
  Texts texts_;
  infty::TokenStream stream_;
  std::vector<std::size_t> numbers_;  ///< of the documents that have tokens
  std::vector<Index> entries_;        ///< the token of each entry
  std::optional<TextPlaces> places_;
};

}  // namespace language_model
