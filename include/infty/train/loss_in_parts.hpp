// SPDX-License-Identifier: MIT
#pragma once

#include <memory>

#include <infty/autograd/elementwise.hpp>
#include <infty/autograd/reduce.hpp>
#include <infty/autograd/tape.hpp>
#include <infty/core/error.hpp>
#include <infty/core/moved.hpp>
#include <infty/core/pool.hpp>

namespace infty {

/// A loss that is the sum of parts between which no gradient flows, such as the chunks of a
/// document behind a memory that holds no history. Each part goes backward as soon as it is
/// computed, on a tape of its own: what a backward pass needs is held of one part at a time.
///
///     train_step(adam, {}, [&] {
///       LossInParts<float> loss;
///       for (const Chunk& chunk : chunks) loss.add([&] { return loss_of(chunk); });
///       return loss.total();
///     });
///
/// Where no tape is there, parts are summed and nothing goes backward.
template <class T, class B = EigenBackend>
class LossInParts {
 public:
  using V = Variable<T, B>;

  /// Computes a part, `part()`, which returns a scalar variable, and adds its gradient to all that
  /// it was computed from. A part that no gradient flows to is added all the same.
  /// @return  the part's loss, without history
  /// @throws infty::ShapeError unless it has one element, and what `part` throws; then nothing was
  /// added
  template <class Part>
  V add(Part&& part) {
    V own;
    if (Tape::active()) {
      Tape tape;
      own = checked(part());
      if (own.requires_grad()) {
        tape.backward(own);
        flows_ = true;
      }
    } else {
      own = checked(part());
    }
    const auto guard = no_grad();
    const V loss = sum(own.detach());
    if (count_ == 0) passed_ = not_yet();  // of one that was moved from, there is none
    total_ = count_ > 0 ? total_ + loss : loss;
    ++count_;
    return loss;
  }

  /// Returns the sum of all parts, 0 of none. Its gradient has flowed already: a backward pass from
  /// it, as `train_step` makes one, adds nothing.
  /// @throws infty::ValueError in a backward pass from anything but the sum itself, which asks for
  /// another gradient than that, and from a second sum of the same parts, be there more of them
  V total() const {
    if (count_ == 0) return V(Tensor<T, B>::zeros(Shape{}));
    V loss(total_.value().clone());
    Tape* const tape = Tape::active();
    if (!tape || !flows_) return loss;
    loss.set_requires_grad(true);
    tape->push(loss, [passed = passed_](const Tensor<T, B>& dy) {
      const T seed = dy.item();
      require(seed == T(1), "LossInParts", "the gradient of the total is ", seed,
              ": it must be 1, for that of the parts has flowed");
      require(!*passed, "LossInParts",
              "a gradient of a second total of the same parts: that of the parts has flowed once");
      *passed = true;
    });
    return loss;
  }

  /// Returns how many parts there are.
  Index count() const { return count_; }

 private:
  static V checked(V loss) {
    require<ShapeError>(loss.size() == 1, "LossInParts", "a part is ", loss.shape(),
                        ": it must have one element");
    return loss;
  }

  static std::shared_ptr<bool> not_yet() {
    return std::allocate_shared<bool>(PoolAllocator<bool>{}, false);
  }

  V total_;
  detail::ZeroWhenMoved<Index> count_;
  detail::ZeroWhenMoved<bool> flows_;
  std::shared_ptr<bool> passed_;  ///< whether a gradient has come to a total, of copies too
};

}  // namespace infty
