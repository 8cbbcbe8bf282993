// SPDX-License-Identifier: MIT
#pragma once

#include <optional>
#include <string_view>
#include <type_traits>
#include <utility>

#include <infty/version.hpp>  // says that C++20 is needed

namespace infty {

namespace detail {

template <class M>
inline constexpr bool is_optional = false;
template <class V>
inline constexpr bool is_optional<std::optional<V>> = true;

struct AnyVisitor {
  template <class Member>
  void operator()(std::string_view, Member&) const {}
};

}  // namespace detail

/// A struct that names each of its members once:
/// `template <class Visitor> void visit(Visitor&& see) { see("key", key); see("value", value); }`
/// Layers name parameters and smaller layers, states what they remember.
template <class M>
concept Visitable = requires(M& member) { member.visit(detail::AnyVisitor{}); };

/// A struct of parameters and smaller layers. Parameters are handles: a copy of a layer has the
/// same weights, `clone(layer)` its own.
template <class L>
concept Layer = Visitable<L>;

/// Calls see(name, member) for what `visit` of a layer, a state or an optimiser names. `visit` is
/// written once and not const; of a const object its members are const here, so that nobody writes
/// through them.
template <class L, class See>
  requires Visitable<std::remove_const_t<L>>
void visit_members(L& layer, See&& see) {
  if constexpr (std::is_const_v<L>)
    const_cast<std::remove_const_t<L>&>(layer).visit(
        [&](std::string_view name, auto& member) { see(name, std::as_const(member)); });
  else
    layer.visit(see);
}

}  // namespace infty
