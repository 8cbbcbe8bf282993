// SPDX-License-Identifier: MIT
#pragma once

#include <algorithm>
#include <array>
#include <charconv>
#include <cstddef>
#include <filesystem>
#include <functional>
#include <map>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <system_error>
#include <utility>
#include <vector>

#include <infty/core/error.hpp>
#include <infty/core/utf8.hpp>
#include <infty/data/lower_case.hpp>
#include <infty/io/mapped_file.hpp>

namespace infty {

/// The synonyms of words, from a folder of WordNet's database files (3.0; Debian's `wordnet-base`
/// has them in /usr/share/wordnet): index.*, data.* and *.exc of nouns, verbs, adjectives and
/// adverbs.
class WordNet {
 public:
  /// Opens the files and reads the indices.
  /// @throws infty::IoError that names the file that is missing or is none of WordNet's, and where
  explicit WordNet(const std::filesystem::path& folder) {
    const std::array<std::pair<const char*, std::span<const Ending>>, 4> parts{
        {{"noun", nouns}, {"verb", verbs}, {"adj", adjectives}, {"adv", {}}}};
    for (const auto& [name, endings] : parts) {
      Part part{.data_path = folder / (std::string("data.") + name),
                .data = MappedFile(folder / (std::string("data.") + name)),
                .endings = endings};
      read_index(folder / (std::string("index.") + name), part);
      read_exceptions(folder / (std::string(name) + ".exc"), part);
      parts_.push_back(std::move(part));
    }
  }

  /// Returns the words of all sets of synonyms that a word stands in, in its base forms as nltk's
  /// reader finds them, as they are written there; those of several words are left out.
  /// @throws infty::IoError that names the file in which a set is not where the index has it
  std::set<std::string> synonyms(std::string_view word) const {
    const std::string lower = lower_case(word);
    std::set<std::string> found;
    for (const Part& part : parts_)
      for (const std::string& form : base_forms(part, lower))
        for (const std::size_t offset : part.index.find(form)->second)
          add_synset(part, offset, found);
    return found;
  }

 private:
  using Ending = std::pair<std::string_view, std::string_view>;
  static constexpr Ending nouns[] = {{"s", ""},      {"ses", "s"},   {"ves", "f"},
                                     {"xes", "x"},   {"zes", "z"},   {"ches", "ch"},
                                     {"shes", "sh"}, {"men", "man"}, {"ies", "y"}};
  static constexpr Ending verbs[] = {{"s", ""},   {"ies", "y"}, {"es", "e"},  {"es", ""},
                                     {"ed", "e"}, {"ed", ""},   {"ing", "e"}, {"ing", ""}};
  static constexpr Ending adjectives[] = {{"er", ""}, {"est", ""}, {"er", "e"}, {"est", "e"}};

  /// A part of speech.
  struct Part {
    std::filesystem::path data_path;
    MappedFile data;
    std::span<const Ending> endings;
    std::map<std::string, std::vector<std::size_t>, std::less<>> index = {};  // offsets in data
    std::map<std::string, std::vector<std::string>, std::less<>> exceptions = {};
  };

  /// The words of a line, parted by single blanks.
  class Words {
   public:
    Words(std::string_view line, const std::filesystem::path& path) : rest_(line), path_(path) {}
    std::string_view next() {
      if (rest_.empty()) fail("a line ends too soon");
      const std::size_t end = (std::min)(rest_.find(' '), rest_.size());
      const std::string_view word = rest_.substr(0, end);
      rest_.remove_prefix((std::min)(end + 1, rest_.size()));
      return word;
    }
    std::size_t number(int base = 10) {
      const std::string_view word = next();
      std::size_t value = 0;
      const auto [end, error] =
          std::from_chars(word.data(), word.data() + word.size(), value, base);
      if (error != std::errc{} || end != word.data() + word.size())
        fail(detail::printable(word) + " stands where a number must");
      return value;
    }
    bool empty() const { return rest_.empty(); }
    [[noreturn]] void fail(const std::string& why) const {
      raise<IoError>("WordNet", path_.string(), ": ", why);
    }

