// SPDX-License-Identifier: MIT
#pragma once

#include <atomic>
#include <bit>
#include <cstdint>
#include <memory>
#include <utility>

#include <infty/autograd/row_gradient.hpp>
#include <infty/core/error.hpp>
#include <infty/core/pool.hpp>
#include <infty/core/tensor.hpp>

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

/// The gradient of a variable, and what tapes know of it. It is held by itself, so that it outlives
/// the value where nobody reads that any more. Those who hold it know the variable's shape.
template <class T, class B>
class GradientBody {
 public:
  bool requires_grad = false;
  bool by_rows = false;
  bool complete = false;                 // a backward pass goes on that nothing more may arrive of
  std::shared_ptr<Recording> recording;  // null for what no operation has made
  std::uint64_t reached = 0;             // by the backward pass of this number
  bool left = false;                     // the last handle of an output is gone, whose value
  Shape last_shape;                      // was of this shape then

  /// Whether one has arrived since `clear`, of this shape.
  bool has(const Shape& shape) const {
    return kept_rows(shape) || (has_grad_ && grad_.shape() == shape);
  }

  /// The gradient, for one who gives every element a value.
  GradTarget<T> target(const Shape& shape) {
    require_open(shape);
    if (rows_) [[unlikely]]
      spread_rows(shape);
    const bool add = has_grad_ && grad_.shape() == shape;
    if (!add) {
      if (!(grad_.shape() == shape) || std::as_const(grad_).data() == nullptr)
        grad_ = Tensor<T, B>(shape);
      has_grad_ = true;
    }
    return {grad_.data(), add};
  }

  /// The gradient, zeros if none has arrived.
  Tensor<T, B>& full(const Shape& shape) {
    if (!target(shape).add) grad_.fill(T(0));
    return grad_;
  }

  /// The gradient if it came by rows alone, else null.
  const RowGradient<T, B>* rows(const Shape& shape) {
    if (!kept_rows(shape)) return nullptr;
    join_arrived();
    return rows_.get();
  }

  /// Adds rows that are known to rise and to lie in the table.
  void add_rows(const Shape& shape, RowGradient<T, B> gradient) {
    require<ShapeError>(gradient.fits(shape), "add_row_grad", "the rows are ",
                        gradient.values.shape(), " of ", gradient.count, ", the table is ", shape);
    require_open(shape);
    const bool before = kept_rows(shape);
    if (!by_rows || (!before && has(shape))) {
      gradient.add_to(full(shape).data());
    } else if (!before) {
      rows_ = std::make_unique<RowGradient<T, B>>(std::move(gradient));
      arrived_.clear();
    } else if (gradient.rows.size() > 0) {
      // Joined when they are as many again: so each row is copied a few times, however many come.
      arrived_.push_back(std::move(gradient));
      Index rows = 0;
      if (std::has_single_bit(arrived_.size()))
        for (const auto& part : arrived_) rows += part.rows.size();
      if (rows >= rows_->rows.size()) join_arrived();
    }
  }

  /// Forgets the gradient; its memory stays for the next one, unless it came by rows.
  void clear() {
    has_grad_ = false;
    rows_.reset();
    arrived_.clear();
  }

  /// Forgets the gradient and its memory.
  void release() {
    clear();
    grad_ = Tensor<T, B>();
  }

 private:
  bool kept_rows(const Shape& shape) const { return rows_ && rows_->fits(shape); }

  /// Throws where a gradient arrives that a backward pass has said to be complete.
  void require_open(const Shape& shape) const {
    require(!complete, "backward", "a gradient of ", shape,
            " arrives behind the last operation that has the variable as an input: one that adds "
            "to others' gradients must be recorded with Unlisted");
  }

  /// Adds the gradients of rows that have arrived to that which is kept.
  void join_arrived() {
    if (arrived_.empty()) return;
    PoolVector<const RowGradient<T, B>*> parts{rows_.get()};
    for (const auto& part : arrived_) parts.push_back(&part);
    *rows_ = join_row_gradients(parts);
    arrived_.clear();
  }

  /// Makes the gradient by rows one of the whole table.
  void spread_rows(const Shape& shape) {
    join_arrived();
    const auto rows = std::move(rows_);
    if (!rows->fits(shape)) return;
    has_grad_ = false;
    rows->add_to(full(shape).data());
  }

  Tensor<T, B> grad_;
  bool has_grad_ = false;
  std::unique_ptr<RowGradient<T, B>> rows_;  // in the place of grad_
  PoolVector<RowGradient<T, B>> arrived_;    // behind that, not added to it yet
};

}  // namespace detail

/// What a variable and its `Unread` offer alike: the extents, and the gradient, to be read and
/// added to.
template <class Handle, class T, class Backend>
class GradientHandle {
 public:
  /// Extents of the value.
  const Shape& shape() const { return self().shape(); }
  /// Extent of dimension i of the value, negative i counting from the end.
  Index dim(Index i) const { return shape()[i]; }
  /// Number of elements of the value.
  Index size() const { return shape().size(); }

  /// Whether `Tape::backward` leaves a gradient here.
  bool requires_grad() const {
    const auto* const body = self().gradient_if_any();
    return body && body->requires_grad;
  }

  /// Whether a gradient has arrived since `zero_grad`, of the shape that the value has now.
  bool has_grad() const {
    const auto* const body = self().gradient_if_any();
    return body && body->has(shape());
  }

  /// Returns the gradient, of the value's shape, to be read and added to through any handle. If
  /// none has arrived these are zeros, and they have arrived now: `has_grad` asks without changing
  /// anything.
  Tensor<T, Backend>& grad() const { return self().gradient().full(shape()); }

  /// Returns the gradient for an operation that gives every element a value: the first to arrive
  /// need not find zeros, and whoever asks has to write.
  GradTarget<T> grad_target() const { return self().gradient().target(shape()); }

  /// Whether operations that read a few rows of a table [rows, ...] leave the gradient of these
  /// rows here, by `add_row_grad`, and not one of the table's size.
  bool grad_by_rows() const {
    const auto* const body = self().gradient_if_any();
    return body && body->by_rows;
  }

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
    self().gradient().add_rows(shape(), std::move(gradient));
  }

  /// The gradient that has arrived, if it came by rows and none of the whole table did; else null.
  /// Asking for `grad` turns it into one of the whole table.
  const RowGradient<T, Backend>* row_grad() const {
    auto* const body = self().gradient_if_any();
    return body ? body->rows(shape()) : nullptr;
  }

 private:
  friend Handle;
  GradientHandle() = default;

  const Handle& self() const { return static_cast<const Handle&>(*this); }
};

}  // namespace infty
