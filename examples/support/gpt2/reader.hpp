// SPDX-License-Identifier: MIT
#pragma once

#include <algorithm>
#include <utility>
#include <vector>

#include <nlohmann/json.hpp>

#include "../json.hpp"
#include "model.hpp"

namespace support::gpt2 {

/// One row that a text is read to piece by piece, such as token by token: it cuts where a segment
/// of the memory, or the model's window, ends. What comes out is what the model makes of whole
/// segments.
class Reader {
 public:
  /// @param model  best opened with `OpenOptions::pieces`; otherwise every token costs its segment
  explicit Reader(const Model& model) : model_(&model), state_(model.make_state(1)) {}

  /// Reads tokens, one at least; the scores of what comes behind the last, (vocabulary).
  /// @param types  of the tokens, as many, or none
  /// @param done   called as done(read) behind each piece; may throw
  template <class Done>
  std::vector<float> read(const Model::Tokens& tokens, const Model::Tokens& types, Done&& done) {
    const Index all = std::ssize(tokens), longest = this->longest();
    std::vector<float> scores;
    for (Index begin = 0; begin < all;) {
      if (used_ == longest) next_segment();
      const Index end = std::min(all, begin + longest - used_);
      const auto piece = [&](const Model::Tokens& of) {
        return of.empty() ? of : Model::Tokens(of.begin() + begin, of.begin() + end);
      };
      scores = read_piece(piece(tokens), piece(types), end == all);
      used_ += end - begin;
      begin = end;
      done(end);
    }
    return scores;
  }
  std::vector<float> read(const Model::Tokens& tokens, const Model::Tokens& types = {}) {
    return read(tokens, types, [](Index) {});
  }

  /// Bytes that are remembered.
  std::size_t bytes() const { return model_->bytes_of(state_); }
  /// What is remembered; of a model that reads no pieces, without the segment that has begun.
  const Model::State& state() const { return state_; }
  /// Tokens that the segment has room for; where the next one begins another, those of that.
  Index room() const { return longest() - (used_ == longest() ? kept() : used_); }

  /// Adds what is remembered to a checkpoint. Throws infty::IoError.
  void save(infty::SafetensorsWriter& writer) const {
    model_->save_state(writer, state_);
    writer.metadata("reader",
                    nlohmann::json{{"used", used_}, {"tokens", tokens_}, {"types", types_}}.dump());
  }
  /// What another one of the same model has saved: all of it or nothing, by loader.apply(). Throws
  /// infty::IoError for a damaged one.
  void load(infty::CheckpointLoader& loader) {
    const std::string where = loader.file().path().string() + ": reader";
    const auto json = parse_json(loader.file().metadata("reader"), where);
    Index used = 0;
    Model::Tokens tokens, types;
    const auto take = [&](const char* name, auto& to) {
      infty::require<infty::IoError>(json.is_object() && json.contains(name), "reader", where,
                                     " has no ", name);
      support::read(json.at(name), to, where + ": " + name);
    };
    take("used", used);
    take("tokens", tokens);
    take("types", types);
    const auto held = model_->reads_pieces() ? Index{0} : used;
    infty::require<infty::IoError>(used >= 0 && used <= longest() && std::ssize(tokens) == held &&
                                       (types.empty() || std::ssize(types) == held),
                                   "reader", where, " says ", used, " tokens, and has ",
                                   tokens.size(), " and ", types.size(), " types");
    for (const auto* all : {&tokens, &types})
      for (const Index token : *all)
        infty::require<infty::IoError>(token >= 0 && token < model_->config().vocabulary, "reader",
                                       where, " has the token ", token);
    model_->load_state(loader, state_);
    used_ = used;
    tokens_ = std::move(tokens);
    types_ = std::move(types);
  }

 private:
  bool remembers() const { return model_->memory().memory != "none"; }
  /// Tokens of a segment, or of the model's window.
  Index longest() const { return remembers() ? model_->memory().segment : model_->config().places; }
  /// Tokens that it begins with behind a full one: a window keeps its last.
  Index kept() const {
    return !remembers() && model_->reads_pieces() ? model_->config().resolved_kept() : 0;
  }

  void next_segment() {
    used_ = kept();
    if (model_->reads_pieces()) return;  // the model has made room for the next one
    model_->observe(state_, 1, tokens_, types_);
    tokens_.clear();
    types_.clear();
  }

  std::vector<float> read_piece(const Model::Tokens& tokens, const Model::Tokens& types,
                                bool answer) {
    if (model_->reads_pieces()) {
      if (answer) return model_->logits(state_, 1, tokens, types);
      model_->observe(state_, 1, tokens, types);
      return {};
    }
    tokens_.insert(tokens_.end(), tokens.begin(), tokens.end());
    types_.insert(types_.end(), types.begin(), types.end());
    if (!answer) return {};
    Model::State copy = state_;  // that which the segment is read behind does not know of it
    return model_->logits(copy, 1, tokens_, types_);
  }

  const Model* model_;
  Model::State state_;
  Index used_ = 0;                // tokens of the segment or the window that were read
  Model::Tokens tokens_, types_;  // these, for a model that reads no pieces
};

}  // namespace support::gpt2
