// SPDX-License-Identifier: MIT
#include <cmath>
#include <limits>
#include <string>
#include <vector>

#include <infty/testing/invariants.hpp>

#include "support/catch.hpp"
#include "support/tensors.hpp"

using infty::Index;
using infty::Random;
using infty::RowCounts;
using infty::Shape;
using infty::Tensor;

namespace {

enum class Fault { none, rows_mix, reset_misses, shares, peeks, counts_writes, gives_view };

/// The running sum of what was written, [batch, d].
struct SumState {
  Tensor<double> sum;
  RowCounts seen;
  std::vector<double> hidden;  ///< a fault: nothing names it

  template <class Visitor>
  void visit(Visitor&& see) {
    see("sum", sum);
    see("seen", seen);
  }
};

/// Remembers a sum and reads, at every place, its product with all queries up to there; and one
/// mistake on request.
struct SumMemory {
  Index d = 3;
  Fault fault = Fault::none;

  SumState make_state(Index batch) const {
    const auto rows = static_cast<std::size_t>(batch);
    return {Tensor<double>::zeros({batch, d}), RowCounts(rows, 0), std::vector<double>(rows, 0)};
  }

  void write(SumState& state, const Tensor<double>& x) const {
    auto sum = fault == Fault::shares || fault == Fault::gives_view ? state.sum : state.sum.clone();
    for (Index row = 0; row < x.dim(0); ++row) {
      const auto at = static_cast<std::size_t>(row);
      for (Index i = 0; i < x.dim(1); ++i)
        for (Index c = 0; c < d; ++c) {
          const Index source = fault == Fault::rows_mix ? 0 : row;
          sum.data()[row * d + c] += x.data()[(source * x.dim(1) + i) * d + c];
        }
      state.seen[at] += fault == Fault::counts_writes ? 1 : x.dim(1);
      state.hidden[at] += static_cast<double>(x.dim(1));
    }
    state.sum = sum;
  }

  Tensor<double> read(SumState& state, const Tensor<double>& q) const {
    if (fault == Fault::gives_view) return state.sum.reshape({state.sum.dim(0), 1, d});
    auto out = Tensor<double>::zeros(q.shape());
    const Index L = q.dim(1);
    for (Index row = 0; row < q.dim(0); ++row) {
      const auto at = static_cast<std::size_t>(row);
      const double extra =
          fault == Fault::reset_misses ? state.hidden[at] : static_cast<double>(state.seen[at]);
      for (Index i = 0; i < L; ++i)
        for (Index j = 0; j <= (fault == Fault::peeks ? L - 1 : i); ++j)
          for (Index c = 0; c < d; ++c)
            out.data()[(row * L + i) * d + c] +=
                q.data()[(row * L + j) * d + c] * (state.sum.data()[row * d + c] + extra);
    }
    return out;
  }
};

using Numbers = infty::testing::Stream<Tensor<double>>;
static_assert(infty::testing::StreamingMemory<SumMemory, Tensor<double>, Tensor<double>>);
static_assert(!infty::testing::StreamingMemory<SumMemory, Tensor<Index>, Tensor<double>>);

Numbers numbers() {
  Random random(infty::tests::seed);
  Numbers stream;
  for (const Index length : {2, 1, 4})
    stream.pieces.push_back(infty::tests::uniform_tensor<double>({3, length, 3}, random));
  stream.queries = infty::tests::uniform_tensor<double>({3, 5, 3}, random);
  return stream;
}

SumState copied(const SumState& state) { return {state.sum.clone(), state.seen, state.hidden}; }

}  // namespace

TEST_CASE("invariants: a memory that keeps them") {
  const SumMemory memory;
  CHECK_NOTHROW(infty::testing::require_invariants(memory, numbers(), copied));
  CHECK(infty::testing::pieces_equal_whole(memory, numbers()) < 1e-14);
}

TEST_CASE("invariants: each one finds the mistake it is for") {
  namespace kit = infty::testing;
  const auto stream = numbers();
  CHECK(kit::batch_equals_rows(SumMemory{3, Fault::rows_mix}, stream) > 0.01);
  CHECK(kit::reset_equals_fresh(SumMemory{3, Fault::reset_misses}, stream) > 0.01);
  CHECK(kit::copy_branches(SumMemory{3, Fault::shares}, stream) > 0.01);
  CHECK(kit::output_ignores_future(SumMemory{3, Fault::peeks}, stream) > 0.01);
  CHECK(kit::output_ignores_future(SumMemory{3, Fault::gives_view}, stream) > 0.01);
  CHECK(kit::pieces_equal_whole(SumMemory{3, Fault::counts_writes}, stream) > 0.01);
  const auto loses_count = [](const SumState& state) {
    return SumState{state.sum.clone(), RowCounts(state.seen.size(), 0), state.hidden};
  };
  CHECK(kit::restored_equals_continued(SumMemory{}, stream, loses_count) > 0.01);
}

TEST_CASE("invariants: the one that is broken is named") {
  const auto message = [](Fault fault) {
    try {
      infty::testing::require_invariants(SumMemory{3, fault}, numbers(), copied);
    } catch (const infty::testing::InvariantError& error) {
      return std::string(error.what());
    }
    return std::string();
  };
  CHECK_THAT(
      message(Fault::rows_mix),
      Catch::StartsWith("[batch_equals_rows] does not hold: a difference of") &&
          Catch::Contains(", allowed is 0; a batch reads what its rows read one by one: what "
                          "was read behind piece "));
  CHECK(message(Fault::reset_misses).starts_with("[reset_equals_fresh]"));
  CHECK(message(Fault::peeks).starts_with("[output_ignores_future]"));
  CHECK(message(Fault::none).empty());
  CHECK_THROWS_AS(
      infty::testing::require_invariants(SumMemory{}, numbers(),
                                         [](const SumState&) { return SumMemory{}.make_state(3); }),
      infty::testing::InvariantError);
}

