// SPDX-License-Identifier: MIT
#include <infty/memory/compressive_memory.hpp>
#include <infty/memory/infty_memory.hpp>
#include <infty/memory/lamemo.hpp>
#include <infty/memory/memorizing_attention.hpp>
#include <infty/memory/mixed_memory.hpp>
#include <infty/memory/short_term_memory.hpp>
#include <infty/memory/uniform_memory.hpp>
#include <infty/signal/gibbs_density.hpp>
#include <infty/signal/rectangular_basis.hpp>
#include <infty/signal/truncated_parabola.hpp>

#include "endurance/family.hpp"

namespace endurance {

namespace {

const infty::LongTermConfig long_term{.basis = 16, .widths = {.05, .2}, .samples = 16};

infty::LongTermConfig sampled(infty::Resampling how) {
  infty::LongTermConfig config = long_term;
  config.resampling = how;
  return config;
}

/// What writes blocks of 8 of as many functions.
infty::UniformMemory<float>::Config uniform(infty::Waiting waiting, double power) {
  infty::UniformMemory<float>::Config config{long_term};
  config.power = power;
  config.block = 8;
  config.waiting = waiting;
  return config;
}

/// Half of the heads, or a gate's share, for a power of 1 and for one of 1/2.
infty::MixedMemory<infty::UniformMemory<float>>::Config mixed(infty::MixedReading reading) {
  return {.reading = reading,
          .parts = {uniform(infty::Waiting::written, .5), uniform(infty::Waiting::written, 1)}};
}

}  // namespace

void add_attention(Trials& trials) {
  using infty::LongTermMemory, infty::Resampling;
  add_mixer<infty::ShortTermMemory<float>>(trials, "short-term", {.capacity = 64}, 1e18);
  for (const auto compression : {infty::Compression::convolution, infty::Compression::most_used})
    add_mixer<infty::CompressiveMemory<float>>(
        trials,
        compression == infty::Compression::convolution ? "compressive" : "compressive, most used",
        {.capacity = 32, .compressed_capacity = 32, .compression = compression}, 1e18);
  add_body<infty::LaMemo<float>>(trials, "LaMemo", {.capacity = 64});
  add_body<infty::InftyMemory<float>>(
      trials, "infty", {.attention = {.capacity = 32, .stride = 32}, .memory = long_term});
  add_body<infty::InftyMemory<float>>(
      trials, "infty, sticky",
      {.attention = {.capacity = 32, .stride = 32}, .memory = sampled(Resampling::sticky)});
  add_direct<LongTermMemory<float>>(trials, "long-term", long_term, 1e18);
  add_direct<LongTermMemory<float>>(trials, "long-term, sticky", sampled(Resampling::sticky), 1e18);
  add_direct<LongTermMemory<float>>(trials, "long-term, quantiles",
                                    sampled(Resampling::sticky_quantiles), 1e18);
  add_direct<LongTermMemory<float, infty::TruncatedParabola>>(trials, "long-term, parabola",
                                                              long_term, 1e18);
  add_direct<LongTermMemory<float, infty::GibbsDensity, infty::RectangularBasis<float>>>(
      trials, "long-term, Gibbs", long_term, 1e18);
  add_direct<LongTermMemory<float, infty::GibbsDensity, infty::RectangularBasis<float>>>(
      trials, "long-term, Gibbs, sticky", sampled(Resampling::sticky), 1e18);
  // Over Gaussians, as `--memory infty-gibbs` of the programs.
  using Gibbs = LongTermMemory<float, infty::GibbsDensity>;
  add_body<infty::WithMemory<infty::ShortTermMemory<float>, Gibbs>>(
      trials, "infty-gibbs", {.attention = {.capacity = 32, .stride = 32}, .memory = long_term});
  add_direct<Gibbs>(trials, "long-term, Gibbs, Gaussians", long_term, 1e18);
  add_direct<Gibbs>(trials, "long-term, Gibbs, Gaussians, sticky", sampled(Resampling::sticky),
                    1e18);
  using Uniform = infty::UniformMemory<float>;
  const std::size_t before = trials.size();
  infty::LongTermConfig by_power = long_term;
  by_power.power = 1;
  add_direct<LongTermMemory<float>>(trials, "long-term, power of 1", by_power, 1e18);
  add_direct<Uniform>(trials, "uniform", uniform(infty::Waiting::written, 1), 1e18);
  add_direct<Uniform>(trials, "uniform, attended", uniform(infty::Waiting::attended, 1), 1e18);
  add_direct<Uniform>(trials, "uniform, left out", uniform(infty::Waiting::left_out, 2), 1e18);
  add_body<infty::WithMemory<infty::ShortTermMemory<float>, Uniform>>(
      trials, "uniform, in the short-term memory",
      {.attention = {.capacity = 32}, .memory = uniform(infty::Waiting::short_term, 1)});
  add_direct<infty::MixedMemory<Uniform>>(trials, "mixed", mixed(infty::MixedReading::heads), 1e18);
  add_direct<infty::MixedMemory<Uniform>>(trials, "learned", mixed(infty::MixedReading::gate),
                                          1e18);
  // The longer the stream, the more vectors are of one mean, and the fewer blocks are written.
  for (std::size_t i = before; i < trials.size(); ++i) trials[i].falls = true;
  add_mixer<infty::MemorizingAttention<float>>(trials, "memorizing", {.capacity = 512, .k = 8},
                                               1e30);
  add_mixer<infty::MemorizingAttention<float>>(trials, "memorizing, joint",
                                               {.capacity = 512,
                                                .k = 8,
                                                .merge = infty::MemorizingMerge::joint,
                                                .key_heads = 1,
                                                .cache = 64,
                                                .overlapping = false},
                                               1e30);
}

}  // namespace endurance
