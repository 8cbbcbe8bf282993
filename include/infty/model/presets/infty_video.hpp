// SPDX-License-Identifier: MIT
#pragma once

#include <infty/memory/long_term_config.hpp>

namespace infty::presets {

/// The long-term memory of ∞-Video beside a Video-LLaMA Q-former, for a
/// `LongTermMemory<T, GibbsDensity, RectangularBasis<T>>` [Santos et al. 2025]: a write is a chunk
/// of frames, each the mean of its 32 tokens; reads are by the Q-former's queries.
///
/// Beside a value stands its source: V is the authors' program, deep-spin/Infinite-Video at
/// 908be51, infty-Video-LLaMA, R the command in its README. The paper itself was not read.
/// @param sticky      whether the past is sampled where queries looked (R)
/// @param as_program  whether what is held to be a slip of the program is kept: the last cell is
///                    open, bins are shifted by one, places stay in the order drawn, and nothing is
///                    bounded
inline LongTermConfig infty_video(bool sticky = true, bool as_program = false) {
  LongTermConfig memory;
  memory.model_dim = 768;  // V
  memory.heads = 12;       // V: the Q-former's
  memory.head_dim = 64;    // V: the same
  memory.basis = 256;      // R; 64 with VideoChat2
  memory.widths = {};      // V: cells have none
  memory.samples = 512;    // V
  memory.tau = 0.75;       // R
  memory.ridge = 0.5;      // V
  memory.gate = false;     // V
  memory.bins = 128;       // V
  memory.bias = true;      // V: the Q-former's maps have biases
  memory.project = false;  // V: the Q-former projects
  memory.points = 1000;    // V
  memory.resampling = sticky ? Resampling::sticky : Resampling::even;
  if (as_program) {
    memory.last_cell = LastCell::open;  // V
    memory.shifted_bins = true;         // V
    memory.sort_draws = false;          // V
    memory.bounded = false;             // V
    memory.hold_short_writes = false;   // V
  }
  return memory;
}

}  // namespace infty::presets
