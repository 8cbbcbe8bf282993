// SPDX-License-Identifier: MIT
#pragma once

#include <utility>
#include <vector>

#include <infty/autograd/snapshot.hpp>
#include <infty/core/pool.hpp>
#include <infty/memory/fifo.hpp>
#include <infty/nn/input_norm.hpp>
#include <infty/nn/relative_attention.hpp>
#include <infty/nn/room_behind.hpp>

namespace infty::detail {

// What a memory keeps from one segment to the next while no gradient is recorded, so that each key
// is computed once and not once a token. It stands for the very tensors and parameters that it was
// made of and is made anew when these are others: when rows were moved or reset, or a parameter
// changed. No part of what a state remembers or saves.

/// Keys and values of the vectors that a `Fifo` holds.
template <class T, class Backend>
class HeldKeys {
 public:
  using V = Variable<T, Backend>;
  using Norm = InputNorm<T, Backend>;
  using Maps = RelativeAttention<T, Backend>;

  /// Makes those of `past` anew unless they are held. The row with most has `longest` vectors.
  void hold(const RowSequences<T, Backend>& past, Index longest, const Maps& attention,
            const Norm& norm) {
    if (holds(past, longest, attention, norm)) return;
    const V vectors(past.vectors);
    const Index batch = vectors.dim(0), most = vectors.dim(1);
    const auto mapped = [&](const auto& map) {
      V all(Tensor<T, Backend>::zeros(Shape{batch, most - longest, map.weight.dim(0)}));
      if (longest == 0) return all.value();
      const V seen = norm(narrow(vectors, most - longest, most));
      return concat(all, map.forward(seen)).value();
    };
    keys_ = mapped(attention.key);
    values_ = mapped(attention.value);
    vectors_ = Snapshot(past.vectors);
    longest_ = longest;
    key_ = Snapshot(attention.key.weight);
    value_ = Snapshot(attention.value.weight);
    norm_.clear();
    for (const V& parameter : norm.parameters()) norm_.emplace_back(parameter);
  }

  /// [B, at least as many as a row holds, H D], those of every row at the end.
  const Tensor<T, Backend>& keys() const { return keys_; }
  /// The values, aligned as the keys.
  const Tensor<T, Backend>& values() const { return values_; }

  /// Holds those of the memory as it is `now`: the last of these, [B, K, H D].
  void keep(const V& keys, const V& values, const RowSequences<T, Backend>& now) {
    stand_for(now);
    const auto ending = [&](const V& all) {
      const Index most = all.dim(1), more = most - longest_;
      // A few vectors more cost less than a copy.
      if (all.dim(0) > 1 && few_behind(more, longest_)) return all.value();
      return RoomBehind<T, Backend>::last(all, longest_).value();
    };
    keys_ = ending(keys);
    values_ = ending(values);
  }

  /// Moves both on as the memory did that took in vectors of the given keys and values, which it
  /// held `held` vectors before.
  void move(const Fifo<T, Backend>& memory, const RowCounts& held,
            const RowSequences<T, Backend>& keys, const RowSequences<T, Backend>& values,
            const RowSequences<T, Backend>& now) {
    const Fifo<T, Backend> like(keys_.dim(2), memory.capacity(), memory.stride());
    const auto moved = [&](Tensor<T, Backend>& old, const RowSequences<T, Backend>& added) {
      RowSequences<T, Backend> state{std::move(old), held};
      like.write(state, added);
      old = state.vectors;
    };
    moved(keys_, keys);
    moved(values_, values);
    stand_for(now);
  }

 private:
  /// Has keys and values stand for the memory as it is `now`.
  void stand_for(const RowSequences<T, Backend>& now) {
    vectors_ = Snapshot(now.vectors);
    longest_ = most_of(now.length);
  }

