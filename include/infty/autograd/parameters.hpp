// SPDX-License-Identifier: MIT
#pragma once

#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

#include <infty/autograd/variable.hpp>
#include <infty/core/visit.hpp>

namespace infty {

namespace detail {

template <class M>
inline constexpr bool is_variable = false;
template <class T, class B>
inline constexpr bool is_variable<Variable<T, B>> = true;

}  // namespace detail

/// Calls f(name, variable) for every parameter of a layer, in the order in which the layer names
/// them. Names of nested layers are joined by dots, entries of a vector are numbered, an
/// empty optional is passed over: what a checkpoint calls them.
template <class Member, class F>
void for_each_parameter(Member& member, F&& f, const std::string& name = "") {
  if constexpr (detail::is_variable<Member>) {
    f(name, member);
  } else if constexpr (Layer<Member>) {
    member.visit([&](std::string_view part, auto& inner) {
      for_each_parameter(inner, f,
                         name.empty() ? std::string(part) : name + '.' + std::string(part));
    });
  } else if constexpr (detail::is_optional<Member>) {
    if (member) for_each_parameter(*member, f, name);
  } else {
    for (std::size_t i = 0; i < member.size(); ++i)
      for_each_parameter(member[i], f, name + '.' + std::to_string(i));
  }
}

/// Handles of all parameters of a layer, in the order of `for_each_parameter`.
template <class T, class B = EigenBackend, class L>
std::vector<Variable<T, B>> parameters(L& layer) {
  std::vector<Variable<T, B>> all;
  for_each_parameter(layer, [&](const std::string&, Variable<T, B>& p) { all.push_back(p); });
  return all;
}

/// Number of scalars in all parameters of a layer.
template <class L>
Index count_parameters(L& layer) {
  Index count = 0;
  for_each_parameter(layer, [&](const std::string&, auto& p) { count += p.size(); });
  return count;
}

/// Forgets the gradients of all parameters of a layer.
template <class L>
void zero_grad(L& layer) {
  for_each_parameter(layer, [](const std::string&, auto& p) { p.zero_grad(); });
}

}  // namespace infty
