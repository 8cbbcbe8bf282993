// SPDX-License-Identifier: MIT
#pragma once

#include <algorithm>
#include <cmath>
#include <concepts>
#include <type_traits>
#include <utility>
#include <vector>

#include <infty/autograd/tape.hpp>
#include <infty/core/error.hpp>
#include <infty/core/number.hpp>
#include <infty/core/state.hpp>
#include <infty/core/tensor.hpp>

// What every memory that reads a stream should keep to, as functions to run on a memory of your
// own. None needs a test framework: each returns the largest difference that it found, 0 for equal
// bits and infinity for NaN or another shape; `require_invariants` throws instead.

namespace infty::testing {

/// A promise that a memory has broken.
class InvariantError : public Error {
 public:
  using Error::Error;
};

/// What a memory is tried with: pieces [batch, L, ...] that are written one after the other, of any
/// lengths, and queries [batch, Q, ...] that are read behind each. Elements may be numbers or
/// tokens. Two rows and two pieces at least, and rows that differ, or nothing could be told.
template <class Piece, class Query = Piece>
struct Stream {
  std::vector<Piece> pieces;  ///< written in this order
  Query queries;              ///< read behind each
};

/// What a memory's `make_state` returns.
template <class M>
using StateOf = std::remove_cvref_t<decltype(std::declval<const M&>().make_state(Index{1}))>;

/// What the kit asks of a memory: a layer that is not changed by use, with the state in the
/// caller's hands. Rows are taken out and reset by `take_rows` and `reset_row`, which every state
/// has that names its members in `visit`, see core/state.hpp.
template <class M, class Piece, class Query>
concept StreamingMemory = std::copyable<StateOf<M>> && requires(const M& memory, StateOf<M>& state,
                                                                const Piece& x, const Query& q) {
  memory.write(state, x);
  memory.read(state, q);  // [batch, Q, ...], a tensor or a variable
  take_rows(std::as_const(state), Index{}, Index{});
  reset_row(state, Index{});
};

namespace detail {

using infty::detail::tensor_of;

/// Largest |a - b|, relative to the largest |b| where that is over 1.
template <class T, class B>
double difference(const Tensor<T, B>& a, const Tensor<T, B>& b) {
  if (!(a.shape() == b.shape())) return math::infinity<double>;
  const auto x = a.to_vector(), y = b.to_vector();
  double worst = 0, scale = 1;
  for (std::size_t i = 0; i < x.size(); ++i) {
    const double d = std::abs(static_cast<double>(x[i]) - static_cast<double>(y[i]));
    if (!math::is_finite(d)) return math::infinity<double>;
    worst = (std::max)(worst, d);
    scale = (std::max)(scale, std::abs(static_cast<double>(y[i])));
  }
  return worst / scale;
}

inline void raise_to(double& worst, double other) { worst = (std::max)(worst, other); }

/// Places [begin, end) of dimension 1, as a copy.
template <class T, class B>
Tensor<T, B> places(const Tensor<T, B>& x, Index begin, Index end) {
  Tensor<T, B> y(x.shape().with(1, end - begin));
  const Index inner = x.shape().size(2, x.rank()), from = x.dim(1) * inner;
  const Index width = (end - begin) * inner;
  for (Index row = 0; row < x.dim(0); ++row)
    B::copy(y.data() + row * width, x.data() + row * from + begin * inner, width);
  return y;
}

/// Every row replaced by the next one, from place `begin` on: other input of the same kind.
template <class T, class B>
Tensor<T, B> other_from(const Tensor<T, B>& x, Index begin) {
  Tensor<T, B> y = x.clone();
  const Index inner = x.shape().size(2, x.rank()), row_size = x.dim(1) * inner;
  for (Index row = 0; row < x.dim(0); ++row)
    B::copy(y.data() + row * row_size + begin * inner,
            x.data() + (row + 1) % x.dim(0) * row_size + begin * inner, row_size - begin * inner);
  return y;
}

template <class Piece, class Query>
Index check_stream(const char* op, const Stream<Piece, Query>& s) {
  require(s.pieces.size() >= 2, op, s.pieces.size(), " pieces: two are needed");
  const Index batch = s.queries.rank() >= 2 ? s.queries.dim(0) : 0;
  require<ShapeError>(batch >= 2, op, "queries are ", s.queries.shape(),
                      ": they must be [batch, Q, ...], batch >= 2");
  for (const auto& piece : s.pieces)
    require<ShapeError>(piece.rank() >= 2 && piece.dim(0) == batch, op, "a piece is ",
                        piece.shape(), ", queries are ", s.queries.shape(),
                        ": they must have as many rows");
  return batch;
}

/// Writes pieces [first, last) and reads behind each; what was read, as it stood then.
template <class M, class Piece, class Query>
auto play(const M& memory, StateOf<M>& state, const Stream<Piece, Query>& s, std::size_t first,
          std::size_t last) {
  const auto guard = no_grad();
  using Out = std::remove_cvref_t<decltype(tensor_of(memory.read(state, s.queries)))>;
  std::vector<Out> out;
  for (std::size_t i = first; i < last; ++i) {
    memory.write(state, s.pieces[i]);
    out.push_back(tensor_of(memory.read(state, s.queries)).clone());
  }
  return out;
}

template <class Out>
double difference(const std::vector<Out>& a, const std::vector<Out>& b) {
  double worst = a.size() == b.size() ? 0 : math::infinity<double>;
  for (std::size_t i = 0; i < (std::min)(a.size(), b.size()); ++i)
    raise_to(worst, difference(a[i], b[i]));
  return worst;
}

/// Row `row` of everything that was read.
template <class Out>
std::vector<Out> row_of(const std::vector<Out>& all, Index row) {
  std::vector<Out> rows;
  for (const Out& x : all) rows.push_back(x.slice(row, row + 1));
  return rows;
}

}  // namespace detail

/// A batch reads what its rows read one by one.
template <class M, class Piece, class Query>
  requires StreamingMemory<M, Piece, Query>
double batch_equals_rows(const M& memory, const Stream<Piece, Query>& stream) {
  const Index batch = detail::check_stream("batch_equals_rows", stream);
  const auto fresh = memory.make_state(batch);
  auto state = fresh;
  const auto together = detail::play(memory, state, stream, 0, stream.pieces.size());
  double worst = 0;
  for (Index row = 0; row < batch; ++row) {
    Stream<Piece, Query> alone{{}, stream.queries.slice(row, row + 1)};
    for (const Piece& piece : stream.pieces) alone.pieces.push_back(piece.slice(row, row + 1));
    auto own = take_rows(fresh, row, row + 1);
    const auto one = detail::play(memory, own, alone, 0, stream.pieces.size());
    detail::raise_to(worst, detail::difference(one, detail::row_of(together, row)));
  }
  return worst;
}

/// A row that was reset reads what a fresh one reads, and the other rows do not notice.
template <class M, class Piece, class Query>
  requires StreamingMemory<M, Piece, Query>
double reset_equals_fresh(const M& memory, const Stream<Piece, Query>& stream) {
  const Index batch = detail::check_stream("reset_equals_fresh", stream);
  const std::size_t all = stream.pieces.size();
  auto fresh = memory.make_state(batch);
  auto used = fresh;
  const auto first = detail::play(memory, fresh, stream, 0, all);
  detail::play(memory, used, stream, 0, all);
  auto untouched = used;
  const auto later = detail::play(memory, untouched, stream, 0, all);
  double worst = 0;
  for (Index row = 0; row < batch; ++row) {
    auto state = used;
    reset_row(state, row);
    const auto again = detail::play(memory, state, stream, 0, all);
    for (Index i = 0; i < batch; ++i)
      detail::raise_to(worst, detail::difference(detail::row_of(again, i),
                                                 detail::row_of(i == row ? first : later, i)));
  }
  return worst;
}

/// A state that was saved and loaded continues as the state itself. @param through  saves a state
/// and returns what it loads: `State through(const State&)`
template <class M, class Piece, class Query, class RoundTrip>
  requires StreamingMemory<M, Piece, Query>
double restored_equals_continued(const M& memory, const Stream<Piece, Query>& stream,
                                 RoundTrip through) {
  const Index batch = detail::check_stream("restored_equals_continued", stream);
  const std::size_t all = stream.pieces.size();
  double worst = 0;
  for (std::size_t cut = 0; cut < all; ++cut) {
    auto state = memory.make_state(batch);
    detail::play(memory, state, stream, 0, cut);
    StateOf<M> restored = through(std::as_const(state));
    const auto continued = detail::play(memory, state, stream, cut, all);
    detail::raise_to(
        worst, detail::difference(detail::play(memory, restored, stream, cut, all), continued));
  }
  return worst;
}

/// A copy of a state goes its own way: neither it nor the original notices what the other reads.
template <class M, class Piece, class Query>
  requires StreamingMemory<M, Piece, Query>
double copy_branches(const M& memory, const Stream<Piece, Query>& stream) {
  const Index batch = detail::check_stream("copy_branches", stream);
  const std::size_t all = stream.pieces.size();
  Stream<Piece, Query> other{{}, detail::other_from(stream.queries, 0)};
  for (const Piece& piece : stream.pieces) other.pieces.push_back(detail::other_from(piece, 0));
  double worst = 0;
  for (std::size_t cut = 0; cut < all; ++cut) {
    auto undisturbed = memory.make_state(batch), original = memory.make_state(batch);
    detail::play(memory, undisturbed, stream, 0, cut);
    const auto expected = detail::play(memory, undisturbed, stream, cut, all);
    detail::play(memory, original, stream, 0, cut);
    auto copy = original, last = original;
    detail::play(memory, copy, other, 0, all);
    detail::raise_to(
        worst, detail::difference(detail::play(memory, original, stream, cut, all), expected));
    detail::raise_to(worst,
                     detail::difference(detail::play(memory, last, stream, cut, all), expected));
  }
  return worst;
}

/// What was read does not change with what comes later: the output at a place with the queries at
/// later places, nor outputs in hand with later pieces.
template <class M, class Piece, class Query>
  requires StreamingMemory<M, Piece, Query>
double output_ignores_future(const M& memory, const Stream<Piece, Query>& stream) {
  const Index batch = detail::check_stream("output_ignores_future", stream);
  const auto guard = no_grad();
  auto state = memory.make_state(batch);
  double worst = 0;
  using Out = std::remove_cvref_t<decltype(detail::tensor_of(memory.read(state, stream.queries)))>;
  std::vector<Out> in_hand, as_read;
  for (const Piece& piece : stream.pieces) {
    memory.write(state, piece);
    const auto before = state;
    const Out out = detail::tensor_of(memory.read(state, stream.queries));
    in_hand.push_back(out);
    as_read.push_back(out.clone());
    // A memory that has mistakes may answer with fewer places than it was asked for.
    for (Index place = 1; place < (std::min)(stream.queries.dim(1), out.dim(1)); ++place) {
      auto branch = before;
      const Out changed =
          detail::tensor_of(memory.read(branch, detail::other_from(stream.queries, place)));
      if (changed.shape() == out.shape())
        detail::raise_to(worst, detail::difference(detail::places(changed, 0, place),
                                                   detail::places(as_read.back(), 0, place)));
      else
        worst = math::infinity<double>;
    }
  }
  detail::raise_to(worst, detail::difference(in_hand, as_read));
  return worst;
}

/// A stream written in pieces is remembered as if it were written in one go. A short-term memory
/// promises that; one that compresses with every write, as the long-term memory does, cannot.
template <class M, class T, class B, class Query>
  requires StreamingMemory<M, Tensor<T, B>, Query>
double pieces_equal_whole(const M& memory, const Stream<Tensor<T, B>, Query>& stream) {
  const Index batch = detail::check_stream("pieces_equal_whole", stream);
  Index length = 0;
  for (const auto& piece : stream.pieces) length += piece.dim(1);
  const Tensor<T, B>& first = stream.pieces.front();
  const Index inner = first.shape().size(2, first.rank());
  Tensor<T, B> whole(first.shape().with(1, length));
  for (Index row = 0; row < batch; ++row) {
    T* to = whole.data() + row * length * inner;
    for (const auto& piece : stream.pieces) {
      const Index width = piece.dim(1) * inner;
      B::copy(to, piece.data() + row * width, width);
      to += width;
    }
  }
  const auto guard = no_grad();
  auto by_piece = memory.make_state(batch), at_once = memory.make_state(batch);
  for (const auto& piece : stream.pieces) memory.write(by_piece, piece);
  memory.write(at_once, whole);
  const auto a = memory.read(by_piece, stream.queries), b = memory.read(at_once, stream.queries);
  return detail::difference(detail::tensor_of(a), detail::tensor_of(b));
}

/// All of the above but the last, which not every memory promises. @param tolerance  the largest
/// difference that is allowed; 0 asks for equal bits
/// @throws infty::testing::InvariantError that names the first broken invariant
template <class M, class Piece, class Query, class RoundTrip>
  requires StreamingMemory<M, Piece, Query>
void require_invariants(const M& memory, const Stream<Piece, Query>& stream, RoundTrip through,
                        double tolerance = 0) {
  const auto hold = [tolerance](const char* invariant, double difference) {
    require<InvariantError>(difference <= tolerance, invariant, "does not hold: a difference of ",
                            difference, ", allowed is ", tolerance);
  };
  hold("batch_equals_rows", batch_equals_rows(memory, stream));
  hold("reset_equals_fresh", reset_equals_fresh(memory, stream));
  hold("restored_equals_continued", restored_equals_continued(memory, stream, through));
  hold("copy_branches", copy_branches(memory, stream));
  hold("output_ignores_future", output_ignores_future(memory, stream));
}

}  // namespace infty::testing
