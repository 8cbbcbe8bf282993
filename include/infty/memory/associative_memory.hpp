// SPDX-License-Identifier: MIT
#pragma once

#include <algorithm>
#include <cstddef>
#include <vector>

#include <infty/autograd/elementwise.hpp>
#include <infty/core/checked.hpp>
#include <infty/core/number.hpp>
#include <infty/core/state.hpp>
#include <infty/memory/fwd.hpp>
#include <infty/memory/ops/associative.hpp>
#include <infty/memory/ops/dpfp.hpp>
#include <infty/nn/linear.hpp>
#include <infty/nn/unit_vectors.hpp>

namespace infty {

/// The constants of an `AssociativeMemory`. P is the paper [Rodkin et al. 2024], A the authors'
/// program, and E its branch `experimental`, with their later models.
struct AssociativeConfig {
  Index heads = 1;     ///< memories side by side, each with its slices of the maps (P, A: 1)
  Index key_dim = 64;  ///< of keys and queries before their features, of all heads (A's scripts)
  Index nu = 3;        ///< ν of the features, DPFP-ν (P, A)
  bool correction = true;      ///< γ: of a key known already less comes to the mass (P)
  bool unit_features = false;  ///< features of length 1 (E)
  bool denominator = true;     ///< what is read is divided by its mass (P); E can do without
  bool gating = false;         ///< a β for each dimension of the values, not one a head (E)
  /// Whether no more is taken off a key than the memory holds of it, (1 - γ) v̄, and vectors that
  /// are alike count as one together, by `contracting_share` of β and γ. Without it, as in P, v̄ is
  /// taken off whole, more than is there where a key is half new; and segments of vectors that are
  /// alike can be corrected by more than they were off, again and again: two of these in turn grow
  /// without limit.
  bool bounded = true;
  double epsilon = 1e-5;         ///< beside masses (A); P has none
  double feature_floor = 1e-12;  ///< least length of features that are made 1 long (E)

  /// Features of a head's key, 2 ν key_dim / heads.
  Index features() const { return 2 * nu * (key_dim / heads); }

  /// Checks all constants.
  /// @throws infty::ValueError that names the first constant out of its range
  void validate() const {
    const char* const name = "AssociativeConfig";
    require_at_least(name, "heads", heads, 1);
    require_at_least(name, "key_dim", key_dim, 1);
    require_at_least(name, "nu", nu, 1);
    require(key_dim % heads == 0, name, "key_dim is ", key_dim, ", heads are ", heads,
            ": they must divide it");
    require_sizes(name, {{"key_dim", key_dim}, {"nu", nu}, {"halves", 2}});
    require(epsilon >= 1e-30 && math::is_finite(epsilon), name, "epsilon is ", epsilon,
            ": it must be finite and at least 1e-30");
    require(feature_floor >= 1e-30 && math::is_finite(feature_floor), name, "feature_floor is ",
            feature_floor, ": it must be finite and at least 1e-30");
  }
};

/// What an `AssociativeMemory` remembers. A gradient flows through it from segment to segment.
template <class T, class Backend>
struct AssociativeState {
  Variable<T, Backend> memory;  ///< A, [batch, heads, features, d / heads]
  Variable<T, Backend> mass;  ///< z, [batch, heads, features]; without denominators of no features
  RowCounts written;          ///< segments in the memory of each row

  template <class Visitor>
  void visit(Visitor&& see) {
    see("memory", memory);
    see("mass", mass);
    see("written", written);
  }
};

/// The memory of an Associative Recurrent Memory Transformer's layer [Rodkin et al. 2024]: A =
/// Σ φ(k) vᵀ, read by Aᵀφ(q) / (z φ(q)). What it holds of a key already is taken off the value
/// that is written, which is weighed by β: the delta rule, for all vectors of a segment at once
/// against the memory before them.
template <class T, class Backend>
class AssociativeMemory {
 public:
  using Scalar = T;
  using BackendType = Backend;
  using V = Variable<T, Backend>;
  using Config = AssociativeConfig;
  using State = AssociativeState<T, Backend>;

  Linear<T, Backend> query, key;  ///< W_q and W_k, d -> key_dim
  Linear<T, Backend> value;       ///< W_v, d -> d, zeros at first: a fresh memory adds nothing (A)
  Linear<T, Backend> strength;    ///< what β is the sigmoid of, d -> heads, or -> d with `gating`

  /// Makes a memory of vectors of width d.
  /// @throws infty::ValueError if the configuration is not valid, and unless its heads divide d
  AssociativeMemory(AssociativeConfig config, Index d, Random random)
      : query((check(config, d), d), config.key_dim, random.split(0), false),
        key(d, config.key_dim, random.split(1), false),
        value(d, d, random.split(2), false),
        strength(d, config.gating ? d : config.heads, random.split(3)),
        config_(config),
        d_(d) {
    value.weight.value().fill(0);
  }

  /// The constants as given.
  const AssociativeConfig& config() const { return config_; }

  template <class Visitor>
  void visit(Visitor&& see) {
    see("query", query);
    see("key", key);
    see("value", value);
    see("strength", strength);
  }

