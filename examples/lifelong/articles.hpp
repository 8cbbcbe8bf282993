// SPDX-License-Identifier: MIT
#pragma once

#include <algorithm>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <infty/data/lower_case.hpp>

#include "passages.hpp"

namespace lifelong {

/// Whether the words of a line are a heading as WikiText has it, `= Title =` of an article and
/// `= = Section = =` of its parts.
inline bool is_heading(const Words& line) {
  return line.size() >= 3 && line.front() == "=" && line.back() == "=";
}

/// Whether a heading is that of an article.
inline bool is_title(const Words& heading) {
  return heading[1] != "=" && heading[heading.size() - 2] != "=";
}

/// Reads the articles of a text as WikiText has them, each as its words without headings. What
/// stands in front of the first title is left out.
inline std::vector<Words> read_articles(std::string_view text) {
  std::vector<Words> articles;
  while (!text.empty()) {
    const std::size_t end = std::min(text.find('\n'), text.size());
    Words line;
    add_words(text.substr(0, end), line);
    text.remove_prefix(std::min(end + 1, text.size()));
    if (!is_heading(line)) {
      if (!articles.empty())
        articles.back().insert(articles.back().end(), line.begin(), line.end());
    } else if (is_title(line)) {
      articles.emplace_back();
    }
  }
  return articles;
}

/// Returns which kind an article is of: the one whose word stands in its first sentence, in lower
/// case, where no other kind's does; or -1.
inline Index kind_of(const Words& article, const std::vector<std::string>& kinds) {
  Index found = -1;
  const auto sentence = std::find(article.begin(), article.end(), ".");
  for (std::size_t k = 0; k < kinds.size(); ++k) {
    const bool there = std::any_of(article.begin(), sentence, [&](std::string_view word) {
      return infty::lower_case(word) == kinds[k];
    });
    if (there && found >= 0) return -1;
    if (there) found = static_cast<Index>(k);
  }
  return found;
}

/// The articles of each kind (`kind_of`), in the order of the text; those of none are left out.
inline std::vector<std::vector<Words>> articles_by_kind(std::string_view text,
                                                        const std::vector<std::string>& kinds) {
  std::vector<std::vector<Words>> out(kinds.size());
  for (Words& article : read_articles(text))
    if (const Index kind = kind_of(article, kinds); kind >= 0)
      out[static_cast<std::size_t>(kind)].push_back(std::move(article));
  return out;
}

}  // namespace lifelong
