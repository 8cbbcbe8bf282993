// SPDX-License-Identifier: MIT
#pragma once

#include <string>

#include "settings.hpp"

namespace language_model {

/// Gnuplot commands that draw figure.png of log.csv: the loss of every step, its running mean, and
/// the loss on the validation text.
inline std::string training_figure(const Settings& s) {
  const bool validated = s.evaluate_every > 0 && s.evaluate_every <= s.steps;
  return "set terminal pngcairo size 800,480 font 'sans,11'\n"
         "set output 'figure.png'\nset datafile separator ','\nset border 3\n"
         "set tics nomirror out\nset key top right\nset grid y lc '#dddddd'\n"
         "set title '" +
         s.memory + ", level " + s.level + ", seed " + std::to_string(s.seed) +
         "'\n"
         "set xlabel 'step'\nset ylabel 'loss in nats a token'\n"
         "count = 0\nmean = 0\n"
         "smooth(x) = (count = count + 1, mean = mean + (x - mean) / (count < 50 ? count : 50))\n"
         "plot 'log.csv' using 1:4 skip 1 with points pt 7 ps .2 lc '#e8b89a' \\\n"
         "  title 'batches of the text that is trained on', \\\n"
         "  '' using 1:(smooth($4)) skip 1 with lines lw 2 lc '#c2410c' title 'their running "
         "mean'" +
         (validated ? ", \\\n  '' using 1:7 skip 1 with linespoints pt 7 lw 2 lc '#1d4ed8' \\\n"
                      "  title 'validation text'\n"
                    : "\n");
}

}  // namespace language_model
