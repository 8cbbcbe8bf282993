// SPDX-License-Identifier: MIT
#pragma once

#include <infty/autograd/shape.hpp>
#include <infty/nn/pass.hpp>

namespace infty::detail {

// A segment is [tokens in front; words; tokens behind] behind M vectors of the past. Where tokens
// keep to rules of their own, each of the three parts reads by itself what it sees: that is one
// piece of the keys each time.

/// Calls read(begin, end, first, tokens) for the parts of a segment of L vectors behind `past`: the
/// queries [begin, end) see the keys [first, past + end), and returns what all have read.
template <class T, class B, class Read>
Variable<T, B> read_parts(Index length, Index past, const Pass<T, B>& pass, Read&& read) {
  const Index words = pass.before, behind = length - pass.behind;
  const Index first = pass.tokens.read_past ? 0 : past;
  Variable<T, B> y = words > 0 ? read(Index(0), words, first, true) : Variable<T, B>();
  const auto add = [&](const Variable<T, B>& more) { y = y.size() > 0 ? concat(y, more) : more; };
  if (words < behind) add(read(words, behind, Index(0), false));
  if (behind < length) add(read(behind, length, first, true));
  return y;
}

/// Whether causal attention over all vectors at once is what tokens ask for.
template <class T, class B>
bool tokens_are_causal(const Pass<T, B>& pass, Index past) {
  return pass.before + pass.behind == 0 ||
         (!pass.tokens.both_ways && (pass.tokens.read_past || past == 0));
}

}  // namespace infty::detail
