// SPDX-License-Identifier: MIT
#pragma once

#include <atomic>
#include <cstddef>
#include <memory>
#include <new>
#include <type_traits>
#include <utility>
#include <vector>

#include <infty/core/backend.hpp>
#include <infty/core/config.hpp>
#include <infty/core/error.hpp>
#include <infty/core/fwd.hpp>
#include <infty/core/pool.hpp>
#include <infty/core/shape.hpp>

namespace infty {

namespace detail {

[[noreturn]] inline void raise_read_only() {
  raise<ValueError>("Tensor",
                    "the memory was wrapped as const and must not be written: ask a const tensor "
                    "for data(), or write to a clone()");
}

/// A block of a backend's memory, or none of its own where the caller owns it, and how often what
/// stands there was written.
template <class Backend_>
struct Storage {
  Storage() = default;
  explicit Storage(std::size_t size) : block(Backend_::allocate(size)), bytes(size) {}
  ~Storage() {
    if (block) Backend_::release(block, bytes);
  }
  Storage(const Storage&) = delete;
  Storage& operator=(const Storage&) = delete;

  void note_write() {
    if (read_only) [[unlikely]]
      raise_read_only();
    version.fetch_add(1, std::memory_order_relaxed);
  }

  void* block = nullptr;
  std::size_t bytes = 0;
  bool read_only = false;         // the caller's, who has it const
  std::atomic<Index> version{0};  // several threads may write parts of one tensor
};

}  // namespace detail

/// A row-major, contiguous array of up to six dimensions in a backend's memory.
///
/// A tensor is a handle: copies and views (`reshape`, `slice`) share the elements, `clone` does
/// not. `wrap` makes a tensor of memory that the caller owns and keeps alive. A tensor
/// that was moved from is an empty one, shape [0].
template <class T, class Backend_>
class Tensor {
  static_assert(std::is_trivially_copyable_v<T>, "Tensor: T must be trivially copyable");
  static_assert(Backend<Backend_>, "Tensor: the second parameter is not an infty::Backend");

 public:
  using Scalar = T;
  using BackendType = Backend_;

  /// No elements, shape [0].
  Tensor() = default;
  Tensor(const Tensor&) = default;             ///< Makes a handle of the same elements.
  Tensor& operator=(const Tensor&) = default;  ///< Becomes a handle of the other's elements.
  /// Takes the elements over; the other one is empty then, of shape [0].
  Tensor(Tensor&& other) noexcept
      : shape_(std::exchange(other.shape_, none())),
        data_(std::exchange(other.data_, nullptr)),
        storage_(std::move(other.storage_)) {}
  /// Takes the elements over; the other one is empty then, of shape [0].
  Tensor& operator=(Tensor&& other) noexcept {
    shape_ = std::exchange(other.shape_, none());
    data_ = std::exchange(other.data_, nullptr);
    storage_ = std::move(other.storage_);
    return *this;
  }
  ~Tensor() = default;

  /// Uninitialised elements of the given shape. @throws std::bad_alloc, and what the backend's
  /// `allocate` throws
  explicit Tensor(Shape shape) : shape_(shape) {
    constexpr Index most = (Index{1} << 62) / static_cast<Index>(sizeof(T));
    if (shape.size() > most) detail::raise_bad_alloc();  // or the number of bytes would wrap
    storage_ = std::allocate_shared<detail::Storage<Backend_>>(
        PoolAllocator<detail::Storage<Backend_>>{}, bytes());
    data_ = static_cast<T*>(storage_->block);
  }

  /// All elements 0.
  static Tensor zeros(Shape shape) { return full(shape, T{}); }

  /// All elements `value`.
  static Tensor full(Shape shape, T value) {
    Tensor out(shape);
    out.fill(value);
    return out;
  }

  /// Copies host elements into a tensor.
  /// @throws infty::ShapeError if their number is not the shape's
  static Tensor from(Shape shape, const std::vector<T>& elements) {
    require<ShapeError>(shape.size() == static_cast<Index>(elements.size()), "Tensor::from",
                        elements.size(), " elements do not fill ", shape);
    return from(shape, elements.data());
  }

  /// Copies the `shape.size()` host elements at `elements`.
  static Tensor from(Shape shape, const T* elements) {
    Tensor out(shape);
    Backend_::from_host(out.data(), elements, out.size());
    return out;
  }

  /// Makes a view of memory that the caller owns, row-major, which must outlive every view of it.
  /// It counts the writes of this handle and of those that come from it; it cannot know of others.
  static Tensor wrap(T* data, Shape shape) {
    Tensor out;
    out.shape_ = shape;
    out.data_ = data;
    out.storage_ =
        std::allocate_shared<detail::Storage<Backend_>>(PoolAllocator<detail::Storage<Backend_>>{});
    return out;
  }

  /// The same for memory that must not be written: `data()` of a handle that is not const, `fill`
  /// and `copy_from` throw infty::ValueError, of all handles and views. `clone` may be written.
  static const Tensor wrap(const T* data, Shape shape) {
    Tensor out = wrap(const_cast<T*>(data), shape);
    out.storage_->read_only = true;
    return out;
  }

