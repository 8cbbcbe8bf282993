// SPDX-License-Identifier: MIT
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <limits>
#include <ostream>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

#include <infty/core/number.hpp>
#include <infty/core/state.hpp>
#include <infty/core/tensor.hpp>

namespace infty {

/// The largest difference that a check has found: compares as the number, and prints with words on
/// where it was. Infinity is for NaN and for other shapes.
template <class T>
struct Difference {
  T largest = 0;           ///< 0 for equal bits, infinity for NaN and other shapes
  std::string where = {};  ///< the element and both values; empty where there is no difference

  /// Returns the number.
  operator T() const { return largest; }

  friend std::ostream& operator<<(std::ostream& out, const Difference& difference) {
    out << difference.largest;
    if (!difference.where.empty()) out << " (" << difference.where << ')';
    return out;
  }
};

namespace testing::detail {

using infty::detail::tensor_of;

/// What is compared, and what the two sides are called.
struct Sides {
  std::string what = "the tensor";
  const char* left = "here";
  const char* right = "there";
  Index first_row = 0;          ///< of what is compared, in the batch
  std::size_t first_piece = 0;  ///< of what was read, in the stream
};

template <class... Parts>
std::string words(const Parts&... parts) {
  std::ostringstream out;
  out.precision(10);
  (out << ... << parts);
  return out.str();
}

/// "WHAT [3, 4], row 1, element 2: 0.25 HERE, 0.5 THERE", of the flat place i.
inline std::string words_on(const Sides& sides, const Shape& shape, Index i, double a, double b) {
  const Index width = shape.rank() > 0 ? shape.size(1, shape.rank()) : 1;
  return words(sides.what, ' ', shape, ", row ", sides.first_row + i / width, ", element ",
               i % width, ": ", a, ' ', sides.left, ", ", b, ' ', sides.right);
}

/// Largest |a - b| of two lists of numbers of one shape, relative to the largest finite |b| where
/// that is over 1.
template <class X, class Y>
Difference<double> difference_of(const X& x, const Y& y, const Shape& shape, const Sides& sides) {
  constexpr double infinity = math::infinity<double>;
  double worst = 0, scale = 1;
  std::size_t at = 0;
  for (std::size_t i = 0; i < x.size() && worst < infinity; ++i) {
    const auto right = static_cast<double>(y[i]);
    if (math::is_finite(right)) scale = (std::max)(scale, std::abs(right));
    if (x[i] == y[i]) continue;  // infinities, too
    const double d = std::abs(static_cast<double>(x[i]) - right);
    if (d <= worst) continue;
    worst = math::is_finite(d) ? d : infinity;
    at = i;
  }
  if (worst == 0) return {};
  return {worst == infinity ? infinity : worst / scale,
          words_on(sides, shape, static_cast<Index>(at), static_cast<double>(x[at]),
                   static_cast<double>(y[at]))};
}

/// The same of two tensors; infinity for other shapes.
template <class T, class B>
Difference<double> difference(const Tensor<T, B>& a, const Tensor<T, B>& b,
                              const Sides& sides = {}) {
  if (!(a.shape() == b.shape()))
    return {math::infinity<double>, words(sides.what, " is ", a.shape(), ' ', sides.left, ", ",
                                          b.shape(), ' ', sides.right)};
  return difference_of(a.to_vector(), b.to_vector(), a.shape(), sides);
}

/// The larger of both, with its words.
inline void raise_to(Difference<double>& worst, Difference<double> other) {
  if (other.largest > worst.largest) worst = std::move(other);
}

/// The same, and if it is the larger, what `look()` has found in the states behind it.
template <class Look>
void raise_to(Difference<double>& worst, Difference<double> other, const Look& look) {
  if (!(other.largest > worst.largest)) return;
  const Difference<double> cause = look();
  if (cause.largest > 0) other.where += "; " + cause.where;
  worst = std::move(other);
}

/// What was read, piece by piece.
template <class Out>
Difference<double> difference(const std::vector<Out>& a, const std::vector<Out>& b,
                              const Sides& sides = {}) {
  Difference<double> worst;
  for (std::size_t i = 0; i < (std::min)(a.size(), b.size()); ++i) {
    Sides piece = sides;
    piece.what = words("what was read behind piece ", sides.first_piece + i);
    raise_to(worst, difference(a[i], b[i], piece));
  }
  return worst;
}

/// What a member of a state remembers.
struct MemberNumbers {
  std::string name;
  Shape shape;
  std::vector<double> numbers;
};

struct CollectNumbers {
  std::vector<MemberNumbers>& all;

  template <class M>
  void operator()(const std::string& name, const M& member) const {
    if constexpr (infty::detail::is_tensor<M>) {
      const auto numbers = tensor_of(member).to_vector();
      all.push_back({name, tensor_of(member).shape(), {numbers.begin(), numbers.end()}});
    } else {
      const RowCounts& counts = infty::detail::counts_of(member);
      MemberNumbers of{name, Shape{static_cast<Index>(counts.size())}, {}};
      for (const Index count : counts) of.numbers.push_back(static_cast<double>(count));
      all.push_back(std::move(of));
    }
  }
};

/// What members of two states remember; infinity for another structure.
inline Difference<double> difference(const std::vector<MemberNumbers>& x,
                                     const std::vector<MemberNumbers>& y, Sides sides) {
  constexpr double infinity = math::infinity<double>;
  if (x.size() != y.size())
    return {infinity, words("the state has ", x.size(), " members ", sides.left, ", ", y.size(),
                            ' ', sides.right)};
  Difference<double> worst;
  for (std::size_t i = 0; i < x.size(); ++i) {
    sides.what = words("state member '", x[i].name, "'");
    if (x[i].shape == y[i].shape)
      raise_to(worst, difference_of(x[i].numbers, y[i].numbers, x[i].shape, sides));
    else
      raise_to(worst, {infinity, words(sides.what, " is ", x[i].shape, ' ', sides.left, ", ",
                                       y[i].shape, ' ', sides.right)});
  }
  return worst;
}

/// What two states remember, member by member; infinity for another structure.
template <class State>
Difference<double> state_difference(const State& a, const State& b, Sides sides = {}) {
  std::vector<MemberNumbers> of_a, of_b;
  for_each_member(a, CollectNumbers{of_a});
  for_each_member(b, CollectNumbers{of_b});
  return difference(of_a, of_b, std::move(sides));
}

}  // namespace testing::detail

}  // namespace infty
