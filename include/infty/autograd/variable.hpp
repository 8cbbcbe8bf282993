// SPDX-License-Identifier: MIT
#pragma once

#include <memory>
#include <utility>

#include <infty/autograd/fwd.hpp>
#include <infty/core/tensor.hpp>
#include <infty/eigen/default.hpp>

namespace infty {

/// Where an operation's backward pass writes a gradient, all of it: with `add` to what has arrived
/// before, without over what is no number yet.
template <class T>
struct GradTarget {
  T* data;
  bool add;

  /// The same for a matrix product, C = A B + beta C.
  T beta() const { return add ? T(1) : T(0); }
};

/// A tensor that gradients flow to. A handle: copies are the same variable.
///
/// A tensor converts to a variable that needs no gradient. Operations deduce their types, so they
/// want the conversion in words: `linear(Variable<T, B>(x), weight)`.
template <class T, class Backend>
class Variable {
 public:
  using Scalar = T;
  using BackendType = Backend;
  using TensorType = Tensor<T, Backend>;

  /// An empty tensor that needs no gradient.
  Variable() : Variable(TensorType()) {}

  /// A variable of a value; with `requires_grad`, one that `Tape::backward` leaves a gradient in.
  Variable(TensorType value, bool requires_grad = false)
      : body_(std::allocate_shared<Body>(PoolAllocator<Body>{},
                                         Body{std::move(value), {}, requires_grad})) {}

  /// The value, shared by all handles of this variable.
  TensorType& value() {
    ++body_->version;
    return body_->value;
  }
  /// The same, read-only.
  const TensorType& value() const { return body_->value; }

  /// Another number whenever the value may have been changed, which is when it was asked for by a
  /// variable that is not const.
  Index version() const { return body_->version; }

  /// Extents of the value.
  const Shape& shape() const { return value().shape(); }
  /// Extent of dimension i of the value, negative i counting from the end.
  Index dim(Index i) const { return value().dim(i); }
  /// Number of elements of the value.
  Index size() const { return value().size(); }

  /// Whether `Tape::backward` leaves a gradient here.
  bool requires_grad() const { return body_->requires_grad; }
  /// Sets whether it does, for operations recorded from now on.
  void set_requires_grad(bool on) { body_->requires_grad = on; }

  /// Whether a gradient has arrived since `zero_grad`.
  bool has_grad() const { return body_->has_grad; }

  /// The gradient, of the value's shape; zeros if none has arrived. Backward passes add to it.
  TensorType& grad() const {
    if (const GradTarget<T> to = grad_target(); !to.add) body_->grad.fill(T(0));
    return body_->grad;
  }

  /// The same for an operation that gives every element a value: the first to arrive need not find
  /// zeros, and whoever asks has to write.
  GradTarget<T> grad_target() const {
    const bool add = body_->has_grad;
    if (!add) {
      if (!(body_->grad.shape() == value().shape()) || body_->grad.data() == nullptr)
        body_->grad = TensorType(value().shape());
      body_->has_grad = true;
    }
    return {body_->grad.data(), add};
  }

  /// Forgets the gradient; its memory stays for the next one.
  void zero_grad() { body_->has_grad = false; }

  /// A variable of the same memory that no gradient flows through.
  Variable detach() const { return Variable(value()); }

  /// A new variable of a copy in the memory of another backend (or of the same one), which needs a
  /// gradient if this one does. No gradient flows from there to here.
  template <class Other>
  Variable<T, Other> to() const {
    return Variable<T, Other>(value().template to<Other>(), requires_grad());
  }

  /// Whether two handles are the same variable.
  friend bool same(const Variable& a, const Variable& b) { return a.body_ == b.body_; }

 private:
  struct Body {
    TensorType value;
    TensorType grad;
    bool requires_grad;
    bool has_grad = false;
    Index version = 0;
  };
  std::shared_ptr<Body> body_;
};

}  // namespace infty
