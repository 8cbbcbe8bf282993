// SPDX-License-Identifier: MIT
#pragma once

#include <cstddef>
#include <vector>

#include <infty/autograd/activations.hpp>
#include <infty/autograd/matmul.hpp>
#include <infty/autograd/shape.hpp>
#include <infty/nn/unit_vectors.hpp>

// Networks whose weights are an input, one network a row, and the gradient of a loss at them as a
// value that has gradients itself: what a memory is made of that learns while it is used.

namespace infty {

namespace detail {

/// The slope of x Φ(x), Φ(x) + x φ(x), and its own, (2 - x²) φ(x).
struct GeluSlope {
  template <class T>
  INFTY_HOST_DEVICE T operator()(T x) const {
    return Gelu{}.slope(x);
  }
  template <class T>
  INFTY_HOST_DEVICE T slope(T x) const {
    const T density = T(0.39894228040143267794L) * math::exp_decay(T(-0.5) * x * x);
    return (T(2) - x * x) * density;
  }
};

}  // namespace detail

/// Computes the slope of `gelu` at x, Φ(x) + x φ(x), elementwise.
template <class T, class B>
Variable<T, B> gelu_slope(const Variable<T, B>& x) {
  return detail::map_keeping_input(x, detail::GeluSlope{});
}

/// What a network makes of x by weights W₀, W₁, ...: x W₀, then gelu(·) W₁ and so on, without
/// biases. Leading dimensions are broadcast: weights may be one network's or one a row.
/// @param weights  at least one, [..., in, out], each as wide as the one before it
/// @param x        [..., n, in]
/// @return         [..., n, out]
/// @throws infty::ShapeError if the shapes do not fit
template <class T, class B>
Variable<T, B> network(const std::vector<Variable<T, B>>& weights, const Variable<T, B>& x) {
  require<ShapeError>(!weights.empty(), "network", "there are no weights");
  Variable<T, B> y = matmul(x, weights[0]);
  for (std::size_t i = 1; i < weights.size(); ++i) y = matmul(gelu(y), weights[i]);
  return y;
}

/// Computes the gradients of the loss that a network learns by, Σₜ stepₜ mean((network(xₜ) - yₜ)²),
/// with respect to its weights, by hand and of differentiable operations, so that the tape takes
/// gradients of them:
///     dY = 2/D step ⊙ (network(x) - y),  dWᵢ = Aᵢᵀ dY,  dY ← (dY Wᵢᵀ) ⊙ gelu'(Hᵢ),
/// with Hᵢ what comes into layer i and Aᵢ = gelu(Hᵢ), or x in front of the first.
/// @param weights  as `network`'s   @param x  [..., n, in]   @param y  [..., n, out]
/// @param step     [..., n, 1]
/// @return         one a weight, [..., in, out], of the leading dimensions of x
/// @throws infty::ShapeError if the shapes do not fit
template <class T, class B>
std::vector<Variable<T, B>> network_gradient(const std::vector<Variable<T, B>>& weights,
                                             const Variable<T, B>& x, const Variable<T, B>& y,
                                             const Variable<T, B>& step) {
  require<ShapeError>(!weights.empty(), "network_gradient", "there are no weights");
  const std::size_t depth = weights.size();
  std::vector<Variable<T, B>> inner, seen{x}, gradients(depth);
  for (std::size_t i = 0; i + 1 < depth; ++i) {
    inner.push_back(matmul(seen[i], weights[i]));
    seen.push_back(gelu(inner[i]));
  }
  const Variable<T, B> answer = matmul(seen[depth - 1], weights[depth - 1]);
  require<ShapeError>(answer.shape() == y.shape(), "network_gradient", "the network's answers are ",
                      answer.shape(), ", y is ", y.shape(), ": the shapes must be equal");
  Variable<T, B> slope =
      multiply(answer - y, scale(step, static_cast<T>(2.0 / static_cast<double>(y.dim(-1)))));
  for (std::size_t i = depth; i-- > 0;) {
    gradients[i] = matmul(transpose(seen[i], -2, -1), slope);
    if (i > 0)
      slope = multiply(matmul(slope, transpose(weights[i], -2, -1)), gelu_slope(inner[i - 1]));
  }
  return gradients;
}

/// Shortens each matrix, taken as one vector, to a length where it is longer:
/// x min(1, longest / |x|), as torch.nn.utils.clip_grad_norm_ does.
/// @param x        [..., m, n]
/// @param longest  of all numbers' squares together the root
/// @return         [..., m, n]
/// @throws infty::ShapeError unless x has two dimensions or more and is not empty;
/// infty::ValueError unless longest lies in [1e-30, 1e30]
template <class T, class B>
Variable<T, B> shortened(const Variable<T, B>& x, double longest) {
  require<ShapeError>(x.shape().rank() >= 2 && x.size() > 0, "shortened", "x is ", x.shape(),
                      ": it must be [..., m, n], and not empty");
  require_within("shortened", "longest", longest, least_divisor, largest_constant);
  const Index size = x.dim(-1) * x.dim(-2);
  const auto rows = reshape(x, Shape{x.size() / size, size});
  return reshape(scale(unit_vectors(rows, 0, 0, longest), static_cast<T>(longest)), x.shape());
}

}  // namespace infty
