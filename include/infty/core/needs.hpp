// SPDX-License-Identifier: MIT
#pragma once

#include <type_traits>

#include <infty/core/visit.hpp>

// What a layer of a user's own may lack, in words, for `static_assert(..., "WHO" INFTY_NO_VISIT)`
// at the doors where such types come in: `Block`, `parameters`. A constrained template parameter
// would say "constraints not satisfied" and leave the cause to the end of its notes. The assertions
// stand in the door itself, for a compiler lists by what way it came to a line before it says what
// is wrong there; only their words are shared.

/// Of what has parameters, or a state: `infty::Visitable`.
#define INFTY_NO_VISIT                                                       \
  " has no public `template <class Visitor> void visit(Visitor&& see)`, in " \
  "which it names its parameters, smaller layers, or what it remembers"

/// Of an `infty::SequenceLayer`, beside that.
#define INFTY_NO_STATE                                                      \
  " has a State that is not copyable, or has no public `template <class Vi" \
  "sitor> void visit(Visitor&& see)`, in which it names what it remembers"
/// Of one that has a State, besides.
#define INFTY_NO_MAKE_STATE                                                \
  " has a State and no `State make_state(Index batch, Index first_row) co" \
  "nst` that returns one"
/// Of every one.
#define INFTY_NO_FORWARD                                                     \
  " has no `forward(state, x, pass) const`, or without a State `forward(x) " \
  "const` or `forward(x, pass) const`, that returns a Variable [B, L, d]"

namespace infty {

/// Is there to be found by argument-dependent lookup, where a type or its template arguments are
/// ours.
template <class T>
void leads_to_infty(const T&);

}  // namespace infty

namespace infty_lookup {

void leads_to_infty() = delete;  // else an ordinary lookup would go on outside

template <class T>
concept LeadsToInfty = requires(const T& x) { leads_to_infty(x); };

}  // namespace infty_lookup

namespace infty {

/// What a function for layers or states takes: one, or a class by which nobody came here without
/// writing `infty::`, and which is told in words what it lacks. A vector of tensors is neither: an
/// unqualified call with it, to a function of a user's own by the same name, is that one's.
template <class L>
concept Addressed =
    Visitable<std::remove_const_t<L>> || (std::is_class_v<L> && !infty_lookup::LeadsToInfty<L>);

}  // namespace infty
