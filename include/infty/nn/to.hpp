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
  bool requires_grad;
  std::function<std::vector<std::byte>()> to_host;
  std::function<void()> require_writable;  ///< throws for memory that may not be written
  std::function<void(const std::vector<std::byte>&)> from_host;
};

struct CollectAny {
  std::vector<AnyParameter>& all;

  template <class T, class B>
  void operator()(const std::string& name, const Variable<T, B>& parameter) const {
    all.push_back({name, parameter.shape(), dtype_of<T>(), parameter.requires_grad(),
                   [parameter] {
                     const auto size = static_cast<std::size_t>(parameter.size());
                     std::vector<std::byte> host(size * sizeof(T));
                     B::to_host(reinterpret_cast<T*>(host.data()), parameter.value().data(),
                                parameter.size());
                     return host;
                   },
                   [p = parameter]() mutable { p.value().data(); },
                   [p = parameter](const std::vector<std::byte>& host) mutable {
                     B::from_host(p.value().data(), reinterpret_cast<const T*>(host.data()),
                                  p.size());
                   }});
  }
};

/// Has places need a gradient where those of a list do. Not by handles: an empty one is no handle.
struct TrainAsThere {
  const std::vector<AnyParameter>& list;
  std::size_t next = 0;

  template <class V>
  void operator()(const std::string&, V& parameter) {
    parameter.set_requires_grad(list[next++].requires_grad);
  }
};

template <class L>
std::vector<AnyParameter> any_parameters(const L& layer) {
  std::vector<AnyParameter> all;
  for_each_parameter(layer, CollectAny{all});
  return all;
}

/// Copies values between parameters: `copy_parameters` of layers whose types are known no more.
inline void copy_parameters(const std::vector<AnyParameter>& sources,
                            const std::vector<AnyParameter>& targets) {
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
  for (const AnyParameter& to : targets) to.require_writable();  // before anything is written
  for (std::size_t i = 0; i < targets.size(); ++i) targets[i].from_host(sources[i].to_host());
}

}  // namespace detail

/// Copies the values of all parameters into those of a layer of the same structure, on the same or
/// on another backend. They are copied in place, so that an optimiser's handles stay valid.
/// @throws infty::ShapeError that names the first parameter that is missing, too much, or of
/// another shape or scalar; then `to` is as it was
template <Layer From, Layer To>
  requires(!std::is_const_v<To>)
void copy_parameters(const From& from, To& to) {
  detail::copy_parameters(detail::any_parameters(from), detail::any_parameters(to));
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
  const auto sources = detail::any_parameters(layer), targets = detail::any_parameters(out);
  detail::copy_parameters(sources, targets);
  for_each_parameter(out, detail::TrainAsThere{sources});
  return out;
}

}  // namespace infty
