// SPDX-License-Identifier: MIT
#pragma once

#include <cmath>
#include <string>
#include <vector>

#include <infty/autograd/reduce.hpp>
#include <infty/core/backend.hpp>
#include <infty/core/error.hpp>
#include <infty/core/tensor.hpp>
#include <infty/train/named_parameters.hpp>

namespace infty {

namespace detail {

/// Whether no element is NaN or infinite.
template <class T, class B>
bool all_finite(const Tensor<T, B>& x) {
  const T* const from = x.data();
  // x - x is 0 for finite x and NaN otherwise.
  return B::reduce(x.size(), 0.0, Plus{}, [=] INFTY_HOST_DEVICE(Index i) {
           return static_cast<double>(from[i] - from[i]);
         }) == 0;
}

/// The sum of all squares, in double whatever the scalar; not finite if an element is not.
template <class T, class B>
double sum_of_squares(const Tensor<T, B>& x) {
  const T* const from = x.data();
  return B::reduce(x.size(), 0.0, Plus{}, [=] INFTY_HOST_DEVICE(Index i) {
    const auto value = static_cast<double>(from[i]);
    return value * value;
  });
}

}  // namespace detail

/// The Euclidean norm of all gradients together, summed in double; parameters without one count 0.
/// @throws infty::NonFiniteError that names the first parameter whose gradient is not finite
template <class T, class B>
double grad_norm(const std::vector<NamedParameter<T, B>>& parameters) {
  double sum = 0;
  for (const auto& [name, variable] : parameters) {
    if (!variable.has_grad()) continue;
    const double squares = detail::sum_of_squares(variable.grad());
    require<NonFiniteError>(std::isfinite(squares), "grad_norm", "the gradient of ", name,
                            " has norm ", std::sqrt(squares), ": it must be finite");
    sum += squares;
  }
  return std::sqrt(sum);
}

/// Scales all gradients by min(1, max_norm / (norm + 1e-6)), as torch.nn.utils.clip_grad_norm_.
/// @param max_norm  > 0; infinity only measures
/// @return  the norm before
/// @throws infty::ValueError for another max_norm; infty::NonFiniteError that names the first
/// parameter whose gradient is not finite; then no gradient has changed
template <class T, class B>
double clip_grad_norm(const std::vector<NamedParameter<T, B>>& parameters, double max_norm) {
  require(max_norm > 0, "clip_grad_norm", "max_norm is ", max_norm, ": it must be above 0");
  const double norm = grad_norm(parameters);
  const double factor = max_norm / (norm + 1e-6);
  if (factor >= 1) return norm;
  for (const auto& parameter : parameters) {
    if (!parameter.variable.has_grad()) continue;
    Tensor<T, B>& gradient = parameter.variable.grad();
    T* const g = gradient.data();
    const T scale = static_cast<T>(factor);
    B::for_each(gradient.size(), [=] INFTY_HOST_DEVICE(Index i) { g[i] *= scale; });
  }
  return norm;
}

/// The same for all parameters of a layer.
template <class T, class B = EigenBackend, Layer L>
double clip_grad_norm(L& layer, double max_norm) {
  return clip_grad_norm(named_parameters<T, B>(layer), max_norm);
}

}  // namespace infty
