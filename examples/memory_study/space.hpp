// SPDX-License-Identifier: MIT
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <sstream>
#include <string>
#include <vector>

#include "attention.hpp"

namespace memory_study {

/// Some words that stand together, and the share of a layer's memory that they have.
struct Phrase {
  Index first = 0;
  double plain = 0, sticky = 0;  ///< without and with sticky memories
  std::string text;
};

/// All phrases of so many words of a document, as a layer's memory has them at the end.
inline std::vector<Phrase> all_phrases(const Reading& plain, const Reading& sticky,
                                       std::size_t layer, Index words) {
  const Cells& even = plain.segments.back().cells[layer];
  const Cells& by_attention = sticky.segments.back().cells[layer];
  const Index held = plain.segments.back().held();
  std::vector<Phrase> out;
  for (Index first = 0; first + words <= even.size(); ++first)
    out.push_back({.first = held + first,
                   .plain = even.end(first + words - 1) - even.begin(first),
                   .sticky = by_attention.end(first + words - 1) - by_attention.begin(first),
                   .text = {}});
  return out;
}

/// The phrases that sticky memories give most space beyond what they would have, each the only one
/// of its neighbourhood, in their order.
inline std::vector<Phrase> phrases_at_peaks(std::vector<Phrase> all, std::size_t count) {
  std::vector<Phrase> best;
  const auto apart = std::max<Index>(1, std::ssize(all) / 12);
  std::sort(all.begin(), all.end(), [](const Phrase& a, const Phrase& b) {
    const double more = a.sticky - a.plain, other = b.sticky - b.plain;
    return more != other ? more > other : a.first < b.first;
  });
  for (const Phrase& phrase : all) {
    if (best.size() == count || phrase.sticky <= phrase.plain) break;
    if (std::none_of(best.begin(), best.end(), [&](const Phrase& other) {
          return std::abs(other.first - phrase.first) < apart;
        }))
      best.push_back(phrase);
  }
  std::sort(best.begin(), best.end(),
            [](const Phrase& a, const Phrase& b) { return a.first < b.first; });
  return best;
}

/// A text as a label of gnuplot in single quotes, of which it takes two for one, but not in front.
inline std::string label_of(const std::string& text) {
  std::string out;
  for (const char c : text) out += c == '\'' ? "’" : std::string(1, c);
  return out;
}

/// The space of a document's phrases in one layer's memory, and those at the peaks.
struct LayerSpace {
  std::size_t layer = 0;
  std::vector<Phrase> all, peaks;
};

inline std::string space_csv(const std::vector<LayerSpace>& layers) {
  std::string out = "layer,word,plain,sticky\n";
  for (const LayerSpace& space : layers)
    for (const Phrase& phrase : space.all)
      out += std::to_string(space.layer + 1) + ',' + std::to_string(phrase.first) + ',' +
             number(phrase.plain) + ',' + number(phrase.sticky) + '\n';
  return out;
}

/// A panel a layer; what has no space at all is drawn at the bottom.
inline std::string space_figure(const std::vector<LayerSpace>& layers, Index words) {
  const std::vector<std::string> colours{"#c2410c", "#7c3aed", "#0891b2"};
  double least = 1;
  for (const Phrase& phrase : layers.front().all) least = std::min(least, phrase.plain);
  const double bottom = std::pow(10, std::floor(std::log10(least)) - 1);
  const auto size = static_cast<double>(layers.front().all.size());
  const auto begin = static_cast<double>(layers.front().all.front().first);
  std::ostringstream gp;
  gp << "set terminal pngcairo size 1100," << 90 + 260 * layers.size()
     << " font 'sans,11'\nset output 'space.png'\nset datafile separator ','\nset border 3\n"
        "set tics nomirror out\nset multiplot layout "
     << layers.size() << ",1 title 'Space in the long-term memory that " << words
     << " words have at the end of the text' font 'sans,14' "
        "margins .09,.96,.09,.93 spacing .05\n"
        "set ylabel 'share of the memory' offset 1\nset logscale y\nset format y '10^{%L}'\n"
        "unset key\nset xrange ["
     << begin << ':' << begin + size << "]\nset yrange [" << bottom << ":300]\nset ytics " << bottom
     << ",100,1\n";
  for (std::size_t i = 0; i < layers.size(); ++i) {
    const LayerSpace& space = layers[i];
    const bool last = i + 1 == layers.size();
    gp << "unset label\nunset arrow\nset label 'layer " << space.layer + 1
       << "    filled: sticky memories, sampled where attention was;    line: plain ones, sampled "
          "evenly' at graph 0,1.04\n";
    // Neighbours' labels stand at different heights, and none beyond the edges.
    double height = 2;
    for (const Phrase& phrase : space.peaks) {
      const auto at = static_cast<double>(phrase.first);
      gp << "set arrow from " << at << ',' << phrase.sticky * 1.4 << " to " << at << ','
         << height / 1.5 << " nohead lw .8 lc '#78716c'\nset label '" << label_of(phrase.text)
         << "' at " << std::clamp(at, begin + .08 * size, begin + .93 * size) << ',' << height
         << " center font ',10' noenhanced\n";
      height = height > 60 ? 2 : height * 6;
    }
    if (last)
      gp << "set xlabel 'first of the words, counted from the beginning of the text'\n"
            "set format x '%g'\n";
    else
      gp << "set format x ''\n";
    gp << "high(x) = x > " << bottom << " ? x : " << bottom << "\nplot 'space.csv' skip 1 using "
       << "($1 == " << space.layer + 1 << " ? $2 : NaN):(high($4)) with filledcurves y1=" << bottom
       << " fs solid .45 noborder lc '" << colours[i]
       << "', \\\n  '' skip 1 using ($1 == " << space.layer + 1
       << " ? $2 : NaN):(high($3)) with steps lw 2 lc '#44403c'\n";
  }
  gp << "unset multiplot\n";
  return gp.str();
}

}  // namespace memory_study
