// SPDX-License-Identifier: MIT
#pragma once

#include <algorithm>
#include <cstddef>
#include <optional>
#include <utility>

#include <infty/autograd/elementwise.hpp>
#include <infty/core/state.hpp>
#include <infty/memory/fifo.hpp>

namespace infty {

/// A memory's state, and what has left the attention beside it since it was last written.
template <class T, class Backend, class MemoryState>
struct MemoryPast {
  /// Is written first thing in the next segment, or beside attention that holds a chunk
  /// (`CachedAttention`) as soon as the next segment does not fit into that.
  RowSequences<T, Backend> leaving;
  MemoryState memory;  ///< of the memory beside the attention

  template <class Visitor>
  void visit(Visitor&& see) {
    see("leaving", leaving);
    see("memory", memory);
  }
};

/// What a `WithMemory` remembers.
template <class AttentionState, class Past>
struct WithMemoryState {
  AttentionState attention;  ///< of the attention
  std::optional<Past> past;  ///< empty where there is no memory

  template <class Visitor>
  void visit(Visitor&& see) {
    see("attention", attention);
    see("past", past);
  }
};

namespace detail {

/// Whether attention holds a chunk of a row's vectors, which leave it together.
template <class A>
inline constexpr bool holds_chunk = requires(const A& attention) { attention.chunk(); };

/// Has those rows of the attention begin another chunk that a segment of `length` does not fit
/// into, and says which they are.
template <class A, class State>
RowCounts begin_chunks(const A& attention, State& state, Index length) {
  RowCounts over;
  for (const Index held : state.length) over.push_back(held > attention.chunk() - length ? 1 : 0);
  for (std::size_t row = 0; row < over.size(); ++row)
    if (over[row] == 1) reset_row(state, static_cast<Index>(row));
  return over;
}

/// Takes those rows of sequences out that `rows` has a 1 for, and leaves them empty; the others are
/// empty in what is returned. Both are as long as their longest row.
template <class T, class B>
RowSequences<T, B> take_sequences(RowSequences<T, B>& held, const RowCounts& rows) {
  const RowSequences<T, B> nothing{Tensor<T, B>(held.vectors.shape().with(1, 0)),
                                   RowCounts(rows.size(), 0)};
  const auto none = [&](Index of) { return std::count(rows.begin(), rows.end(), of) == 0; };
  if (none(0)) return std::exchange(held, nothing);
  if (none(1)) return nothing;
  const auto part = [&](Index taken) {
    RowCounts length = held.length;
    for (std::size_t row = 0; row < rows.size(); ++row)
      if (rows[row] != taken) length[row] = 0;
    const Index longest = most_of(length);
    return RowSequences<T, B>{right_aligned(held.vectors, nothing, nothing.length, length, longest),
                              length};
  };
  RowSequences<T, B> out = part(1);
  held = part(0);
  return out;
}

/// Puts vectors behind those of every row.
template <class T, class B>
void append(RowSequences<T, B>& held, RowSequences<T, B> added) {
  if (held.vectors.dim(1) == 0) {
    held = std::move(added);
    return;
  }
  RowCounts length = held.length;
  for (std::size_t row = 0; row < length.size(); ++row) length[row] += added.length[row];
  const Index longest = most_of(length);
  held = {right_aligned(held.vectors, added, RowCounts(length.size(), 0), length, longest), length};
}

/// Whether attention reads what a pass puts in front of the vectors that it holds.
template <class A>
inline constexpr bool reads_older = requires { requires A::reads_older; };

/// Whether there is a memory that has attention read what waits in it.
template <class M>
bool shows_older(const std::optional<M>& memory) {
  if constexpr (requires { memory->shows_older(); })
    return memory && memory->shows_older();
  else
    return false;
}

/// Zeros again in front of the shorter rows of x, where a norm's bias has come in.
template <class T, class B>
Variable<T, B> masked(const Variable<T, B>& x, const RowCounts& length) {
  const Index L = x.dim(1), d = x.dim(2);
  if (std::all_of(length.begin(), length.end(), [=](Index n) { return n == L; })) return x;
  auto keep = Tensor<T, B>::zeros(x.shape());
  for (std::size_t row = 0; row < length.size(); ++row)
    B::fill(keep.data() + ((static_cast<Index>(row) + 1) * L - length[row]) * d, length[row] * d,
            T(1));
  return multiply(x, Variable<T, B>(keep));
}

}  // namespace detail

}  // namespace infty
