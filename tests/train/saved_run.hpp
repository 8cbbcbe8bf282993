// SPDX-License-Identifier: MIT
#pragma once

#include <filesystem>

#include <infty/io/safetensors.hpp>
#include <infty/train/checkpoint.hpp>

namespace infty::tests {

/// Saves all that a run of a training has: model, Adam, random numbers, a state.
template <class Run>
void save_run(SafetensorsWriter& writer, const Run& run) {
  save_parameters(writer, run.model, "model.");
  save_optimizer(writer, run.adam, "optimizer.");
  save_random(writer, run.random, "random");
  save_state(writer, run.state, "state.");
}

/// Loads it, all or nothing.
template <class Run>
void load_run(const std::filesystem::path& path, Run& run) {
  CheckpointLoader loader(path);
  loader.parameters(run.model, "model.")
      .optimizer(run.adam, "optimizer.")
      .random(run.random, "random");
  loader.state(run.state, "state.").apply();
}

}  // namespace infty::tests
