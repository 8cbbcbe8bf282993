// SPDX-License-Identifier: MIT
#pragma once

#include <infty/memory/memory.hpp>
#include <infty/nn/layer_norm.hpp>

#include "support/catch.hpp"

namespace infty::tests {

/// What stands around a mixer in a layer: a norm, whose bias is no zero.
template <class T, class B = EigenBackend>
struct Around {
  using V = Variable<T, B>;

  LayerNorm<T, B> layer_norm;

  explicit Around(Index d) : layer_norm(d) {
    Random random(seed);
    fill_uniform(layer_norm.bias.value(), -1, 1, random);
  }

  /// The mixer with biases of its attention that are no zeros.
  template <class M>
  M drawn(M mixer) const {
    Random random(3);
    auto& attention = mixer.attention;
    for (auto* bias : {&attention.content_bias, &attention.position_bias})
      fill_uniform(bias->value(), -1, 1, random);
    if constexpr (requires { mixer.future_bias; })
      fill_uniform(mixer.future_bias.value(), -1, 1, random);
    return mixer;
  }

  InputNorm<T, B> norm(bool normed) const {
    return normed ? InputNorm<T, B>(layer_norm) : InputNorm<T, B>();
  }

  /// Lets a mixer attend to a segment behind the norm, or without one.
  template <class M>
  Attended<T, B> operator()(const M& mixer, typename M::State& state, const V& x, bool normed,
                            Pass<T, B>& pass) const {
    return mixer.attend(state, x, norm(normed), pass);
  }
  template <class M>
  Attended<T, B> operator()(const M& mixer, typename M::State& state, const V& x,
                            bool normed) const {
    Pass<T, B> pass;
    return (*this)(mixer, state, x, normed, pass);
  }
};

}  // namespace infty::tests
