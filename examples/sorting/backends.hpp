// SPDX-License-Identifier: MIT
#pragma once

#include <string>

#include <infty/io/safetensors_writer.hpp>

#include "training.hpp"

namespace sorting {

/// What decides where results go and when, but not what they are; a backend decides their
/// last digits.
struct Options {
  std::string out = "sorting-results", save, resume;
  Index save_every = 100, stop_at = 0, paper = 0;
  int threads = 0;
  std::string backend = "eigen";
  int device = 0;  ///< of `cuda`
};

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
RunModel run_thrust_gaussian, run_thrust_parabola;
RunModel run_cuda_gaussian, run_cuda_parabola;

/// Makes GPU `number` the one that is worked on, and describes it. Throws infty::Error that says
/// what to do if it cannot be used.
std::string use_gpu(int number);

}  // namespace sorting
