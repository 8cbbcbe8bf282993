// SPDX-License-Identifier: MIT
#pragma once

#include <cstdint>
#include <vector>

#include <infty/core/checked.hpp>
#include <infty/core/config.hpp>
#include <infty/core/error.hpp>
#include <infty/core/number.hpp>
#include <infty/signal/rectangular_basis.hpp>
#include <infty/signal/ridge_settings.hpp>

namespace infty {

/// How a query's scores become the mean and variance of its density.
enum class DensityParameters {
  affine,   ///< learned affine maps of the scores [Martins et al. 2022, Eq. 9, 10]
  moments,  ///< mean and variance of the mixture that the softmaxed scores weigh
};

/// Where the old signal is sampled when it is contracted.
enum class Resampling {
  even,              ///< at m / samples [Martins et al. 2022, Eq. 14]
  sticky,            ///< drawn where attention went [Martins et al. 2022, Eq. 16, 17]
  sticky_quantiles,  ///< the same, at the quantiles of that distribution instead of draws
};

/// All constants of a long-term memory. Defaults are those of the paper's sorting experiment
/// [Martins et al. 2022, §4.1]; `model/presets.hpp` has them for every experiment, and says where
/// each value comes from and who says otherwise.
struct LongTermConfig {
  Index model_dim = 300;  ///< d, width of the vectors written; `WithMemory` takes its attention's
  Index heads = 6;     ///< H, densities that a query reads by; `WithMemory` takes its attention's
  Index head_dim = 0;  ///< D, width of a head; 0 stands for model_dim / heads
  /// N, basis functions, what is kept of a row: [N, d]. Of a Gaussian basis, a multiple of the
  /// number of widths.
  Index basis = 1024;
  /// Standard deviations of the Gaussian basis functions, in units of the signal's length [0, 1];
  /// of no account for a basis that is made of N alone.
  std::vector<double> widths = {.01, .05};
  Index samples = 512;  ///< M, places that the old signal is sampled at by a contraction (Eq. 14)
  double tau = 0.75;    ///< share of [0, 1] that the past is contracted to, in (0, 1) (Eq. 13)
  /// p > 0 contracts by `PowerContraction` in place of tau, so that all of the past stays: equally
  /// dense for 1, the newer denser above. 0 contracts by tau.
  double power = 0;
  /// A rule of one's own in place of both; empty for these. It is not saved with a model.
  ContractionRule contraction = {};
  double ridge = 1.0;    ///< λ > 0, penalty of the ridge regression (Eq. 5)
  bool gate = true;      ///< whether a learned gate says what of new vectors is written (Eq. 18)
  double sigma0 = 0.05;  ///< σ₀ > 0, width of the prior that the KL term draws to (Eq. 20)
  double variance_floor = 1e-6;  ///< least sigma²; no effect on `moments`
  DensityParameters parameters = DensityParameters::affine;  ///< (Eq. 9, 10)
  Resampling resampling = Resampling::even;                  ///< (Eq. 14); sticky: (Eq. 16, 17)
  Index bins = 128;                 ///< of the attention histogram of sticky memories (Eq. 16)
  std::uint64_t sampling_seed = 0;  ///< of the draws of `Resampling::sticky`
  /// Whether samples of the old signal are clamped, coordinate by coordinate, to the largest |x|
  /// ever written, which bounds the signal for ever: |X(t)| <= 64 of these (docs/stability.md).
  /// Without it, as in the paper, writes of few vectors and sticky memories may grow without limit.
  bool bounded = true;
  /// Whether a write of few vectors holds each of them over several places, so that its part of the
  /// signal is as densely covered as the past (`held_points`); in the paper it is not.
  bool hold_short_writes = true;
  /// Vectors wait in the state until there are so many, and are written together: each write wears
  /// the past (`retention`). What waits is not read. 1 writes at once.
  Index group = 1;
  /// Whether a read may leave out basis functions whose share is below the rounding of the sum, at
  /// most epsilon / 64 of the largest that one can have (`QueryOrder`), and take fewer functions
  /// that the N are sums of, to half a rounding (`fewer_gaussians`); without it all are summed as
  /// they are.
  bool skip_tails = true;
  /// A row that has taken in so many vectors or more is cleared before the next write, as in the
  /// authors' GPT-2 program; 0 never clears.
  Index threshold = 0;
  /// Whether keys and values have biases, as in ∞-Video's program; for a density of scores only.
  bool bias = false;
  /// Whether what the heads read is mapped to d (Eq. 11); without, reads are [B, Q, H D].
  bool project = true;
  Index points = 1000;  ///< of the trapezoid rule over [0, 1] for a density of scores (∞-Video's)
  LastCell last_cell = LastCell::closed;  ///< of a rectangular basis; open in ∞-Video's program
  /// Whether a sticky memory with a density of scores places the mass of bin b + 1 at bin b and
  /// loses that of the first, as ∞-Video's program does.
  bool shifted_bins = false;
  bool sort_draws = true;  ///< of `Resampling::sticky`; ∞-Video's program keeps the drawn order
  /// Whether a first write of an odd number of vectors has them at the midpoints of their cells, as
  /// in the authors' dialogue program (`first_positions`).
  bool midpoints = false;
  /// Whether the KL term draws the mean of a density to mu0, too, by (μ - μ₀)² / (2 σ₀²), as the
  /// authors' GPT-2 program as released does; in the paper the mean is free (Eq. 20).
  bool mean_term = false;
  double mu0 = -1;  ///< μ₀ of the mean term; -1 is the program's, outside of the signal

