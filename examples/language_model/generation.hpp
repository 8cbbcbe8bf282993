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

namespace language_model {

/// What is to be generated.
struct GenerateOptions {
  std::string prompt;
  Index tokens = 200, interval = 0;
  infty::Sampling sampling;
  std::uint64_t seed = 1;
};

/// Reads a token and draws the next one, number `number`.
inline Index next_token(const support::Model& model, support::Model::State& state, Index last,
                        const infty::Sampling& sampling, infty::Random& random, Index number) {
  try {
    const auto scores = model.logits(state, 1, {last});
    return infty::sample(std::span<const float>(scores), sampling, random);
  } catch (const infty::NonFiniteError& error) {
    infty::raise<infty::NonFiniteError>("generate", "token ", number, ": ", error.what());
  }
}

/// Writes text to standard output as it comes, token by token, and on standard error how fast. The
/// memory has a fixed size, so a token costs the same however many there were before it.
inline void generate(const support::Model& model, const Tokenizer& tokenizer, Index segment,
                     const GenerateOptions& options) {
  std::vector<Index> read{tokenizer.start()};
  for (const TokenId id : tokenizer.encode(options.prompt)) read.push_back(id);
  // A line's end that nobody wrote.
  if (!options.prompt.empty() && !options.prompt.ends_with('\n') && read.size() > 1 &&
      tokenizer.decode(std::vector<TokenId>{static_cast<TokenId>(read.back())}).ends_with(" \n"))
    read.pop_back();
  auto state = model.make_state(1);
  const support::InterruptGuard interrupt;
  const Index before = std::ssize(read) - 1;
  {
    support::ProgressLine line("prompt", before, 0, "token");
    for (Index first = 0; first < before; first += segment) {
      const Index end = std::min(before, first + segment);
      model.observe(state, 1, std::vector<Index>(read.begin() + first, read.begin() + end),
                    segment);
      line.update(end);
      support::stop_if_interrupted([] { return std::string("stopped reading the prompt"); });
    }
  }
  Index last = read.back();
  infty::Random random(options.seed);
  support::write_tokens(
      {.tokens = options.tokens, .interval = options.interval}, options.prompt,
      [&](Index number) {
        last = next_token(model, state, last, options.sampling, random, number);
        const auto id = static_cast<TokenId>(last);
        return tokenizer.decode(std::span(&id, 1));
      },
      [&] { return model.bytes_of(state); });
}

}  // namespace language_model
