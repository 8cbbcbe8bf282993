// SPDX-License-Identifier: MIT
#pragma once

#include <cmath>

#include <infty/autograd/linear.hpp>
#include <infty/autograd/tape.hpp>
#include <infty/core/backend.hpp>
#include <infty/core/row.hpp>
#include <infty/signal/bins.hpp>
#include <infty/signal/sampled_basis.hpp>

namespace infty {

namespace detail {

/// The products of a read with a Gibbs density, over B rows, H heads, Q queries, N basis functions
/// and U nodes. Those with the basis at the nodes are one product of all queries.
template <class T, class B>
struct GibbsRead {
  Index batch, heads, queries, head_dim, basis, nodes;

  Index inner() const { return heads * head_dim; }
  Index rows() const { return batch * heads * queries; }
  T factor() const { return T(1) / std::sqrt(static_cast<T>(head_dim)); }

  using Operand = Matmul::Operand;
  /// [B, L, H D], a row's head at a time.
  Operand vectors(Index length, bool transposed = false) const {
    return {
        .leading = inner(), .outer = length * inner(), .inner = head_dim, .transposed = transposed};
  }
  /// [B, H, Q, N]
  Operand by_function(bool transposed = false) const {
    return {.leading = basis,
            .outer = heads * queries * basis,
            .inner = queries * basis,
            .transposed = transposed};
  }
  void product(Index m, Index n, Index k, T alpha, Operand a, const T* from_a, Operand b,
               const T* from_b, T beta, Operand c, T* to) const {
    B::matmul({.m = m, .n = n, .k = k, .a = a, .b = b, .c = c, .outer = batch, .inner = heads},
              alpha, from_a, from_b, beta, to);
  }

  /// The probability of every node, [B, H, Q, U]: weight exp(q · k(t) / √D), normalised. The
  /// largest exponent is subtracted first.
  Tensor<T, B> probabilities(const SampledBasis<T, B>& at, const T* q, const T* keys) const {
    Tensor<T, B> scores(Shape{rows(), basis}), out(Shape{batch, heads, queries, nodes});
    product(queries, basis, head_dim, factor(), vectors(queries), q, vectors(basis, true), keys,
            T(0), by_function(), scores.data());
    T* const p = out.data();
    detail::product<B>(rows(), nodes, basis, false, true, scores.data(), at.psi.data(), T(0), p);
    const T* const weight = at.log_weight.data();
    const Index U = nodes;
    B::for_each_row(rows(), 8 * U, [=] INFTY_HOST_DEVICE(Index i) {
      T* const x = p + i * U;
      for (Index u = 0; u < U; ++u) x[u] += weight[u];
      detail::row_softmax(U, x);
    });
    return out;
  }

  /// E_p[psi] of every density, [B, H, Q, N].
  Tensor<T, B> expectations(const SampledBasis<T, B>& at, const Tensor<T, B>& p) const {
    Tensor<T, B> out(Shape{rows(), basis});
    detail::product<B>(rows(), basis, nodes, false, false, p.data(), at.psi.data(), T(0),
                       out.data());
    return out;
  }

  void forward(const SampledBasis<T, B>& at, const T* q, const T* keys, const T* values,
               T* y) const {
    const auto r = expectations(at, probabilities(at, q, keys));
    product(queries, head_dim, basis, T(1), by_function(), r.data(), vectors(basis), values, T(0),
            vectors(queries), y);
  }

