// SPDX-License-Identifier: MIT
#pragma once

#include <utility>

#include <infty/autograd/shape.hpp>
#include <infty/memory/fifo.hpp>

namespace infty::detail {

/// Runs a mixer that takes in place after place, `run(state, x, answer)`, over a segment of words
/// and memory tokens: these are read in their places and leave nothing behind. If `run` throws, the
/// state is as it was. Tokens in front of the words cost a second run, of the words alone.
/// @return  [B, L, d], or nothing where no answer is wanted
template <class State, class T, class B, class Run>
Variable<T, B> run_words(State& state, const Variable<T, B>& x, const Pass<T, B>& pass,
                         const Run& run) {
  const Index begin = pass.before, end = x.dim(1) - pass.behind;
  State next = state;
  Variable<T, B> y;
  if (begin == 0) {
    y = run(next, narrow(x, 0, end), pass.answer);
    if (pass.answer && pass.behind > 0) {
      State branch = next;
      y = concat(y, run(branch, narrow(x, end, x.dim(1)), true));
    }
  } else {
    if (pass.answer) {
      State branch = state;
      y = run(branch, x, true);
    }
    run(next, narrow(x, begin, end), false);
  }
  state = std::move(next);
  return y;
}

/// [B, L, heads width] -> [B, L, heads, width].
template <class T, class B>
Variable<T, B> in_heads(const Variable<T, B>& x, Index heads) {
  return reshape(x, {x.dim(0), x.dim(1), heads, x.dim(2) / heads});
}

/// [B, L, heads, width] -> [B, L, heads width].
template <class T, class B>
Variable<T, B> joined_heads(const Variable<T, B>& x) {
  return reshape(x, {x.dim(0), x.dim(1), x.dim(2) * x.dim(3)});
}

}  // namespace infty::detail
