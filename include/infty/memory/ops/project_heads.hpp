// SPDX-License-Identifier: MIT
#pragma once

#include <vector>

#include <infty/autograd/linear.hpp>
#include <infty/autograd/shape.hpp>
#include <infty/autograd/tape.hpp>
#include <infty/core/pool.hpp>
#include <infty/memory/ops/expected_values.hpp>
#include <infty/memory/ops/fewer_coefficients.hpp>
#include <infty/signal/fewer_gaussians.hpp>

namespace infty {

/// Projects what each head reads by that head's rows of a weight: y[b, q, h D + c] is the sum over
/// k of x[b, h, q, k] weight[h D + c, k].
/// @param x       [B, H, Q, d]
/// @param weight  [H D, d]
/// @return        [B, Q, H D]
/// @throws infty::ShapeError
template <class T, class B>
Variable<T, B> project_heads(const Variable<T, B>& x, const Variable<T, B>& weight) {
  const bool shaped = x.shape().rank() == 4 && weight.shape().rank() == 2;
  require<ShapeError>(
      shaped && x.dim(1) >= 1 && weight.dim(0) % x.dim(1) == 0 && weight.dim(1) == x.dim(3),
      "project_heads", "x is ", x.shape(), ", weight ", weight.shape(),
      ": they must be [B, H, Q, d] and [H D, d]");
  const Index batch = x.dim(0), heads = x.dim(1), queries = x.dim(2), d = x.dim(3),
              e = weight.dim(0), D = e / heads;
  using Operand = Matmul::Operand;
  const Operand input{.leading = d, .outer = heads * queries * d, .inner = queries * d};
  const Operand map{.leading = d, .inner = D * d};
  const Operand output{.leading = e, .outer = queries * e, .inner = D};
  const auto transposed = [](Operand operand) {
    operand.transposed = true;
    return operand;
  };
  Variable<T, B> y(Tensor<T, B>(Shape{batch, queries, e}));
  B::matmul({.m = queries,
             .n = D,
             .k = d,
             .a = input,
             .b = transposed(map),
             .c = output,
             .outer = batch,
             .inner = heads,
             .roundable = true},
            T(1), x.value().data(), weight.value().data(), T(0), y.value().data());
  return record(
      y,
      [=](const Tensor<T, B>& dy) {
        if (x.requires_grad())
          B::matmul({.m = queries,
                     .n = d,
                     .k = D,
                     .a = output,
                     .b = map,
                     .c = input,
                     .outer = batch,
                     .inner = heads,
                     .roundable = true},
                    T(1), dy.data(), weight.value().data(), T(1), x.grad().data());
        if (weight.requires_grad())
          for (Index row = 0; row < batch; ++row)  // which add to the same weight
            B::matmul({.m = D,
                       .n = d,
                       .k = queries,
                       .a = transposed(output),
                       .b = input,
                       .c = map,
                       .inner = heads,
                       .roundable = true},
                      T(1), dy.data() + row * queries * e,
                      x.value().data() + row * heads * queries * d, T(1), weight.grad().data());
      },
      x, weight);
}

/// What every query reads of the projected signal, head by head: the expected values of V = W_V X
/// [Martins et al. 2022, Eq. 8, 11]. A few queries read the signal X itself, whose expectation is
/// then projected: O(N d) a query and head. Many read V, projected once, as a signal of fewer
/// functions where that takes fewer operations.
/// @param density       [2, B, H, Q], of mu in [0, 1] where there are fewer
/// @param coefficients  [B, N, d]
/// @param weight        W_V, [H D, d]
/// @param skip_tails    as in `ReadSize`
/// @param fewer         for each width of psi, as `fewer_gaussians` finds them; or none
/// @return              [B, Q, H D]
template <class D, class T, class B, class Psi>
Variable<T, B> expected_head_values(const Psi& psi, const Variable<T, B>& density,
                                    const Variable<T, B>& coefficients,
                                    const Variable<T, B>& weight, bool skip_tails,
                                    const std::vector<FewerGaussians<T, B>>& fewer = {}) {
  const Index batch = density.dim(1), heads = density.dim(2), queries = density.dim(3),
              N = coefficients.dim(1), d = coefficients.dim(2), e = weight.dim(0);
  if (heads * queries * d * (N + e / heads) < N * e * (d + queries)) {
    const auto each = reshape(density, Shape{2, batch, 1, heads * queries});
    const auto read = expected_values<D>(psi, each, coefficients, skip_tails);
    return project_heads(reshape(read, Shape{batch, heads, queries, d}), weight);
  }
  if constexpr (detail::can_have_fewer<D, Psi>) {
    const auto widths = static_cast<Index>(fewer.size());
    Index M = 0;
    for (const auto& part : fewer) M += part.functions.size();
    if (M > 0 && M * (N / widths * d + d * e + queries * e) < N * e * (d + queries)) {
      PoolVector<Psi> functions;
      PoolVector<Variable<T, B>> values;
      for (Index i = 0; i < widths; ++i) {
        const auto& part = fewer[static_cast<std::size_t>(i)];
        functions.push_back(part.functions);
        values.push_back(linear(fewer_coefficients(part.weights, coefficients, i, widths), weight));
      }
      return expected_values<D>(functions, density, values, skip_tails);
    }
  }
  return expected_values<D>(psi, density, linear(coefficients, weight), skip_tails);
}

}  // namespace infty
