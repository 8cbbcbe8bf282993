// SPDX-License-Identifier: MIT
#pragma once

#include <string>

#include "../model.hpp"
#include "../running_mean.hpp"
#include "settings.hpp"

namespace language_model {

/// Gnuplot commands that draw figure.png of log.csv: the loss of every step, its `RunningMean`, and
/// the loss on the validation text.
inline std::string training_figure(const Settings& s) {
  const bool validated = s.evaluate_every > 0 && s.evaluate_every <= s.steps;
  const std::string window = std::to_string(support::RunningMean::window);
  return "set terminal pngcairo size 800,480 font 'sans,11'\n"
         "set output 'figure.png'\nset datafile separator ','\nset border 3\n"
         "set tics nomirror out\nset key top right\nset grid y lc '#dddddd'\n"
         "set title '" +
         support::model_name(s) + ", level " + s.level + ", seed " + std::to_string(s.seed) +
         "'\n"
         "set xlabel 'step'\nset ylabel 'loss in nats a token'\n"
         "weight = 0\nmean = 0\nkept = 1 - 1. / " +
         window +
         "\nsmooth(x) = (weight = weight * kept + 1, mean = mean + (x - mean) / weight)\n"
         "plot 'log.csv' using 1:4 skip 1 with points pt 7 ps .2 lc '#e8b89a' \\\n"
         "  title 'batches of the text that is trained on', \\\n"
         "  '' using 1:(smooth($4)) skip 1 with lines lw 2 lc '#c2410c' \\\n"
         "  title 'their exponentially weighted mean, window of " +
         window + " steps'" +
         (validated ? ", \\\n  '' using 1:7 skip 1 with linespoints pt 7 lw 2 lc '#1d4ed8' \\\n"
                      "  title 'validation text'\n"
                    : "\n");
}

}  // namespace language_model
