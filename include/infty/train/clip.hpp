// SPDX-License-Identifier: MIT
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <iterator>
#include <limits>
#include <vector>

#include <infty/core/backend.hpp>
#include <infty/core/error.hpp>
#include <infty/core/kernel/gradients.hpp>
#include <infty/core/number.hpp>
#include <infty/core/pool.hpp>
#include <infty/core/tensor.hpp>
#include <infty/train/named_parameters.hpp>

namespace infty {

namespace detail {

/// Sums of squares in host memory, one a parameter.
using Squares = PoolVector<double>;

/// The elements of a gradient that may not be zero: all of it, or the rows that it came by.
template <class T, class B>
Tensor<T, B> gradient_elements(const Variable<T, B>& parameter) {
  const RowGradient<T, B>* const rows = parameter.row_grad();
  return rows ? rows->values : parameter.grad();
}

/// The gradients of all parameters, empty for one without.
template <class T, class B>
PoolVector<GradientItem<T>> gradient_items(const std::vector<NamedParameter<T, B>>& parameters) {
  PoolVector<GradientItem<T>> items(parameters.size());
  for (std::size_t i = 0; i < parameters.size(); ++i) {
    if (!parameters[i].variable.has_grad()) continue;
    // The parameter holds the memory.
    Tensor<T, B> gradient = gradient_elements(parameters[i].variable);
    items[i] = {gradient.data(), gradient.size()};
  }
  return items;
}

/// Writes each gradient's sum of squares, in double whatever the scalar, to the backend's memory;
/// 0 for a parameter without one, and what is not finite if an element is not.
template <class T, class B>
void sums_of_squares(const std::vector<NamedParameter<T, B>>& parameters, double* to) {
  const auto items = gradient_items(parameters);
  chosen_t<ComposedGradients<B>>::squares(items.data(), std::ssize(items), to);
}

/// The norm that sums of squares make, `n` from `squares` on, of those i for which counts(i): a
/// number where their own sum is too large for one.
template <class Counts>
double norm_of(const double* squares, std::size_t n, Counts&& counts) {
  double sum = 0, largest = 0, shares = 0;
  for (std::size_t i = 0; i < n; ++i)
    if (counts(i)) {
      sum += squares[i];
      largest = (std::max)(largest, squares[i]);
    }
  if (math::is_finite(sum)) return std::sqrt(sum);
  for (std::size_t i = 0; i < n; ++i)
    if (counts(i)) shares += squares[i] / largest;
  return std::sqrt(largest) * std::sqrt(shares);
}

/// The norm that sums of squares make, the first of them at `squares`.
/// @throws infty::NonFiniteError that names the first parameter whose gradient is not finite,
/// or has a square that is no number in double
template <class T, class B>
double joint_norm(const std::vector<NamedParameter<T, B>>& parameters, const double* squares) {
  for (std::size_t i = 0; i < parameters.size(); ++i)
    require<NonFiniteError>(math::is_finite(squares[i]), "grad_norm", "the gradient of ",
                            parameters[i].name, " has norm ", std::sqrt(squares[i]),
                            ": it must be finite");
  return norm_of(squares, parameters.size(), [](std::size_t) { return true; });
}

/// Scales all gradients, whose joint norm is `norm`, by min(1, max_norm / (norm + 1e-6)).
template <class T, class B>
void clip_to(const std::vector<NamedParameter<T, B>>& parameters, double norm, double max_norm) {
  const double factor = max_norm / (norm + 1e-6);
  if (factor >= 1) return;
  const auto items = gradient_items(parameters);
  chosen_t<ComposedGradients<B>>::scale(items.data(), std::ssize(items), static_cast<T>(factor));
}

inline void check_max_norm(double max_norm) {
  require(!math::is_nan(max_norm) && max_norm > 0, "clip_grad_norm", "max_norm is ", max_norm,
          ": it must be above 0");
}

/// Whether the square of a gradient of this norm, once it is clipped, is a number in T. Else Adam's
/// second moment would be infinite from then on, and its parameter never move again.
template <class T>
bool has_square(double norm, double max_norm) {
  const double most = std::sqrt(static_cast<double>((std::numeric_limits<T>::max)()));
  return (std::min)(norm, max_norm) < most;
}

}  // namespace detail

/// Computes the Euclidean norm of all gradients together, summed in double; parameters without one
/// count 0. It is read from the backend once, whatever the number of parameters.
/// @throws infty::NonFiniteError that names the first parameter whose gradient is not finite,
/// or has a square that is no number in double
template <class T, class B>
double grad_norm(const std::vector<NamedParameter<T, B>>& parameters) {
  Tensor<double, B> sums(Shape{std::ssize(parameters)});
  detail::sums_of_squares(parameters, sums.data());
  detail::Squares squares(parameters.size());
  B::to_host(squares.data(), sums.data(), sums.size());
  return detail::joint_norm(parameters, squares.data());
}

/// Scales all gradients by min(1, max_norm / (norm + 1e-6)), as torch.nn.utils.clip_grad_norm_.
/// @param max_norm  > 0; infinity only measures
/// @return  the norm before
/// @throws infty::ValueError for another max_norm; infty::NonFiniteError that names the first
/// parameter whose gradient is not finite; then no gradient has changed
template <class T, class B>
double clip_grad_norm(const std::vector<NamedParameter<T, B>>& parameters, double max_norm) {
  detail::check_max_norm(max_norm);
  const double norm = grad_norm(parameters);
  detail::clip_to(parameters, norm, max_norm);
  return norm;
}

/// Scales the gradients of all parameters of a layer by min(1, max_norm / (norm + 1e-6)), and
/// returns the norm before.
/// @throws infty::ValueError unless max_norm > 0; infty::NonFiniteError that names the first
/// parameter whose gradient is not finite; then no gradient has changed
template <class T, class B = EigenBackend, Layer L>
double clip_grad_norm(L& layer, double max_norm) {
  return clip_grad_norm(named_parameters<T, B>(layer), max_norm);
}

}  // namespace infty
