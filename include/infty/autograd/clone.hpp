// SPDX-License-Identifier: MIT
#pragma once

#include <concepts>
#include <string>
#include <unordered_map>

#include <infty/autograd/parameters.hpp>
#include <infty/autograd/variable.hpp>
#include <infty/core/needs.hpp>
#include <infty/core/visit.hpp>

namespace infty {

namespace detail {

/// Puts a copy of its own into every place, the same one where the same parameter stood.
struct OwnCopies {
  std::unordered_map<const void*, const void*> copies = {};  // of each parameter, where its copy is

  template <class V>
  void operator()(const std::string&, V& parameter) {
    const auto [known, first] = copies.try_emplace(parameter.identity(), &parameter);
    parameter = first ? parameter.template to<typename V::BackendType>()
                      : *static_cast<const V*>(known->second);
  }
};

}  // namespace detail

/// A layer of its own: with copies of all parameters, where `auto copy = layer;` copies handles and
/// both train the same weights. A parameter that stands in two places of the layer stands in the
/// same two of the clone; each needs a gradient where it did, and has none yet. What is no
/// parameter is copied as the copy constructor does. @throws std::bad_alloc
template <Addressed L>
  requires std::copy_constructible<L>
L clone(const L& layer) {
  static_assert(Layer<L>, "clone: the layer" INFTY_NO_VISIT);
  L out = layer;
  detail::OwnCopies copy;
  detail::for_each_place(out, copy);
  return out;
}

}  // namespace infty
