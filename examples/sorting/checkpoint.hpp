// SPDX-License-Identifier: MIT
#pragma once

#include <algorithm>
#include <filesystem>
#include <iterator>
#include <string>
#include <vector>

#include <infty/parallel/any_communicator.hpp>
#include <infty/train/checkpoint.hpp>

#include "../support/claims.hpp"
#include "../support/json.hpp"
#include "../support/settings.hpp"
#include "backends.hpp"

namespace sorting {

/// Saves the models that are done and, if there is one, the model in training, which all ranks do
/// together: the first writes.
template <class Training>
void save_checkpoint(const std::filesystem::path& path, const Settings& settings,
                     const Finished& finished, const Training* training,
                     infty::AnyCommunicator ranks) {
  infty::SafetensorsWriter writer;
  if (ranks.rank() > 0) {
    if (training) training->save(writer, ranks);
    return ranks.barrier();
  }
  writer = finished.parameters;
  infty::mark_checkpoint(writer);
  writer.metadata("settings", support::to_json(settings).dump());
  writer.metadata("results", support::json_of(finished.results).dump());
  writer.metadata("current", training ? training->name() : "");
  if (training) training->save(writer, ranks);
  writer.save(path);
  ranks.barrier();
}

/// Throws infty::IoError unless a checkpoint's result can be one of these settings.
inline void require_result(const ModelResult& result, const Settings& s, const std::string& where) {
  const auto named = std::count(s.models.begin(), s.models.end(), result.name);
  infty::require<infty::IoError>(named == 1, "sorting", where, ": results of the model ",
                                 infty::detail::printable(result.name),
                                 ", which its settings do not name");
  require_steps(result.history, s.steps, where + ": the history of " + result.name);
  for (const auto& layer : result.attention)
    infty::require<infty::IoError>(std::ssize(layer) == s.bins, "sorting", where,
                                   ": the attention of ", result.name, " has ", layer.size(),
                                   " bins, its settings say ", s.bins);
}

/// Reads what `save_checkpoint` wrote, but for the model in training. Throws infty::Error that says
/// what is wrong with it.
inline Finished load_checkpoint(const Options& options, Settings& settings) {
  const infty::SafetensorsFile file(options.resume);
  infty::require_checkpoint(file);
  auto stored = support::parse_json(file.metadata("settings"), options.resume);
  // Version 1 had no choice of functions.
  if (infty::version_of(file) == infty::first_checkpoint_version && stored.is_object())
    stored.emplace("functions", Settings{}.functions);
  settings = support::settings_from<Settings>(stored, options.resume);
  validate(settings);
  Finished finished;
  finished.results = support::parse<std::vector<ModelResult>>(file.metadata("results"),
                                                              options.resume + ": results");
  finished.current = file.metadata("current");
  for (const ModelResult& result : finished.results) {
    require_result(result, settings, options.resume);
    for (const auto& [name, entry] : file.tensors())
      if (name.starts_with(result.name + ".model."))
        finished.parameters.add_bytes(name, entry.dtype, entry.shape, file.read_bytes(name));
  }
  if (!finished.current.empty())
    support::require_fits(file, model_config(settings), finished.current + ".model.",
                          {{"short-term", settings.short_term.capacity},
                           {"basis", settings.memory.basis},
                           {"samples", settings.memory.samples},
                           {"sticky-bins", settings.memory.bins},
                           {"block", settings.contraction.block},
                           {"bins", settings.bins},
                           {"batch", settings.batch},
                           {"length", settings.task.length}});
  return finished;
}

}  // namespace sorting
