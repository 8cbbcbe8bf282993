// SPDX-License-Identifier: MIT
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <filesystem>
#include <iomanip>
#include <sstream>
#include <string>
#include <vector>

#include <nlohmann/json.hpp>
#include <sys/resource.h>

#include "../support/files.hpp"
#include "../support/json.hpp"
#include "../support/settings.hpp"
#include "training.hpp"

namespace sorting {

struct Report {
  Settings settings;
  std::vector<ModelResult> models;
  std::vector<Floor> floors;
  std::string backend, device;  ///< that the models were trained on, or the last part of them
};

/// The most memory that the process has had, in bytes.
inline std::size_t peak_resident_bytes() {
  struct ::rusage usage {};
  ::getrusage(RUSAGE_SELF, &usage);
  return static_cast<std::size_t>(usage.ru_maxrss) * 1024;
}

/// Throws infty::IoError where a folder has another program's results.
inline void require_own_results(const std::filesystem::path& folder) {
  const auto path = folder / "results.json";
  if (!std::filesystem::exists(path)) return;
  const auto there = support::read_json(path);
  infty::require<infty::IoError>(there.is_object() && there.contains("floors"), "sorting",
                                 path.string(), " is no file of this program: give another --out");
}

inline nlohmann::json results_json(const Report& report) {
  nlohmann::json out{{"settings", support::to_json(report.settings)},
                     {"backend", report.backend},
                     {"device", report.device},
                     {"peak_resident_bytes", peak_resident_bytes()}};
  for (const ModelResult& m : report.models)
    out["models"].push_back({{"name", m.name},
                             {"accuracy", m.accuracy},
                             {"tau", m.tau},
                             {"free_run_accuracy", m.free_accuracy},
                             {"free_run_tau", m.free_tau},
                             {"accuracy_by_place", m.accuracy_by_place},
                             {"free_run_accuracy_by_place", m.free_accuracy_by_place},
                             {"parameters", m.parameters},
                             {"steps", m.steps},
                             {"seed", report.settings.seed},
                             {"memory_writes", m.memory_writes},
                             {"seconds", m.history.seconds},
                             {"evaluation_seconds", m.evaluation_seconds},
                             {"peak_bytes", m.peak_tensor_bytes}});
  for (const Floor& floor : report.floors)
    out["floors"].push_back({{"name", floor.name},
                             {"what", floor.what},
                             {"accuracy", floor.accuracy},
                             {"tau", floor.tau},
                             {"free_run_accuracy", floor.free_accuracy},
                             {"free_run_tau", floor.free_tau}});
  return out;
}

/// One line of curves.csv: means over the steps since the line before.
inline std::string curves_csv(const Report& report) {
  std::string out = "model,step,loss,accuracy\n";
  for (const ModelResult& m : report.models) {
    const std::size_t steps = m.history.loss.size(), every = std::max<std::size_t>(1, steps / 75);
    for (std::size_t begin = 0; begin < steps; begin += every) {
      const std::size_t end = std::min(steps, begin + every);
      double loss = 0, accuracy = 0;
      for (std::size_t i = begin; i < end; ++i) {
        loss += m.history.loss[i];
        accuracy += m.history.accuracy[i];
      }
      const auto count = static_cast<double>(end - begin);
      out += m.name + ',' + std::to_string(end) + ',' + nlohmann::json(loss / count).dump() + ',' +
             nlohmann::json(accuracy / count).dump() + '\n';
    }
  }
  return out;
}

/// attention.csv: the share of the last segment's attention in each bin of the LTM.
inline std::string attention_csv(const Report& report) {
  std::string out = "model,layer,from,to,share\n";
  for (const ModelResult& m : report.models)
    for (std::size_t layer = 0; layer < m.attention.size(); ++layer) {
      const auto& share = m.attention[layer];
      const auto bins = static_cast<double>(share.size());
      for (std::size_t bin = 0; bin < share.size(); ++bin)
        out += m.name + ',' + std::to_string(layer + 1) + ',' +
               nlohmann::json(static_cast<double>(bin) / bins).dump() + ',' +
               nlohmann::json(static_cast<double>(bin + 1) / bins).dump() + ',' +
               nlohmann::json(share[bin]).dump() + '\n';
    }
  return out;
}

/// The names below a panel, so many in a column.
inline std::string key_below(std::size_t rows) {
  return "set key at graph .5, screen .01 center bottom vertical maxrows " + std::to_string(rows) +
         " Left reverse samplen 3 width -4\n";
}

/// How many names stand in a column below a panel: one below the other where several columns would
/// reach into the other panel.
inline std::size_t rows_of_key(std::size_t names, bool narrow) {
  return narrow ? 3 : std::max<std::size_t>(3, names);
}

/// The same of the models and the floors, and of the layers of one with an LTM.
inline std::size_t accuracy_rows(const Report& report) {
  const std::size_t models = report.models.size();
  return rows_of_key(models + report.floors.size() - 1, models <= 2);
}
inline std::size_t attention_rows(const ModelResult& model) {
  const std::size_t layers = model.attention.size();
  return rows_of_key(layers + 2, layers <= 4);
}

/// Training accuracy of every model, a point for what it has on the evaluation sequences at the
/// end, and dashed lines for the floors.
inline std::string accuracy_panel(const Report& report) {
  const std::vector<std::string> colours{"#c2410c", "#1d4ed8", "#15803d", "#7c3aed", "#0891b2",
                                         "#be185d", "#a16207", "#4d7c0f", "#111827"};
  std::ostringstream gp;
  gp << "set title 'Accuracy while training, on sequences never seen before (one seed, "
     << report.settings.seed
     << ")'\n"
        "set xlabel 'step'\nset ylabel 'accuracy under teacher forcing'\n"
        "set xrange [0:*] noextend\nset yrange [0:1]\nset ytics 0,.2,1\n"
     << key_below(accuracy_rows(report)) << "plot \\\n";
  for (std::size_t i = 0; i < report.models.size(); ++i) {
    const ModelResult& m = report.models[i];
    const std::string& colour = colours[i % colours.size()];
    gp << "  'curves.csv' using 2:(strcol(1) eq '" << m.name
       << "' ? $4 : NaN) with lines lw 2.5 lc '" << colour << "' title '" << m.name
       << " (at the end, held out: " << std::fixed << std::setprecision(3) << m.accuracy
       << ")', \\\n  '+' using (" << m.steps << "):(" << m.accuracy
       << ") with points pt 7 ps 1.5 lc '" << colour << "' notitle, \\\n";
  }
  int dash = 2;
  for (const Floor& floor : report.floors)
    if (floor.name != "counter-all")
      gp << "  " << floor.accuracy << " with lines dt " << dash++ << " lw 1.5 lc '#555555' title '"
         << floor.what << "', \\\n";
  gp << "  NaN notitle\n";
  return gp.str();
}

/// The histogram of attention over the LTM, a line for each layer, and what it would be if
/// attention were the same everywhere. The border of the last contraction is at tau, that of the
/// one before at tau^2, ...; where the past is contracted otherwise there is none to draw.
inline std::string attention_panel(const Report& report, const ModelResult& model) {
  const std::vector<std::string> colours{"#c2410c", "#7c3aed", "#0891b2", "#65a30d", "#be185d",
                                         "#1d4ed8", "#a16207", "#15803d", "#111827"};
  std::ostringstream gp;
  const double uniform = 1 / static_cast<double>(report.settings.bins);
  double border = 1, most = uniform;
  for (const auto& layer : model.attention)
    most = std::max(most, *std::max_element(layer.begin(), layer.end()));
  gp << "set title 'Attention of the last segment to the LTM, " << model.name << "'\n"
     << "set xlabel 'place in the LTM (0: the oldest, 1: the newest)'\n"
        "set ylabel 'share of attention' offset 1\nset xrange [0:1]\nset yrange [0:"
     << most * 1.1 << "]\nset ytics auto\n";
  const bool to_tau = contraction_of(report.settings, model.name) == "fixed";
  for (Index write = 1; to_tau && write < model.memory_writes && write <= 40; ++write) {
    border *= report.settings.memory.tau;
    gp << "set arrow from " << border << ",graph 0 to " << border
       << ",graph 1 nohead dt 2 lc '#888888'\n";
  }
  gp << key_below(attention_rows(model)) << "plot \\\n";
  for (std::size_t layer = 0; layer < model.attention.size(); ++layer)
    gp << "  'attention.csv' using (($3+$4)/2):(strcol(1) eq '" << model.name
       << "' && $2 == " << layer + 1 << " ? $5 : NaN) with histeps lw 2 lc '"
       << colours[layer % colours.size()] << "' title 'layer " << layer + 1 << "', \\\n";
  gp << "  " << uniform << " with lines dt 3 lw 1.5 lc '#555555' title 'uniform attention'";
  if (to_tau) gp << ", \\\n  NaN with lines dt 2 lc '#888888' title 'borders of past contractions'";
  gp << '\n';
  return gp.str();
}

/// Gnuplot commands for figure.png, to be run in the folder of the CSV files.
inline std::string figure_script(const Report& report) {
  const auto with_memory = std::find_if(report.models.begin(), report.models.end(),
                                        [](const auto& m) { return !m.attention.empty(); });
  const bool both = with_memory != report.models.end();
  const std::size_t rows = std::max(accuracy_rows(report), both ? attention_rows(*with_memory) : 0);
  // Panels are as high whatever stands below them.
  const auto below = 120 + 17 * static_cast<double>(rows - 3), height = 380 + below;
  std::ostringstream gp;
  gp << "set terminal pngcairo size " << (both ? 1300 : 700) << ',' << height << " font 'sans,11'\n"
     << "set output 'figure.png'\nset datafile separator ','\nset border 3\n"
     << "set tics nomirror out\nset samples 2\n"
     << "set multiplot layout 1," << (both ? 2 : 1) << " margins " << (both ? ".06,.985" : ".1,.97")
     << ',' << below / height << ',' << 1 - 40 / height << " spacing .07\n"
     << accuracy_panel(report);
  if (both) gp << attention_panel(report, *with_memory);
  gp << "unset multiplot\n";
  return gp.str();
}

inline void print_row(const std::string& name, double a, double b, double c, double d) {
  std::printf("%-36s %8.3f %8.3f %10.3f %8.3f\n", name.c_str(), a, b, c, d);
}

/// The numbers of models and floors, on standard output; none of them depends on the machine's
/// speed or on the number of threads.
inline void print_results(const Report& report) {
  std::printf("\n%-36s %17s %19s\n%-36s %8s %8s %10s %8s\n", ("backend " + report.backend).c_str(),
              "teacher forcing", "free generation",
              report.device.substr(0, report.device.find(',')).c_str(), "accuracy", "tau",
              "accuracy", "tau");
  for (const ModelResult& m : report.models)
    print_row(m.name, m.accuracy, m.tau, m.free_accuracy, m.free_tau);
  for (const Floor& f : report.floors)
    print_row("(" + f.what + ")", f.accuracy, f.tau, f.free_accuracy, f.free_tau);
  std::printf("\n%lld fresh sequences, seed %llu\n",
              static_cast<long long>(report.settings.evaluation_sequences),
              static_cast<unsigned long long>(report.settings.seed));
}

/// Times and memory, which differ from run to run, on standard error.
inline void print_costs(const Report& report) {
  std::fflush(stdout);
  std::fprintf(stderr, "\n%-10s %10s %8s %10s %10s %14s %12s\n", "model", "parameters", "steps",
               "training", "steps/s", "evaluation", "tensors");
  for (const ModelResult& m : report.models)
    std::fprintf(stderr, "%-10s %10lld %8lld %9.1fs %10.2f %13.1fs %8.1f MiB\n", m.name.c_str(),
                 static_cast<long long>(m.parameters), static_cast<long long>(m.steps),
                 m.history.seconds, static_cast<double>(m.steps) / m.history.seconds,
                 m.evaluation_seconds, static_cast<double>(m.peak_tensor_bytes) / 1048576.);
  std::fprintf(stderr, "peak resident memory %.1f MiB\n",
               static_cast<double>(peak_resident_bytes()) / 1048576.);
}

/// Writes everything into the folder and says what is there.
inline void write_report(const Report& report, const std::filesystem::path& folder) {
  support::write_file(folder / "results.json", results_json(report).dump(2) + '\n');
  support::write_file(folder / "curves.csv", curves_csv(report));
  support::write_file(folder / "attention.csv", attention_csv(report));
  support::write_file(folder / "figure.gp", figure_script(report));
  const bool drawn = support::draw_figure(folder);
  std::fprintf(stderr, "wrote results.json, curves.csv, attention.csv, figure.gp%s to %s\n",
               drawn ? " and figure.png" : "", folder.c_str());
}

}  // namespace sorting
