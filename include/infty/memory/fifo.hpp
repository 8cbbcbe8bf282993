// SPDX-License-Identifier: MIT
#pragma once

#include <algorithm>
#include <utility>

#include <infty/autograd/shape.hpp>
#include <infty/core/checked.hpp>
#include <infty/core/state.hpp>
#include <infty/memory/fwd.hpp>
#include <infty/nn/attention_sizes.hpp>
#include <infty/nn/pass.hpp>
#include <infty/nn/room_behind.hpp>
#include <infty/nn/visible.hpp>

namespace infty {

namespace detail {

/// [batch, width, d] whose last `count` vectors a row are those of `held` and then `added` before
/// their last `skip`, behind zeros. Rows of both end at the right.
template <class T, class Backend>
Tensor<T, Backend> right_aligned(const Tensor<T, Backend>& held,
                                 const RowSequences<T, Backend>& added, const RowCounts& skip,
                                 const RowCounts& count, Index width) {
  const Tensor<T, Backend>& segment = added.vectors;
  const Index batch = held.dim(0), old = held.dim(1), length = segment.dim(1), d = held.dim(2);
  Tensor<T, Backend> y(Shape{batch, width, d});
  // Rows that are cut alike, as most are, at once.
  for (Index begin = 0, end; begin < batch; begin = end) {
    const auto first = static_cast<std::size_t>(begin);
    const auto alike = [&](std::size_t row) {
      return count[row] == count[first] && skip[row] == skip[first] &&
             added.length[row] == added.length[first];
    };
    for (end = begin + 1; end < batch && alike(static_cast<std::size_t>(end));) ++end;
    // The last `last` vectors were added, the `before` ones in front of them were held.
    const Index n = count[first], last = std::clamp<Index>(added.length[first] - skip[first], 0, n);
    const Index before = n - last, skipped = std::max<Index>(0, skip[first] - added.length[first]);
    const auto copy = [&](const Tensor<T, Backend>& x, Index from, Index vectors, Index to) {
      if (vectors == 0) return;
      copy_rows<Backend>(end - begin, vectors * d, x.data() + (begin * x.dim(1) + from) * d,
                         x.dim(1) * d, y.data() + (begin * width + to) * d, width * d);
    };
    if (n < width)
      zero_rows<Backend>(end - begin, (width - n) * d, y.data() + begin * width * d, width * d);
    copy(held, old - skipped - before, before, width - n);
    copy(segment, length - skip[first] - last, last, width - last);
  }
  return y;
}

/// Throws infty::ShapeError that names `op` unless x is [batch, L, d] with at least as many vectors
/// as the pass says are memory tokens.
template <class T, class B>
void require_segment(const char* op, const Variable<T, B>& x, Index batch,
                     const AttentionSizes& sizes, const Pass<T, B>& pass) {
  const Shape& shape = x.shape();
  require<ShapeError>(shape.rank() == 3 && shape == Shape{batch, shape[1], sizes.model_dim}, op,
                      "the segment is ", shape, ": it must be [", batch, ", L, ", sizes.model_dim,
                      "]");
  require_room_for_tokens(op, shape[1], pass);
}

}  // namespace detail

/// The last vectors of every row, first in, first out. It holds at least the last `capacity`
/// vectors, and lets older ones go in groups of `stride`: what takes them in, a long-term memory,
/// contracts its past with every write, so that writes of single vectors, as in generation, would
/// wear it out. With stride 1 it holds `capacity` vectors exactly.
template <class T, class Backend>
class Fifo {
 public:
  /// The vectors of every row: [batch, capacity + stride - 1, d].
  using State = RowSequences<T, Backend>;

  /// Makes a queue of `capacity` vectors of width `model_dim`, which leave in groups of `stride`.
  /// @throws infty::ValueError unless model_dim >= 1, capacity >= 0 and stride >= 1, and for sizes
  /// above `largest_size`
  Fifo(Index model_dim, Index capacity, Index stride = 1)
      : model_dim_(model_dim), capacity_(capacity), stride_(stride) {
    require(model_dim >= 1 && capacity >= 0 && stride >= 1, "Fifo", "model_dim is ", model_dim,
            ", capacity ", capacity, ", stride ", stride, ": they must be >= 1, >= 0 and >= 1");
    require_sizes("Fifo", {{"capacity", capacity}});
    require_sizes("Fifo", {{"stride", stride}});
    require_sizes("Fifo", {{"capacity + stride - 1", most_held()}, {"model_dim", model_dim}});
  }

