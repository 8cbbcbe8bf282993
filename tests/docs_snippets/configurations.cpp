// SPDX-License-Identifier: MIT
// The page lists the fields of what its recipes fill, in their order: the initialisers do not
// compile in another order, the bindings not with another number.
#include <infty/memory/infty_memory.hpp>
#include <infty/model/block.hpp>
#include <infty/model/transformer_config.hpp>
#include <infty/nn/causal_attention.hpp>
#include <infty/nn/feed_forward.hpp>

#include "support/catch.hpp"

TEST_CASE("docs: configurations by all of their fields, in the order of declaration") {
  using infty::Random;
  using T = float;
  const infty::AttentionSizes sizes{.model_dim = 300, .heads = 6, .head_dim = 50};

  const infty::TransformerConfig transformer{.vocabulary = 21,
                                             .model_dim = 300,
                                             .layers = 3,
                                             .heads = 6,
                                             .head_dim = 0,  // model_dim / heads
                                             .feed_forward = 300,
                                             .pre_norm = false,
                                             .tie_embedding = true,
                                             .dropout = 0,
                                             .cutoffs = {},
                                             .div_value = 1,
                                             .embedding_dim = 0,
                                             .embedding_deviation = .02,
                                             .tie_projections = true};

  const infty::ShortTermConfig attention{.capacity = 1024, .stride = 0};

  const infty::LongTermConfig memory{.model_dim = 300,
                                     .heads = 6,
                                     .head_dim = 0,  // model_dim / heads
                                     .basis = 1024,
                                     .widths = {.01, .05},
                                     .samples = 512,
                                     .tau = .75,
                                     .power = 0,
                                     .contraction = {},
                                     .ridge = 1,
                                     .gate = true,
                                     .sigma0 = .05,
                                     .variance_floor = 1e-6,
                                     .parameters = infty::DensityParameters::affine,
                                     .resampling = infty::Resampling::even,
                                     .bins = 128,
                                     .sampling_seed = 0,
                                     .bounded = true,
                                     .hold_short_writes = true,
                                     .group = 1,
                                     .skip_tails = true,
                                     .threshold = 0,
                                     .bias = false,
                                     .project = true,
                                     .points = 1000,
                                     .last_cell = infty::LastCell::closed,
                                     .shifted_bins = false,
                                     .sort_draws = true,
                                     .midpoints = false,
                                     .mean_term = false,
                                     .mu0 = -1};

  const infty::InftyConfig both{.attention = attention, .memory = memory, .normed = true};

  const infty::Block<infty::CausalAttention<T>> block{
      .mixer = infty::CausalAttention<T>({}, sizes, Random(1)),
      .mixer_norm = infty::LayerNorm<T>(sizes.model_dim),
      .feed = infty::FeedForward<T>(sizes.model_dim, 300, Random(2)),
      .feed_norm = infty::LayerNorm<T>(sizes.model_dim),
      .norms_in_front = true};

  const auto& [vocabulary, model_dim, layers, heads, head_dim, feed_forward, pre_norm,
               tie_embedding, dropout, cutoffs, div_value, embedding_dim, embedding_deviation,
               tie_projections] = transformer;
  CHECK(transformer.resolved_head_dim() == model_dim / heads);
  const auto& [capacity, stride] = attention;
  CHECK(capacity == infty::ShortTermConfig{}.capacity);
  const auto& [d, H, D, N, widths, samples, tau, power, contraction, ridge, gate, sigma0,
               variance_floor, parameters, resampling, bins, sampling_seed, bounded,
               hold_short_writes, group, skip_tails, threshold, bias, project, places, last_cell,
               shifted_bins, sort_draws, midpoints, mean_term, mu0] = memory;
  CHECK(N == infty::LongTermConfig{}.basis);
  CHECK(widths == infty::LongTermConfig{}.widths);
  const auto& [of_attention, of_memory, normed] = both;
  CHECK(normed);
  CHECK(of_memory.has_value());
  const auto& [mixer, mixer_norm, feed, feed_norm, norms_in_front] = block;
  CHECK(norms_in_front == block.norms_in_front);
}
