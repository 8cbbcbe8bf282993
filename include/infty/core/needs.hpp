// SPDX-License-Identifier: MIT
#pragma once

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