TEST_CASE("invariants: what broke is told by rule, member, shape, row, element and both values") {
  namespace kit = infty::testing;
  const auto stream = numbers();
  const auto where = [](const infty::Difference<double>& difference) { return difference.where; };
  // Row 0 is right, whatever is mixed into the others.
  CHECK_THAT(where(kit::batch_equals_rows(SumMemory{3, Fault::rows_mix}, stream)),
             Catch::Matches(R"(what was read behind piece \d \[1, 5, 3\], row [12], element \d+: )"
                            R"(-?[\d.]+ alone, -?[\d.]+ in the batch; )"
                            R"(state member 'sum' \[1, 3\], row [12], element [012]: )"
                            R"(-?[\d.]+ alone, -?[\d.]+ in the batch)"));
  // Nothing names what a reset leaves: no state member differs.
  CHECK_THAT(where(kit::reset_equals_fresh(SumMemory{3, Fault::reset_misses}, stream)),
             Catch::Matches(R"(what was read behind piece \d \[1, 5, 3\], row \d, element \d+: )"
                            R"(-?[\d.]+ behind reset_row, -?[\d.]+ in a fresh state)"));
  CHECK_THAT(where(kit::copy_branches(SumMemory{3, Fault::shares}, stream)),
             Catch::Contains(" beside a copy that went on, ") &&
                 Catch::Contains("; state member 'sum' [3, 3], row "));
  CHECK_THAT(where(kit::output_ignores_future(SumMemory{3, Fault::peeks}, stream)),
             Catch::Matches(R"(what was read behind piece \d by the first [1-4] of 5 queries )"
                            R"(\[3, [1-4], 3\], row \d, element \d+: -?[\d.]+ with other queries )"
                            R"(behind them, -?[\d.]+ with these)"));
  CHECK_THAT(where(kit::output_ignores_future(SumMemory{3, Fault::gives_view}, stream)),
             Catch::Contains(" when later pieces were written, "));
  CHECK_THAT(where(kit::pieces_equal_whole(SumMemory{3, Fault::counts_writes}, stream)),
             Catch::Contains("; state member 'seen' [3], row 0, element 0: 3 in pieces, 1 in one "
                             "go"));
  const auto loses_count = [](const SumState& state) {
    return SumState{state.sum.clone(), RowCounts(state.seen.size(), 0), state.hidden};
  };
  CHECK_THAT(where(kit::restored_equals_continued(SumMemory{}, stream, loses_count)),
             Catch::Contains("; state member 'seen' [3], row 0, element 0: 0 loaded, 2 saved"));
  CHECK(where(kit::batch_equals_rows(SumMemory{}, stream)).empty());
}

TEST_CASE("invariants: NaN and other shapes are an infinite difference") {
  const auto one = Tensor<double>::full({1}, 1.0), two = Tensor<double>::zeros({2});
  const auto nan = Tensor<double>::full({1}, std::numeric_limits<double>::quiet_NaN());
  CHECK(std::isinf(infty::testing::detail::difference(one, two)));
  CHECK(std::isinf(infty::testing::detail::difference(nan, nan)));
  CHECK(infty::testing::detail::difference(one, two, {"y", "alone", "together"}).where ==
        "y is [1] alone, [2] together");
  CHECK(infty::testing::detail::difference(nan, one, {"y", "alone", "together"}).where ==
        "y [1], row 0, element 0: nan alone, 1 together");
  CHECK(infty::testing::detail::difference(one, one) == 0);
}

TEST_CASE("invariants: a difference is relative to the largest number, be it equal in both") {
  const auto of = [](std::vector<double> a, std::vector<double> b) {
    return infty::testing::detail::difference(
               Tensor<double>::from({static_cast<Index>(a.size())}, a),
               Tensor<double>::from({static_cast<Index>(b.size())}, b))
        .largest;
  };
  constexpr double infinity = infty::math::infinity<double>;
  CHECK(of({1e6, 1.5}, {1e6, 1}) == Approx(5e-7));
  CHECK(of({infinity, 1.5}, {infinity, 1}) == Approx(.5));
  CHECK(of({infinity, 1.5}, {0, 1}) == infinity);
}

TEST_CASE("invariants: a stream that could tell nothing is refused") {
  auto stream = numbers();
  stream.pieces.resize(1);
  CHECK_THROWS_WITH(infty::testing::batch_equals_rows(SumMemory{}, stream),
                    "[batch_equals_rows] 1 pieces: two are needed");
  stream = numbers();
  stream.queries = stream.queries.slice(0, 1);
  CHECK_THROWS_WITH(infty::testing::copy_branches(SumMemory{}, stream),
                    "[copy_branches] queries are [1, 5, 3]: they must be [batch, Q, ...], batch >= "
                    "2");
  stream = numbers();
  stream.pieces[1] = stream.pieces[1].slice(0, 2);
  CHECK_THROWS_AS(infty::testing::reset_equals_fresh(SumMemory{}, stream), infty::ShapeError);
}
