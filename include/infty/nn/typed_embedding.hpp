// SPDX-License-Identifier: MIT
#pragma once

#include <infty/autograd/elementwise.hpp>
#include <infty/core/error.hpp>
#include <infty/nn/embedding.hpp>
#include <infty/nn/pass.hpp>

namespace infty {

/// The embedding of GPT-2: vectors of tokens, and of the token types that a pass may bring, from
/// the same table, added [Radford et al. 2019; Wolf et al. 2019]. Places are a layer's of the body
/// (`AddedPlaces`, `CountedPlaces`).
template <class T, class Backend = EigenBackend>
struct TypedEmbedding : Embedding<T, Backend> {
  using Embedding<T, Backend>::Embedding;

  /// tokens [B, L] -> [B, L, d]. @throws infty::ShapeError unless there is a type a token, or none;
  /// infty::ValueError for a token or a type out of range
  Variable<T, Backend> forward(const Tensor<Index, Backend>& tokens, Pass<T, Backend>& pass) const {
    const auto x = Embedding<T, Backend>::forward(tokens);
    if (pass.types.empty()) return x;
    require<ShapeError>(pass.types.shape() == tokens.shape(), "TypedEmbedding", "tokens are ",
                        tokens.shape(), ", their types ", pass.types.shape(),
                        ": there must be a type a token");
    return x + Embedding<T, Backend>::forward(pass.types);
  }
};

}  // namespace infty
