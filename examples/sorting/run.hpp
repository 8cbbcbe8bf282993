// SPDX-License-Identifier: MIT
#pragma once

#include <algorithm>
#include <cstdio>
#include <iterator>
#include <numeric>
#include <string>
#include <utility>
#include <vector>

#include <nlohmann/json.hpp>
#include <unistd.h>

#include <infty/signal/truncated_parabola.hpp>
#include <infty/train/progress.hpp>

#include "training.hpp"

namespace sorting {

/// What decides where results go and when, but not what they are.
struct Options {
  std::string out = "sorting-results", save, resume;
  Index save_every = 100, stop_at = 0, paper = 0;
  int threads = 0;
};

/// The models that are done, and their parameters.
struct Finished {
  std::vector<ModelResult> results;
  infty::SafetensorsWriter parameters;
  std::string current;  ///< the model whose training a checkpoint has interrupted
};

inline double mean_of_last(const std::vector<double>& values, std::ptrdiff_t count) {
  count = std::min(count, std::ssize(values));
  return std::accumulate(values.end() - count, values.end(), 0.0) / static_cast<double>(count);
}

/// The progress line on standard error: ever the same line of a terminal, a new line every few
/// seconds elsewhere.
class ProgressLine {
 public:
  ProgressLine(std::string name, Index total, Index first)
      : name_(std::move(name)), progress_(total, first) {}
  ProgressLine(const ProgressLine&) = delete;
  ProgressLine& operator=(const ProgressLine&) = delete;
  ~ProgressLine() {
    if (unfinished_) std::fputc('\n', stderr);
  }

  void update(const History& history) {
    progress_.update(std::ssize(history.loss));
    const bool last = progress_.done() == progress_.total();
    if (!last && progress_.seconds() - shown_ < (terminal_ ? 0.1 : 5)) return;
    shown_ = progress_.seconds();
    const std::string line = progress_.line({{"loss", mean_of_last(history.loss, 50)},
                                             {"accuracy", mean_of_last(history.accuracy, 50)}});
    std::fprintf(stderr, "%s%-7s %s%s", terminal_ ? "\r\033[K" : "", name_.c_str(), line.c_str(),
                 terminal_ && !last ? "" : "\n");
    unfinished_ = terminal_ && !last;
  }

 private:
  std::string name_;
  infty::Progress progress_;
  double shown_ = 0;
  bool terminal_ = ::isatty(STDERR_FILENO) != 0, unfinished_ = false;
};

/// Saves the models that are done and, if there is one, the model in training.
template <class Training>
void save_checkpoint(const Options& options, const Settings& settings, const Finished& finished,
                     const Training* training) {
  if (options.save.empty()) return;
  infty::SafetensorsWriter writer = finished.parameters;
  writer.metadata("settings", to_json(settings).dump());
  writer.metadata("results", nlohmann::json(finished.results).dump());
  writer.metadata("current", training ? training->name() : "");
  if (training) {
    training->save_model(writer);
    training->save_rest(writer);
  }
  writer.save(options.save);
}

/// Reads what `save_checkpoint` wrote, but for the model in training.
inline Finished load_checkpoint(const Options& options, Settings& settings) {
  const infty::SafetensorsFile file(options.resume);
  Finished finished;
  try {
    settings = settings_from(nlohmann::json::parse(file.metadata("settings")));
    finished.results =
        nlohmann::json::parse(file.metadata("results")).get<std::vector<ModelResult>>();
  } catch (const nlohmann::json::exception& error) {
    infty::raise<infty::IoError>("sorting", options.resume,
                                 " is no checkpoint of this program: ", error.what());
  }
  finished.current = file.metadata("current");
  for (const ModelResult& result : finished.results)
    for (const auto& [name, entry] : file.tensors())
      if (name.starts_with(result.name + ".model."))
        finished.parameters.add_bytes(name, entry.dtype, entry.shape, file.read_bytes(name));
  return finished;
}

/// Trains and evaluates one model; false if --stop-at stopped it.
template <class Density>
bool run_model(const Options& options, const Settings& settings, const std::string& name,
               Finished& finished) {
  infty::HostPool::instance().reset_peak();
  Training<Density> training(settings, name);
  if (finished.current == name) training.load(options.resume);
  const Index first = training.steps();
  ProgressLine line(name, settings.steps, first);
  while (training.steps() < settings.steps) {
    if ((training.steps() - first) % options.save_every == 0)
      save_checkpoint(options, settings, finished, &training);
    if (options.stop_at > 0 && training.steps() >= options.stop_at) {
      save_checkpoint(options, settings, finished, &training);
      return false;
    }
    training.step();
    line.update(training.history());
  }
  std::fprintf(stderr, "%-7s evaluating on %lld sequences\n", name.c_str(),
               static_cast<long long>(settings.evaluation_sequences));
  finished.results.push_back(training.result());
  training.save_model(finished.parameters);
  save_checkpoint<Training<Density>>(options, settings, finished, nullptr);
  return true;
}

// Compiled in gaussian.cpp and parabola.cpp, side by side.
extern template bool run_model<infty::GaussianDensity>(const Options&, const Settings&,
                                                       const std::string&, Finished&);
extern template bool run_model<infty::TruncatedParabola>(const Options&, const Settings&,
                                                         const std::string&, Finished&);

}  // namespace sorting
