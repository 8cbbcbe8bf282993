// SPDX-License-Identifier: MIT
#pragma once

#include <algorithm>
#include <cstddef>
#include <span>
#include <sstream>
#include <string>
#include <vector>

#include "attention.hpp"

namespace memory_study {

/// What the queries of a layer retrieve: how many places in front of them it stands, each entry
/// counted once, whatever its weight; and what a choice by chance among all that is remembered
/// would have retrieved.
struct Retrieved {
  std::vector<double> count, by_chance;  ///< by the distance, from 0 on
  double same = 0, same_by_chance = 0;   ///< entries of the very token that retrieves them
  double all = 0;

  /// Adds a segment of a document. @param capacity  entries that are remembered at most
  void add(const LongTermView& view, const std::vector<Index>& inputs, const Piece& segment,
           Index capacity) {
    const auto [first, length] = segment;
    const Index held = std::min(first, capacity), each = std::ssize(view.distances) / length;
    if (held == 0) return;
    for (Index i = 0; i < length; ++i) {
      const Index at = first + i;
      const Index token = inputs[static_cast<std::size_t>(at)];
      double found = 0;
      for (Index j = 0; j < each; ++j) {
        const Index back = view.distances[static_cast<std::size_t>(i * each + j)];
        if (back == 0) continue;
        add_to(count, back, 1);
        same += inputs[static_cast<std::size_t>(at - back)] == token ? 1 : 0;
        found += 1;
      }
      all += found;
      const double share = found / static_cast<double>(held);
      for (Index back = i + 1; back <= i + held; ++back) {
        add_to(by_chance, back, share);
        same_by_chance += inputs[static_cast<std::size_t>(at - back)] == token ? share : 0;
      }
    }
  }

  /// The distance within which half of them stand.
  static Index median(const std::vector<double>& counts) {
    double total = 0, sum = 0;
    for (const double n : counts) total += n;
    std::size_t back = 0;
    while (back + 1 < counts.size() && (sum += counts[back]) < total / 2) ++back;
    return static_cast<Index>(back);
  }

 private:
  static void add_to(std::vector<double>& counts, Index back, double n) {
    const auto at = static_cast<std::size_t>(back);
    if (counts.size() <= at) counts.resize(at + 1);
    counts[at] += n;
  }
};

/// Reads passages, each from a fresh state, by a model whose layers retrieve; `done(tokens)` is
/// called behind each segment. Of each of `layers`, what they retrieve.
/// @param capacity  entries that are remembered at most
template <class Done>
std::vector<Retrieved> read_retrieved(const support::Model& model, Index capacity,
                                      std::span<const Passage> passages,
                                      const std::vector<std::size_t>& layers, Done&& done) {
  std::vector<Retrieved> out(layers.size());
  for (const Passage& passage : passages) {
    auto state = model.make_state(1);
    for (const Piece& segment : passage.segments) {
      const auto views = model.look(state, Passage::part(passage.inputs, segment));
      for (std::size_t i = 0; i < layers.size() && !views.empty(); ++i)
        out[i].add(views[layers[i]], passage.inputs, segment, capacity);
      done(segment.length);
    }
  }
  return out;
}

/// The shares of distances from each power of two to the next.
inline std::string retrieved_csv(const std::vector<Retrieved>& all,
                                 const std::vector<std::size_t>& layers) {
  std::string out = "layer,from,to,share,by_chance\n";
  for (std::size_t i = 0; i < all.size(); ++i)
    for (std::size_t from = 1; from < all[i].by_chance.size(); from *= 2) {
      const auto share = [&](const std::vector<double>& counts) {
        double sum = 0;
        for (std::size_t back = from; back < std::min(2 * from, counts.size()); ++back)
          sum += counts[back];
        return number(sum / all[i].all);
      };
      out += std::to_string(layers[i] + 1) + ',' + std::to_string(from) + ',' +
             std::to_string(2 * from) + ',' + share(all[i].count) + ',' + share(all[i].by_chance) +
             '\n';
    }
  return out;
}

/// Bars for what is retrieved, a line for chance, a colour a layer.
inline std::string retrieved_figure(const std::vector<std::size_t>& layers) {
  const std::vector<std::string> colours{"#c2410c", "#7c3aed", "#0891b2"};
  std::ostringstream gp;
  gp << "set terminal pngcairo size 800,460 font 'sans,11'\nset output 'retrieved.png'\n"
        "set datafile separator ','\nset border 3\nset tics nomirror out\nset grid y lc "
        "'#e7e5e4'\nset logscale x 2\nset yrange [0:*]\nset key top left Left reverse\n"
        "set title 'How far back the retrieved entries stand'\n"
        "set xlabel 'places in front of the query, from a power of two to the next'\n"
        "set ylabel 'share of what is retrieved'\nplot ";
  for (std::size_t i = 0; i < layers.size(); ++i)
    gp << "'retrieved.csv' skip 1 using (sqrt($2*$3)):($1 == " << layers[i] + 1
       << " ? $4 : NaN) with linespoints pt 7 lw 2 lc '" << colours[i] << "' title 'layer "
       << layers[i] + 1 << "', \\\n  ";
  gp << "'' skip 1 using (sqrt($2*$3)):($1 == " << layers.front() + 1
     << " ? $5 : NaN) with lines dt 2 lw 2 lc '#57534e' title 'by chance'\n";
  return gp.str();
}

}  // namespace memory_study
