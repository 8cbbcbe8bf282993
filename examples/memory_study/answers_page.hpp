// SPDX-License-Identifier: MIT
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdio>
#include <string>
#include <vector>

#include "dialogue_study.hpp"

namespace memory_study {

namespace detail {

inline constexpr std::array<const char*, 8> answer_colours{"234,88,12",  "37,99,235", "22,163,74",
                                                           "147,51,234", "202,138,4", "219,39,119",
                                                           "8,145,178",  "101,67,33"};

inline const char* colour_of(std::size_t answer) {
  return answer_colours[answer % answer_colours.size()];
}

/// An input shaded by a share in [0, 1] of a colour.
inline std::string shaded(const std::string& text, const char* colour, double share,
                          const std::string& title) {
  char style[96];
  std::snprintf(style, sizeof style, "<span style=\"background:rgba(%s,%.2f)\"", colour, share);
  return style + (title.empty() ? "" : " title=\"" + title + '"') + '>' + text + "</span>";
}

/// The whole dialogue, each input as `put(input, text)` has it; turns begin lines.
template <class Put>
std::string dialogue_html(const DialoguePassage& from, const TokenTexts& texts, const Put& put) {
  std::string out;
  Index turn = -1;
  for (std::size_t i = 0; i < from.passage.inputs.size(); ++i) {
    if (from.turn[i] != turn) {
      turn = from.turn[i];
      out += "<br><i>" + std::to_string(turn + 1) + "</i> ";
    }
    out += put(i, html_escaped(texts.of(from.passage.inputs[i])));
  }
  return out;
}

}  // namespace detail

/// A page of a dialogue and its document [Martins et al. 2022, Fig. 4 and 12]: each turn that was
/// said with something in the long-term memory has a colour, in which the excerpts are marked that
/// it was attended to most; to choose one shades all by the attention while it was said.
/// @param words  of an excerpt
inline std::string answers_page(const DialoguePassage& from, const std::vector<Answer>& answers,
                                const TokenTexts& texts, Index words) {
  const std::size_t length = from.passage.inputs.size();
  std::string out =
      "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n<meta "
      "name=\"viewport\" content=\"width=device-width\">\n<title>Where the model looked while it "
      "was said</title>\n<style>\nbody { font: 16px/1.7 Georgia, serif; color: #1c1917; max-width: "
      "50em; margin: 2em auto; padding: 0 1em }\nh1 { font-size: 1.4em }\np.note { font: 14px/1.5 "
      "sans-serif; color: #57534e }\nlabel { font: 14px/1.9 sans-serif; padding: .25em .7em; "
      "border-radius: .4em; cursor: pointer; margin-right: .3em; white-space: nowrap }\n"
      "input { position: absolute; opacity: 0 }\ninput:checked + label { outline: 2px solid "
      "#1c1917 }\n.view { display: none }\n.view span { padding: .12em 0; border-radius: .2em }\n"
      "i { color: #78716c; font: 13px sans-serif }\n";
  for (std::size_t i = 0; i <= answers.size(); ++i)
    out += "#v" + std::to_string(i) + ":checked ~ #t" + std::to_string(i) + " { display: block }\n";
  out +=
      "</style>\n</head>\n<body>\n<h1>Where the model looked while it was said</h1>\n<p "
      "class=\"note\">The document, then the turns by their numbers. In the colour of a turn "
      "are the " +
      std::to_string(words) + ' ' + texts.name +
      "s that stand together and got most attention while it was said, at three places; the "
      "turn itself is underlined in it. Choose a turn for all that was looked at then. Shares "
      "are means over its " +
      texts.name + "s, heads and layers.</p>\n";
  for (std::size_t i = 0; i <= answers.size(); ++i) {
    const std::string id = std::to_string(i);
    out += "<input type=\"radio\" name=\"view\" id=\"v" + id + '"' + (i == 0 ? " checked" : "") +
           "><label for=\"v" + id + "\" style=\"background:rgba(" +
           (i == 0 ? "120,113,108" : detail::colour_of(i - 1)) + ",.25)\">" +
           (i == 0 ? "all turns" : "turn " + std::to_string(answers[i - 1].turn + 1)) +
           "</label>\n";
  }
  // Which answer an input is an excerpt of, or part of, counted from 1.
  std::vector<std::size_t> excerpt(length), own(length);
  for (std::size_t k = answers.size(); k-- > 0;) {
    for (const Index first : answers[k].excerpts)
      for (Index i = first; i < first + words; ++i) excerpt[static_cast<std::size_t>(i)] = k + 1;
    for (std::size_t i = 0; i < length; ++i)
      if (from.turn[i] == answers[k].turn) own[i] = k + 1;
  }
  const auto underlined = [&](std::size_t i, const std::string& text) {
    if (own[i] == 0) return text;
    return "<span style=\"border-bottom:2px solid rgb(" +
           std::string(detail::colour_of(own[i] - 1)) + ")\">" + text + "</span>";
  };
  const auto add_view = [&](std::size_t view, const auto& put) {
    out += "<p class=\"view\" id=\"t" + std::to_string(view) + "\">\n" +
           detail::dialogue_html(from, texts, put) + "\n</p>\n";
  };
  add_view(0, [&](std::size_t i, const std::string& text) {
    if (excerpt[i] == 0) return underlined(i, text);
    return detail::shaded(underlined(i, text), detail::colour_of(excerpt[i] - 1), .45, "");
  });
  for (std::size_t k = 0; k < answers.size(); ++k) {
    const auto& attention = answers[k].attention;
    const double most = std::max(1e-12, *std::max_element(attention.begin(), attention.end()));
    add_view(k + 1, [&](std::size_t i, const std::string& text) {
      if (own[i] == k + 1) return underlined(i, text);
      if (attention[i] == 0) return text;
      char share[32];
      std::snprintf(share, sizeof share, "%.3f %%", 100 * attention[i]);
      return detail::shaded(text, detail::colour_of(k), attention[i] / most * .85, share);
    });
  }
  return out + "</body>\n</html>\n";
}

}  // namespace memory_study
