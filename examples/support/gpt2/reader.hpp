// SPDX-License-Identifier: MIT
#pragma once

#include <algorithm>
#include <utility>
#include <vector>

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
    const Index all = std::ssize(tokens), longest = longest_segment();
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

 private:
  Index longest_segment() const {
    if (model_->memory().memory != "none") return model_->memory().segment;
    // What fits into a window that keeps its last tokens.
    const infty::Gpt2Config& config = model_->config();
    return model_->reads_pieces() ? config.places - config.resolved_kept() : config.places;
  }

  void next_segment() {
    used_ = 0;
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
  Index used_ = 0;                // tokens of the segment that were read
  Model::Tokens tokens_, types_;  // these, for a model that reads no pieces
};

}  // namespace support::gpt2
