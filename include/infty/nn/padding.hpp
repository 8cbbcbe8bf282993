// SPDX-License-Identifier: MIT
#pragma once

#include <infty/autograd/shape.hpp>
#include <infty/nn/pass.hpp>
#include <infty/nn/visible.hpp>

namespace infty::detail {

/// What the vectors of a segment see of it, the visible ones last.
template <class T, class B>
struct VisibleVectors {
  Variable<T, B> vectors;    ///< [B, L, d]
  Tensor<Index, B> visible;  ///< [B], how many of them, the last ones; empty for all
};

/// The vectors of a segment as keys for attention that has no positions: where rows are padded, the
/// memory tokens in front of the padding stand behind the words instead, so that what is visible
/// comes last. @throws infty::ShapeError, infty::ValueError that names `op`
template <class T, class B>
VisibleVectors<T, B> without_padding(const char* op, const Variable<T, B>& x,
                                     const Pass<T, B>& pass) {
  if (pass.visible.empty()) return {x, {}};
  const Index m = pass.before, tokens = m + pass.behind;
  require<ShapeError>(x.shape().rank() == 3 && x.dim(1) >= tokens, op, "x is ", x.shape(), " with ",
                      tokens, " memory tokens");
  require_visible(op, pass.visible, x.dim(0), x.dim(1) - tokens);
  if (tokens == 0) return {x, pass.visible};
  Tensor<Index, B> visible(pass.visible.shape());
  const Index* const from = pass.visible.data();
  Index* const to = visible.data();
  B::for_each(visible.size(), [=] INFTY_HOST_DEVICE(Index i) { to[i] = from[i] + tokens; });
  return {m > 0 ? concat(narrow(x, m, x.dim(1)), narrow(x, 0, m)) : x, visible};
}

}  // namespace infty::detail
