// SPDX-License-Identifier: MIT
#pragma once

#include <cstddef>
#include <vector>

#include <infty/core/fold.hpp>
#include <infty/core/number.hpp>
#include <infty/train/named_parameters.hpp>

// What the methods of `lifelong/` compute of all gradients of a model together.

namespace infty {

/// Copies of the gradients of all parameters, zeros where none has arrived.
template <class T, class B>
std::vector<Tensor<T, B>> copy_gradients(const std::vector<NamedParameter<T, B>>& parameters) {
  std::vector<Tensor<T, B>> out;
  for (const auto& [name, variable] : parameters)
    out.push_back(variable.has_grad() ? variable.grad().clone()
                                      : Tensor<T, B>::zeros(variable.shape()));
  return out;
}

namespace detail {

/// a · b over all elements, summed in double in an order of the backend's own.
template <class T, class B>
double inner_product(const Tensor<T, B>& a, const Tensor<T, B>& b) {
  const T *const x = a.data(), *const y = b.data();
  Tensor<double, B> sum(Shape{});
  B::reduce_into(
      a.size(), 0.0, Plus{},
      [=] INFTY_HOST_DEVICE(Index i) {
        return static_cast<double>(x[i]) * static_cast<double>(y[i]);
      },
      sum.data());
  return sum.item();
}

/// to += factor * from, element by element; in double where T does not hold the factor.
template <class T, class B>
void add_scaled(Tensor<T, B>& to, const Tensor<T, B>& from, double factor) {
  T* const y = to.data();
  const T* const x = from.data();
  const T f = static_cast<T>(factor);
  if (math::is_finite(f)) {
    B::for_each(to.size(), [=] INFTY_HOST_DEVICE(Index i) { y[i] += f * x[i]; });
  } else {
    B::for_each(to.size(), [=] INFTY_HOST_DEVICE(Index i) {
      y[i] = static_cast<T>(static_cast<double>(y[i]) + factor * static_cast<double>(x[i]));
    });
  }
}

}  // namespace detail

/// Adds `factor` times the gradients of one model to those of another with the same parameters, as
/// a first-order meta-gradient does with those of an adapted copy [Finn et al. 2017, §5.2]. Frozen
/// parameters get none.
/// @throws infty::ShapeError unless both have as many parameters, of the same shapes
template <class T, class B>
void add_gradients(const std::vector<NamedParameter<T, B>>& to,
                   const std::vector<NamedParameter<T, B>>& from, double factor) {
  require<ShapeError>(to.size() == from.size(), "add_gradients", "gradients of ", from.size(),
                      " parameters for ", to.size());
  for (std::size_t i = 0; i < to.size(); ++i)
    require<ShapeError>(to[i].variable.shape() == from[i].variable.shape(), "add_gradients",
                        to[i].name, " is ", to[i].variable.shape(), ", what is added ",
                        from[i].variable.shape());
  for (std::size_t i = 0; i < to.size(); ++i)
    if (to[i].variable.requires_grad() && from[i].variable.has_grad())
      detail::add_scaled(to[i].variable.grad(), from[i].variable.grad(), factor);
}

/// Takes out of the gradients g what would make a reference loss worse: g - (g · r / r · r) r where
/// g · r < 0, r being the gradients of that loss [Chaudhry et al. 2019, Eq. 11]. Returns whether
/// anything was taken out; where r is 0 nothing is. Frozen parameters have no part in it.
/// @param reference  r, one tensor a parameter, as `copy_gradients` makes them
/// @throws infty::ShapeError unless there is one of each parameter's shape
template <class T, class B>
bool project_gradients(const std::vector<NamedParameter<T, B>>& parameters,
                       const std::vector<Tensor<T, B>>& reference) {
  require<ShapeError>(reference.size() == parameters.size(), "project_gradients", reference.size(),
                      " references of ", parameters.size(), " parameters");
  double gr = 0, rr = 0;
  for (std::size_t i = 0; i < parameters.size(); ++i) {
    const auto& variable = parameters[i].variable;
    require<ShapeError>(reference[i].shape() == variable.shape(), "project_gradients",
                        "the reference of ", parameters[i].name, " is ", reference[i].shape(),
                        ": the parameter is ", variable.shape());
    if (!variable.requires_grad()) continue;
    rr += detail::inner_product(reference[i], reference[i]);
    if (variable.has_grad()) gr += detail::inner_product<T, B>(variable.grad(), reference[i]);
  }
  if (!(gr < 0) || !(rr > 0)) return false;
  for (std::size_t i = 0; i < parameters.size(); ++i)
    if (parameters[i].variable.requires_grad())
      detail::add_scaled(parameters[i].variable.grad(), reference[i], -gr / rr);
  return true;
}

}  // namespace infty