   private:
    std::string_view rest_;
    const std::filesystem::path& path_;
  };

  template <class See>
  static void each_line(const std::filesystem::path& path, See&& see) {
    const MappedFile file(path);
    for (std::string_view rest = file.text(); !rest.empty();) {
      const std::size_t end = (std::min)(rest.find('\n'), rest.size());
      std::string_view line = rest.substr(0, end);
      rest.remove_prefix((std::min)(end + 1, rest.size()));
      while (line.ends_with(' ')) line.remove_suffix(1);
      if (line.empty() || line.front() == ' ') continue;  // the licence
      see(Words(line, path));
    }
  }

  // lemma pos synsets pointers [pointer...] senses tagged offset...
  static void read_index(const std::filesystem::path& path, Part& part) {
    each_line(path, [&](Words words) {
      const std::string lemma(words.next());
      words.next();
      const std::size_t synsets = words.number();
      for (std::size_t pointers = words.number(); pointers > 0; --pointers) words.next();
      words.next(), words.next();
      std::vector<std::size_t>& offsets = part.index[lemma];
      for (std::size_t i = 0; i < synsets; ++i) {
        offsets.push_back(words.number());
        if (offsets.back() >= part.data.text().size())
          words.fail(detail::printable(lemma) + " is at byte " + std::to_string(offsets.back()) +
                     ", behind the end of " + part.data_path.string());
      }
    });
  }

  static void read_exceptions(const std::filesystem::path& path, Part& part) {
    each_line(path, [&](Words words) {
      std::vector<std::string>& bases = part.exceptions[std::string(words.next())];
      bases.clear();  // as in nltk, where a form comes twice the last line holds
      while (!words.empty()) bases.emplace_back(words.next());
    });
  }

  // nltk's `_morphy`: of the irregular forms, else of the word and what its endings leave, else of
  // what theirs leave, those that the index has.
  static std::set<std::string> base_forms(const Part& part, const std::string& word) {
    std::set<std::string> found;
    const auto add = [&](const std::vector<std::string>& forms) {
      for (const std::string& form : forms)
        if (part.index.contains(form)) found.insert(form);
    };
    add({word});
    if (const auto irregular = part.exceptions.find(word); irregular != part.exceptions.end()) {
      add(irregular->second);
      return found;
    }
    for (std::vector<std::string> forms = shorter(part, {word}); !forms.empty();
         forms = shorter(part, forms)) {
      add(forms);
      if (!found.empty()) break;
    }
    return found;
  }

  // What is left of words without their endings.
  static std::vector<std::string> shorter(const Part& part, const std::vector<std::string>& words) {
    std::set<std::string> found;
    for (const std::string& word : words)
      for (const auto& [from, to] : part.endings)
        if (word.ends_with(from))
          found.insert(word.substr(0, word.size() - from.size()) + std::string(to));
    return {found.begin(), found.end()};
  }

  // offset file type words(hexadecimal) [word number]...
  static void add_synset(const Part& part, std::size_t offset, std::set<std::string>& found) {
    const std::string_view all = part.data.text(), text = all.substr(offset);
    Words words(text.substr(0, (std::min)(text.find('\n'), text.size())), part.data_path);
    if ((offset > 0 && all[offset - 1] != '\n') || words.number() != offset)
      words.fail("there is no set of synonyms at byte " + std::to_string(offset));
    words.next();
    words.next();
    for (std::size_t left = words.number(16); left > 0; --left) {
      std::string_view word = words.next();
      word = word.substr(0, word.find('('));  // where in a sentence an adjective stands
      if (word.find('_') == word.npos) found.emplace(word);
      words.next();
    }
  }

  std::vector<Part> parts_;
};

}  // namespace infty
