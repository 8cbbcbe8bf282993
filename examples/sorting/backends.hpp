// SPDX-License-Identifier: MIT
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include <nlohmann/json.hpp>

#include <infty/io/safetensors_writer.hpp>
#include <infty/parallel/any_communicator.hpp>

#include "../support/command.hpp"
#include "../support/sharing.hpp"
#include "training.hpp"

namespace sorting {

/// What decides where results go and when, but not what they are; a backend decides their
/// last digits.
struct Options {
  std::string program = "sorting", out = "sorting-results", save, resume;
  support::Saving saving = {};
  Index stop_at = 0, paper = 0;
  int threads = 0;
  std::string backend = "eigen";
  int device = 0;  ///< of `cuda`
  infty::AnyCommunicator ranks = {};
  support::Sharing sharing = {};
};

/// The checkpoint of a run that was stopped without --save.
inline std::filesystem::path interrupted_of(const Options& options) {
  return std::filesystem::path(options.out) / "interrupted.safetensors";
}

/// The command that goes on with a run that was stopped, on as many ranks.
inline std::string command_to_go_on(const Options& options) {
  std::vector<std::string> words{
      "--resume", options.save.empty() ? interrupted_of(options).string() : options.save, "--out",
      options.out};
  if (options.backend != "eigen") words.insert(words.end(), {"--backend", options.backend});
  if (options.device != 0) words.insert(words.end(), {"--device", std::to_string(options.device)});
  if (options.threads > 0)
    words.insert(words.end(), {"--threads", std::to_string(options.threads)});
  if (options.saving.every != support::Saving{}.every)
    words.insert(words.end(), {"--save-every", std::to_string(options.saving.every)});
  if (options.saving.minutes != support::Saving{}.minutes)
    words.insert(words.end(), {"--save-minutes", nlohmann::json(options.saving.minutes).dump()});
  return support::command_on(options.ranks.size(),
                             options.program + ' ' + support::command_line(words));
}

/// The models that are done, and their parameters.
struct Finished {
  std::vector<ModelResult> results;
  infty::SafetensorsWriter parameters;
  std::string current;  ///< the model whose training a checkpoint has interrupted
};

/// Trains and evaluates one model; false if --stop-at stopped it. One function for each backend and
/// density, compiled by itself, where its backend is built.
using RunModel = bool(const Options& options, const Settings& settings, const std::string& name,
                      Finished& finished);

RunModel run_eigen_gaussian, run_eigen_parabola;
RunModel run_eigen_fourier, run_eigen_power, run_eigen_rectangular;  // bases, for the Gaussian
RunModel run_eigen_blocks;  // for both, of an LTM that is written by blocks
RunModel run_thrust_gaussian, run_thrust_parabola;
RunModel run_cuda_gaussian, run_cuda_parabola;

/// Makes GPU `number` the one that is worked on, and describes it. Throws infty::Error that says
/// what to do if it cannot be used.
std::string use_gpu(int number);

}  // namespace sorting
