// SPDX-License-Identifier: MIT
#pragma once

#include <memory>
#include <utility>

#include <infty/autograd/fwd.hpp>
#include <infty/autograd/gradient_handle.hpp>
#include <infty/autograd/rounded_factor.hpp>
#include <infty/autograd/stored_value.hpp>
#include <infty/core/bfloat16.hpp>
#include <infty/core/tensor.hpp>
#include <infty/eigen/default.hpp>

namespace infty {

/// A tensor that gradients flow to. A handle, as std::shared_ptr is: copies are the same variable,
/// but of an empty one, and a const one can be copied into one that is not. A variable that was
/// moved from is an empty one of its own.
///
/// Through a const handle the value is read-only: that is what a function says that takes
/// `const Variable&`. The gradient is not. A backward pass goes through the handles that operations
/// keep of their inputs, long after the functions have returned, and adds to it there.
///
/// A tensor converts to a variable that needs no gradient. Operations deduce their types, so they
/// want the conversion in words: `linear(Variable<T, B>(x), weight)`.
template <class T, class Backend>
class Variable : public GradientHandle<Variable<T, Backend>, T, Backend> {
 public:
  using Scalar = T;
  using BackendType = Backend;
  using TensorType = Tensor<T, Backend>;

  /// An empty tensor that needs no gradient.
  Variable() = default;

  /// A variable of a value; with `requires_grad`, one that `Tape::backward` leaves a gradient in.
  Variable(TensorType value, bool requires_grad = false)
      : body_(std::allocate_shared<Body>(PoolAllocator<Body>{}, std::move(value))) {
    if (requires_grad) gradient().requires_grad = true;
  }

  /// Returns the value, shared by all handles of this variable. One that is stored in bfloat16 is
  /// in full again, for whoever may write.
  TensorType& value() {
    Body& of = body();
    if (of.stored) [[unlikely]]
      hold_in_full(of);
    return of.value;
  }
  /// Returns the value, read-only, shared by all handles of this variable.
  const TensorType& value() const {
    if (!body_) return none();
    return body_->stored ? body_->stored->full() : body_->value;
  }

  /// Extents of the value.
  const Shape& shape() const {
    const auto* const stored = stored_in_bfloat16();
    return stored ? stored->shape() : value().shape();
  }

  /// Rounds the value to bfloat16 and keeps it in these two bytes a number, for all handles of this
  /// variable; it needs no gradient then, and has none. `linear`, `embedding` and `weighted_rows`
  /// read it as it is stored. Any other operation has it in full, a copy that is kept beside from
  /// then on and not to be written.
  void store_in_bfloat16() {
    Body& of = body();
    if (of.stored) return;
    of.stored = std::make_shared<const Stored>(of.value.template cast<BFloat16>());
    of.value = TensorType();
    if (!of.gradient) return;
    of.gradient->requires_grad = false;
    of.gradient->release();
  }
  /// The value as it is stored in bfloat16, or null if it is in full.
  const Tensor<BFloat16, Backend>* stored_in_bfloat16() const {
    return body_ && body_->stored ? &body_->stored->rounded() : nullptr;
  }

  /// Sets whether it does, for operations recorded from now on. One that was recorded with it
  /// before and not yet gone backward would go by another answer than it was recorded with: a
  /// backward pass that reaches it throws infty::ValueError. What is stored in bfloat16 is in full
  /// again if it does.
  void set_requires_grad(bool on) {
    if (on) value();
    gradient().requires_grad = on;
  }
  /// Makes it one that is kept with the parameters and never trained, as PyTorch's buffers are, or
  /// a parameter: `set_requires_grad` of a layer passes it over where it thaws.
  void set_buffer(bool on) { body().buffer = on; }
  /// Whether it is a buffer.
  bool is_buffer() const { return body_ && body_->buffer; }

  /// Sets whether operations that read a few rows leave their gradient alone, see `grad_by_rows`.
  /// An optimiser asks when it is made: see `Adam`.
  void set_grad_by_rows(bool on) { gradient().by_rows = on; }

  /// Forgets the gradient; its memory stays for the next one, unless it came by rows.
  void zero_grad() {
    if (auto* const of = gradient_if_any()) of->clear();
  }

  /// Makes a variable of this memory that no gradient flows through; of numbers stored in bfloat16,
  /// of these, as they are now.
  Variable detach() const {
    return stored_in_bfloat16() ? of_stored(body_->stored) : Variable(value());
  }

