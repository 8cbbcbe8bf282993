// SPDX-License-Identifier: MIT
#pragma once

#include <atomic>
#include <bit>
#include <cstdint>
#include <memory>
#include <utility>

#include <infty/autograd/fwd.hpp>
#include <infty/autograd/row_gradient.hpp>
#include <infty/autograd/stored_value.hpp>
#include <infty/core/bfloat16.hpp>
#include <infty/core/tensor.hpp>
#include <infty/eigen/default.hpp>

namespace infty {

/// Where an operation's backward pass writes a gradient, all of it: with `add` to what has arrived
/// before, without over what is no number yet.
template <class T>
struct GradTarget {
  T* data;   ///< the gradient, in the shape of the variable
  bool add;  ///< whether there is one already, to be added to

  /// What to multiply C by in a matrix product into it, C = A B + beta C.
  T beta() const { return add ? T(1) : T(0); }
};

namespace detail {

/// What a tape records from one backward pass to the next, and what has become of it. The outputs
/// of its operations remember it.
struct Recording {
  enum Fate { open, gone_backward, cleared, died };
  std::atomic<Fate> fate{open};
};

}  // namespace detail

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
class Variable {
 public:
  using Scalar = T;
  using BackendType = Backend;
  using TensorType = Tensor<T, Backend>;

  /// An empty tensor that needs no gradient.
  Variable() = default;

  /// A variable of a value; with `requires_grad`, one that `Tape::backward` leaves a gradient in.
  Variable(TensorType value, bool requires_grad = false)
      : body_(std::allocate_shared<Body>(PoolAllocator<Body>{}, std::move(value), requires_grad)) {}

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
  /// Extent of dimension i of the value, negative i counting from the end.
  Index dim(Index i) const { return shape()[i]; }
  /// Number of elements of the value.
  Index size() const { return shape().size(); }

  /// Rounds the value to bfloat16 and keeps it in these two bytes a number, for all handles of this
  /// variable; it needs no gradient then, and has none. `linear`, `embedding` and `weighted_rows`
  /// read it as it is stored. Any other operation has it in full, a copy that is kept beside from
  /// then on and not to be written.
  void store_in_bfloat16() {
    Body& of = body();
    if (of.stored) return;
    of.stored = std::make_shared<const Stored>(of.value.template cast<BFloat16>());
    of.value = of.grad = TensorType();
    of.requires_grad = false;
    zero_grad();
  }
  /// The value as it is stored in bfloat16, or null if it is in full.
  const Tensor<BFloat16, Backend>* stored_in_bfloat16() const {
    return body_ && body_->stored ? &body_->stored->rounded() : nullptr;
  }

  /// Whether `Tape::backward` leaves a gradient here.
  bool requires_grad() const { return body_ && body_->requires_grad; }
  /// Sets whether it does, for operations recorded from now on. One that was recorded with it
  /// before and not yet gone backward would go by another answer than it was recorded with: a
  /// backward pass that reaches it throws infty::ValueError. What is stored in bfloat16 is in full
  /// again if it does.
  void set_requires_grad(bool on) {
    if (on) value();
    body().requires_grad = on;
  }
  /// Makes it one that is kept with the parameters and never trained, as PyTorch's buffers are, or
  /// a parameter: `set_requires_grad` of a layer passes it over where it thaws.
  void set_buffer(bool on) { body().buffer = on; }
  /// Whether it is a buffer.
  bool is_buffer() const { return body_ && body_->buffer; }

  /// Whether a gradient has arrived since `zero_grad`, of the shape that the value has now.
  bool has_grad() const {
    return row_grad() || (body_ && body_->has_grad && body_->grad.shape() == shape());
  }

  /// Returns the gradient, of the value's shape, to be read and added to through any handle. If
  /// none has arrived these are zeros, and they have arrived now: `has_grad` asks without changing
  /// anything.
  TensorType& grad() const {
    if (const GradTarget<T> to = grad_target(); !to.add) body().grad.fill(T(0));
    return body().grad;
  }

  /// Returns the gradient for an operation that gives every element a value: the first to arrive
  /// need not find zeros, and whoever asks has to write.
  GradTarget<T> grad_target() const {
    Body& to = body();
    require_open(to);
    if (to.row_grad) [[unlikely]]
      spread_rows();
    const bool add = has_grad();
    if (!add) {
      const TensorType& grad = to.grad;
      if (!(grad.shape() == shape()) || grad.data() == nullptr) to.grad = TensorType(shape());
      to.has_grad = true;
    }
    return {to.grad.data(), add};
  }

  /// Whether operations that read a few rows of a table [rows, ...] leave the gradient of these
  /// rows here, by `add_row_grad`, and not one of the table's size.
  bool grad_by_rows() const { return body_ && body_->by_rows; }
  /// Sets whether they do. An optimiser asks when it is made: see `Adam`.
  void set_grad_by_rows(bool on) { body().by_rows = on; }

