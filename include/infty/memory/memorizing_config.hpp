// SPDX-License-Identifier: MIT
#pragma once

#include <infty/core/checked.hpp>
#include <infty/nn/t5_bias.hpp>

namespace infty {

/// How what was retrieved and what the local context holds become one.
enum class MemorizingMerge {
  gate,  ///< two softmaxes, and a learned gate a head between them [Wu et al. 2022, §3.2]
  joint  ///< one softmax over both (L)
};

/// Constants of a `MemorizingAttention`. P is the paper [Wu et al. 2022], M its authors' program
/// (meliad), L the most used one (lucidrains' memorizing-transformers-pytorch); where nothing else
/// is said they agree.
struct MemorizingConfig {
  Index capacity = 8192;  ///< entries that a row remembers, 8,192 to 262,144 in P
  Index k = 32;           ///< entries that a query retrieves (P §4.2, M, L)
  MemorizingMerge merge = MemorizingMerge::gate;  ///< P and M; L: joint
  Index key_heads = 0;  ///< heads of keys and values: 0 for as many as queries have (P, M), 1 (L)
  /// Whether keys and queries have length 1, and each head a temperature (P, M, L).
  bool normalized = true;
  /// Vectors before the segment that are seen by local attention too: P has models with
  /// a Transformer-XL's cache and without; L calls it xl memory.
  Index cache = 0;
  /// How far back local attention sees at most (M: as far as a segment is long); 0: any distance.
  Index window = 0;
  bool overlapping = true;  ///< the memory holds what the cache holds, too (M); L: what has left it
  /// Of T5's position bias on local scores (P, L); 0: none, as M in its layer with a memory.
  Index buckets = 32;
  Index max_distance = 128;  ///< from which on distances share a bucket
  /// What the position bias is multiplied by; 0: 1 with a gate, sqrt(head_dim) (L) without.
  double bias_scale = 0;
  double temperature = 0;  ///< of normalised scores, at first; 0: 1 with a gate (M), 20 without (L)
  /// At first, of each head: sigmoid of it is the share of what was retrieved (M). Far below 0 the
  /// layer begins as one without a memory.
  double gate_bias = 0;
  double epsilon = 1e-6;  ///< under the root of a length, with a gate (M); L: a length is >= 1e-12
  bool strict = false;    ///< a place does not see itself (M); P does not say so, L: it does
  double null_score = -1000;  ///< where strict, of one more key, with value 0, that all see (M)
  /// Whether a cache that is not full has zeros in front, which are attended to (M).
  bool attend_to_nothing = false;

  /// The rule of the position bias.
  T5Buckets bucket_rule() const { return {.buckets = buckets, .max_distance = max_distance}; }

  /// Checks all constants but what depends on the attention's sizes.
  /// @throws infty::ValueError that names the first constant out of its range
  void validate() const {
    const char* const op = "MemorizingConfig";
    require_at_least(op, "capacity", capacity, 1);
    require_sizes(op, {{"capacity", capacity}});
    require_at_least(op, "k", k, 1);
    require(k <= capacity, op, "k is ", k, ": it must be at most capacity, ", capacity);
    require(key_heads == 0 || key_heads == 1, op, "key_heads is ", key_heads,
            ": it must be 0 (as many as queries have) or 1");
    require_at_least(op, "cache", cache, 0);
    require_sizes(op, {{"cache", cache}});
    require_at_least(op, "window", window, 0);
    require_sizes(op, {{"window", window}});
    require_at_least(op, "buckets", buckets, 0);
    require_at_least(op, "max_distance", max_distance, 1);
    require_sizes(op, {{"buckets", buckets}});
    require_sizes(op, {{"max_distance", max_distance}});
    if (buckets > 0) bucket_rule().validate();
    require_within(op, "bias_scale", bias_scale, 0, largest_constant);
    require_within(op, "temperature", temperature, 0, largest_constant);
    require_within(op, "epsilon", epsilon, least_divisor, largest_constant);
    require_within(op, "gate_bias", gate_bias, -largest_constant, largest_constant);
    require_within(op, "null_score", null_score, -largest_constant, largest_constant);
  }
};

}  // namespace infty
