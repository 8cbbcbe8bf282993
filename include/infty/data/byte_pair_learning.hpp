// SPDX-License-Identifier: MIT
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <queue>
#include <string>
#include <string_view>
#include <unordered_map>
#include <unordered_set>
#include <utility>
#include <vector>

#include <infty/core/error.hpp>
#include <infty/core/utf8.hpp>
#include <infty/data/gpt2_text.hpp>
#include <infty/data/vocabulary.hpp>
#include <infty/io/file.hpp>
#include <infty/io/json.hpp>

namespace infty {

/// A byte pair encoding's tokens and merges, as they were learned.
struct BytePairs {
  std::vector<std::string> tokens;                          ///< their bytes, by their numbers
  std::vector<std::pair<std::string, std::string>> merges;  ///< of two tokens' bytes, first to last
  std::vector<std::string>
      names;  ///< of tokens that stand for no bytes, numbered behind the others

  /// Writes `vocab.json` and `merges.txt`, which `BytePairEncoding` and Hugging Face's programs
  /// read. Both are written before the first takes an old one's place.
  /// @throws infty::IoError if a file cannot be written
  void save(const std::filesystem::path& folder) const {
    std::string vocabulary = "{";
    auto add = [&, number = 0](std::string_view written) mutable {
      vocabulary += number == 0 ? "" : ", ";
      vocabulary += detail::to_json(written) + ": " + std::to_string(number++);
    };
    for (const std::string& token : tokens) add(detail::symbols_of_bytes(token));
    for (const std::string& name : names) add(name);
    std::string pairs = "#version: 0.2\n";
    for (const auto& [one, other] : merges)
      pairs += detail::symbols_of_bytes(one) + ' ' + detail::symbols_of_bytes(other) + '\n';
    vocabulary += "}\n";
    detail::ReplacingFile vocabulary_file(folder / "vocab.json"), pairs_file(folder / "merges.txt");
    vocabulary_file.write(vocabulary.data(), vocabulary.size());
    pairs_file.write(pairs.data(), pairs.size());
    vocabulary_file.commit();
    pairs_file.commit();
  }
};

/// What is learned of a text.
struct BytePairConfig {
  Index tokens = 4096;  ///< at most, names and all 256 bytes among them
  Index least = 2;      ///< times that a pair must stand in the text to be merged, at least
  std::vector<std::string> names = {"<|endoftext|>"};  ///< of tokens that stand for no bytes

  /// Checks the constants.
  /// @throws infty::ValueError that names the first constant out of its range
  void validate() const {
    for (std::size_t i = 0; i < names.size(); ++i) {
      require(!names[i].empty(), "BytePairConfig", "names has an empty one");
      require(detail::utf8_prefix(names[i]) == names[i].size(), "BytePairConfig", "the name ",
              detail::printable(names[i]), " is no UTF-8");
      const auto bytes = detail::bytes_of_symbols(names[i]);
      require(bytes && bytes->size() > 1, "BytePairConfig", "the name ",
              detail::printable(names[i]),
              " cannot be written: it must be of two or more characters that stand for bytes in "
              "vocab.json, no space among them");
      for (std::size_t j = 0; j < i; ++j)
        require(names[i] != names[j], "BytePairConfig", "names has ", names[i], " twice");
    }
    require_at_least("BytePairConfig", "tokens", tokens, 256 + std::ssize(names));
    require_at_least("BytePairConfig", "least", least, 1);
  }
};

/// Learns a byte pair encoding [Sennrich et al. 2016, algorithm 1] over bytes [Radford et al.
/// 2019]: the pair of neighbours that stands most often in the pieces of a text becomes a token,
/// again and again. Of pairs that stand as often, the one of smaller numbers, as Hugging Face's
/// `tokenizers` has it, whose merges these are. A pair that files would write as they write a name
/// is passed over.
class BytePairLearner {
 public:
  /// Counts a text's pieces. Pieces end where texts do.
  void add(std::string_view text) {
    while (!text.empty()) {
      const std::string_view piece = text.substr(0, detail::gpt2_piece(text));
      ++counts_[std::string(piece)];
      text.remove_prefix(piece.size());
    }
  }

  /// Learns of all that was added. Calls merged(tokens) behind each merge, with how many there are.
  /// The result does not depend on the order of texts. The time is that of the pieces, each as
  /// often as a merge changes it: a piece of a million letters makes it long.
  /// @throws infty::ValueError as BytePairConfig::validate()
  template <class Merged>
  BytePairs learn(const BytePairConfig& config, Merged&& merged) const {
    config.validate();
    return Learning(counts_, config).run(merged);
  }
  /// The same, silently.
  BytePairs learn(const BytePairConfig& config = {}) const {
    return learn(config, [](Index) {});
  }

 private:
  using Counts = std::unordered_map<std::string, std::int64_t>;
  using Pair = std::pair<TokenId, TokenId>;

  /// A piece as its tokens.
  struct Word {
    std::vector<TokenId> parts;
    std::int64_t times;
  };

