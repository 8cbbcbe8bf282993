// SPDX-License-Identifier: MIT
#pragma once

#include <algorithm>
#include <cstddef>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

#include "attention.hpp"
#include "shown.hpp"

namespace memory_study {

/// One layer's panel of a figure: numbers by one dimension, a bar each, or by two, a colour each.
struct Panel {
  Index layer;  ///< -1: around the stack
  std::vector<std::string> axes;
  std::vector<Index> shape;
  std::vector<double> values;
};

/// Leaves dimensions out that have one place.
inline Panel without_ones(Panel panel) {
  for (std::size_t i = panel.shape.size(); i-- > 0;)
    if (panel.shape[i] == 1 && panel.shape.size() > 1) {
      panel.axes.erase(panel.axes.begin() + static_cast<std::ptrdiff_t>(i));
      panel.shape.erase(panel.shape.begin() + static_cast<std::ptrdiff_t>(i));
    }
  return panel;
}

/// The panel of means; of more than two dimensions, the first are averaged.
inline Panel panel_of(Index layer, const Averaged& mean) {
  const std::size_t drop = mean.axes.size() > 2 ? mean.axes.size() - 2 : 0;
  Panel panel{layer,
              {mean.axes.begin() + static_cast<std::ptrdiff_t>(drop), mean.axes.end()},
              {mean.shape.begin() + static_cast<std::ptrdiff_t>(drop), mean.shape.end()},
              {}};
  std::size_t size = 1;
  for (const Index n : panel.shape) size *= static_cast<std::size_t>(n);
  panel.values.resize(size);
  for (std::size_t i = 0; i < mean.sum.size(); ++i)
    panel.values[i % size] +=
        mean[i] * static_cast<double>(size) / static_cast<double>(mean.sum.size());
  return without_ones(std::move(panel));
}

/// The panel of a passage, with words along x; of a longer one its last `most` words.
inline Panel panel_of_words(Index layer, const Averaged& passage, Index most) {
  const bool words_first = passage.axes.front() == "word";
  const Index words = words_first ? passage.shape.front() : passage.shape.back();
  const Index others = std::ssize(passage.sum) / words, kept = std::min(words, most);
  Panel panel{layer, {"word"}, {kept}, {}};
  if (passage.axes.size() > 1) {
    panel.axes.insert(panel.axes.begin(), passage.axes[words_first ? 1 : 0]);
    panel.shape.insert(panel.shape.begin(), others);
  }
  for (Index i = 0; i < others; ++i)
    for (Index word = words - kept; word < words; ++word)
      panel.values.push_back(
          passage[static_cast<std::size_t>(words_first ? word * others + i : i * words + word)]);
  return without_ones(std::move(panel));
}

/// "reader_weights" as words.
inline std::string as_words(std::string name) {
  std::replace(name.begin(), name.end(), '_', ' ');
  return name;
}

inline std::string layer_name(Index layer) {
  return layer < 0 ? "around the stack" : "layer " + std::to_string(layer + 1);
}

/// A row a number: the layer, counted from 1, 0 around the stack; the places, from 0; the value.
inline std::string panels_csv(const std::vector<Panel>& panels) {
  std::string out = "layer";
  for (const std::string& axis : panels.front().axes) out += ',' + axis;
  out += ",value\n";
  for (const Panel& panel : panels)
    for_each_place(panel.shape, [&](const std::vector<Index>& place, std::size_t at) {
      out += std::to_string(panel.layer + 1);
      for (const Index i : place) out += ',' + std::to_string(i);
      out += ',' + number(panel.values[at]) + '\n';
    });
  return out;
}

/// Text between quotes of gnuplot.
inline std::string quoted_label(const std::string& text) {
  std::string out = "\"";
  for (const char c : text) {
    if (c == '"' || c == '\\') out += '\\';
    out += c == '\n' || c == '\r' || c == '\t' ? ' ' : c;
  }
  return out + '"';
}

/// A panel a layer, one below the other. @param words  what stands at x, empty for numbers
inline std::string panels_figure(const std::string& file, const std::string& title,
                                 const std::vector<Panel>& panels,
                                 const std::vector<std::string>& words) {
  const bool map = panels.front().axes.size() == 2;
  std::ostringstream gp;
  gp << "set terminal pngcairo noenhanced size 1100,"
     << (words.empty() ? 90 : 150) + 230 * panels.size() << " font 'sans,11'\nset output '" << file
     << ".png'\nset datafile separator ','\nset border 3\nset tics nomirror out\n"
     << "set multiplot layout " << panels.size() << ",1 title " << quoted_label(title)
     << " font 'sans,14'\nset palette defined (0 '#fffbf5', .35 '#fdba74', .7 '#c2410c', 1 "
        "'#431407')\nset style fill solid 1 noborder\nset boxwidth .9\nunset key\n"
     << "set xlabel " << quoted_label(panels.front().axes.back()) << "\nset ylabel "
     << quoted_label(map ? panels.front().axes.front() : std::string("value")) << '\n';
  if (!words.empty()) {
    gp << "set xlabel ''\nset xtics rotate by 90 right font 'sans,9' (";
    for (std::size_t i = 0; i < words.size(); ++i)
      gp << (i > 0 ? "," : "") << quoted_label(words[i].empty() ? "¶" : words[i]) << ' ' << i;
    gp << ")\n";
  }
  std::size_t first = 0;
  for (const Panel& panel : panels) {
    const std::size_t last = first + panel.values.size() - 1;
    gp << "set title " << quoted_label(layer_name(panel.layer))
       << "\nset xrange [-.5:" << static_cast<double>(panel.shape.back()) - .5 << "]\nset yrange [";
    if (map)
      gp << "-.5:" << static_cast<double>(panel.shape.front()) - .5 << "]\nset cbrange [0:*]\n";
    else
      gp << "0:*]\n";
    gp << "plot '" << file << ".csv' skip 1 every ::" << first << "::" << last << " using "
       << (map ? "3:2:4 with image" : "2:3 with boxes lc '#c2410c'") << '\n';
    first = last + 1;
  }
  gp << "unset multiplot\n";
  return gp.str();
}

/// Of so many layers the first, the middle and the last.
template <class ByLayer>
std::vector<typename ByLayer::const_iterator> three_of(const ByLayer& layers) {
  std::vector<typename ByLayer::const_iterator> out;
  for (const std::size_t i : three_layers(std::ssize(layers)))
    out.push_back(std::next(layers.begin(), static_cast<std::ptrdiff_t>(i)));
  return out;
}

}  // namespace memory_study
