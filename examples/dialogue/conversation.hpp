// SPDX-License-Identifier: MIT
#pragma once

#include <algorithm>
#include <cstdint>
#include <filesystem>
#include <string>
#include <utility>
#include <vector>

#include <infty/io/safetensors.hpp>
#include <infty/train/checkpoint.hpp>

#include "../support/gpt2/reader.hpp"
#include "../support/json.hpp"
#include "folder.hpp"
#include "looked.hpp"
#include "scoring.hpp"

namespace dialogue {

/// What of a conversation is a text, in a file of it.
struct Transcript {
  std::string model;   ///< what tells it from others
  Index document = 0;  ///< tokens of the document, with its marks
  std::vector<std::string> turns;
  std::vector<TokenId> tokens;  ///< all that was read
  Writes writes;
};

template <class See>
void each_field(Transcript& t, See&& see) {
  see("model", t.model);
  see("document", t.document);
  see("turns", t.turns);
  see("tokens", t.tokens);
  see("writes", t.writes);
}

/// A conversation with a model that has read a document. It is a value: a copy goes on by itself.
/// What is remembered has one size, however long it gets, where the model has a memory.
class Conversation {
 public:
  /// Reads the document. @param trained  must live as long as this
  /// @param done  called as done(tokens) behind each piece; may throw
  template <class Done>
  Conversation(const Trained& trained, std::string_view document, std::uint64_t seed, Done&& done)
      : trained_(&trained), reader_(*trained.model), before_(reader_), random_(seed, 6) {
    transcript_.model = trained.print;
    const Encoded encoded{
        .document = tokenizer().encode(trimmed(document)), .turns = {}, .texts = {}};
    const auto sequence = sequence_of(encoded, 0, seen_by(trained.settings), tokenizer().marks());
    transcript_.document = std::ssize(sequence.tokens);
    const auto numbers = [](const Tokens& all) {
      return std::vector<Index>(all.begin(), all.end());
    };
    if (!sequence.tokens.empty()) read(numbers(sequence.tokens), numbers(sequence.types), done);
  }

  /// Turns that were said, the person's first.
  const std::vector<std::string>& turns() const { return transcript_.turns; }
  /// Tokens of the document, with its marks, and of all that was read.
  Index document_tokens() const { return transcript_.document; }
  Index tokens() const { return std::ssize(transcript_.tokens); }
  std::size_t bytes() const { return reader_.bytes(); }

  /// Reads what the person says.
  void hear(std::string_view text) {
    const auto turn = tokenizer().encode_turn(trimmed(text));
    const Index mark = next_mark();
    std::vector<Index> tokens{mark};
    tokens.insert(tokens.end(), turn.begin(), turn.end());
    read(tokens, std::vector<Index>(tokens.size(), mark));
    transcript_.turns.emplace_back(trimmed(text));
  }

  /// Draws what the model says, and reads it. `say(text)` is called with each part of it.
  template <class Say>
  std::string answer(const infty::Sampling& sampling, Index longest, Say&& say) {
    const Index mark = next_mark();
    before_ = reader_;
    before_writes_ = transcript_.writes;
    before_tokens_ = tokens();
    const auto next = [&](Index token) {
      if (token != mark) say(tokenizer().decode({static_cast<TokenId>(token)}));
      return read({token}, {mark});
    };
    const Tokens drawn = draw_answer(next(mark), tokenizer(), longest, sampling, random_, next);
    std::vector<Index> rest;
    if (!drawn.empty() && tokens() == before_tokens_ + std::ssize(drawn)) {
      rest.push_back(drawn.back());
      say(tokenizer().decode({drawn.back()}));
    }
    rest.push_back(tokenizer().marks().end);
    read(rest, std::vector<Index>(rest.size(), mark));
    return transcript_.turns.emplace_back(trimmed(tokenizer().decode(drawn)));
  }

  /// Where each block that has a long-term memory looked while the last answer was made: at which
  /// of the tokens that it has taken in. Empty before an answer, and without such a memory.
  std::vector<Looked> looked() const {
    std::vector<Looked> all;
    if (before_tokens_ == 0 || !looks()) return all;
    auto reader = before_;
    Writes writes = before_writes_;
    const auto& memory = trained_->model->memory();
    for (Index begin = before_tokens_; begin < tokens();) {
      const Index end = std::min(tokens(), begin + reader.room());
      const std::vector<Index> some(transcript_.tokens.begin() + begin,
                                    transcript_.tokens.begin() + end);
      const std::vector<Index> types(some.size(),
                                     transcript_.tokens[static_cast<std::size_t>(before_tokens_)]);
      auto state = reader.state();
      const auto views = trained_->model->look(state, some, types);
      const Index begun = begin - (memory.segment - reader.room());
      note_writes(writes, views, is_sticky(), begun);
      all.resize(views.size());
      for (std::size_t i = 0; i < views.size(); ++i)
        all[i].add(views[i], cells_of(writes[i], memory.long_term.tau, memory.long_term.bins),
                   writes[i].first);
      reader.read(some, types);
      begin = end;
    }
    return all;
  }

