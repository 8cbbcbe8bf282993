// SPDX-License-Identifier: MIT
#pragma once

#include <string>
#include <vector>

#include <infty/autograd/parameters.hpp>
#include <infty/autograd/variable.hpp>
#include <infty/core/needs.hpp>
#include <infty/train/fwd.hpp>

namespace infty {

/// A parameter and what its layer calls it.
template <class T, class Backend>
struct NamedParameter {
  std::string name;  ///< where it stands in its layer, with dots: "layers.0.feed.inner.weight"
  Variable<T, Backend> variable;  ///< a handle of the parameter itself
};

namespace detail {

template <class T, class B>
struct CollectNamed {
  std::vector<NamedParameter<T, B>>& all;

  void operator()(const std::string& name, const Variable<T, B>& parameter) const {
    all.push_back({name, parameter});
  }
};

}  // namespace detail

/// Handles of all parameters of a layer with their names, in the order of `for_each_parameter`:
/// one that stands in two places (tied weights) is listed once, under its first name.
template <class T, class B = EigenBackend, Addressed L>
  requires(!std::is_const_v<L>)
std::vector<NamedParameter<T, B>> named_parameters(L& layer) {
  static_assert(Layer<L>, "named_parameters: the layer" INFTY_NO_VISIT);
  std::vector<NamedParameter<T, B>> all;
  for_each_parameter(layer, detail::CollectNamed<T, B>{all});
  return all;
}

}  // namespace infty
