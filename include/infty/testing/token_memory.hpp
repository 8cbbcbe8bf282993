// SPDX-License-Identifier: MIT
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include <infty/autograd/elementwise.hpp>
#include <infty/core/random.hpp>
#include <infty/model/transformer_lm.hpp>
#include <infty/testing/invariants.hpp>

namespace infty::testing {

namespace detail {

/// Of a `TokenMemory`'s mixers, and of one that is tried by itself.
inline constexpr AttentionSizes mixer_sizes{.model_dim = 4, .heads = 2, .head_dim = 3};

}  // namespace detail

/// A small language model as a memory of tokens, as the streams of testing/invariants.hpp want it:
/// it is written by observing and read by answering, of which the state does not come to know.
template <class Mixer>
class TokenMemory {
  using T = typename Mixer::Scalar;
  using Backend = typename Mixer::BackendType;

 public:
  /// What is wrapped.
  using Model = TransformerLM<Mixer>;
  using Tokens = typename Model::Tokens;

  /// Parameters are drawn, those that start as zeros and ones too.
  explicit TokenMemory(const typename Model::MemoryConfig& memory, bool pre_norm = false,
                       Random weights = Random(1))
      : model_({.vocabulary = 5,
                .model_dim = detail::mixer_sizes.model_dim,
                .layers = 2,
                .heads = detail::mixer_sizes.heads,
                .head_dim = detail::mixer_sizes.head_dim,
                .feed_forward = 5,
                .pre_norm = pre_norm,
                .embedding_deviation = 0},
               memory, weights) {
    Random random(2);
    for (auto& parameter : parameters<T, Backend>(model_)) {
      Tensor<T, Backend> shift(parameter.shape());
      fill_uniform(shift, T(-.2), T(.2), random);
      Backend::copy(parameter.value().data(),
                    (parameter + Variable<T, Backend>(shift)).value().data(), parameter.size());
    }
  }

  /// The model inside.
  Model& model() { return model_; }
  /// The model inside.
  const Model& model() const { return model_; }

  /// A state of fresh rows.
  typename Model::State make_state(Index batch) const { return model_.make_state(batch); }
  /// Observes tokens [batch, L].
  void write(typename Model::State& state, const Tokens& tokens) const {
    model_.observe(state, tokens);
  }
  /// Hidden vectors [batch, L, d] of tokens [batch, L] behind a state, which stays as it is.
  Variable<T, Backend> read(const typename Model::State& state, const Tokens& tokens) const {
    auto branch = state;
    return model_.forward(branch, tokens);
  }

 private:
  Model model_;
};

/// Random tokens [batch, length] for a `TokenMemory`.
template <class Backend = EigenBackend>
Tensor<Index, Backend> some_tokens(Index batch, Index length, Random& random) {
  std::vector<Index> tokens(static_cast<std::size_t>(batch * length));
  for (Index& token : tokens) token = random.below(5);
  return Tensor<Index, Backend>::from(Shape{batch, length}, tokens);
}

/// A stream of three rows for a `TokenMemory`: 18 tokens in pieces of 1 to 8, and queries.
template <class Backend = EigenBackend>
Stream<Tensor<Index, Backend>> some_stream() {
  Random random(3);
  Stream<Tensor<Index, Backend>> stream;
  for (const Index length : {3, 1, 8, 6})
    stream.pieces.push_back(some_tokens<Backend>(3, length, random));
  stream.queries = some_tokens<Backend>(3, 5, random);
  return stream;
}

}  // namespace infty::testing