  /// The text of tokens that were read.
  std::string text(Index begin, Index end) const {
    return tokenizer().decode(
        Tokens(transcript_.tokens.begin() + begin, transcript_.tokens.begin() + end));
  }

  /// Writes a file of all of it. Throws infty::IoError.
  void save(const std::filesystem::path& path) const {
    infty::SafetensorsWriter writer;
    reader_.save(writer);
    infty::save_random(writer, random_, "random");
    writer.metadata("transcript",
                    support::json_of(transcript_)
                        .dump(-1, ' ', false, nlohmann::json::error_handler_t::replace));
    writer.save(path);
  }

  /// Goes on with what was saved by a conversation with this model. All of it is taken, or nothing.
  /// Throws infty::IoError for a damaged file, or one of another model's.
  void load(const std::filesystem::path& path) {
    infty::CheckpointLoader loader(path);
    const std::string where = path.string() + ": transcript";
    auto transcript = support::parse<Transcript>(loader.file().metadata("transcript"), where);
    infty::require<infty::IoError>(transcript.model == transcript_.model, "load", path.string(),
                                   " is a conversation with another model");
    const auto all = std::ssize(transcript.tokens);
    infty::require<infty::IoError>(transcript.document >= 0 && transcript.document <= all, "load",
                                   where, " has a document of ", transcript.document,
                                   " tokens, of ", all);
    for (const TokenId token : transcript.tokens)
      infty::require<infty::IoError>(token >= 0 && token < tokenizer().size(), "load", where,
                                     " has the token ", token);
    for (const Written& block : transcript.writes) {
      infty::require<infty::IoError>(block.first >= 0 && block.first <= all, "load", where,
                                     " has writes from token ", block.first, " on, of ", all);
      Index written = block.first;
      for (const Write& write : block.writes) {
        infty::require<infty::IoError>(write.count >= 0 && write.count <= all - written, "load",
                                       where, " has writes of more tokens than were read");
        written += write.count;
      }
    }
    Conversation next = *this;
    loader.random(next.random_, "random");
    next.reader_.load(loader);
    loader.apply();
    next.transcript_ = std::move(transcript);
    next.before_tokens_ = 0;
    *this = std::move(next);
  }

 private:
  const Tokenizer& tokenizer() const { return trained_->tokenizer; }
  bool is_sticky() const { return trained_->model->memory().memory == "sticky"; }
  bool looks() const {
    return support::gpt2::is_long_term(trained_->model->memory()) &&
           trained_->model->reads_pieces();
  }
  Index next_mark() const {
    const auto& marks = tokenizer().marks();
    return transcript_.turns.size() % 2 == 0 ? marks.first : marks.second;
  }

  /// Reads on; the scores behind the last token. Where a segment begins, notes what is written.
  template <class Done>
  std::vector<float> read(const std::vector<Index>& tokens, const std::vector<Index>& types,
                          Done&& done) {
    std::vector<float> scores;
    const Index all = std::ssize(tokens), tokens_before = this->tokens();
    for (Index begin = 0; begin < all;) {
      const Index room = reader_.room(), end = std::min(all, begin + room);
      const std::vector<Index> some(tokens.begin() + begin, tokens.begin() + end);
      const std::vector<Index> own(types.begin() + begin, types.begin() + end);
      if (looks() && room == trained_->model->memory().segment) {
        auto state = reader_.state();
        note_writes(transcript_.writes, trained_->model->look(state, some, own), is_sticky(),
                    tokens_before + begin);
      }
      scores = reader_.read(some, own);
      done(end - begin);
      begin = end;
    }
    for (const Index token : tokens) transcript_.tokens.push_back(static_cast<TokenId>(token));
    return scores;
  }
  std::vector<float> read(const std::vector<Index>& tokens, const std::vector<Index>& types) {
    return read(tokens, types, [](Index) {});
  }

  const Trained* trained_;
  support::gpt2::Reader reader_, before_;  // before_: in front of the last answer
  infty::Random random_;
  Transcript transcript_;
  Writes before_writes_;
  Index before_tokens_ = 0;  // that were read in front of the last answer; 0: there is none
};

}  // namespace dialogue
