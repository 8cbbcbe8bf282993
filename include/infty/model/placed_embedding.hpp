// SPDX-License-Identifier: MIT
#pragma once

#include <algorithm>
#include <cmath>

#include <infty/autograd/elementwise.hpp>
#include <infty/core/state_members.hpp>
#include <infty/model/transformer_lm.hpp>
#include <infty/nn/distance_table.hpp>
#include <infty/nn/embedding.hpp>

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
  /// out of range, an odd d, or a place of 2^31 and more, whose encoding `float` would not tell
  Variable<T, Backend> forward(const Tensor<Index, Backend>& tokens, const RowCounts& first,
                               Pass<T, Backend>& pass) const {
    require<ShapeError>(tokens.rank() == 2 && tokens.dim(0) == std::ssize(first), "PlacedEmbedding",
                        "tokens are ", tokens.shape(), ", of ", first.size(),
                        " rows: they must be [B, L] and B");
    constexpr Index most_places = Index{1} << 31;
    const Index d = this->config().model_dim, length = tokens.dim(1);
    Index longest = 1;
    for (const Index from : first) {
      require(from < most_places - length, "PlacedEmbedding", "a row begins at place ", from,
              ": all of its places must be below ", most_places);
      longest = (std::max)(longest, from + length);
    }
    const Tensor<T, Backend> table = places_.reaching(longest, d);
    RowCounts rows;  // of the table, whose last row is place 0
    for (const Index from : first)
      for (Index i = 0; i < length; ++i)
        rows.push_back(table.dim(0) - 1 - (std::max)(Index{0}, from + i));
    const auto at = Tensor<Index, Backend>::from(tokens.shape(), rows.data());
    const auto factor = static_cast<T>(std::sqrt(static_cast<double>(d)));
    return pass.dropped(AdaptiveEmbedding<T, Backend>::forward(tokens, factor) +
                        embedding(at, Variable<T, Backend>(table)));
  }

 private:
  DistanceTable<T, Backend> places_;
};

}  // namespace infty
