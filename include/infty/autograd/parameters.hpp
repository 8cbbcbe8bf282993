// SPDX-License-Identifier: MIT
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <type_traits>
#include <unordered_set>
#include <vector>

#include <infty/autograd/variable.hpp>
#include <infty/core/visit.hpp>

namespace infty {

namespace detail {

template <class M>
inline constexpr bool is_variable = false;
template <class T, class B>
inline constexpr bool is_variable<Variable<T, B>> = true;

/// Calls f(name, variable) for every place of a layer where a parameter stands: see below.
template <class Member, class F>
void for_each_place(Member& member, F&& f, const std::string& name = "") {
  using M = std::remove_const_t<Member>;
  if constexpr (is_variable<M>) {
    f(name, member);
  } else if constexpr (Layer<M>) {
    visit_members(member, [&](std::string_view part, auto& inner) {
      for_each_place(inner, f, name.empty() ? std::string(part) : name + '.' + std::string(part));
    });
  } else if constexpr (is_optional<M>) {
    if (member) for_each_place(*member, f, name);
  } else {
    for (std::size_t i = 0; i < member.size(); ++i)
      for_each_place(member[i], f, name + '.' + std::to_string(i));
  }
}

}  // namespace detail

/// Calls f(name, variable) for every parameter of a layer, in the order in which the layer names
/// them. Names of nested layers are joined by dots, entries of a vector are numbered, an
/// empty optional is passed over: what a checkpoint calls them. A parameter that stands in two
/// places (tied weights) comes once, under its first name. Those of a const layer are const.
template <class L, class F>
  requires Layer<std::remove_const_t<L>>
void for_each_parameter(L& layer, F&& f) {
  std::unordered_set<const void*> known;
  detail::for_each_place(layer, [&](const std::string& name, auto& parameter) {
    if (known.insert(parameter.identity()).second) f(name, parameter);
  });
}

/// Handles of all parameters of a layer, in the order of `for_each_parameter`.
template <class T, class B = EigenBackend, Layer L>
std::vector<Variable<T, B>> parameters(L& layer) {
  std::vector<Variable<T, B>> all;
  for_each_parameter(layer, [&](const std::string&, Variable<T, B>& p) { all.push_back(p); });
  return all;
}

/// Number of scalars in all parameters of a layer; those of tied weights count once.
template <Layer L>
Index count_parameters(const L& layer) {
  Index count = 0;
  for_each_parameter(layer, [&](const std::string&, const auto& p) { count += p.size(); });
  return count;
}

/// Forgets the gradients of all parameters of a layer.
template <Layer L>
void zero_grad(L& layer) {
  for_each_parameter(layer, [](const std::string&, auto& p) { p.zero_grad(); });
}

}  // namespace infty
