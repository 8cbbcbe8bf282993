// SPDX-License-Identifier: MIT
#pragma once

#include <cmath>

#include <infty/autograd/linear.hpp>
#include <infty/autograd/linear_of_concat.hpp>
#include <infty/core/checked.hpp>
#include <infty/core/random.hpp>
#include <infty/nn/fwd.hpp>

namespace infty {

namespace detail {

/// Draws a parameter uniformly from [-1/sqrt(fan_in), 1/sqrt(fan_in)), PyTorch's default.
template <class T, class B>
Variable<T, B> uniform_parameter(Shape shape, Index fan_in, Random random) {
  Tensor<T, B> value(shape);
  const double bound = 1 / std::sqrt(static_cast<double>(fan_in > 0 ? fan_in : 1));
  fill_uniform(value, -bound, bound, random);
  return Variable<T, B>(std::move(value), true);
}

}  // namespace detail

/// y = x Wᵀ + b, as torch.nn.Linear: weight [out, in], bias [out] or empty.
template <class T, class Backend>
struct Linear {
  Variable<T, Backend> weight, bias;  ///< W [out, in], and b [out] or empty

  Linear() = default;

  /// Draws the parameters uniformly within 1/sqrt(in). @throws infty::ValueError unless in, out >=
  /// 1 and there is memory that could hold as many
  Linear(Index in, Index out, Random random, bool with_bias = true) {
    require(in >= 1 && out >= 1, "Linear", "in is ", in, ", out is ", out, ": both must be >= 1");
    require_sizes("Linear", {{"in", in}, {"out", out}});
    weight = detail::uniform_parameter<T, Backend>(Shape{out, in}, in, random.split(0));
    if (with_bias) bias = detail::uniform_parameter<T, Backend>(Shape{out}, in, random.split(1));
  }

  /// Computes x Wᵀ + b, [..., in] -> [..., out]. @throws infty::ShapeError for another `in`
  Variable<T, Backend> forward(const Variable<T, Backend>& x) const {
    return linear(x, weight, bias);
  }

  /// The same of a and b one behind the other along dimension 1, which are not joined for it: see
  /// `linear_of_concat`. @throws infty::ShapeError
  Variable<T, Backend> forward(const Variable<T, Backend>& a, const Variable<T, Backend>& b) const {
    return linear_of_concat(a, b, weight, bias);
  }

  template <class Visitor>
  void visit(Visitor&& see) {
    see("weight", weight);
    if (bias.size() > 0) see("bias", bias);
  }
};

}  // namespace infty
