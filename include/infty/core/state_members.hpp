// SPDX-License-Identifier: MIT
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

#include <infty/core/pool.hpp>
#include <infty/core/row_store.hpp>
#include <infty/core/tensor.hpp>
#include <infty/core/visit.hpp>

namespace infty {

/// One number a row.
using RowCounts = std::vector<Index, PoolAllocator<Index>>;

/// What a row is called by the random numbers drawn for it; resetting a row keeps it.
struct RowIds {
  RowCounts id;  ///< [batch], the stream of each row's random numbers
};

/// A sequence a row, each of its own length, aligned to the right.
template <class T, class Backend = EigenBackend>
struct RowSequences {
  Tensor<T, Backend> vectors;  ///< [batch, L, d], zeros in front of a shorter row
  RowCounts length;            ///< [batch], each <= L

  template <class Visitor>
  void visit(Visitor&& see) {
    see("vectors", vectors);
    see("length", length);
  }
};

// A memory's state is a struct with a batch of independent rows. Like a layer, it names its members
// once: tensors [batch, ...], RowCounts, RowIds, a RowStore, smaller states, and vectors or
// optionals of these.
// A row whose tensors and counts are all zero is a fresh row. A tensor that has RowCounts named
// "length" beside it, as in RowSequences, holds sequences, [batch, L, ...], aligned to the right,
// with zeros in front: states that are joined, and checkpoints, may differ in its L. From `visit`
// come all of the functions below.

namespace detail {

/// Returns the tensor that a member is, or that it is a handle of, as a variable is; an optional is
/// no such handle, for it may be empty.
template <class T, class B>
const Tensor<T, B>& tensor_of(const Tensor<T, B>& tensor) {
  return tensor;
}
template <class V>
  requires(!is_optional<V>)
auto tensor_of(const V& variable) -> decltype(tensor_of(variable.value())) {
  return variable.value();
}

template <class M>
inline constexpr bool is_tensor = requires(const M& member) { tensor_of(member); };

inline RowCounts& counts_of(RowCounts& counts) { return counts; }
inline RowCounts& counts_of(RowIds& ids) { return ids.id; }
inline const RowCounts& counts_of(const RowCounts& counts) { return counts; }
inline const RowCounts& counts_of(const RowIds& ids) { return ids.id; }

/// The name of a member: parts joined by dots.
struct DottedName {
  std::string text;
  DottedName operator/(std::string_view part) const {
    return {text.empty() ? std::string(part) : text + '.' + std::string(part)};
  }
};

/// The name of a member as a hash (FNV-1a), which allocates nothing.
struct HashedName {
  std::uint64_t hash = 14695981039346656037U;
  HashedName operator/(std::string_view part) const {
    HashedName name = *this;
    for (const char c : part) name.add(static_cast<unsigned char>(c));
    name.add('.');
    return name;
  }
  friend bool operator==(const HashedName&, const HashedName&) = default;

 private:
  void add(unsigned char c) { hash = (hash ^ c) * 1099511628211U; }
};

/// Calls f(name, member, length) for every tensor, RowCounts, RowIds and store of a state. `length`
/// are the counts beside a tensor of sequences, which say how much of it each row fills; else null.
template <class Member, class F, class Name>
void walk_members(Member& member, F&& f, const Name& name, const RowCounts* length = nullptr) {
  using M = std::remove_const_t<Member>;
  if constexpr (is_tensor<M>) {
    f(name, member, tensor_of(member).rank() >= 2 ? length : nullptr);
  } else if constexpr (std::is_same_v<M, RowCounts> || std::is_same_v<M, RowIds> || RowStore<M>) {
    const RowCounts* const none = nullptr;
    f(name, member, none);
  } else if constexpr (Visitable<M>) {  // which names its members as a layer does
    const RowCounts* beside = nullptr;
    visit_members(member, [&](std::string_view part, auto& inner) {
      if constexpr (std::is_same_v<std::remove_cvref_t<decltype(inner)>, RowCounts>)
        if (part == "length") beside = &inner;
    });
    visit_members(member, [&](std::string_view part, auto& inner) {
      walk_members(inner, f, name / part, beside);
    });
  } else if constexpr (is_optional<M>) {
    if (member) walk_members(*member, f, name, length);
  } else {
    for (std::size_t i = 0; i < member.size(); ++i)
      walk_members(member[i], f, name / std::to_string(i));
  }
}

/// Calls f as `walk_members` does, and in place of a store for each member of what it saves. A
/// store of a state that is not const takes them back, with what f has put into them.
template <class Member, class F, class Name>
void walk_saved(Member& member, const F& f, const Name& name) {
  walk_members(
      member,
      [&](const Name& full, auto& inner, const RowCounts* length) {
        using M = std::remove_reference_t<decltype(inner)>;
        if constexpr (RowStore<std::remove_const_t<M>>) {
          auto saved = inner.saved();
          walk_saved(saved, f, full);
          if constexpr (!std::is_const_v<M>) inner.restore(saved);
        } else {
          f(full, inner, length);
        }
      },
      name);
}

/// Calls f(member) for every tensor, RowCounts, RowIds and store of a state, and allocates nothing.
template <class Member, class F>
void each_member(Member& member, F&& f) {
  walk_members(
      member, [&](const HashedName&, auto& inner, const RowCounts*) { f(inner); }, HashedName{});
}

/// Returns the name of the member that a walk comes to as number `index`.
template <class State>
std::string member_name(const State& state, std::size_t index) {
  std::string found;
  walk_members(
      state,
      [&](const DottedName& name, auto&, const RowCounts*) {
        if (index-- == 0) found = name.text;
      },
      DottedName{});
  return found;
}

}  // namespace detail

/// Calls f(name, member) for every tensor, RowCounts and RowIds of a state, and for those that a
/// `RowStore` saves: a copy, which it takes back unless the state is const. Nested names are joined
/// by dots, entries of a vector numbered. Members of a const state are const.
template <class State, class F>
  requires Visitable<std::remove_const_t<State>>
void for_each_member(State& state, F&& f, const std::string& name = "") {
  detail::walk_saved(
      state,
      [&](const detail::DottedName& full, auto& inner, const RowCounts*) { f(full.text, inner); },
      detail::DottedName{name});
}

}  // namespace infty