  class Learning {
   public:
    Learning(const Counts& counts, const BytePairConfig& config) : config_(config) {
      out_.names = config.names;
      for (const std::string& name : config.names) named_.insert(*detail::bytes_of_symbols(name));
      // Bytes are numbered by the symbols that files write them by.
      const auto symbol = detail::gpt2_byte_symbols();
      std::vector<std::size_t> order(symbol.size());
      for (std::size_t byte = 0; byte < order.size(); ++byte) order[byte] = byte;
      std::sort(order.begin(), order.end(),
                [&](std::size_t a, std::size_t b) { return symbol[a] < symbol[b]; });
      std::vector<TokenId> number(symbol.size());
      for (const std::size_t byte : order) {
        number[byte] = static_cast<TokenId>(out_.tokens.size());
        add_token(std::string(1, static_cast<char>(byte)));
      }
      for (const auto& [piece, times] : counts) {
        Word word{.parts = {}, .times = times};
        for (const char byte : piece)
          word.parts.push_back(number[static_cast<unsigned char>(byte)]);
        words_.push_back(std::move(word));
        count(words_.size() - 1, 1);
      }
      for (const auto& [pair, state] : pairs_) queue_.push({state.times, numbers_of(pair)});
    }

    template <class Merged>
    BytePairs run(Merged&& merged) {
      const Index most = config_.tokens - std::ssize(config_.names);
      while (std::ssize(out_.tokens) < most && !queue_.empty()) {
        const Candidate first = queue_.top();
        queue_.pop();
        const std::int64_t times = pairs_.at(key(first.pair)).times;
        if (times != first.times) {  // it was counted long ago
          if (times > 0) queue_.push({times, first.pair});
          continue;
        }
        if (times < config_.least) break;
        if (named_.contains(token(first.pair.first) + token(first.pair.second))) continue;
        merge(first.pair);
        merged(std::ssize(out_.tokens));
      }
      return std::move(out_);
    }

   private:
    struct State {
      std::int64_t times = 0;                 // in all pieces
      std::unordered_set<std::size_t> words;  // in which it stands, or stood
    };
    struct Candidate {
      std::int64_t times;
      Pair pair;
      bool operator<(const Candidate& other) const {
        return times != other.times ? times < other.times : pair > other.pair;
      }
    };

    static std::uint64_t key(const Pair& pair) {
      return static_cast<std::uint64_t>(pair.first) << 32U |
             static_cast<std::uint64_t>(pair.second);
    }
    static Pair numbers_of(std::uint64_t pair) {
      return {static_cast<TokenId>(pair >> 32U), static_cast<TokenId>(pair & 0xFFFFFFFFU)};
    }

    TokenId add_token(std::string bytes) {
      const auto [at, is_new] =
          numbers_.emplace(std::move(bytes), static_cast<TokenId>(out_.tokens.size()));
      if (is_new) out_.tokens.push_back(at->first);
      return at->second;
    }

    const std::string& token(TokenId id) const { return out_.tokens[static_cast<std::size_t>(id)]; }

    // Adds a word's pairs, or takes them away by a sign of -1.
    void count(std::size_t word, std::int64_t sign) {
      const auto& [parts, times] = words_[word];
      for (std::size_t i = 1; i < parts.size(); ++i) {
        State& state = pairs_[key({parts[i - 1], parts[i]})];
        state.times += sign * times;
        if (sign > 0) state.words.insert(word);
      }
    }

    void merge(const Pair& pair) {
      out_.merges.emplace_back(token(pair.first), token(pair.second));
      const TokenId made = add_token(token(pair.first) + token(pair.second));
      const std::unordered_set<std::size_t> words = std::move(pairs_.at(key(pair)).words);
      std::unordered_set<std::uint64_t> changed;
      for (const std::size_t at : words) {
        std::vector<TokenId>& parts = words_[at].parts;
        count(at, -1);
        std::size_t kept = 0;
        for (std::size_t i = 0; i < parts.size(); ++kept) {
          const bool both =
              i + 1 < parts.size() && parts[i] == pair.first && parts[i + 1] == pair.second;
          parts[kept] = both ? made : parts[i];
          i += both ? 2 : 1;
        }
        parts.resize(kept);
        count(at, 1);
        for (std::size_t i = 1; i < kept; ++i)
          if (parts[i - 1] == made || parts[i] == made)
            changed.insert(key({parts[i - 1], parts[i]}));
      }
      pairs_[key(pair)].times = 0;
      for (const std::uint64_t one : changed) queue_.push({pairs_.at(one).times, numbers_of(one)});
    }

    const BytePairConfig& config_;
    BytePairs out_;
    std::unordered_set<std::string> named_;  // bytes that a name is written as
    std::vector<Word> words_;
    std::unordered_map<std::string, TokenId> numbers_;
    std::unordered_map<std::uint64_t, State> pairs_;
    std::priority_queue<Candidate> queue_;
  };

  Counts counts_;
};

}  // namespace infty
