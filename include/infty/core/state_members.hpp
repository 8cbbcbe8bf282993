// SPDX-License-Identifier: MIT
#pragma once

#include <algorithm>
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
using RowCounts = PoolVector<Index>;

namespace detail {

/// The largest of the counts, of which there is one at least.
inline Index most_of(const RowCounts& counts) {
  return *std::max_element(counts.begin(), counts.end());
}

}  // namespace detail

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
// with zeros in front: states that are joined, and checkpoints, may differ in its L (entries of a
// vector are no such sequences). From `visit` come all of the functions below, and those of
// state.hpp.

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

/// The name of a member while a walk is at it: parts joined by dots. It stands on the walk's stack,
/// above the names of what holds the member, and allocates nothing until it is asked for its text.
class MemberPath {
 public:
  MemberPath() = default;
  /// A name that does not hold a part: what stands before those of all members.
  explicit MemberPath(std::string_view first)
      : part_(first), hash_(first.empty() ? of_nothing : joined(of_nothing, first)) {}

  /// The name of a part, which must not outlive this one, nor the part's text.
  MemberPath operator/(std::string_view part) const { return {this, part}; }

  std::string text() const {
    std::string before = above_ ? above_->text() : std::string();
    return before.empty() ? std::string(part_) : before + '.' + std::string(part_);
  }
  /// Tells it from others without its text (FNV-1a).
  std::uint64_t hash() const { return hash_; }

 private:
  MemberPath(const MemberPath* above, std::string_view part)
      : above_(above), part_(part), hash_(joined(above->hash_, part)) {}

  static std::uint64_t joined(std::uint64_t hash, std::string_view part) {
    const auto add = [&](unsigned char c) { hash = (hash ^ c) * 1099511628211U; };
    for (const char c : part) add(static_cast<unsigned char>(c));
    add('.');
    return hash;
  }

  static constexpr std::uint64_t of_nothing = 14695981039346656037U;

  const MemberPath* above_ = nullptr;
  std::string_view part_;
  std::uint64_t hash_ = of_nothing;
};

template <class Member, class F>
void walk_members(Member& member, F& f, const MemberPath& name, const RowCounts* length = nullptr);

// A walk is compiled for each state and everything that is done to its members. So what
// is done to all states is no lambda of a function that is a template on the state: such a lambda
// is of another type for every state, and the walk through what states have in common would be
// compiled for each of them.

/// What a walk is to the members of one state: first looks for the counts that are named "length",
/// then goes on into each.
template <class F, bool is_const>
struct MemberWalk {
  F& f;
  const MemberPath& name;
  const RowCounts* beside = nullptr;
  bool goes_on = false;

  template <class Inner>
  void operator()(std::string_view part, Inner& inner) {
    if (goes_on) {
      std::conditional_t<is_const, const Inner, Inner>& as_it_is = inner;
      walk_members(as_it_is, f, name / part, beside);
    } else if constexpr (std::is_same_v<std::remove_const_t<Inner>, RowCounts>) {
      if (part == "length") beside = &inner;
    }
  }
};

/// Calls f(name, member, length) for every tensor, RowCounts, RowIds and store of a state. `length`
/// are the counts beside a tensor of sequences, which say how much of it each row fills; else null.
template <class Member, class F>
void walk_members(Member& member, F& f, const MemberPath& name, const RowCounts* length) {
  using M = std::remove_const_t<Member>;
  if constexpr (is_tensor<M>) {
    f(name, member, tensor_of(member).rank() >= 2 ? length : nullptr);
  } else if constexpr (std::is_same_v<M, RowCounts> || std::is_same_v<M, RowIds> || RowStore<M>) {
    const RowCounts* const none = nullptr;
    f(name, member, none);
  } else if constexpr (Visitable<M>) {  // which names its members as a layer does
    MemberWalk<F, std::is_const_v<Member>> walk{f, name};
    const_cast<M&>(member).visit(walk);
    walk.goes_on = true;
    const_cast<M&>(member).visit(walk);
  } else if constexpr (is_optional<M>) {
    if (member) walk_members(*member, f, name, length);
  } else {
    static_assert(
        requires { member[member.size()]; },
        "a state's visit names a member that is none of: a Tensor or Variable [batch, ...], "
        "RowCounts, RowIds, a state with visit, an optional or a vector of these");
    for (std::size_t i = 0; i < member.size(); ++i)
      walk_members(member[i], f, name / std::to_string(i));
  }
}

/// Calls f for what a store saves in place of the store.
template <class F>
struct Unfold {
  F& f;

  template <class M>
  void operator()(const MemberPath& name, M& member, const RowCounts* length) const {
    if constexpr (RowStore<std::remove_const_t<M>>) {
      auto saved = member.saved();
      walk_members(saved, *this, name);
      if constexpr (!std::is_const_v<M>) member.restore(saved);
    } else {
      f(name, member, length);
    }
  }
};

/// Calls f as `walk_members` does, and in place of a store for each member of what it saves. A
/// store of a state that is not const takes them back, with what f has put into them.
template <class Member, class F>
void walk_saved(Member& member, F& f, const MemberPath& name) {
  const Unfold<F> unfold{f};
  walk_members(member, unfold, name);
}

template <class F>
struct PassMember {
  F& f;

  template <class M>
  void operator()(const MemberPath&, M& member, const RowCounts*) const {
    f(member);
  }
};

template <class F>
struct PassNamed {
  F& f;

  template <class M>
  void operator()(const MemberPath& name, M& member, const RowCounts*) const {
    f(name.text(), member);
  }
};

/// Calls f(member) for every tensor, RowCounts, RowIds and store of a state.
template <class Member, class F>
void each_member(Member& member, F&& f) {
  const PassMember<std::remove_reference_t<F>> pass{f};
  walk_members(member, pass, MemberPath());
}

}  // namespace detail

/// Calls f(name, member) for every tensor, RowCounts and RowIds of a state, and for those that a
/// `RowStore` saves: a copy, which it takes back unless the state is const. Nested names are joined
/// by dots, entries of a vector numbered. Members of a const state are const.
template <class State, class F>
  requires Visitable<std::remove_const_t<State>>
void for_each_member(State& state, F&& f, const std::string& name = "") {
  const detail::PassNamed<std::remove_reference_t<F>> pass{f};
  detail::walk_saved(state, pass, detail::MemberPath(name));
}

}  // namespace infty