  /// A state of fresh rows. @throws infty::ValueError unless 1 <= batch <= `largest_size`
  State make_state(Index batch, Index /*first_row*/ = 0) const {
    require_rows("AssociativeMemory::make_state", batch);
    const Index H = config_.heads, F = config_.features();
    const auto zeros = [](Shape shape) { return V(Tensor<T, Backend>::zeros(shape)); };
    return {zeros(Shape{batch, H, F, d_ / H}), zeros(Shape{batch, H, config_.denominator ? F : 0}),
            RowCounts(static_cast<std::size_t>(batch), 0)};
  }

  /// What vectors [B, L, d] read, [B, L, d]: zeros in rows that nothing was written to.
  /// @throws infty::ShapeError
  V read(const State& state, const V& x) const {
    check(state, x);
    if (is_fresh(state)) return V(Tensor<T, Backend>::zeros(x.shape()));
    return detail::side_by_side(recall(state, features(query, x)));
  }

  /// Takes in vectors [B, L, d], L >= 0. @throws infty::ShapeError; then the state is as it was
  void write(State& state, const V& x) const {
    check(state, x);
    if (x.dim(1) == 0) return;
    const V phi = features(key, x);
    V beta = detail::by_head(sigmoid(strength.forward(x)), config_.heads);
    V values = detail::by_head(value.forward(x), config_.heads);
    const bool fresh = is_fresh(state);
    const auto unwritten = fresh_rows(state);
    Tensor<T, Backend> share, gamma;  // of what is written; empty for 1 everywhere
    if (!fresh && config_.denominator && (config_.bounded || config_.correction))
      gamma = new_share(state.mass.value(), phi.value(), unwritten, config_.epsilon, of_length());
    if (!fresh) {
      V held = recall(state, phi);
      if (config_.bounded && config_.denominator) held = held - held * V(gamma);
      values = values - held;
    }
    if (!fresh && config_.bounded) {
      share = contracting_share(phi.value(), beta.value(), state.mass.value(), unwritten,
                                config_.epsilon, of_length());
      beta = beta * V(share);
    }
    State next = state;
    next.memory = associative_write(state.memory, phi, beta * values);
    if (config_.denominator) {
      if (config_.correction && !fresh) share = share.empty() ? gamma : times(share, gamma);
      next.mass = mass_write(state.mass, phi, share);
    }
    for (Index& n : next.written) ++n;
    state = next;
  }

 private:
  /// What stands beside φ φ in γ.
  double of_length() const { return config_.unit_features ? 0 : config_.epsilon; }

  static Tensor<T, Backend> times(const Tensor<T, Backend>& a, const Tensor<T, Backend>& b) {
    return (V(a) * V(b)).value();
  }

  static void check(const AssociativeConfig& config, Index d) {
    config.validate();
    require(d >= 1 && d % config.heads == 0, "AssociativeMemory", "d is ", d, ", heads are ",
            config.heads, ": they must divide it, and it must be >= 1");
    require_sizes("AssociativeMemory", {{"features", config.features()}, {"d", d}});
    require_sizes("AssociativeMemory", {{"d", d}, {"d of values", d}});
  }

  void check(const State& state, const V& x) const {
    const Index batch = detail::checked_rows("AssociativeMemory", state);
    const Index H = config_.heads, F = config_.features();
    const Shape memory{batch, H, F, d_ / H}, mass{batch, H, config_.denominator ? F : 0};
    require<ShapeError>(state.memory.shape() == memory && state.mass.shape() == mass,
                        "AssociativeMemory", "the state holds a memory ", state.memory.shape(),
                        " and a mass ", state.mass.shape(), ": another made it, ours are ", memory,
                        " and ", mass);
    require<ShapeError>(x.shape().rank() == 3 && x.dim(0) == batch && x.dim(2) == d_,
                        "AssociativeMemory", "vectors are ", x.shape(), ": they must be [", batch,
                        ", L, ", d_, "]");
  }

  static bool is_fresh(const State& state) {
    return std::all_of(state.written.begin(), state.written.end(), [](Index n) { return n == 0; });
  }
  static Tensor<Index, Backend> fresh_rows(const State& state) {
    std::vector<Index> fresh;
    for (const Index n : state.written) fresh.push_back(n == 0 ? 1 : 0);
    return Tensor<Index, Backend>::from(Shape{static_cast<Index>(fresh.size())}, fresh);
  }

  /// φ of a map of vectors, [B, H, L, F].
  V features(const Linear<T, Backend>& map, const V& x) const {
    const V phi = dpfp(detail::by_head(map.forward(x), config_.heads), config_.nu);
    return config_.unit_features ? unit_vectors(phi, 0, 0, config_.feature_floor) : phi;
  }

  /// What features read, [B, H, L, V].
  V recall(const State& state, const V& phi) const {
    return associative_read(phi, state.memory, state.mass, {.epsilon = config_.epsilon});
  }

  AssociativeConfig config_;
  Index d_;
};

}  // namespace infty
