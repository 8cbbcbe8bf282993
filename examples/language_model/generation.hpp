// SPDX-License-Identifier: MIT
#pragma once

#include <algorithm>
#include <iterator>
#include <span>
#include <string>
#include <vector>

#include <infty/nn/sampling.hpp>

#include "../support/interrupt.hpp"
#include "../support/language_model/model.hpp"
#include "../support/progress_line.hpp"
#include "../support/writing.hpp"
#include "look_up.hpp"

namespace language_model {

/// What is to be generated.
struct GenerateOptions {
  std::string prompt;
  Index tokens = 200, interval = 0;
  infty::Sampling sampling;
  std::uint64_t seed = 1;
};

/// What reads the text that is being written, token by token, and looks up what it is told to.
class Writer {
 public:
  Writer(const Settings& s, support::Model& model, const Tokenizer& tokenizer,
         const LookUpOptions& look_up)
      : neighbours_(s.spalm_neighbours),
        tokenizer_(&tokenizer),
        model_(model),
        state_(model.make_state(1)) {
    if (looks_up(look_up)) look_up_.emplace(look_up, tokenizer, model);
    if (!s.spalm.empty())
      spalm_.emplace(s.spalm, infty::SearchMetric::squared_l2, IndexOptions{.kind = s.spalm_index},
                     tokenizer, nullptr);
  }

  const support::Model::State& state() const { return state_; }

  /// Reads tokens of the text in front, and what comes behind each.
  void read(const std::vector<Index>& tokens, const std::vector<Index>& behind, Index segment) {
    if (!look_up_ && !spalm_) return model_.observe(state_, 1, tokens, segment);
    TextBatch batch = next(tokens, behind);
    if (look_up_)
      look_up_->losses(model_, state_, batch);
    else
      model_.read(state_, batch, {});
  }

  /// Reads a token and draws the next one, number `number`.
  Index draw(Index last, const infty::Sampling& sampling, infty::Random& random, Index number) {
    try {
      auto scores = scores_behind(last);
      tokenizer_->keep_known(scores);
      const Index drawn = infty::sample(std::span<const float>(scores), sampling, random);
      if (look_up_) look_up_->remember_last(drawn);
      return drawn;
    } catch (const infty::NonFiniteError& error) {
      infty::raise<infty::NonFiniteError>("generate", "token ", number, ": ", error.what());
    }
  }

 private:
  std::vector<float> scores_behind(Index last) {
    if (!look_up_ && !spalm_) return model_.logits(state_, 1, {last});
    const TextBatch batch = next({last}, {infty::ignore_index});
    if (look_up_) return look_up_->scores(model_, state_, batch);
    return model_.read(state_, batch, {.scores = true}).scores.to_vector();
  }

  /// One row that goes on, with what SPALM attends to.
  TextBatch next(const std::vector<Index>& tokens, const std::vector<Index>& behind) {
    TextBatch batch{.batch = 1, .length = std::ssize(tokens), .inputs = tokens, .targets = behind};
    if (first_) batch.reset = {0};
    first_ = false;
    if (!spalm_) return batch;
    const auto found = spalm_->find(spalm_->queries(batch, {}), neighbours_);
    batch.retrieved = spalm_->store().tokens(found.indices).to_vector();
    return batch;
  }

  Index neighbours_;
  const Tokenizer* tokenizer_;
  support::Model& model_;
  support::Model::State state_;
  std::optional<LookUp> look_up_;
  std::optional<Retriever> spalm_;
  bool first_ = true;
};

/// Writes text to standard output as it comes, token by token, and on standard error how fast. The
/// memory has a fixed size, so a token costs the same however many there were before it.
inline void generate(const Settings& s, support::Model& model, const Tokenizer& tokenizer,
                     const LookUpOptions& look_up, const GenerateOptions& options) {
  std::vector<Index> read{tokenizer.start()};
  for (const TokenId id : tokenizer.encode(options.prompt)) read.push_back(id);
  // A line's end that nobody wrote.
  if (!options.prompt.empty() && !options.prompt.ends_with('\n') && read.size() > 1 &&
      tokenizer.decode(std::vector<TokenId>{static_cast<TokenId>(read.back())}).ends_with(" \n"))
    read.pop_back();
  Writer writer(s, model, tokenizer, look_up);
  const support::InterruptGuard interrupt;
  const Index before = std::ssize(read) - 1;
  {
    support::ProgressLine line("prompt", before, 0, "token");
    for (Index first = 0; first < before; first += s.segment) {
      const Index end = std::min(before, first + s.segment);
      writer.read(std::vector<Index>(read.begin() + first, read.begin() + end),
                  std::vector<Index>(read.begin() + first + 1, read.begin() + end + 1), s.segment);
      line.update(end);
      support::stop_if_interrupted([] { return std::string("stopped reading the prompt"); });
    }
  }
  Index last = read.back();
  infty::Random random(options.seed);
  support::write_tokens(
      {.tokens = options.tokens, .interval = options.interval}, options.prompt,
      [&](Index number) {
        last = writer.draw(last, options.sampling, random, number);
        const auto id = static_cast<TokenId>(last);
        return tokenizer.decode(std::span(&id, 1));
      },
      [&] { return model.bytes_of(writer.state()); });
}

}  // namespace language_model
