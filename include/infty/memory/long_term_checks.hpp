// SPDX-License-Identifier: MIT
#pragma once

#include <infty/core/error.hpp>
#include <infty/core/finite.hpp>
#include <infty/core/number.hpp>
#include <infty/core/state.hpp>
#include <infty/core/verify.hpp>
#include <infty/memory/fifo.hpp>
#include <infty/memory/long_term_config.hpp>
#include <infty/memory/long_term_state.hpp>

namespace infty::detail {

/// @throws infty::ShapeError, infty::ValueError that name `op` unless a memory with this
/// configuration, which notes attention in so many bins, made the state, and all of its members
/// have as many rows
template <class T, class B>
void check_long_term_state(const char* op, const LongTermConfig& config, Index bins,
                           const Fifo<T, B>& waiting, const LongTermState<T, B>& state) {
  const Index batch = state.coefficients.dim(0), d = config.model_dim;
  require<ShapeError>(
      state.coefficients.shape() == Shape{batch, config.basis, d}, op,
      "the state holds coefficients ", state.coefficients.shape(),
      state.coefficients.size() == 0 ? ": make_state has not made it" : ": another memory made it",
      ", ours are [batch, ", config.basis, ", ", d, "]");
  const Shape attention{batch, bins};
  require<ShapeError>(state.attention.shape() == attention, op, "the state holds attention ",
                      state.attention.shape(), ": another memory made it, ours is ", attention);
  require<ShapeError>(state.largest.shape() == Shape{batch, d}, op,
                      "the state holds the largest |x| as ", state.largest.shape(),
                      ": another memory made it, ours is [batch, ", d, "]");
  waiting.check(op, state.waiting);
  detail::checked_rows(op, state);
  for (std::size_t row = 0; row < state.written.size(); ++row)
    require(state.written[row] >= 0 && state.writes[row] >= 0 && state.last[row] >= 0, op, "row ",
            row, " has taken in ", state.written[row], " vectors in ", state.writes[row],
            " writes, ", state.last[row], " in the last: none may be negative");
}

/// @throws infty::ShapeError that names `op` unless the shape is [batch, L, d]
inline void check_vectors(const char* op, const Shape& shape, Index batch, Index d) {
  require<ShapeError>(shape.rank() == 3 && shape[0] == batch && shape[2] == d, op,
                      "the vectors are ", shape, ": they must be [", batch, ", L, ", d, "]");
}

/// @throws infty::ShapeError that names `op` unless the queries are [batch, Q, e]
inline void check_queries(const char* op, const Shape& shape, Index batch, Index e) {
  require<ShapeError>(shape.rank() == 3 && shape[0] == batch && shape[2] == e, op, "queries are ",
                      shape, ": they must be [", batch, ", Q, ", e, "], ", e,
                      " = heads * head_dim");
}

/// @throws infty::ShapeError, infty::ValueError that name `op` unless there is a count a row, each
/// in [0, length]
inline void check_counts(const char* op, const RowCounts& counts, Index batch, Index length) {
  require<ShapeError>(static_cast<Index>(counts.size()) == batch, op, counts.size(), " counts for ",
                      batch, " rows");
  for (const Index count : counts)
    require(count >= 0 && count <= length, op, "a count is ", count, ": it must lie in [0, ",
            length, "]");
}

/// @throws infty::ShapeError, infty::ValueError that name `op` unless locations are none, or of
/// this shape and in [0, 1]
template <class T, class B>
void check_locations(const char* op, const Tensor<T, B>& locations, const Shape& shape) {
  if (locations.empty()) return;
  require<ShapeError>(locations.shape() == shape, op, "locations are ", locations.shape(),
                      ": they must be ", shape);
  const T* const t = locations.data();
  verify<B>(
      locations.size(),
      [=] INFTY_HOST_DEVICE(Index i) {
        return !math::is_finite_at(t + i) || t[i] < T(0) || t[i] > T(1);
      },
      [op, locations](Index i) {
        const Index samples = locations.dim(1);
        raise<ValueError>(op, "location ", i % samples, " of row ", i / samples,
                          " does not lie in [0, 1]");
      });
}

/// @throws infty::NonFiniteError that says which, unless all of `part` of a read are numbers: NaN
/// and infinity neither come into a read nor leave it without a word
template <class T, class B>
void require_finite_read(const Tensor<T, B>& coefficients, const Tensor<T, B>& queries,
                         const Tensor<T, B>& part) {
  require_finite(part, [queries, coefficients] {
    const char* const what = !all_finite(queries)        ? "a query is not"
                             : !all_finite(coefficients) ? "the state is not"
                                                         : "queries and state are, but not what "
                                                           "the parameters make of them";
    raise<NonFiniteError>("read", "what is read is not finite: ", what);
  });
}

}  // namespace infty::detail
