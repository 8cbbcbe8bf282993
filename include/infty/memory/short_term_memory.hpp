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
  RowSequences<T, Backend> recent;  ///< vectors [batch, capacity, d]

  template <class Visitor>
  void visit(Visitor&& see) {
    see("recent", recent);
  }
};

/// The short-term memory (STM): the last `capacity` vectors of every row, first in, first out
/// [Dai et al. 2019, §3.2]. It has no parameters, and no gradient flows into it.
template <class T, class Backend>
class ShortTermMemory {
 public:
  using State = ShortTermState<T, Backend>;

  /// @throws infty::ValueError unless model_dim >= 1 and capacity >= 0
  ShortTermMemory(Index model_dim, Index capacity) : model_dim_(model_dim), capacity_(capacity) {
    require(model_dim >= 1 && capacity >= 0, "ShortTermMemory", "model_dim is ", model_dim,
            ", capacity ", capacity, ": they must be >= 1 and >= 0");
  }

  Index model_dim() const { return model_dim_; }
  Index capacity() const { return capacity_; }

  /// A state of fresh rows. @throws infty::ValueError unless batch >= 1
  State make_state(Index batch) const {
    require(batch >= 1, "ShortTermMemory::make_state", "batch is ", batch, ": it must be >= 1");
    return {{Tensor<T, Backend>::zeros(Shape{batch, capacity_, model_dim_}),
             RowCounts(static_cast<std::size_t>(batch), 0)}};
  }

  /// Takes in a segment and returns what leaves for it, the oldest vectors of every row.
  /// @param segment  [batch, L, d]
  /// @return         [batch, E, d] with E the most that leave any row, right-aligned
  /// @throws infty::ShapeError; then the state is as it was
  RowSequences<T, Backend> write(State& state, const Tensor<T, Backend>& segment) const {
    const Tensor<T, Backend>& held = state.recent.vectors;
    const Index batch = held.dim(0);
    require<ShapeError>(segment.rank() == 3 && segment.dim(0) == batch &&
                            segment.dim(2) == model_dim_,
                        "ShortTermMemory::write", "segment is ", segment.shape(),
                        ": it must be [", batch, ", L, ", model_dim_, "]");
    const Index length = segment.dim(1);
    RowSequences<T, Backend> leaving;
    leaving.length.resize(static_cast<std::size_t>(batch));
    RowCounts kept = state.recent.length;
    Index most = 0;
    for (std::size_t row = 0; row < kept.size(); ++row) {
      const Index total = kept[row] + length;
      kept[row] = std::min(total, capacity_);
      leaving.length[row] = total - kept[row];
      most = std::max(most, leaving.length[row]);
    }
    const auto guard = no_grad();
    // Both are aligned to the right, and so are their last `capacity` and the `most` before those.
    const Variable<T, Backend> joined =
        concat(Variable<T, Backend>(held), Variable<T, Backend>(segment));
    leaving.vectors = narrow(joined, length - most, length).value();
    state.recent.vectors = narrow(joined, length, length + capacity_).value();
    state.recent.length = std::move(kept);
    return leaving;
  }

 private:
  Index model_dim_, capacity_;
};

}  // namespace infty
