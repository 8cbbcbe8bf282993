// SPDX-License-Identifier: MIT
#pragma once

#include <infty/nn/attention.hpp>

/// What there is to compute, in one place: the multiplications and additions, each of them one, of
/// the products that the mathematics asks for. Nothing that is computed twice counts, no
/// exponentials, and all of a dense product even where a kernel leaves out terms that are lost in
/// rounding.
namespace infty::detail {

/// (m, k) times (k, n).
inline double product_flops(Index m, Index n, Index k) {
  return 2.0 * static_cast<double>(m) * static_cast<double>(n) * static_cast<double>(k);
}

/// Attention with relative positions, by the pairs of a query and a key that it may see: the scores
/// by content and by position, and the values.
inline double attention_flops(const AttentionSize& size) {
  const auto l = static_cast<double>(size.queries), m = static_cast<double>(size.memory());
  return 3 * 2.0 * static_cast<double>(size.batch) * static_cast<double>(size.model()) *
         (l * m + l * (l + 1) / 2);
}

/// A layer's attention for vectors of width d, with its projections: of queries and of what was
/// read, of keys and values, and of the encodings of distances, one for all rows.
inline double projected_attention_flops(Index d, const AttentionSize& size) {
  const Index e = size.model();
  const auto rows = static_cast<double>(size.batch);
  return rows * product_flops(size.queries, 2 * e, d) + rows * product_flops(size.keys, 2 * e, d) +
         product_flops(size.keys, e, d) + attention_flops(size);
}

/// A long-term memory that takes in and is asked by B rows of L vectors: N basis functions, width d
/// of the vectors and e of all heads.
struct LongTermFlops {
  Index batch, length, basis, dim, inner;
  bool gated = true;
  Index nodes = 0;  ///< of a density of scores, times the heads; 0 for densities of two numbers
  bool projected = true;

  /// The gate's convolution of width 3, A B and Gᵀ X of a later write.
  double write() const { return carry() + each(gate() + fit()); }
  /// A B, which a first write does without.
  double carry() const { return each(product_flops(basis, dim, basis)); }
  /// The convolution.
  double gate() const { return gated ? 3 * product_flops(length, dim, dim) : 0; }
  /// Gᵀ X.
  double fit() const { return product_flops(basis, dim, length); }
  /// Values, expectations times values, output; of a density of scores, what makes it.
  double read() const {
    const double of_values = product_flops(basis, inner, dim) + product_flops(length, inner, basis);
    const double out = projected ? product_flops(length, dim, inner) : 0;
    // Keys and scores, too, and two products with the basis at the nodes.
    return each(nodes == 0 ? of_values + out
                           : 2 * (of_values + product_flops(length, nodes, basis)) + out);
  }
  /// Of all rows.
  double each(double flops) const { return static_cast<double>(batch) * flops; }
};

}  // namespace infty::detail
