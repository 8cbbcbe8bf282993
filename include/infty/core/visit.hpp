// SPDX-License-Identifier: MIT
#pragma once

#include <optional>
#include <string_view>

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

/// A struct of parameters and smaller layers that names each of them once:
/// `template <class Visitor> void visit(Visitor&& see) { see("key", key); see("value", value); }`
template <class L>
concept Layer = requires(L& layer) { layer.visit(detail::AnyVisitor{}); };

}  // namespace infty