  /// Makes a variable of a copy with zeros in place `row` of dimension 0, which must be one of it;
  /// a gradient flows through to all other places.
  Variable without_row(Index row) const;

  /// Makes a variable of a copy with those of `rows` in the places of dimension 0 from `at` on,
  /// which must be there; gradients flow through to both. With a `length` >= 0 both are sequences
  /// of at most so many elements in dimension 1, and are made so long, right-aligned behind zeros.
  Variable with_rows(Index at, const Variable& rows, Index length = -1) const;

  /// Makes a variable of a copy in the memory of another backend (or of the same one), which needs
  /// a gradient if this one does. No gradient flows from there to here. It is stored in bfloat16 if
  /// this one is.
  template <class Other>
  Variable<T, Other> to() const {
    using There = Variable<T, Other>;
    const auto* const stored = stored_in_bfloat16();
    There out = stored ? There::of_stored(std::make_shared<const typename There::Stored>(
                             stored->template to<Other>()))
                       : There(value().template to<Other>(), this->requires_grad());
    if (this->grad_by_rows()) out.set_grad_by_rows(true);
    if (is_buffer()) out.set_buffer(true);
    return out;
  }

  /// The same address for all handles of a variable, and of no other that lives.
  const void* identity() const { return body_ ? static_cast<const void*>(body_.get()) : this; }

  /// Whether two handles are the same variable.
  friend bool same(const Variable& a, const Variable& b) { return a.identity() == b.identity(); }

 private:
  friend class Tape;
  template <class, class>
  friend class Variable;
  friend class Unread<T, Backend>;
  friend class detail::KeptFactor<T, Backend>;
  friend class GradientHandle<Variable, T, Backend>;
  using Stored = detail::StoredValue<T, Backend>;
  using GradientBody = detail::GradientBody<T, Backend>;
  using RoundedFactor = detail::RoundedFactor<T, Backend>;

  struct Body {
    explicit Body(TensorType v) : value(std::move(v)) {}
    Body(const Body&) = delete;
    Body& operator=(const Body&) = delete;
    /// Says which shape an output had, for those who hold its gradient alone.
    ~Body() {
      if (!gradient || !gradient->recording) return;
      gradient->left = true;
      gradient->last_shape = stored ? stored->rounded().shape() : value.shape();
    }

    TensorType value;
    std::shared_ptr<const Stored> stored;        // in the place of value
    std::shared_ptr<GradientBody> gradient;      // made by the first who needs one
    std::weak_ptr<const RoundedFactor> rounded;  // which linear maps keep
    bool buffer = false;
  };

  /// Made by the first who needs one: an empty variable has none.
  Body& body() const {
    if (!body_) body_ = std::allocate_shared<Body>(PoolAllocator<Body>{}, TensorType());
    return *body_;
  }

  GradientBody* gradient_if_any() const { return body_ ? body_->gradient.get() : nullptr; }
  GradientBody& gradient() const {
    Body& of = body();
    if (!of.gradient)
      of.gradient = std::allocate_shared<GradientBody>(PoolAllocator<GradientBody>{});
    return *of.gradient;
  }

  /// The rounded factor of the value as it is, or null if nobody keeps one.
  std::shared_ptr<const RoundedFactor> rounded_factor() const {
    auto rounded = body().rounded.lock();
    return rounded && rounded->is_of(value()) ? rounded : nullptr;
  }
  std::shared_ptr<const RoundedFactor> share_rounded_factor(TensorType pairs) const {
    auto rounded = std::allocate_shared<const RoundedFactor>(PoolAllocator<RoundedFactor>{},
                                                             value(), std::move(pairs));
    body().rounded = rounded;
    return rounded;
  }

  static Variable of_stored(std::shared_ptr<const Stored> stored) {
    Variable out((TensorType()));
    out.body_->stored = std::move(stored);
    return out;
  }

  [[gnu::noinline]] static void hold_in_full(Body& of) {
    of.value = of.stored->rounded().template cast<T>();
    of.stored.reset();
  }

  static const TensorType& none() {
    static const TensorType* const empty = new TensorType;  // variables may outlive static objects
    return *empty;
  }

  mutable std::shared_ptr<Body> body_;
};

}  // namespace infty

#include <infty/autograd/without_row.hpp>  // which a tape records
