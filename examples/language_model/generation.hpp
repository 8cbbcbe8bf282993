// SPDX-License-Identifier: MIT
#pragma once

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <numeric>
#include <span>
#include <string>
#include <vector>

#include "model.hpp"

namespace language_model {

/// How tokens are drawn from a model's probabilities.
struct Sampling {
  double temperature = 1;  ///< 0 takes the likeliest
  Index top_k = 0;         ///< only so many likeliest tokens; 0: all
  double top_p = 1;        ///< only the likeliest tokens that have this share together
};

/// What is to be generated.
struct GenerateOptions {
  std::string prompt;
  Index tokens = 200, interval = 0;
  Sampling sampling;
  std::uint64_t seed = 1;
};

/// Draws a token by its score: of the `top_k` likeliest, of these the likeliest that have the share
/// `top_p` together, with probabilities of the scores divided by the temperature. A temperature of
/// 0 takes the likeliest. At least one token is left.
inline TokenId draw(std::span<const float> logits, const Sampling& sampling,
                    infty::Random& random) {
  std::vector<TokenId> order(logits.size());
  std::iota(order.begin(), order.end(), TokenId{0});
  const auto score = [&](TokenId id) { return logits[static_cast<std::size_t>(id)]; };
  const auto likelier = [&](TokenId a, TokenId b) {
    return score(a) != score(b) ? score(a) > score(b) : a < b;
  };
  if (sampling.temperature == 0) return *std::min_element(order.begin(), order.end(), likelier);
  auto left = order.end();
  if (sampling.top_k > 0 && sampling.top_k < std::ssize(order)) {
    left = order.begin() + sampling.top_k;
    std::nth_element(order.begin(), left, order.end(), likelier);
  }
  order.erase(left, order.end());
  if (sampling.top_p < 1) std::sort(order.begin(), order.end(), likelier);
  const double top =
      static_cast<double>(score(*std::min_element(order.begin(), order.end(), likelier)));
  std::vector<double> weights;
  double sum = 0;
  for (const TokenId id : order)
    sum += weights.emplace_back(
        std::exp((static_cast<double>(score(id)) - top) / sampling.temperature));
  if (sampling.top_p < 1) {
    double share = 0;
    std::size_t count = 0;
    while (count < weights.size() && (count == 0 || share < sampling.top_p * sum))
      share += weights[count++];
    weights.resize(count);
  }
  return order[static_cast<std::size_t>(random.categorical(weights))];
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
  if (read.size() > 1)
    model.observe(state, 1, std::vector<Index>(read.begin(), read.end() - 1), segment);
  Index last = read.back();
  infty::Random random(options.seed);
  const Index interval = options.interval > 0 ? options.interval : options.tokens;
  std::fputs(options.prompt.c_str(), stdout);
  auto since = std::chrono::steady_clock::now();
  for (Index done = 1; done <= options.tokens; ++done) {
    const auto scores =
        support::at_step("token", done, [&] { return model.logits(state, 1, {last}); });
    const TokenId id = draw(scores, options.sampling, random);
    last = id;
    const std::string text = tokenizer.decode(std::span(&id, 1));
    std::fwrite(text.data(), 1, text.size(), stdout);
    std::fflush(stdout);
    infty::require<infty::IoError>(std::ferror(stdout) == 0, "generate",
                                   "standard output cannot be written");
    if (done % interval == 0 || done == options.tokens) {
      const std::chrono::duration<double> time = std::chrono::steady_clock::now() - since;
      const Index behind = done % interval == 0 ? interval : done % interval;
      std::fprintf(stderr, "\n%lld tokens: %.0f tokens/s, %zu bytes of memory\n",
                   static_cast<long long>(done), static_cast<double>(behind) / time.count(),
                   model.bytes_of(state));
      since = std::chrono::steady_clock::now();
    }
  }
  std::fputc('\n', stdout);
}

}  // namespace language_model