  /// Adds to the gradients, where they are not null.
  void backward(const SampledBasis<T, B>& at, const T* q, const T* keys, const T* values,
                const T* dy, T* dq, T* d_keys, T* d_values) const {
    const auto p = probabilities(at, q, keys);
    if (d_values) {
      const auto r = expectations(at, p);
      product(basis, head_dim, queries, T(1), by_function(true), r.data(), vectors(queries), dy,
              T(1), vectors(basis), d_values);
    }
    if (!dq && !d_keys) return;
    // dr = dy Vᵀ, dp = dr psiᵀ, and of the scores at the nodes p (dp - sum of p dp)
    Tensor<T, B> by_basis(Shape{rows(), basis}), by_node(Shape{rows(), nodes});
    product(queries, basis, head_dim, T(1), vectors(queries), dy, vectors(basis, true), values,
            T(0), by_function(), by_basis.data());
    T* const d = by_node.data();
    detail::product<B>(rows(), nodes, basis, false, true, by_basis.data(), at.psi.data(), T(0), d);
    const T* const weight = p.data();
    const Index U = nodes;
    B::for_each_row(rows(), 4 * U, [=] INFTY_HOST_DEVICE(Index i) {
      const T* const x = weight + i * U;
      T* const g = d + i * U;
      const T mean = detail::row_sum<T>(U, [=](Index u) { return x[u] * g[u]; });
      for (Index u = 0; u < U; ++u) g[u] = x[u] * (g[u] - mean);
    });
    T* const ds = by_basis.data();
    detail::product<B>(rows(), basis, nodes, false, false, d, at.psi.data(), T(0), ds);
    if (dq)
      product(queries, head_dim, basis, factor(), by_function(), ds, vectors(basis), keys, T(1),
              vectors(queries), dq);
    if (d_keys)
      product(basis, head_dim, queries, factor(), by_function(true), ds, vectors(queries), q, T(1),
              vectors(basis), d_keys);
  }
};

/// The sizes of a read. @throws infty::ShapeError that names `op`
template <class T, class B>
GibbsRead<T, B> gibbs_read(const char* op, const SampledBasis<T, B>& at, const Shape& queries,
                           const Shape& keys, Index heads) {
  const bool shaped = queries.rank() == 3 && heads >= 1 && queries[2] % heads == 0;
  require<ShapeError>(shaped && keys == Shape{queries[0], at.psi.dim(1), queries[2]}, op,
                      "queries are ", queries, ", keys or values ", keys, ", heads ", heads,
                      ", there are ", at.psi.dim(1),
                      " basis functions: they must be [B, Q, HD] and [B, N, HD]");
  return {queries[0], heads, queries[1], queries[2] / heads, at.psi.dim(1), at.psi.dim(0)};
}

}  // namespace detail

/// What every query reads of a signal by the Gibbs density of its scores, E_p[v(t)] with
/// p(t) = exp(q · k(t) / √D) / Z, k(t) = Kᵀ psi(t) and v(t) = Vᵀ psi(t) [Santos et al. 2025, §3];
/// Z and the expectation by the same trapezoid rule, so that it is a softmax over its nodes.
/// @param at       the basis at the rule's nodes
/// @param queries  [B, Q, H D]
/// @param keys     K, [B, N, H D]   @param values  V, [B, N, H D]
/// @return         [B, Q, H D]
/// @throws infty::ShapeError
template <class T, class B>
Variable<T, B> gibbs_expectation(const SampledBasis<T, B>& at, const Variable<T, B>& queries,
                                 const Variable<T, B>& keys, const Variable<T, B>& values,
                                 Index heads) {
  const auto read =
      detail::gibbs_read("gibbs_expectation", at, queries.shape(), keys.shape(), heads);
  detail::gibbs_read("gibbs_expectation", at, queries.shape(), values.shape(), heads);
  Variable<T, B> y(Tensor<T, B>(queries.shape()));
  read.forward(at, queries.value().data(), keys.value().data(), values.value().data(),
               y.value().data());
  return record(
      y,
      [at, queries, keys, values, read](const Tensor<T, B>& dy) {
        const auto to = [](const Variable<T, B>& x) {
          return x.requires_grad() ? x.grad().data() : nullptr;
        };
        read.backward(at, queries.value().data(), keys.value().data(), values.value().data(),
                      dy.data(), to(queries), to(keys), to(values));
      },
      queries, keys, values);
}

/// The Gibbs density of every query at the places that the basis was sampled at, p(t): 1 if
/// integrated by the trapezoid rule over them. @param queries  [B, Q, H D]
/// @param keys  [B, N, H D]   @return [B, H, Q, P]   @throws infty::ShapeError
template <class T, class B>
Tensor<T, B> gibbs_density(const SampledBasis<T, B>& at, const Tensor<T, B>& queries,
                           const Tensor<T, B>& keys, Index heads) {
  const auto read = detail::gibbs_read("gibbs_density", at, queries.shape(), keys.shape(), heads);
  const auto p = read.probabilities(at, queries.data(), keys.data());
  const Index P = at.node.dim(0), U = read.nodes;
  Tensor<T, B> out(Shape{read.batch, heads, read.queries, P});
  T* const to = out.data();
  const T *const from = p.data(), *const weight = at.weight.data();
  const Index* const node = at.node.data();
  B::for_each(out.size(), [=] INFTY_HOST_DEVICE(Index i) {
    const Index u = node[i % P];
    to[i] = from[i / P * U + u] / weight[u];
  });
  return out;
}

/// How much of the Gibbs densities of a row's queries lies in each of the bins whose edges the
/// basis was sampled at, by the trapezoid rule over the edges, normalised: what sticky memories
/// sample by.
/// @param at       the basis at `edge_places(bins)`, not merged
/// @param shifted  bin b is given what lies in bin b + 1, and the last nothing: the mass of the
///                 first bin is lost, as in the authors' program
/// @return         [B, bins], each row sums to 1
/// @throws infty::ShapeError
template <class T, class B>
Tensor<T, B> gibbs_bin_probability(const SampledBasis<T, B>& at, const Tensor<T, B>& queries,
                                   const Tensor<T, B>& keys, Index heads, bool shifted) {
  const auto read =
      detail::gibbs_read("gibbs_bin_probability", at, queries.shape(), keys.shape(), heads);
  const Index edges = at.psi.dim(0), bins = edges - 1, each = heads * read.queries;
  require<ShapeError>(at.node.dim(0) == edges, "gibbs_bin_probability", "the basis has ", edges,
                      " nodes for ", at.node.dim(0), " edges: it must not be merged");
  const auto p = read.probabilities(at, queries.data(), keys.data());
  auto sums = Tensor<T, B>::zeros(Shape{read.batch, edges});  // over heads and queries
  for (Index row = 0; row < read.batch; ++row)
    detail::add_column_sums<B>(each, edges, p.data() + row * each * edges,
                               sums.data() + row * edges);
  Tensor<T, B> out(Shape{read.batch, bins});
  T* const to = out.data();
  const T *const from = std::as_const(sums).data(), *const weight = at.weight.data();
  B::for_each_row(read.batch, 8 * bins, [=] INFTY_HOST_DEVICE(Index row) {
    const auto mass = [=](Index bin) {
      if (bin + (shifted ? 1 : 0) >= bins) return 0.0;
      const Index a = bin + (shifted ? 1 : 0), b = a + 1;
      const double width = detail::bin_edge<double>(b, bins) - detail::bin_edge<double>(a, bins);
      const T* const x = from + row * edges;
      return (static_cast<double>(x[a]) / static_cast<double>(weight[a]) +
              static_cast<double>(x[b]) / static_cast<double>(weight[b])) /
             2 * width;
    };
    double total = 0;
    for (Index bin = 0; bin < bins; ++bin) total += mass(bin);
    for (Index bin = 0; bin < bins; ++bin)
      to[row * bins + bin] =
          total == 0 ? T(1) / static_cast<T>(bins) : static_cast<T>(mass(bin) / total);
  });
  return out;
}

}  // namespace infty
