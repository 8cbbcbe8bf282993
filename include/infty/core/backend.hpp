// SPDX-License-Identifier: MIT
#pragma once

#include <concepts>
#include <cstddef>

#include <infty/core/config.hpp>

namespace infty {

/// The shape of a batched, strided, row-major matrix product C = alpha op(A) op(B) + beta C:
/// op(A) is (m, k), op(B) is (k, n), C is (m, n). Products run over outer x inner, and each
/// operand says how many elements separate two of them; a stride of 0 shares it.
struct Matmul {
  /// Where a matrix stands, as stored: transposed, its rows are the columns of op(matrix).
  struct Operand {
    Index leading = 0;        ///< elements between two rows, as stored
    Index outer = 0;          ///< elements between two products of the outer batch
    Index inner = 0;          ///< elements between two products of the inner batch
    bool transposed = false;  ///< whether the stored rows are columns of the product's matrix
  };

  Index m = 0, n = 0, k = 0;   ///< rows and columns of C, and what is summed over
  Operand a, b, c;             ///< where A, B and C stand; C is never transposed
  Index outer = 1, inner = 1;  ///< how often the product is taken: outer times inner
  bool roundable = false;      ///< whether a backend may round A and B, as maps of layers allow
};

namespace detail {

struct AnyBody {
  INFTY_HOST_DEVICE void operator()(Index) const {}
};
struct AnyTerm {
  INFTY_HOST_DEVICE float operator()(Index) const { return 0; }
};
struct AnyFold {
  INFTY_HOST_DEVICE float operator()(float a, float) const { return a; }
};

}  // namespace detail

/// What a component asks of a backend: storage and this closed set of primitives, all static and
/// generic in the scalar, on raw pointers into the backend's memory. Nothing is checked here.
/// `EigenBackend` is the model; `docs/backend.md` says how to write another.
template <class B>
concept Backend = requires(float* to, const float* from, const Index* rows, Index n,
                           std::size_t bytes, void* block, const Matmul& product) {
  { B::allocate(bytes) } -> std::same_as<void*>;
  B::release(block, bytes);
  B::copy(to, from, n);
  B::from_host(to, from, n);
  B::to_host(to, from, n);
  B::fill(to, n, 0.0f);
  // f(i) for all i in [0, n), in any order.
  B::for_each(n, detail::AnyBody{});
  // f(i) for all i in [0, n), of which each loops over `cost` elements itself.
  B::for_each_row(n, n, detail::AnyBody{});
  // fold(...fold(init, f(0))..., f(n - 1)) in an order that the number of threads does not change.
  { B::reduce(n, 0.0f, detail::AnyFold{}, detail::AnyTerm{}) } -> std::same_as<float>;
  // `reduce` with its result written to the backend's memory: the host does not wait for it.
  B::reduce_into(n, 0.0f, detail::AnyFold{}, detail::AnyTerm{}, to);
  B::matmul(product, 1.0f, from, from, 0.0f, to);
  // A (n, n) s.p.d. becomes its factor, B (n, m) becomes A^-1 B; false if A is not s.p.d.
  { B::cholesky_solve(n, n, to, to) } -> std::same_as<bool>;
  // to[i, :] = from[rows[i], :] for i < n, each row of `width` elements, `count` of them in `from`.
  // rows[i] outside [0, count) comes only to a backend with a `verify` of its own
  // (core/verify.hpp), which must not read, and below not write, outside of its memory then.
  B::gather_rows(n, n, from, rows, n, to);
  // to[rows[i], :] += from[i, :], equal rows in the order of i; `count` rows in `to`
  B::scatter_add_rows(n, n, from, rows, n, to);
  B::inclusive_scan(to, from, n);
  B::sort(to, n);
};

}  // namespace infty