  /// D, with 0 resolved.
  Index resolved_head_dim() const { return head_dim > 0 ? head_dim : model_dim / heads; }

  /// What the matrices of writes are made of. A `FixedContraction` is its tau, and not taken from
  /// the grid that shares are which change.
  RidgeSettings ridge_settings() const {
    const auto* const fixed = contraction.target<FixedContraction>();
    RidgeSettings settings{.penalty = ridge,
                           .samples = samples,
                           .tau = fixed ? fixed->tau : tau,
                           .hold = hold_short_writes,
                           .bounded = bounded,
                           .midpoints = midpoints};
    if (fixed || (!contraction && power == 0)) return settings;
    settings.contraction = contraction ? contraction : PowerContraction{power};
    settings.entries = 512;  // the next stream asks for all of them again
    return settings;
  }

  /// Checks all constants.
  /// @throws infty::ValueError that names the first constant out of its range
  void validate() const {
    const auto positive = [](const char* name, double value) {
      require(math::is_finite(value) && value > 0, "LongTermConfig", name, " is ", value,
              ": it must be positive and finite");
    };
    const auto within = [](const char* name, double value, double least, double most) {
      require(math::is_finite(value) && value >= least && value <= most, "LongTermConfig", name,
              " is ", value, ": it must lie in [", least, ", ", most, "]");
    };
    require_at_least("LongTermConfig", "model_dim", model_dim, 1);
    require_at_least("LongTermConfig", "heads", heads, 1);
    require_at_least("LongTermConfig", "head_dim", head_dim, 0);
    require(head_dim > 0 || model_dim % heads == 0, "LongTermConfig", "model_dim is ", model_dim,
            ", heads is ", heads, ": head_dim must be given where heads does not divide model_dim");
    require_at_least("LongTermConfig", "basis", basis, 1);
    require_at_least("LongTermConfig", "samples", samples, 1);
    require_at_least("LongTermConfig", "bins", bins, 1);
    require_at_least("LongTermConfig", "points", points, 2);
    require_at_least("LongTermConfig", "threshold", threshold, 0);
    require_at_least("LongTermConfig", "group", group, 1);
    require(math::is_finite(tau) && tau > 0 && tau < 1, "LongTermConfig", "tau is ", tau,
            ": it must lie in (0, 1)");
    require(math::is_finite(power) && power >= 0, "LongTermConfig", "power is ", power,
            ": it must be 0, or positive and finite");
    positive("ridge", ridge);
    // Time is [0, 1]. Beyond these the divergence of a density is no number in float.
    within("sigma0", sigma0, 1e-4, 1e4);
    within("variance_floor", variance_floor, 1e-30, 1e30);
    within("mu0", mu0, -1e4, 1e4);
    const NamedSize dim{"model_dim", model_dim}, functions{"basis", basis};
    require_sizes("LongTermConfig", {dim, {"heads", heads}, {"head_dim", resolved_head_dim()}});
    if (gate) require_sizes("LongTermConfig", {dim, dim});
    require_sizes("LongTermConfig", {functions, dim});
    require_sizes("LongTermConfig", {functions, functions});
    require_sizes("LongTermConfig", {functions, {"samples", samples}});
    require_sizes("LongTermConfig", {{"bins", bins}});
    require_sizes("LongTermConfig", {{"group", group}, dim});
    require_sizes("LongTermConfig", {functions, {"points", points}});
  }
};

}  // namespace infty
