// SPDX-License-Identifier: MIT
#pragma once

#include <cstddef>
#include <functional>
#include <string>
#include <tuple>
#include <type_traits>
#include <utility>
#include <vector>

#include <infty/autograd/parameters.hpp>
#include <infty/core/backend.hpp>
#include <infty/core/error.hpp>
#include <infty/core/tensor.hpp>
#include <infty/io/dtype.hpp>

namespace infty {

namespace detail {

/// A type with the backend replaced wherever one stands among its template arguments.
template <class M, class Other>
struct Rebind {
  using type = M;
};
template <Backend B, class Other>
struct Rebind<B, Other> {
  using type = Other;
};
template <template <class...> class S, class... Arguments, class Other>
  requires(!Backend<S<Arguments...>>)
struct Rebind<S<Arguments...>, Other> {
  using type = S<typename Rebind<Arguments, Other>::type...>;
};
/// A parameter of which neither scalar nor backend is known.
struct AnyParameter {
  std::string name;
  Shape shape;
  DType scalar;
  std::function<void(void*)> to_host;
};

template <class L>
std::vector<AnyParameter> any_parameters(L& layer) {
  std::vector<AnyParameter> all;
  for_each_parameter(layer, [&](const std::string& name, auto& parameter) {
    using V = std::remove_cvref_t<decltype(parameter)>;
    using T = typename V::Scalar;
    all.push_back({name, parameter.shape(), dtype_of<T>(), [parameter](void* to) {
                     V::BackendType::to_host(static_cast<T*>(to), parameter.value().data(),
                                             parameter.size());
                   }});
  });
  return all;
}

}  // namespace detail

/// Copies the values of all parameters into those of a layer of the same structure, on the same or
/// on another backend. They are copied in place, so that an optimiser's handles stay valid.
/// @throws infty::ShapeError that names the first parameter that is missing, too much, or of
/// another shape or scalar; then `to` is as it was
template <Layer From, Layer To>
void copy_parameters(const From& from, To& to) {
  const auto sources = detail::any_parameters(from);
  const auto targets = detail::any_parameters(to);
  for (std::size_t i = 0; i < sources.size() || i < targets.size(); ++i) {
    const auto name_in = [i](const auto& all) { return i < all.size() ? all[i].name : "missing"; };
    if (i >= sources.size() || i >= targets.size() || sources[i].name != targets[i].name)
      raise<ShapeError>("copy_parameters", "parameter ", i, " of `from` is ", name_in(sources),
                        ", of `to` ", name_in(targets));
    const bool same_scalar = sources[i].scalar == targets[i].scalar;
    require<ShapeError>(sources[i].shape == targets[i].shape && same_scalar, "copy_parameters",
                        sources[i].name, " of `from` is ", sources[i].shape, ", of `to` ",
                        targets[i].shape, same_scalar ? "" : ", of another scalar");
  }
  // Memory that may not be written throws here, before anything is.
  for_each_parameter(to, [](const std::string&, auto& parameter) { parameter.value().data(); });
  std::size_t next = 0;
  for_each_parameter(to, [&](const std::string&, auto& parameter) {
    using V = std::remove_cvref_t<decltype(parameter)>;
    std::vector<typename V::Scalar> host(static_cast<std::size_t>(parameter.size()));
    sources[next++].to_host(host.data());
    V::BackendType::from_host(parameter.value().data(), host.data(), parameter.size());
  });
}

/// A copy of a layer on another backend (or on the same one): made from its `config()`, or its
/// `configs()` where it has several, with the values of its parameters, which need a gradient where
/// the layer's do.
template <Backend Other, Layer L>
  requires(
      requires(const L& layer) { L(layer.config()); } ||
      requires(const L& layer) { layer.configs(); })
typename detail::Rebind<L, Other>::type to(const L& layer) {
  using Out = typename detail::Rebind<L, Other>::type;
  Out out = [&] {
    if constexpr (requires { layer.configs(); })
      return std::make_from_tuple<Out>(layer.configs());
    else
      return Out(layer.config());
  }();
  copy_parameters(layer, out);
  std::vector<bool> trained;
  for_each_parameter(layer, [&](const std::string&, const auto& parameter) {
    trained.push_back(parameter.requires_grad());
  });
  std::size_t next = 0;
  for_each_parameter(out, [&](const std::string&, auto& parameter) {
    parameter.set_requires_grad(trained[next++]);
  });
  return out;
}

}  // namespace infty
