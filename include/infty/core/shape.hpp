// SPDX-License-Identifier: MIT
#pragma once

#include <array>
#include <initializer_list>
#include <limits>
#include <ostream>
#include <type_traits>

#include <infty/core/config.hpp>
#include <infty/core/error.hpp>

namespace infty {

/// The extents of a row-major tensor: up to six, each >= 0. The empty list is a scalar's shape.
class Shape {
 public:
  static constexpr Index max_rank = 6;  ///< most extents that a shape can have

  constexpr Shape() = default;

  /// Makes a shape of these extents, the last of which runs fastest.
  /// @throws infty::ShapeError for more than six extents, a negative one, or a product over 2^62
  Shape(std::initializer_list<Index> extents) { assign(extents.begin(), extents.end()); }

  /// Makes a shape of the extents in a range, the last of which runs fastest.
  /// @throws infty::ShapeError for more than six extents, a negative one, or a product over 2^62
  template <class Iterator>
  Shape(Iterator first, Iterator last) {
    assign(first, last);
  }

  /// Number of dimensions, 0 for a scalar.
  constexpr Index rank() const { return rank_; }

  /// Number of elements, the product of all extents; 1 for a scalar.
  constexpr Index size() const {
    Index product = 1;
    for (Index i = 0; i < rank_; ++i) product *= extents_[static_cast<std::size_t>(i)];
    return product;
  }

  /// Extent i; negative i counts from the end, as in NumPy. @throws infty::ShapeError out of range
  Index operator[](Index i) const {
    const Index at = i < 0 ? i + rank_ : i;
    if (at < 0 || at >= rank_) raise<ShapeError>("Shape", "dimension ", i, " of ", *this);
    return extents_[static_cast<std::size_t>(at)];
  }

  /// Product of the extents in [first, last), negative `first` counting from the end; 1 if there
  /// are none. @throws infty::ShapeError out of range
  Index size(Index first, Index last) const {
    const Index begin = first < 0 ? first + rank_ : first;
    require<ShapeError>(begin >= last || (begin >= 0 && last <= rank_), "Shape", "dimensions [",
                        first, ", ", last, ") of ", *this);
    Index product = 1;
    for (Index i = begin; i < last; ++i) product *= extents_[static_cast<std::size_t>(i)];
    return product;
  }

  /// Returns this shape with extent i replaced.
  /// @throws infty::ShapeError if there is no extent i, for a negative one, or a product over 2^62
  Shape with(Index i, Index extent) const {
    Shape changed = *this;
    (*this)[i];
    changed.extents_[static_cast<std::size_t>(i < 0 ? i + rank_ : i)] = extent;
    return Shape(changed.begin(), changed.end());
  }

  /// The first extent: shapes are ranges of extents.
  const Index* begin() const { return extents_.data(); }
  /// Behind the last extent.
  const Index* end() const { return extents_.data() + rank_; }

  friend bool operator==(const Shape& a, const Shape& b) {
    if (a.rank_ != b.rank_) return false;
    for (std::size_t i = 0; i < static_cast<std::size_t>(a.rank_); ++i)
      if (a.extents_[i] != b.extents_[i]) return false;
    return true;
  }

  friend std::ostream& operator<<(std::ostream& out, const Shape& shape) {
    out << '[';
    for (Index i = 0; i < shape.rank_; ++i)
      out << (i ? ", " : "") << shape.extents_[static_cast<std::size_t>(i)];
    return out << ']';
  }

 private:
  template <class Iterator>
  void assign(Iterator first, Iterator last) {
    Index product = 1;
    for (; first != last; ++first) {
      require<ShapeError>(rank_ < max_rank, "Shape", "more than ", max_rank, " dimensions");
      const Index extent = static_cast<Index>(*first);
      require<ShapeError>(extent >= 0, "Shape", "extent ", extent, " is negative");
      require<ShapeError>(extent == 0 || product <= (Index{1} << 62) / extent, "Shape",
                          "more than 2^62 elements");
      if (extent != 0) product *= extent;
      extents_[static_cast<std::size_t>(rank_++)] = extent;
    }
  }

  std::array<Index, max_rank> extents_{};
  Index rank_ = 0;
};

static_assert(std::is_trivially_copyable_v<Shape>);

}  // namespace infty
