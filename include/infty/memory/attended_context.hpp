// SPDX-License-Identifier: MIT
#pragma once

#include <infty/autograd/shape.hpp>
#include <infty/memory/older_vectors.hpp>
#include <infty/nn/input_norm.hpp>
#include <infty/nn/linear.hpp>

namespace infty::detail {

/// What a memory holds and a segment behind it, as attention maps them to keys and values. With a
/// norm they are normed at once, so that its gradient is one sum; without one they are not joined.
template <class T, class Backend>
class AttendedContext {
 public:
  using V = Variable<T, Backend>;

  /// @param past  [B, M, d]   @param x  [B, L, d]
  AttendedContext(const V& past, const V& x, const InputNorm<T, Backend>& norm)
      : past_(past), own_(x) {
    if (!norm) return;
    joined_ = norm(concat(past, x));
    own_ = narrow(joined_, past.dim(1), joined_.dim(1));
  }

  /// The segment, normed if there is a norm.
  const V& own() const { return own_; }

  /// Puts the older vectors of a pass in front.
  void put(const InFront<T, Backend>& front) {
    V& context = joined_.size() > 0 ? joined_ : past_;
    context = front.place(front.older(), context);
  }

  /// All of it through a map: [B, M + L, d] -> [B, M + L, n].
  V mapped(const Linear<T, Backend>& map) const {
    return joined_.size() > 0 ? map.forward(joined_) : map.forward(past_, own_);
  }

 private:
  V past_, own_, joined_;
};

}  // namespace infty::detail