  bool holds(const RowSequences<T, Backend>& past, Index longest, const Maps& attention,
             const Norm& norm) const {
    if (keys_.rank() != 3 || !vectors_.holds(past.vectors) || longest > longest_ ||
        !key_.holds(attention.key.weight) || !value_.holds(attention.value.weight))
      return false;
    const auto parameters = norm.parameters();
    return std::equal(norm_.begin(), norm_.end(), parameters.begin(), parameters.end(),
                      [](const auto& held, const V& now) { return held.holds(now); });
  }

  Snapshot<T, Backend> vectors_;      ///< [B, most held, d]
  Index longest_ = 0;                 ///< most vectors that a row had of these
  Tensor<T, Backend> keys_, values_;  ///< [B, >= most held, H D]
  Snapshot<T, Backend> key_, value_;  ///< the maps' weights
  PoolVector<Snapshot<T, Backend>> norm_;
};

/// Encodings of distances as attention projects them.
template <class T, class Backend>
class HeldPositions {
 public:
  /// The last `count` of the encodings, projected: [count, H D].
  Variable<T, Backend> last(Index count, const Tensor<T, Backend>& encoding,
                            const RelativeAttention<T, Backend>& attention) {
    if (positions_.size() == 0 || !encoding_.holds(encoding) ||
        !weight_.holds(attention.position.weight)) {
      positions_ = attention.position.forward(Variable<T, Backend>(encoding)).value();
      encoding_ = Snapshot(encoding);
      weight_ = Snapshot(attention.position.weight);
    }
    return positions_.slice(encoding.dim(0) - count, encoding.dim(0));
  }

 private:
  Snapshot<T, Backend> encoding_, weight_;  ///< [longest, d] and [H D, d]
  Tensor<T, Backend> positions_;            ///< [longest, H D]
};

/// Keys, values and positions of a memory that is one `Fifo`.
template <class T, class Backend>
class AttentionCache {
 public:
  using V = Variable<T, Backend>;
  using Room = RoomBehind<T, Backend>;

  /// What attention needs of K = M + L vectors, memory first: [B, K, H D] twice and [K, H D].
  struct Context {
    V keys, values, positions;
  };

  /// The context of a segment behind a memory.
  /// @param past    what the memory holds; `memory` vectors of it are held by the row with most
  /// @param normed    [B, L, d], the segment as attention sees it
  /// @param encoding  as `RelativeAttention::encoding` has them
  /// @param in_front  places that there are positions for besides, in front of the memory's
  Context extend(const RowSequences<T, Backend>& past, Index memory,
                 const RelativeAttention<T, Backend>& attention, const InputNorm<T, Backend>& norm,
                 const V& normed, const Tensor<T, Backend>& encoding, Index in_front = 0) {
    held_.hold(past, memory, attention, norm);
    memory_ = memory;
    const auto behind = [&](const Tensor<T, Backend>& held, const V& added, Room& room) {
      const Index most = held.dim(1);
      if (few_behind(added.dim(1), memory)) return room.append(V(held), most - memory, added);
      return concat(narrow(V(held), most - memory, most), added);
    };
    keys_ = behind(held_.keys(), attention.key.forward(normed), keys_room_);
    values_ = behind(held_.values(), attention.value.forward(normed), values_room_);
    return {keys_, values_,
            positions_.last(in_front + memory + normed.dim(1), encoding, attention)};
  }

  /// Moves keys and values on as the memory did with vectors [begin, end) of the segment of the
  /// last `extend`.
  void remember(const RowSequences<T, Backend>& now, Index begin, Index end) {
    const auto remembered = [&](const V& all) {
      if (memory_ + end == all.dim(1) && begin == 0) return all;
      return concat(narrow(all, 0, memory_), narrow(all, memory_ + begin, memory_ + end));
    };
    held_.keep(remembered(keys_), remembered(values_), now);
    keys_ = values_ = {};
  }

 private:
  HeldKeys<T, Backend> held_;
  HeldPositions<T, Backend> positions_;
  Room keys_room_, values_room_;  ///< for the next ones
  Index memory_ = 0;              ///< vectors of the memory in the last context
  V keys_, values_;               ///< of the last context, until it is remembered
};

}  // namespace infty::detail
