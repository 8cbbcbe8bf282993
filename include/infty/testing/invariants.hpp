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
#include <infty/core/state.hpp>
#include <infty/core/tensor.hpp>
#include <infty/testing/difference.hpp>

// What every memory that reads a stream should keep to, as functions to run on a memory of your
// own. None needs a test framework: each returns the largest difference that it found, 0 for equal
// bits and infinity for NaN or another shape, with words on where it was; `require_invariants`
// throws these instead.

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
Difference<double> batch_equals_rows(const M& memory, const Stream<Piece, Query>& stream) {
  const Index batch = detail::check_stream("batch_equals_rows", stream);
  const auto fresh = memory.make_state(batch);
  auto state = fresh;
  const auto together = detail::play(memory, state, stream, 0, stream.pieces.size());
  Difference<double> worst;
  for (Index row = 0; row < batch; ++row) {
    Stream<Piece, Query> alone{{}, stream.queries.slice(row, row + 1)};
    for (const Piece& piece : stream.pieces) alone.pieces.push_back(piece.slice(row, row + 1));
    auto own = take_rows(fresh, row, row + 1);
    const auto one = detail::play(memory, own, alone, 0, stream.pieces.size());
    const detail::Sides sides{"", "alone", "in the batch", row};
    detail::raise_to(worst, detail::difference(one, detail::row_of(together, row), sides), [&] {
      return detail::state_difference(own, take_rows(state, row, row + 1), sides);
    });
  }
  return worst;
}

/// A row that was reset reads what a fresh one reads, and the other rows do not notice.
template <class M, class Piece, class Query>
  requires StreamingMemory<M, Piece, Query>
Difference<double> reset_equals_fresh(const M& memory, const Stream<Piece, Query>& stream) {
  const Index batch = detail::check_stream("reset_equals_fresh", stream);
  const std::size_t all = stream.pieces.size();
  auto fresh = memory.make_state(batch);
  auto used = fresh;
  const auto first = detail::play(memory, fresh, stream, 0, all);
  detail::play(memory, used, stream, 0, all);
  auto untouched = used;
  const auto later = detail::play(memory, untouched, stream, 0, all);
  Difference<double> worst;
  for (Index row = 0; row < batch; ++row) {
    auto state = used;
    reset_row(state, row);
    const auto again = detail::play(memory, state, stream, 0, all);
    for (Index i = 0; i < batch; ++i) {
      const detail::Sides sides = i == row
                                      ? detail::Sides{"", "behind reset_row", "in a fresh state", i}
                                      : detail::Sides{"", "with another row reset", "without", i};
      const auto& expected = i == row ? first : later;
      detail::raise_to(
          worst, detail::difference(detail::row_of(again, i), detail::row_of(expected, i), sides),
          [&] {
            return detail::state_difference(take_rows(state, i, i + 1),
                                            take_rows(i == row ? fresh : untouched, i, i + 1),
                                            sides);
          });
    }
  }
  return worst;
}

/// A state that was saved and loaded continues as the state itself. @param through  saves a state
/// and returns what it loads: `State through(const State&)`
template <class M, class Piece, class Query, class RoundTrip>
  requires StreamingMemory<M, Piece, Query>
Difference<double> restored_equals_continued(const M& memory, const Stream<Piece, Query>& stream,
                                             RoundTrip through) {
  const Index batch = detail::check_stream("restored_equals_continued", stream);
  const std::size_t all = stream.pieces.size();
  Difference<double> worst;
  for (std::size_t cut = 0; cut < all; ++cut) {
    auto state = memory.make_state(batch);
    detail::play(memory, state, stream, 0, cut);
    const auto saved = state;
    StateOf<M> restored = through(std::as_const(state));
    const auto loaded = restored;
    const auto continued = detail::play(memory, state, stream, cut, all);
    const detail::Sides sides{"", "loaded", "saved", 0, cut};
    detail::raise_to(
        worst,
        detail::difference(detail::play(memory, restored, stream, cut, all), continued, sides),
        [&] { return detail::state_difference(loaded, saved, sides); });
  }
  return worst;
}

/// A copy of a state goes its own way: neither it nor the original notices what the other reads.
template <class M, class Piece, class Query>
  requires StreamingMemory<M, Piece, Query>
