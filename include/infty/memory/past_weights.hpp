// SPDX-License-Identifier: MIT
#pragma once

#include <algorithm>
#include <cstddef>
#include <string_view>

#include <infty/core/state_members.hpp>
#include <infty/core/tensor.hpp>
#include <infty/nn/pass.hpp>

namespace infty::detail {

/// Of attention weights those of vectors of the past, by their places in what holds them: zeros at
/// the first places, which a row has no vectors for, and the latest vector at the last.
/// @param weights  [B, H, L, K]
/// @param end      [B], behind which key the vectors of each row end
/// @param held     [B], how many there are, in [0, min(end, places)]
/// @return         [B, H, L, places]
template <class T, class B>
Tensor<T, B> weights_by_place(const Tensor<T, B>& weights, const RowCounts& end,
                              const RowCounts& held, Index places) {
  const Shape row{static_cast<Index>(held.size())};
  const auto ends = Tensor<Index, B>::from(row, end.data()),
             counts = Tensor<Index, B>::from(row, held.data());
  const Index each = weights.dim(1) * weights.dim(2), keys = weights.dim(3);
  Tensor<T, B> out(Shape{weights.dim(0), weights.dim(1), weights.dim(2), places});
  const T* const from = weights.data();
  const Index *const behind = ends.data(), *const count = counts.data();
  T* const to = out.data();
  B::for_each_row(weights.dim(0) * each, places, [=] INFTY_HOST_DEVICE(Index i) {
    const Index b = i / each, empty = places - count[b];
    const Index first = i * keys + behind[b] - places;  // the key of the first place
    for (Index j = 0; j < places; ++j) to[i * places + j] = j < empty ? T(0) : from[first + j];
  });
  return out;
}

/// Shows a traced pass what a segment's words read of vectors of the past, [B, H, words, places]
/// as `weights_by_place`; nothing where no row holds any.
/// @param name     a literal  @param weights  [B, H, words, K]
template <class T, class B>
void show_past_weights(std::string_view name, const Tensor<T, B>& weights, const RowCounts& end,
                       const RowCounts& held, Index places, Pass<T, B>& pass) {
  if (*std::max_element(held.begin(), held.end()) == 0) return;
  pass.show(name, Variable<T, B>(weights_by_place(weights, end, held, places)),
            "row head word place");
}

/// The same of vectors and, right before them in every row, compressed ones: "past_weights" and
/// "compressed_weights".
/// @param weights  [B, H, words, K]  @param past  behind which key the vectors end
template <class T, class B>
void show_past_weights(const Tensor<T, B>& weights, Index past, const RowCounts& vectors,
                       Index places, const RowCounts& compressed, Index compressed_places,
                       Pass<T, B>& pass) {
  RowCounts end(vectors.size(), past);
  show_past_weights("past_weights", weights, end, vectors, places, pass);
  for (std::size_t row = 0; row < end.size(); ++row) end[row] -= vectors[row];
  show_past_weights("compressed_weights", weights, end, compressed, compressed_places, pass);
}

}  // namespace infty::detail