  /// Adds a copy of the gradient of a few rows. Where rows are not kept by themselves, or a
  /// gradient of the whole table has arrived already, it is added to that.
  /// @throws infty::ShapeError unless it is one of a table of this shape; infty::ValueError unless
  /// the rows rise and lie in the table
  void add_row_grad(const RowGradient<T, Backend>& gradient) const {
    detail::require_rows_of_table("add_row_grad", gradient);
    add_sound_row_grad({gradient.rows.clone(), gradient.values.clone(), gradient.count});
  }

  /// The same of rows that are known to rise and to lie in the table, which it takes over: for
  /// operations that have made them. No answer of a device is waited for.
  /// @throws infty::ShapeError as above
  void add_sound_row_grad(RowGradient<T, Backend> gradient) const {
    require<ShapeError>(gradient.fits(shape()), "add_row_grad", "the rows are ",
                        gradient.values.shape(), " of ", gradient.count, ", the table is ",
                        shape());
    require_open(body());
    Body& to = body();
    const bool before = to.row_grad && to.row_grad->fits(shape());
    if (!grad_by_rows() || (!before && has_grad())) {
      gradient.add_to(grad().data());
    } else if (!before) {
      to.row_grad = std::make_unique<RowGradient<T, Backend>>(std::move(gradient));
      to.arrived.clear();
    } else if (gradient.rows.size() > 0) {
      // Joined when they are as many again: so each row is copied a few times, however many come.
      to.arrived.push_back(std::move(gradient));
      Index rows = 0;
      if (std::has_single_bit(to.arrived.size()))
        for (const auto& part : to.arrived) rows += part.rows.size();
      if (rows >= to.row_grad->rows.size()) join_arrived();
    }
  }

  /// The gradient that has arrived, if it came by rows and none of the whole table did; else null.
  /// Asking for `grad` turns it into one of the whole table.
  const RowGradient<T, Backend>* row_grad() const {
    if (!body_ || !body_->row_grad || !body_->row_grad->fits(shape())) return nullptr;
    join_arrived();
    return body_->row_grad.get();
  }

  /// Forgets the gradient; its memory stays for the next one, unless it came by rows.
  void zero_grad() {
    if (!body_) return;
    body_->has_grad = false;
    body_->row_grad.reset();
    body_->arrived.clear();
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
                       : There(value().template to<Other>(), requires_grad());
    if (grad_by_rows()) out.set_grad_by_rows(true);
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
  using Stored = detail::StoredValue<T, Backend>;

  struct Body {
    Body(TensorType v, bool needs_grad) : value(std::move(v)), requires_grad(needs_grad) {}

    TensorType value;
    std::shared_ptr<const Stored> stored;  // in the place of value
    TensorType grad;
    bool requires_grad;
    bool has_grad = false;
    bool by_rows = false;
    bool buffer = false;
    bool complete = false;  // a backward pass goes on that nothing more may arrive of
    std::unique_ptr<RowGradient<T, Backend>> row_grad;  // in the place of grad
    PoolVector<RowGradient<T, Backend>> arrived;        // behind that, not added to it yet
    std::shared_ptr<detail::Recording> recording;       // null for what no operation has made
    std::uint64_t reached = 0;                          // by the backward pass of this number
  };

  /// Made by the first who needs one: an empty variable has none.
  Body& body() const {
    if (!body_) body_ = std::allocate_shared<Body>(PoolAllocator<Body>{}, TensorType(), false);
    return *body_;
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

  /// Throws where a gradient arrives that a backward pass has said to be complete.
  static void require_open(const Body& to) {
    require(!to.complete, "backward", "a gradient of ", to.value.shape(),
            " arrives behind the last operation that has the variable as an input: one that adds "
            "to others' gradients must be recorded with Unlisted");
  }

  /// Adds the gradients of rows that have arrived to that which is kept.
  void join_arrived() const {
    Body& to = body();
    if (to.arrived.empty()) return;
    PoolVector<const RowGradient<T, Backend>*> parts{to.row_grad.get()};
    for (const auto& part : to.arrived) parts.push_back(&part);
    *to.row_grad = detail::join_row_gradients(parts);
    to.arrived.clear();
  }

  /// Makes the gradient by rows one of the whole table.
  void spread_rows() const {
    Body& to = body();
    join_arrived();
    const auto rows = std::move(to.row_grad);
    if (!rows->fits(shape())) return;
    to.has_grad = false;
    rows->add_to(grad().data());
  }

  static const TensorType& none() {
    static const TensorType* const empty = new TensorType;  // variables may outlive static objects
    return *empty;
  }

  mutable std::shared_ptr<Body> body_;
};

}  // namespace infty

#include <infty/autograd/without_row.hpp>  // which a tape records
