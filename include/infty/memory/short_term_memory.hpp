// SPDX-License-Identifier: MIT
#pragma once

#include <algorithm>
#include <utility>

#include <infty/autograd/shape.hpp>
#include <infty/memory/fwd.hpp>
#include <infty/memory/state.hpp>

namespace infty {

/// A sequence a row, each of its own length, aligned to the right.
template <class T, class Backend>
struct RowSequences {
  Tensor<T, Backend> vectors;  ///< [batch, L, d], zeros in front of a shorter row
  RowCounts length;            ///< [batch], each <= L

  template <class Visitor>
  void visit(Visitor&& see) {
    see("vectors", vectors);
    see("length", length);
  }
};

/// The last vectors that a short-term memory saw.
template <class T, class Backend>
struct ShortTermState {
  RowSequences<T, Backend> recent;  ///< vectors [batch, capacity + stride - 1, d]

  template <class Visitor>
  void visit(Visitor&& see) {
    see("recent", recent);
  }
};

/// The short-term memory (STM): the last vectors of every row, first in, first out [Dai et al.
/// 2019, §3.2]. It has no parameters, and no gradient flows into it.
///
/// It holds at least the last `capacity` vectors, and lets older ones go in groups of `stride`:
/// what takes them in, a long-term memory, contracts its past with every write, so that writes of
/// single vectors, as in generation, would wear it out. With stride 1 it holds `capacity` vectors
/// exactly.
template <class T, class Backend>
class ShortTermMemory {
 public:
  using State = ShortTermState<T, Backend>;

  /// @throws infty::ValueError unless model_dim >= 1, capacity >= 0 and stride >= 1
  ShortTermMemory(Index model_dim, Index capacity, Index stride = 1)
      : model_dim_(model_dim), capacity_(capacity), stride_(stride) {
    require(model_dim >= 1 && capacity >= 0 && stride >= 1, "ShortTermMemory", "model_dim is ",
            model_dim, ", capacity ", capacity, ", stride ", stride,
            ": they must be >= 1, >= 0 and >= 1");
  }

  /// d, of the vectors held.
  Index model_dim() const { return model_dim_; }
  /// Least number of vectors that a row holds once it has seen so many.
  Index capacity() const { return capacity_; }
  /// Vectors leave in groups of so many.
  Index stride() const { return stride_; }
  /// Most vectors that a row holds, capacity + stride - 1.
  Index most_held() const { return capacity_ + stride_ - 1; }

  /// A state of fresh rows. @throws infty::ValueError unless batch >= 1
  State make_state(Index batch) const {
    require(batch >= 1, "ShortTermMemory::make_state", "batch is ", batch, ": it must be >= 1");
    return {{Tensor<T, Backend>::zeros(Shape{batch, most_held(), model_dim_}),
             RowCounts(static_cast<std::size_t>(batch), 0)}};
  }

  /// Takes in a segment and returns what leaves for it, the oldest vectors of every row.
  /// @param segment  [batch, L, d]
  /// @return         [batch, E, d] with E the most that leave any row, right-aligned
  /// @throws infty::ShapeError; then the state is as it was
  RowSequences<T, Backend> write(State& state, const Tensor<T, Backend>& segment) const {
    const Tensor<T, Backend>& held = state.recent.vectors;
    const Index batch = held.dim(0);
    require<ShapeError>(held.shape() == Shape{batch, most_held(), model_dim_} &&
                            static_cast<Index>(state.recent.length.size()) == batch,
                        "ShortTermMemory::write", "the state holds ", held.shape(), " and ",
                        state.recent.length.size(), " lengths: another memory made it, ours are [",
                        "batch, ", most_held(), ", ", model_dim_, "]");
    require<ShapeError>(
        segment.rank() == 3 && segment.dim(0) == batch && segment.dim(2) == model_dim_,
        "ShortTermMemory::write", "segment is ", segment.shape(), ": it must be [", batch, ", L, ",
        model_dim_, "]");
    const Index length = segment.dim(1);
    RowSequences<T, Backend> leaving;
    leaving.length.resize(static_cast<std::size_t>(batch));
    RowCounts kept = state.recent.length;
    Index most = 0;
    for (std::size_t row = 0; row < kept.size(); ++row) {
      const Index total = kept[row] + length;
      leaving.length[row] = std::max<Index>(0, (total - capacity_) / stride_) * stride_;
      kept[row] = total - leaving.length[row];
      most = std::max(most, leaving.length[row]);
    }
    leaving.vectors = right_aligned(held, segment, kept, leaving.length, most);
    state.recent.vectors =
        right_aligned(held, segment, RowCounts(kept.size(), 0), kept, most_held());
    state.recent.length = std::move(kept);
    return leaving;
  }

 private:
  /// [batch, width, d] whose last `count` vectors a row are those of `held` and then `segment`
  /// before their last `skip`, behind zeros.
  Tensor<T, Backend> right_aligned(const Tensor<T, Backend>& held,
                                   const Tensor<T, Backend>& segment, const RowCounts& skip,
                                   const RowCounts& count, Index width) const {
    const Index batch = held.dim(0), old = held.dim(1), length = segment.dim(1), d = model_dim_;
    Tensor<T, Backend> y(Shape{batch, width, d});
    // Rows that are cut alike, as most are, at once.
    for (Index begin = 0, end; begin < batch; begin = end) {
      const auto first = static_cast<std::size_t>(begin);
      const auto alike = [&](std::size_t row) {
        return count[row] == count[first] && skip[row] == skip[first];
      };
      for (end = begin + 1; end < batch && alike(static_cast<std::size_t>(end));) ++end;
      // The last `last` vectors come from the segment, the `before` ones in front of them were
      // held.
      const Index n = count[first], last = std::clamp<Index>(length - skip[first], 0, n);
      const Index before = n - last, skipped = std::max<Index>(0, skip[first] - length);
      const auto copy = [&](const Tensor<T, Backend>& x, Index from, Index vectors, Index to) {
        if (vectors == 0) return;
        detail::copy_rows<Backend>(end - begin, vectors * d,
                                   x.data() + (begin * x.dim(1) + from) * d, x.dim(1) * d,
                                   y.data() + (begin * width + to) * d, width * d);
      };
      if (n < width)
        detail::zero_rows<Backend>(end - begin, (width - n) * d, y.data() + begin * width * d,
                                   width * d);
      copy(held, old - skipped - before, before, width - n);
      copy(segment, length - skip[first] - last, last, width - last);
    }
    return y;
  }

  Index model_dim_, capacity_, stride_;
};

}  // namespace infty