  /// d, of the vectors held.
  Index model_dim() const { return model_dim_; }
  /// Least number of vectors that a row holds once it has seen so many.
  Index capacity() const { return capacity_; }
  /// Vectors leave in groups of so many.
  Index stride() const { return stride_; }
  /// Most vectors that a row holds, capacity + stride - 1.
  Index most_held() const { return capacity_ + stride_ - 1; }

  /// A state of fresh rows. @throws infty::ValueError unless 1 <= batch <= `largest_size`
  State make_state(Index batch) const {
    require_rows("Fifo::make_state", batch);
    return {Tensor<T, Backend>::zeros(Shape{batch, most_held(), model_dim_}),
            RowCounts(static_cast<std::size_t>(batch), 0)};
  }

  /// Checks that a Fifo like this one made a state, and that a file that it was loaded from says of
  /// no row that it holds more than there is. @throws infty::ShapeError that names `op` if not
  void check(const char* op, const State& state) const {
    const Index batch = static_cast<Index>(state.length.size());
    require<ShapeError>(
        batch >= 1 && state.vectors.shape() == Shape{batch, most_held(), model_dim_}, op,
        "the state holds ", state.vectors.shape(), " and ", batch,
        " lengths: another memory made it, ours are [batch, ", most_held(), ", ", model_dim_, "]");
    require_lengths(op, "the state", state.length, most_held());
  }

  /// Takes in a segment and returns what leaves for it, the oldest vectors of every row.
  /// @param segment  [batch, L, d]
  /// @return         [batch, E, d] with E the most that leave any row, right-aligned
  /// @throws infty::ShapeError; then the state is as it was
  RowSequences<T, Backend> write(State& state, const Tensor<T, Backend>& segment,
                                 detail::RoomBehind<T, Backend>* room = nullptr) const {
    return write(
        state,
        RowSequences<T, Backend>{
            segment, RowCounts(state.length.size(), segment.rank() == 3 ? segment.dim(1) : 0)},
        room);
  }

  /// The same where rows take in different numbers of vectors, in [0, L] each. With `room` the
  /// vectors of a single row stay where they are while few come in.
  RowSequences<T, Backend> write(State& state, const RowSequences<T, Backend>& segment,
                                 detail::RoomBehind<T, Backend>* room = nullptr) const {
    check("Fifo::write", state);
    const Tensor<T, Backend>& held = state.vectors;
    const Index batch = held.dim(0);
    require<ShapeError>(segment.vectors.rank() == 3 && segment.vectors.dim(0) == batch &&
                            segment.vectors.dim(2) == model_dim_ &&
                            static_cast<Index>(segment.length.size()) == batch,
                        "Fifo::write", "segment is ", segment.vectors.shape(), ": it must be [",
                        batch, ", L, ", model_dim_, "]");
    require_lengths("Fifo::write", "the segment", segment.length, segment.vectors.dim(1));
    RowSequences<T, Backend> leaving;
    leaving.length.resize(static_cast<std::size_t>(batch));
    RowCounts kept = state.length;
    Index most = 0;
    for (std::size_t row = 0; row < kept.size(); ++row) {
      const Index total = kept[row] + segment.length[row];
      leaving.length[row] = std::max<Index>(0, (total - capacity_) / stride_) * stride_;
      kept[row] = total - leaving.length[row];
      most = (std::max)(most, leaving.length[row]);
    }
    leaving.vectors = detail::right_aligned(held, segment, kept, leaving.length, most);
    state.vectors =
        room && slides(segment, kept[0], most)
            ? room->last(room->append(V(held), 0, V(segment.vectors)), most_held()).value()
            : detail::right_aligned(held, segment, RowCounts(kept.size(), 0), kept, most_held());
    state.length = std::move(kept);
    return leaving;
  }

 private:
  using V = Variable<T, Backend>;

  /// Whether what a row holds is the end of what it held and then the segment, behind the zeros
  /// that it had in front, and the segment is worth no copy of all.
  bool slides(const RowSequences<T, Backend>& segment, Index kept, Index left) const {
    const Index length = segment.vectors.dim(1);
    return segment.length.size() == 1 && segment.length[0] == length && length > 0 &&
           detail::few_behind(length, most_held()) && (left == 0 || kept == most_held());
  }

  static void require_lengths(const char* op, const char* what, const RowCounts& length,
                              Index most) {
    for (const Index n : length)
      require<ShapeError>(n >= 0 && n <= most, op, "a row of ", what, " has ", n,
                          " vectors: it must have 0 to ", most);
  }

  Index model_dim_, capacity_, stride_;
};

}  // namespace infty
