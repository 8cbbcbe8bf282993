// SPDX-License-Identifier: MIT
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <limits>
#include <span>
#include <string>
#include <vector>

#include "../support/html.hpp"
#include "reading.hpp"

namespace memory_study {

using support::html_escaped;

/// The first prediction that was made with something in the long-term memory, which must be there.
inline Index first_remembered(const Reading& reading) {
  auto segment = reading.segments.begin();
  while (segment->cells.front().size() == 0) ++segment;
  return segment->first;
}

/// The prediction whose probability the long-term memory raises most, where there is something in
/// it.
inline Index best_remembered(const Reading& reading) {
  Index best = first_remembered(reading);
  float most = -std::numeric_limits<float>::infinity();
  for (const SegmentRead& segment : reading.segments) {
    if (segment.cells.front().size() == 0) continue;
    for (std::size_t i = 0; i < segment.losses.size(); ++i) {
      const float gain = std::exp(-segment.losses[i]) - std::exp(-segment.losses_without[i]);
      if (gain > most) {
        best = segment.first + static_cast<Index>(i);
        most = gain;
      }
    }
  }
  return best;
}

/// A page with the text that was read when a word was predicted: what the long-term memory held is
/// shaded by the attention to it, of each layer and of all of them.
/// @param input  one behind which it was predicted, with something in the long-term memory
inline std::string attention_page(const Reading& reading, const TokenTexts& texts, Index input) {
  const SegmentRead& segment = reading.segment_of(input);
  const Index query = input - segment.first, written = segment.cells.front().size();
  const Index held = segment.held();
  const bool spaced = texts.spaced;
  const auto at = static_cast<std::size_t>(input);
  const std::string word = html_escaped(squeezed(texts.of(reading.passage.targets[at])));
  std::vector<std::vector<double>> views{std::vector<double>(static_cast<std::size_t>(written))};
  for (std::size_t layer = 0; layer < segment.layers.size(); ++layer) {
    views.push_back(word_attention(segment, layer, query));
    for (std::size_t i = 0; i < views.front().size(); ++i)
      views.front()[i] += views.back()[i] / static_cast<double>(segment.layers.size());
  }
  const auto probability = [query](const std::vector<float>& losses) {
    return std::exp(-static_cast<double>(losses[static_cast<std::size_t>(query)]));
  };
  char numbers[160];
  std::snprintf(numbers, sizeof numbers,
                "with probability %.3f; without the long-term memory it would have been %.3f",
                probability(segment.losses), probability(segment.losses_without));
  std::string out =
      "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n<meta "
      "name=\"viewport\" content=\"width=device-width\">\n<title>Attention while predicting " +
      word +
      "</title>\n<style>\nbody { font: 16px/1.75 Georgia, serif; color: #1c1917; max-width: 46em; "
      "margin: 2em auto; padding: 0 1em }\nh1 { font-size: 1.4em }\np.note { font: 14px/1.5 "
      "sans-serif; color: #57534e }\nlabel { font: 14px sans-serif; padding: .3em .8em; "
      "border-radius: .4em; cursor: pointer; background: #f5f5f4; margin-right: .3em }\n"
      "input { position: absolute; opacity: 0 }\ninput:checked + label { background: #c2410c; "
      "color: white }\ninput:focus-visible + label { outline: 2px solid #1d4ed8 }\n"
      ".view { display: none }\n.view span { padding: .12em .05em; border-radius: .2em }\n"
      ".view b { text-decoration: underline; text-decoration: underline 2px #1d4ed8; font-weight: "
      "normal }\n"
      ".recent { color: #a8a29e }\n.word { border: 2px solid #1d4ed8; border-radius: .3em; "
      "padding: 0 .25em; color: #1d4ed8; font-weight: bold }\n";
  for (std::size_t i = 0; i < views.size(); ++i)
    out += "#v" + std::to_string(i) + ":checked ~ #t" + std::to_string(i) + " { display: block }\n";
  out += "</style>\n</head>\n<body>\n<h1>Where the model looked to predict “" + word +
         "”</h1>\n<p class=\"note\">The " + std::to_string(written) + ' ' + texts.name +
         "s in the long-term memory are shaded by their share of its attention, the mean over "
         "heads; the darkest has the most in each view. What is grey the model has in its "
         "short-term memory and the segment" +
         (held > 0 ? ", or has forgotten" : "") + ". It predicted the boxed " + texts.name + ' ' +
         numbers + ". The same " + texts.name + " elsewhere is underlined. Point at a " +
         texts.name + " for its share.</p>\n";
  for (std::size_t i = 0; i < views.size(); ++i) {
    const std::string id = std::to_string(i);
    out += "<input type=\"radio\" name=\"view\" id=\"v" + id + '"' + (i == 0 ? " checked" : "") +
           "><label for=\"v" + id + "\">" +
           (i == 0 ? "all layers" : "layer " + std::to_string(reading.blocks[i - 1] + 1)) +
           "</label>\n";
  }
  const std::string gap = spaced ? " " : "";
  for (std::size_t i = 0; i < views.size(); ++i) {
    const double most = std::max(1e-12, *std::max_element(views[i].begin(), views[i].end()));
    out += "<p class=\"view\" id=\"t" + std::to_string(i) + "\">\n";
    for (Index j = 0; j <= input; ++j) {
      const auto place = static_cast<std::size_t>(j);
      const std::string token = texts.of(reading.passage.inputs[place]);
      const bool ends_line = token.find('\n') != std::string::npos;
      if (j == 0 && ends_line) continue;  // what the first word is predicted from
      std::string text = html_escaped(spaced && !ends_line ? squeezed(token) : token);
      if (reading.passage.inputs[place] == reading.passage.targets[at])
        text = "<b>" + text + "</b>";
      if (j > 0 && j == held) out += "</span>";
      if (j >= held && j < held + written) {
        char style[96];
        std::snprintf(style, sizeof style,
                      "<span style=\"background:rgba(234,88,12,%.2f)\" title=\"%.2f %%\">",
                      views[i][static_cast<std::size_t>(j - held)] / most * .85,
                      100 * views[i][static_cast<std::size_t>(j - held)]);
        out += style + text + "</span>" + gap;
      } else {
        if ((j == 0 && held > 0) || j == held + written) out += "<span class=\"recent\">";
        out += text + gap;
      }
    }
    out += "</span><span class=\"word\">" + word + "</span>\n</p>\n";
  }
  return out + "</body>\n</html>\n";
}

}  // namespace memory_study
