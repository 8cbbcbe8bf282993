// SPDX-License-Identifier: MIT
#pragma once

#include <algorithm>

#include <infty/core/checked.hpp>
#include <infty/core/error.hpp>
#include <infty/core/for_each.hpp>
#include <infty/core/state_members.hpp>
#include <infty/nn/distance_table.hpp>

namespace infty {

/// Places that a `place_encoding` tells apart: `double`, in which angles are computed, holds each.
inline constexpr Index most_places = Index{1} << 53;

/// Sinusoidal encodings of the places first, first + 1, ... of each row -> [rows, length, d], or
/// [1, length, d] where all rows begin at one place: the sines of all frequencies p 10000^(-2i/d),
/// then the cosines [Vaswani et al. 2017, §3.5]. A place below 0, of padding, is as 0. Nothing is
/// kept: a place costs the same wherever it is.
/// @throws infty::ValueError unless there is a row, length >= 0, d is even and >= 2, and all places
/// are below `most_places`
template <class T, class B = EigenBackend>
Tensor<T, B> place_encoding(RowCounts first, Index length, Index d) {
  require(!first.empty(), "place_encoding", "there are no rows");
  require_at_least("place_encoding", "length", length, 0);
  require(d >= 2 && d % 2 == 0, "place_encoding", "d is ", d, ": it must be even, >= 2");
  for (const Index from : first)
    require(from <= most_places - length, "place_encoding", "a row begins at place ", from,
            ", its length is ", length, ": all places must be below ", most_places);
  if (std::all_of(first.begin(), first.end(), [&](Index n) { return n == first.front(); }))
    first.resize(1);
  const Index rows = std::ssize(first);
  require_sizes("place_encoding", {{"rows", rows}, {"length", length}, {"d", d}});
  const auto begins = Tensor<Index, B>::from(Shape{rows}, first.data());
  Tensor<T, B> out(Shape{rows, length, d});
  const Index* const from = begins.data();
  T* const to = out.data();
  B::for_each_row(rows * length, 32 * d, [=] INFTY_HOST_DEVICE(Index row) {
    const Index place = from[row / length] + row % length;
    detail::encode_place(static_cast<double>(place < 0 ? 0 : place), to + row * d, d);
  });
  return out;
}

}  // namespace infty
