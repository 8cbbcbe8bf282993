// SPDX-License-Identifier: MIT
#pragma once

#include <cmath>

#include <infty/autograd/elementwise.hpp>
#include <infty/core/state_members.hpp>
#include <infty/model/transformer_lm.hpp>
#include <infty/nn/place_encoding.hpp>

namespace infty {

/// The embedding of an `EncoderDecoder`: vectors of tokens times the root of d, plus sinusoidal
/// encodings of their places in the row, with dropout [Vaswani et al. 2017, §3.4, 3.5]. The sines
/// of a place come first and then the cosines.
template <class T, class Backend = EigenBackend>
class PlacedEmbedding : public ScaledEmbedding<T, Backend> {
 public:
  using ScaledEmbedding<T, Backend>::ScaledEmbedding;

  /// tokens [B, L] -> [B, L, d]. @param first  the place of the first token of each row; places
  /// below 0, of padding, are as 0
  /// @throws infty::ShapeError unless there is a first place a row; infty::ValueError for a token
  /// out of range, an odd d, or a row that is at the end of all places (`most_places`)
  Variable<T, Backend> forward(const Tensor<Index, Backend>& tokens, const RowCounts& first,
                               Pass<T, Backend>& pass) const {
    require<ShapeError>(tokens.rank() == 2 && tokens.dim(0) == std::ssize(first), "PlacedEmbedding",
                        "tokens are ", tokens.shape(), ", of ", first.size(),
                        " rows: they must be [B, L] and B");
    const Index d = this->config().model_dim;
    const Variable<T, Backend> places(place_encoding<T, Backend>(first, tokens.dim(1), d));
    const auto factor = static_cast<T>(std::sqrt(static_cast<double>(d)));
    return pass.dropped(add(AdaptiveEmbedding<T, Backend>::forward(tokens, factor), places));
  }
};

}  // namespace infty
