// SPDX-License-Identifier: MIT
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <iterator>
#include <span>
#include <utility>
#include <vector>

#include <infty/core/error.hpp>
#include <infty/core/random.hpp>

namespace infty {

/// Which words of a text are to be guessed, and what stands in their place [Devlin et al. 2019,
/// §3.1].
struct MaskingConfig {
  double share = .15;  ///< of the words of a text that are chosen, in (0, 1]
  double masked = .8;  ///< of those chosen: the mask stands in their place
  double random = .1;  ///< of those chosen: any word stands there; the others stay as they are

  /// Checks all constants. @throws infty::ValueError that names the first out of its range
  void validate() const {
    const char* const op = "MaskingConfig";
    require(share > 0 && share <= 1, op, "share is ", share, ": it must lie in (0, 1]");
    for (const auto& [name, value] : {std::pair{"masked", masked}, std::pair{"random", random}})
      require(value >= 0 && value <= 1, op, name, " is ", value, ": it must lie in [0, 1]");
    require(masked + random <= 1, op, "masked and random are ", masked, " and ", random,
            ": together they must be at most 1");
  }
};

/// Names every setting of a `MaskingConfig`.
template <class See>
void describe(MaskingConfig& c, See&& see) {
  see("share", c.share, "of the words of a text that are to be guessed");
  see("masked", c.masked, "share of these in whose place the mask stands");
  see("random", c.random, "share of these in whose place any word stands");
}

/// A text some of whose words are to be guessed.
struct MaskedText {
  std::vector<Index> tokens;   ///< with masks and other words in some places
  std::vector<Index> places;   ///< of those to be guessed, ascending
  std::vector<Index> targets;  ///< what stood there
};

/// Chooses words of a text to be guessed: ⌊share n + ½⌋ of its n words, one at least, evenly
/// without replacement. A text without words has none.
/// @param text   tokens; those in [first, mask) are words, others are never chosen
/// @param first  the first token that is a word, and comes in the place of another
/// @param mask   the token that says that a word is missing, behind the last that is a word
/// @throws infty::ValueError for a bad configuration, or unless 0 <= first < mask
inline MaskedText mask_text(std::span<const Index> text, Index first, Index mask,
                            const MaskingConfig& config, Random& random) {
  config.validate();
  require(0 <= first && first < mask, "mask_text", "words are the tokens [", first, ", ", mask,
          "): there must be one");
  MaskedText out{.tokens = {text.begin(), text.end()}, .places = {}, .targets = {}};
  std::vector<Index> words;
  for (Index i = 0; i < std::ssize(text); ++i) {
    const Index token = text[static_cast<std::size_t>(i)];
    if (token >= first && token < mask) words.push_back(i);
  }
  if (words.empty()) return out;
  const auto n = std::ssize(words);
  const auto rounded = static_cast<Index>(std::floor(config.share * static_cast<double>(n) + .5));
  const Index chosen = std::clamp<Index>(rounded, 1, n);
  for (Index i = 0; i < chosen; ++i)
    std::swap(words[static_cast<std::size_t>(i)],
              words[static_cast<std::size_t>(i + random.below(n - i))]);
  words.resize(static_cast<std::size_t>(chosen));
  std::sort(words.begin(), words.end());
  for (const Index place : words) {
    Index& token = out.tokens[static_cast<std::size_t>(place)];
    out.places.push_back(place);
    out.targets.push_back(token);
    const double kind = random.uniform();
    if (kind < config.masked)
      token = mask;
    else if (kind < config.masked + config.random)
      token = first + random.below(mask - first);
  }
  return out;
}

}  // namespace infty
