// SPDX-License-Identifier: MIT
#pragma once

#include <array>
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include <infty/eigen/default.hpp>
#include <infty/model/block.hpp>
#include <infty/model/layers.hpp>
#include <infty/model/transformer_lm.hpp>
#include <infty/nn/any_layer.hpp>

// All memories of the library, as layers that vectors go through one after the other: see
// endurance/family.cpp.

namespace endurance {

using infty::Index;
using infty::Random;
using Layer = infty::AnyLayer<float>;
using V = infty::Variable<float>;

inline constexpr infty::AttentionSizes sizes{.model_dim = 16, .heads = 2, .head_dim = 8};
inline constexpr Index words = 7;  ///< that lookups of words know

/// What wishes a memory ill.
enum class Stream {
  random,       ///< from a standard normal distribution
  constant,     ///< the same vector for ever
  alternating,  ///< a vector and its negative
  zeros,        ///< nothing at all
  denormals,    ///< of elements of some 1e-40
  jumps,        ///< every 509th vector is as large as can be, the others are of size 1
  large,        ///< all vectors are
  stretches,    ///< one of four vectors 64 times, then another: segments of vectors that are alike
  gates,        ///< random ones, and gates, rates and decays that know no doubt
};
inline constexpr std::array streams{"random", "constant", "alternating", "zeros", "denormals",
                                    "jumps",  "large",    "stretches",   "gates"};

/// A memory in its place.
struct Trial {
  std::string memory;
  bool alone = false;            ///< as it is, or in a block with norms in front
  std::function<Layer()> make;   ///< of width `sizes.model_dim`
  double most = 1e30;            ///< the largest elements for which all stays finite, and no larger
  std::vector<Stream> but = {};  ///< streams that docs/memories.md says it does not withstand
  bool falls = false;  ///< whether a vector takes less work the more there are, to a hundredth
};

using Trials = std::vector<Trial>;

/// Those of attention and what is beside it, of decorators and lookups, of what stands in the place
/// of attention, and of what learns while it reads.
void add_attention(Trials& trials);
void add_decorators(Trials& trials);
void add_linear(Trials& trials);
void add_titans(Trials& trials);

/// Holds memories that are sums to the same in double behind so many vectors, and prints how far
/// they are off; how many are too far.
int try_sums(Index vectors);

/// A memory by itself, as a layer: every segment is a query first and is then written.
template <class M>
struct Direct {
  using Scalar = float;
  using BackendType = infty::EigenBackend;
  using State = typename M::State;

  M memory;

  template <class Visitor>
  void visit(Visitor&& see) {
    see("memory", memory);
  }
  State make_state(Index batch, Index first_row = 0) const {
    return memory.make_state(batch, first_row);
  }
  V forward(State& state, const V& x, infty::Pass<float>&) const {
    const V y = memory.read(state, x);
    memory.write(state, x, infty::RowCounts(static_cast<std::size_t>(x.dim(0)), x.dim(1)));
    return y;
  }
};

/// A `Memory` of width `sizes.model_dim` by itself.
template <class M>
void add_direct(Trials& trials, const std::string& name, typename M::Config config, double most,
                const std::vector<Stream>& but = {}) {
  config.model_dim = sizes.model_dim;
  config.heads = sizes.heads;
  config.head_dim = sizes.head_dim;
  trials.push_back({name, true, [=] { return Layer(Direct<M>{M(config, Random(1))}); }, most, but});
}

/// A mixer in the body of a transformer of one layer with norms in front.
template <class Mixer>
void add_body(Trials& trials, const std::string& name, const typename Mixer::Config& config,
              const std::vector<Stream>& but = {}) {
  trials.push_back({name, false,
                    [=] {
                      const infty::TransformerLM<Mixer> model({.vocabulary = 2,
                                                               .model_dim = sizes.model_dim,
                                                               .layers = 1,
                                                               .heads = sizes.heads,
                                                               .head_dim = sizes.head_dim,
                                                               .feed_forward = 32,
                                                               .pre_norm = true},
                                                              config, Random(1));
                      return Layer(model.body);
                    },
                    1e30, but});
}

/// The same, and the mixer alone, for vectors of elements up to `most`.
template <class Mixer>
void add_mixer(Trials& trials, const std::string& name, const typename Mixer::Config& config,
               double most, const std::vector<Stream>& but = {}) {
  add_body<Mixer>(trials, name, config, but);
  trials.push_back({name, true, [=] { return Layer(Mixer(config, sizes, Random(1))); }, most, but});
}

/// A stack of one block with norms in front.
template <class Mixer>
infty::Layers<infty::Block<Mixer>> stack_of(Mixer mixer) {
  infty::Layers<infty::Block<Mixer>> stack;
  stack.layers.push_back({.mixer = std::move(mixer),
                          .mixer_norm = infty::LayerNorm<float>(sizes.model_dim),
                          .feed = infty::FeedForward<float>(sizes.model_dim, 32, Random(2)),
                          .feed_norm = infty::LayerNorm<float>(sizes.model_dim)});
  return stack;
}

}  // namespace endurance