Difference<double> copy_branches(const M& memory, const Stream<Piece, Query>& stream) {
  const Index batch = detail::check_stream("copy_branches", stream);
  const std::size_t all = stream.pieces.size();
  Stream<Piece, Query> other{{}, detail::other_from(stream.queries, 0)};
  for (const Piece& piece : stream.pieces) other.pieces.push_back(detail::other_from(piece, 0));
  Difference<double> worst;
  for (std::size_t cut = 0; cut < all; ++cut) {
    auto undisturbed = memory.make_state(batch), original = memory.make_state(batch);
    detail::play(memory, undisturbed, stream, 0, cut);
    const auto expected = detail::play(memory, undisturbed, stream, cut, all);
    detail::play(memory, original, stream, 0, cut);
    auto copy = original, last = original;
    detail::play(memory, copy, other, 0, all);
    const detail::Sides sides{"", "beside a copy that went on", "without a copy", 0, cut};
    for (auto* const branch : {&original, &last})
      detail::raise_to(
          worst,
          detail::difference(detail::play(memory, *branch, stream, cut, all), expected, sides),
          [&] { return detail::state_difference(*branch, undisturbed, sides); });
  }
  return worst;
}

/// What was read does not change with what comes later: the output at a place with the queries at
/// later places, nor outputs in hand with later pieces.
template <class M, class Piece, class Query>
  requires StreamingMemory<M, Piece, Query>
Difference<double> output_ignores_future(const M& memory, const Stream<Piece, Query>& stream) {
  const Index batch = detail::check_stream("output_ignores_future", stream);
  const auto guard = no_grad();
  auto state = memory.make_state(batch);
  Difference<double> worst;
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
      const detail::Sides sides{
          detail::words("what was read behind piece ", as_read.size() - 1, " by the first ", place,
                        " of ", stream.queries.dim(1), " queries"),
          "with other queries behind them", "with these"};
      if (changed.shape() == out.shape())
        detail::raise_to(worst,
                         detail::difference(detail::places(changed, 0, place),
                                            detail::places(as_read.back(), 0, place), sides));
      else
        detail::raise_to(worst, detail::difference(changed, out, sides));
    }
  }
  detail::raise_to(worst, detail::difference(in_hand, as_read,
                                             {"", "when later pieces were written", "when read"}));
  return worst;
}

/// A stream written in pieces is remembered as if it were written in one go. Short-term memories
/// promise that, and the uniform one; what compresses with every write, as the long-term, cannot.
template <class M, class T, class B, class Query>
  requires StreamingMemory<M, Tensor<T, B>, Query>
Difference<double> pieces_equal_whole(const M& memory, const Stream<Tensor<T, B>, Query>& stream) {
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
  Difference<double> worst;
  detail::Sides sides{"what was read behind all pieces", "in pieces", "in one go"};
  detail::raise_to(worst, detail::difference(detail::tensor_of(a), detail::tensor_of(b), sides),
                   [&] { return detail::state_difference(by_piece, at_once, sides); });
  return worst;
}

/// All of the above but the last, which not every memory promises. @param tolerance  the largest
/// difference that is allowed; 0 asks for equal bits
/// @throws infty::testing::InvariantError that names the first broken invariant
template <class M, class Piece, class Query, class RoundTrip>
  requires StreamingMemory<M, Piece, Query>
void require_invariants(const M& memory, const Stream<Piece, Query>& stream, RoundTrip through,
                        double tolerance = 0) {
  const auto hold = [tolerance](const char* invariant, const char* rule,
                                const Difference<double>& difference) {
    require<InvariantError>(difference <= tolerance, invariant, "does not hold: a difference of ",
                            difference.largest, ", allowed is ", tolerance, "; ", rule, ": ",
                            difference.where);
  };
  hold("batch_equals_rows", "a batch reads what its rows read one by one",
       batch_equals_rows(memory, stream));
  hold("reset_equals_fresh",
       "a row that was reset reads what a fresh one reads, and the others do not notice",
       reset_equals_fresh(memory, stream));
  hold("restored_equals_continued",
       "a state that was saved and loaded continues as the state itself",
       restored_equals_continued(memory, stream, through));
  hold("copy_branches", "a copy of a state and the original do not notice each other",
       copy_branches(memory, stream));
  hold("output_ignores_future", "what was read does not change with what comes later",
       output_ignores_future(memory, stream));
}

}  // namespace infty::testing
