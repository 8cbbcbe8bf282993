// SPDX-License-Identifier: MIT
#pragma once

#include <cstddef>
#include <string_view>
#include <type_traits>

#include <infty/core/error.hpp>
#include <infty/core/state.hpp>
#include <infty/nn/to.hpp>

namespace infty {

namespace detail {

/// Copies a state, or a part of one, into its counterpart on another backend.
template <class Other, class From, class To>
void convert(const From& from, To& to) {
  if constexpr (is_tensor<From>) {
    to = To(tensor_of(from).template to<Other>());
  } else if constexpr (std::is_same_v<From, RowCounts> || std::is_same_v<From, RowIds>) {
    to = from;
  } else if constexpr (RowStore<From>) {
    to = from.template to<Other>();
  } else if constexpr (Visitable<From>) {
    visit_members(from, [&](std::string_view name, const auto& member) {
      using Wanted = typename Rebind<std::remove_cvref_t<decltype(member)>, Other>::type;
      bool found = false;
      to.visit([&](std::string_view other_name, auto& counterpart) {
        if constexpr (std::is_same_v<std::remove_cvref_t<decltype(counterpart)>, Wanted>) {
          if (name != other_name) return;
          convert<Other>(member, counterpart);
          found = true;
        }
      });
      require<ShapeError>(found, "to", "there is no member ", name, " on the other backend");
    });
  } else if constexpr (is_optional<From>) {
    if (from) convert<Other>(*from, to.emplace());
  } else {
    to.resize(from.size());
    for (std::size_t i = 0; i < from.size(); ++i) convert<Other>(from[i], to[i]);
  }
}

}  // namespace detail

/// A copy of a memory's state, or of a whole model's, on another backend (or on the same one):
/// S<T, Backend> becomes S<T, Other>. No gradient flows from it to the last write.
template <Backend Other, Layer State>
  requires(!requires(const State& state) { state.config(); })
typename detail::Rebind<State, Other>::type to(const State& state) {
  typename detail::Rebind<State, Other>::type out;
  detail::convert<Other>(state, out);
  return out;
}

}  // namespace infty
