// SPDX-License-Identifier: MIT
#pragma once

#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <infty/core/error.hpp>
#include <infty/io/json.hpp>
#include <infty/io/settings.hpp>

/// What a `tokenizer.json` says of a byte-level byte pair encoding.
namespace infty::detail {

/// Its lists, in the file's order.
struct TokenizerJson {
  std::vector<std::pair<std::string, std::uint64_t>> tokens;  ///< in symbols of bytes
  std::vector<std::pair<std::string, std::uint64_t>> added;   ///< as they stand in a text
  std::vector<std::pair<std::string, std::string>> merges;    ///< in symbols of bytes
};

/// The two symbols of a merge that a space separates; nothing if it is no such line.
inline std::optional<std::pair<std::string_view, std::string_view>> split_merge(
    std::string_view line) {
  const std::size_t space = line.find(' ');
  if (space == line.npos || line.find(' ', space + 1) != line.npos) return std::nullopt;
  return std::pair(line.substr(0, space), line.substr(space + 1));
}

/// A member that must be missing, null, or one of two values.
struct TokenizerRule {
  std::string_view name, value, other;
};

/// Refuses members of a JSON object that say otherwise than GPT-2. @param what  begins the message
inline void require_tokenizer(const JsonReader& json, std::string_view what,
                              std::string_view object, std::initializer_list<TokenizerRule> rules) {
  for (const auto& [name, text] : json_members(object, what))
    for (const TokenizerRule& rule : rules)
      if (name == rule.name && text != "null" && text != rule.value && text != rule.other)
        json.fail(what, '.', name, " is ", printable(text), ": only ", rule.value,
                  " is implemented");
}

/// The merges of a model: texts with a space in between, or pairs.
inline void read_tokenizer_merges(JsonReader& json, TokenizerJson& out) {
  json.array([&] {
    if (json.peek() == JsonReader::Kind::string) {
      const std::string line = json.string();
      const auto pair = split_merge(line);
      if (!pair) json.fail(printable(line), " is not two symbols with a space between them");
      out.merges.emplace_back(pair->first, pair->second);
      return;
    }
    std::vector<std::string> two;
    json.array([&] {
      if (two.size() == 2) json.fail("a merge of more than two symbols");
      two.push_back(json.string());
    });
    if (two.size() != 2) json.fail("a merge of less than two symbols");
    out.merges.emplace_back(std::move(two[0]), std::move(two[1]));
  });
}

/// Reads the lists, and refuses what would cut a text otherwise than GPT-2 does.
/// @throws infty::IoError that names `where` and what is wrong
inline TokenizerJson read_tokenizer_json(std::string_view text, std::string_view where) {
  TokenizerJson out;
  JsonReader json(text, where);
  bool model = false, cut = false;
  json.object([&](const std::string& key) {
    if (key == "model") {
      if (std::exchange(model, true)) json.fail("model is repeated");
      json.object([&](const std::string& member) {
        if (member == "vocab") {
          json.object([&](std::string symbols) {
            const std::uint64_t id = json.integer();
            out.tokens.emplace_back(std::move(symbols), id);
          });
        } else if (member == "merges") {
          read_tokenizer_merges(json, out);
        } else {
          const std::string one = '{' + to_json(member) + ':' + std::string(json.raw()) + '}';
          require_tokenizer(json, "model", one,
                            {{"type", "\"BPE\"", ""},
                             {"dropout", "0.0", "0"},
                             {"continuing_subword_prefix", "\"\"", ""},
                             {"end_of_word_suffix", "\"\"", ""},
                             {"byte_fallback", "false", ""},
                             {"ignore_merges", "false", ""}});
        }
      });
    } else if (key == "added_tokens") {
      json.array([&] {
        std::optional<std::uint64_t> id;
        std::optional<std::string> content;
        json.object([&](const std::string& member) {
          if (member == "id")
            id = json.integer();
          else if (member == "content")
            content = json.string();
          else
            json.raw();
        });
        if (!id || !content) json.fail("an added token lacks its id or content");
        out.added.emplace_back(*content, *id);
      });
    } else if (key == "pre_tokenizer") {
      const std::string_view rules = json.raw();
      if (!rules.starts_with('{')) json.fail("pre_tokenizer is ", printable(rules));
      require_tokenizer(json, "pre_tokenizer", rules,
                        {{"type", "\"ByteLevel\"", ""},
                         {"add_prefix_space", "false", ""},
                         {"use_regex", "true", ""}});
      for (const auto& [name, value] : json_members(rules, "pre_tokenizer"))
        cut = cut || (name == "type" && value != "null");
    } else {
      const std::string_view value = json.raw();
      if (key == "normalizer" && value != "null")
        json.fail("normalizer is ", printable(value.substr(0, 40)), ": only null is implemented");
    }
  });
  json.finish();
  if (!model) json.fail("there is no model");
  if (!cut) json.fail("there is no pre_tokenizer of a type: only \"ByteLevel\" is implemented");
  return out;
}

}  // namespace infty::detail