  /// Extents of all dimensions.
  const Shape& shape() const { return shape_; }
  /// Number of dimensions, 0 for a scalar.
  Index rank() const { return shape_.rank(); }
  /// Number of elements, 1 for a scalar.
  Index size() const { return shape_.size(); }
  /// Whether there are no elements.
  bool empty() const { return size() == 0; }
  /// Extent of dimension i, negative i counting from the end.
  Index dim(Index i) const { return shape_[i]; }
  /// Bytes of all elements.
  std::size_t bytes() const { return static_cast<std::size_t>(size()) * sizeof(T); }

  /// The first element, in the backend's memory; null for an empty handle. Asking counts as a
  /// write: see `version`. @throws infty::ValueError if the memory was wrapped as const
  T* data() {
    if (storage_) storage_->note_write();
    return data_;
  }
  /// Returns the first element, read-only, in the backend's memory; null for an empty handle.
  const T* data() const { return data_; }

  /// Another number whenever the elements may have been written: `data()` of a handle that is not
  /// const, `fill` and `copy_from` count, of any handle or view of them. It tells what was computed
  /// from the elements that it is out of date. What is written through a pointer that was kept
  /// cannot be counted: ask for `data()` again.
  Index version() const {
    return storage_ ? storage_->version.load(std::memory_order_relaxed) : Index{0};
  }

  /// Whether two handles show the same elements in memory, under the same shape.
  friend bool same(const Tensor& a, const Tensor& b) {
    return a.storage_ == b.storage_ && a.data_ == b.data_ && a.shape_ == b.shape_;
  }

  /// Whether another handle or view has this memory, too.
  bool is_shared() const { return storage_.use_count() > 1; }
  /// Whose memory it is: equal by `owner_before` to that of its other handles and views alone, for
  /// ever. It keeps nothing alive.
  std::weak_ptr<const void> memory() const { return storage_; }

  /// Returns these elements under another shape, without a copy.
  /// @throws infty::ShapeError if the sizes differ
  Tensor reshape(Shape shape) const {
    require<ShapeError>(shape.size() == size(), "reshape", shape_, " to ", shape,
                        ": the number of elements must stay");
    Tensor out = *this;
    out.shape_ = shape;
    return out;
  }

  /// Returns elements [begin, end) of the leading dimension, as a view.
  /// @throws infty::ShapeError unless 0 <= begin <= end <= dim(0)
  Tensor slice(Index begin, Index end) const {
    require<ShapeError>(rank() > 0 && 0 <= begin && begin <= end && end <= dim(0), "slice", "[",
                        begin, ", ", end, ") of ", shape_);
    Tensor out = *this;
    out.shape_ = shape_.with(0, end - begin);
    if (dim(0) > 0) out.data_ += begin * (size() / dim(0));
    return out;
  }

  /// Copies the elements into a tensor of their own.
  Tensor clone() const {
    Tensor out(shape_);
    Backend_::copy(out.data(), data(), size());
    return out;
  }

  /// Copies the elements of a tensor of the same shape.
  /// @throws infty::ShapeError; infty::ValueError as `data`
  void copy_from(const Tensor& other) {
    require<ShapeError>(shape_ == other.shape_, "copy_from", other.shape_, " into ", shape_);
    Backend_::copy(data(), other.data(), size());
  }

  /// Sets every element, also those that other handles share. @throws infty::ValueError as `data`
  void fill(T value) { Backend_::fill(data(), size(), value); }

  /// Copies the elements to host memory, in row-major order.
  std::vector<T> to_vector() const {
    std::vector<T> out(static_cast<std::size_t>(size()));
    Backend_::to_host(out.data(), data(), size());
    return out;
  }

  /// Returns the only element of a tensor of size 1. @throws infty::ShapeError for another size
  T item() const {
    require<ShapeError>(size() == 1, "item", shape_, " has not one element");
    T value;
    Backend_::to_host(&value, data(), 1);
    return value;
  }

  /// Copies the tensor to the memory of another backend, by way of the host; to its own by `clone`.
  template <class Other>
  Tensor<T, Other> to() const {
    if constexpr (std::is_same_v<Other, Backend_>) {
      return clone();
    } else {
      return Tensor<T, Other>::from(shape_, to_vector());
    }
  }

  /// Copies the elements into another scalar type: rounded to nearest, or to whole numbers towards
  /// zero, which must have room for them.
  template <class U>
  Tensor<U, Backend_> cast() const {
    Tensor<U, Backend_> out(shape_);
    U* const to = out.data();
    const T* const from = data();
    Backend_::for_each(size(), [=] INFTY_HOST_DEVICE(Index i) { to[i] = static_cast<U>(from[i]); });
    return out;
  }

 private:
  static Shape none() { return {0}; }

  Shape shape_ = none();
  T* data_ = nullptr;  // this view's first element
  std::shared_ptr<detail::Storage<Backend_>> storage_;
};

}  // namespace infty
