// SPDX-License-Identifier: MIT
#pragma once

#include <sstream>
#include <string>
#include <vector>

#include <nlohmann/json.hpp>

#include "reading.hpp"

namespace memory_study {

/// A number as short as it can be read back.
inline std::string number(double value) { return nlohmann::json(value).dump(); }

/// Where the queries of a layer looked in its long-term memory.
struct Histogram {
  std::vector<double> share;  ///< of attention in each bin of [0, 1]
  double outside = 0;         ///< of it
  double queries = 0;

  explicit Histogram(Index bins) : share(static_cast<std::size_t>(bins)) {}

  /// Adds a segment's queries.
  void add(const LongTermView& view) {
    const auto bins = static_cast<double>(share.size());
    const Index count = queries_of(view);
    for (Index i = 0; i < count; ++i) {
      const Below below = below_of(view, i);
      double before = below(0);
      outside += before + 1 - below(1);
      for (std::size_t bin = 0; bin < share.size(); ++bin) {
        const double until = below(static_cast<double>(bin + 1) / bins);
        share[bin] += until - before;
        before = until;
      }
    }
    queries += static_cast<double>(count);
  }
};

/// Histograms of the first, the middle and the last layer, of all segments that were read behind
/// `least` writes or more.
inline std::vector<Histogram> histograms(const std::vector<Reading>& readings, Index bins,
                                         Index least) {
  std::vector<Histogram> out;
  for (const std::size_t layer : three_layers(std::ssize(readings.front().blocks))) {
    Histogram& histogram = out.emplace_back(bins);
    for (const Reading& reading : readings)
      for (const SegmentRead& segment : reading.segments)
        if (segment.layers[layer].writes >= least) histogram.add(segment.layers[layer]);
  }
  return out;
}

/// @param layers  what the layers of the histograms are, from 0
inline std::string attention_csv(const std::vector<Histogram>& all,
                                 const std::vector<std::size_t>& layers) {
  std::string out = "layer,from,to,share\n";
  for (std::size_t i = 0; i < all.size(); ++i) {
    const auto bins = static_cast<double>(all[i].share.size());
    for (std::size_t bin = 0; bin < all[i].share.size(); ++bin)
      out += std::to_string(layers[i] + 1) + ',' + number(static_cast<double>(bin) / bins) + ',' +
             number(static_cast<double>(bin + 1) / bins) + ',' +
             number(all[i].share[bin] / all[i].queries) + '\n';
  }
  return out;
}

/// A panel a layer, with the borders that past contractions have left at tau, tau^2, ...
inline std::string attention_figure(const std::vector<Histogram>& all,
                                    const std::vector<std::size_t>& layers, double tau) {
  const std::vector<std::string> colours{"#c2410c", "#7c3aed", "#0891b2"};
  const std::vector<std::string> names{"first", "middle", "last"};
  std::ostringstream gp;
  gp << "set terminal pngcairo size 1100," << 70 + 210 * all.size()
     << " font 'sans,11'\nset output 'attention.png'\nset datafile separator ','\nset border 3\n"
        "set tics nomirror out\nset multiplot layout "
     << all.size() << ",1 title 'Attention over the long-term memory' font 'sans,14' "
     << "margins .09,.98,.1,.92 spacing .05\nset xrange [0:1]\nset yrange [0:*]\n"
        "set ylabel 'share of attention' offset 1\nset ytics nomirror\nset style fill solid .75 "
        "noborder\n"
        "set key top left Left reverse opaque\nset boxwidth "
     << 1 / static_cast<double>(all.front().share.size()) << "\n";
  double border = 1;
  for (int write = 0; write < 40 && border > .01; ++write) {
    border *= tau;
    gp << "set arrow from " << border << ",graph 0 to " << border
       << ",graph 1 nohead dt 2 lc '#888888' front\n";
  }
  for (std::size_t i = 0; i < all.size(); ++i) {
    const std::string& name = i + 1 == all.size() ? names.back() : names[i];
    if (i + 1 == all.size())
      gp << "set xlabel 'place in the memory (0: the oldest, 1: the newest); dashed: borders of "
            "past contractions'\n";
    else
      gp << "set format x ''\n";
    if (i + 1 == all.size()) gp << "set format x '%g'\n";
    gp << "plot 'attention.csv' skip 1 using (($2+$3)/2):($1 == " << layers[i] + 1
       << " ? $4 : NaN) with boxes lc '" << colours[i] << "' title 'layer " << layers[i] + 1
       << ", the " << (all.size() == 1 ? "only" : name.c_str()) << "'\n";
  }
  gp << "unset multiplot\n";
  return gp.str();
}

}  // namespace memory_study
