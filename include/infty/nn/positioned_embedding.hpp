// SPDX-License-Identifier: MIT
#pragma once

#include <vector>

#include <infty/autograd/elementwise.hpp>
#include <infty/nn/embedding.hpp>
#include <infty/nn/pass.hpp>

namespace infty {

/// Embeddings of tokens and of their places in the segment, both learned, added, with dropout: as
/// in GPT-2 [Radford et al. 2019].
template <class T, class Backend = EigenBackend>
struct PositionedEmbedding {
  Embedding<T, Backend> tokens, places;  ///< [vocabulary, d] and [longest, d]

  PositionedEmbedding() = default;

  /// Draws both tables from a normal distribution; the deviation is GPT-2's.
  /// @param longest  places that there are
  /// @throws infty::ValueError unless vocabulary, longest, d >= 1
  PositionedEmbedding(Index vocabulary, Index longest, Index d, Random random,
                      double deviation = .02)
      : tokens(vocabulary, d, random.split(0), deviation),
        places(longest, d, random.split(1), deviation) {}

  template <class Visitor>
  void visit(Visitor&& see) {
    see("tokens", tokens);
    see("places", places);
  }

  /// ids [B, L] -> [B, L, d]. @throws infty::ShapeError if there are not so many places,
  /// infty::ValueError for a token out of range
  Variable<T, Backend> forward(const Tensor<Index, Backend>& ids, Pass<T, Backend>& pass) const {
    const Index most = places.weight.dim(0);
    require<ShapeError>(ids.rank() == 2 && ids.dim(1) <= most, "PositionedEmbedding", "tokens are ",
                        ids.shape(), ": they must be [B, L], L at most ", most);
    std::vector<Index> numbers;
    for (Index i = 0; i < ids.size(); ++i) numbers.push_back(i % ids.dim(1));
    const auto at = Tensor<Index, Backend>::from(ids.shape(), numbers);
    return pass.dropped(tokens.forward(ids) + places.forward(at));
  }
};

}  // namespace infty
