// SPDX-License-Identifier: MIT
#pragma once

#include <algorithm>
#include <cmath>
#include <memory>
#include <mutex>
#include <vector>

#include <infty/autograd/tape.hpp>
#include <infty/core/checked.hpp>
#include <infty/core/error.hpp>
#include <infty/core/for_each.hpp>

namespace infty {

/// Returns how fast each pair of a head's dimensions turns, in radians a place: base^(-2 i / D) for
/// pair i of floor(D / 2) [Su et al. 2021, §3.2.2].
/// @throws infty::ValueError unless head_dim >= 1 and base lies in [1e-30, 1e30]
inline std::vector<double> rotary_frequencies(Index head_dim, double base = 10000) {
  require_at_least("rotary_frequencies", "head_dim", head_dim, 1);
  require_within("rotary_frequencies", "base", base, least_divisor, largest_constant);
  std::vector<double> out;
  for (Index i = 0; i + 1 < head_dim; i += 2)
    out.push_back(std::pow(base, -static_cast<double>(i) / static_cast<double>(head_dim)));
  return out;
}

/// Computes the turns of places first, ..., first + length - 1: of each pair of dimensions cosine
/// and sine, [length, 2 floor(head_dim / 2)], to be given to `rotary`. A place to its first n rows,
/// `table.slice(0, n)`, is as good as a table of its own.
/// @throws infty::ValueError unless length >= 0, head_dim >= 1 and base lies in [1e-30, 1e30]
template <class T, class B = EigenBackend>
Tensor<T, B> rotary_table(Index length, Index head_dim, Index first = 0, double base = 10000) {
  require(length >= 0, "rotary_table", "length is ", length, ": it must be >= 0");
  const std::vector<double> each = rotary_frequencies(head_dim, base);
  const Index pairs = static_cast<Index>(each.size());
  Tensor<T, B> table(Shape{length, 2 * pairs});
  const auto frequencies = Tensor<double, B>::from(Shape{pairs}, each);
  const double* const frequency = frequencies.data();
  T* const to = table.data();
  // In double: a float's angle of some thousand turns would be off in the fourth digit.
  detail::for_each_element<B>(length, pairs, [=] INFTY_HOST_DEVICE(Index i, Index j) {
    const double angle = (static_cast<double>(first) + static_cast<double>(i)) * frequency[j];
    to[2 * (i * pairs + j)] = static_cast<T>(std::cos(angle));
    to[2 * (i * pairs + j) + 1] = static_cast<T>(std::sin(angle));
  });
  return table;
}

/// Turns of the places from 0 on, of heads of one width, which grow as they are asked for. Copies
/// share them; any number of threads may ask.
template <class T, class Backend = EigenBackend>
class RotaryTable {
 public:
  /// Of turns as `rotary_table` has them for this base, > 0.
  explicit RotaryTable(double base = 10000) : base_(base) {}

  /// The turns of the first `length` places. @throws infty::ValueError as `rotary_table`
  Tensor<T, Backend> reaching(Index length, Index head_dim) const {
    require(shared_ != nullptr, "RotaryTable", "it was moved from");
    require_at_least("RotaryTable", "length", length, 0);
    const std::lock_guard lock(shared_->mutex);
    auto& [mutex, width, table] = *shared_;
    if (table.dim(0) < length || width != head_dim) {
      // Twice as far, so that generation, place by place, seldom computes them.
      const Index most = width == head_dim ? (std::max)(length, 2 * table.dim(0)) : length;
      table = rotary_table<T, Backend>(most, head_dim, 0, base_);
      width = head_dim;
    }
    return table.slice(0, length);
  }

 private:
  struct Shared {
    std::mutex mutex;
    Index width = 0;
    Tensor<T, Backend> table{Shape{0, 0}};
  };
  double base_;
  std::shared_ptr<Shared> shared_ = std::make_shared<Shared>();
};

namespace detail {

/// out = from with every pair (a, b) turned to (a cos - b sin, b cos + a sin), or back.
template <class T>
struct Turn {
  const T *from, *table;
  T* out;
  Index length, heads, head_dim;
  T direction;  ///< 1, or -1 for back
  bool add;     ///< to what is there

  /// The pairs [begin, end) of a vector's head; what is left over of an odd width is the last one.
  INFTY_HOST_DEVICE void operator()(Index head, Index begin, Index end) const {
    const Index pairs = head_dim / 2, last = end < pairs ? end : pairs;
    const T* const x = from + head * head_dim;
    const T* const turn = table + head / heads % length * 2 * pairs;
    T* const y = out + head * head_dim;
    const bool more = add;
    for (Index i = begin; i < last; ++i) {
      const T a = x[2 * i], b = x[2 * i + 1], cosine = turn[2 * i];
      const T sine = direction * turn[2 * i + 1];
      const T first = a * cosine - b * sine, second = b * cosine + a * sine;
      y[2 * i] = more ? y[2 * i] + first : first;
      y[2 * i + 1] = more ? y[2 * i + 1] + second : second;
    }
    if (end > pairs) y[2 * pairs] = more ? y[2 * pairs] + x[2 * pairs] : x[2 * pairs];
  }
};

/// Turns all heads of x [B, L, H D], as `Turn` says.
template <class B, class T>
void turn_heads(const Turn<T>& turn, Index batch) {
  for_each_span<B>(batch * turn.length * turn.heads, (turn.head_dim + 1) / 2, turn.head_dim, turn);
}

}  // namespace detail

/// Turns each head's neighbouring dimensions 2 i and 2 i + 1, as a point of the plane, by place
/// times frequency: the product of a query and a key then tells how far they stand apart
/// [Su et al. 2021, Eq. 34]. Of an odd width the last dimension stays as it is.
/// @param x      [B, L, H D]
/// @param table  `rotary_table` of the L places, for heads of D
/// @return       [B, L, H D]
/// @throws infty::ShapeError if the shapes do not fit
template <class T, class B>
Variable<T, B> rotary(const Variable<T, B>& x, Index heads, const Tensor<T, B>& table) {
  require<ShapeError>(x.shape().rank() == 3 && heads >= 1 && x.dim(2) > 0 && x.dim(2) % heads == 0,
                      "rotary", "x is ", x.shape(), ", heads are ", heads,
                      ": x must be [B, L, HD], which heads divide");
  const Index batch = x.dim(0), length = x.dim(1), width = x.dim(2), head_dim = width / heads;
  require<ShapeError>(table.shape() == Shape{length, head_dim / 2 * 2}, "rotary", "the table is ",
                      table.shape(), ", x is ", x.shape(), " of ", heads, " heads: it must be [",
                      length, ", ", head_dim / 2 * 2, "]");
  Variable<T, B> y(Tensor<T, B>(x.shape()));
  detail::turn_heads<B>(detail::Turn<T>{x.value().data(), table.data(), y.value().data(), length,
                                        heads, head_dim, T(1), false},
                        batch);
  return record(
      y,
      [x = Unread(x), table, batch, length, heads, head_dim](const Tensor<T, B>& dy) {
        const auto to = x.grad_target();
        detail::turn_heads<B>(detail::Turn<T>{dy.data(), table.data(), to.data, length, heads,
                                              head_dim, T(-1), to.add},
                              batch);
      },
      Unread(x), table);
}

}  // namespace infty
