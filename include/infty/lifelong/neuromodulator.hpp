// SPDX-License-Identifier: MIT
#pragma once

#include <utility>

#include <infty/autograd/clone.hpp>
#include <infty/lifelong/predictor.hpp>
#include <infty/train/named_parameters.hpp>

namespace infty {

/// Which parts of a text's vectors a `Predictor` goes by: the neuromodulatory network of ANML
/// [Beaulieu et al. 2020] as ANML-ER has it [Holla et al. 2020]. A frozen encoder reads the text,
/// and of its first vector x_0 the gates are h = σ(W₂ relu(W₁ x_0 + b₁) + b₂) in [0, 1], one for
/// each of the d numbers of the predictor's vectors: f(x) = g(e(x) h(x)).
///
/// A number whose gate is near 0 says nothing, and what has made it learns nothing from that text.
/// In the inner loop of ANML-ER the gates stay and all else adapts: a `MetaReplay` whose
/// configuration has `without` "gate.".
template <class Embedding, class Body>
class Neuromodulator {
 public:
  using T = typename Body::Scalar;       ///< of the numbers
  using B = typename Body::BackendType;  ///< of the parameters
  using V = Variable<T, B>;

  Embedding embedding;         ///< tokens [n, L] -> [n, L, d], frozen
  Body body;                   ///< [n, L, d] -> [n, L, d], frozen
  Linear<T, B> first, second;  ///< W₁, b₁: d -> width, and W₂, b₂: width -> d

  /// Copies an encoder and freezes the copy, and draws two maps as `Linear` does.
  /// @param d      width of its vectors, and of those that are gated
  /// @param width  of the vectors between the maps; d in the paper
  /// @throws infty::ValueError unless d, width >= 1
  Neuromodulator(const Embedding& embedding_, const Body& body_, Index d, Index width,
                 Random random)
      : embedding(clone(embedding_)),
        body(clone(body_)),
        first(d, width, random.split(0)),
        second(width, d, random.split(1)) {
    const auto freeze = [](auto& part) {
      for (const auto& parameter : named_parameters<T, B>(part)) {
        V handle = parameter.variable;
        handle.set_requires_grad(false);
      }
    };
    freeze(embedding);
    freeze(body);
  }

  template <class Visitor>
  void visit(Visitor&& see) {
    see("embedding", embedding);
    see("body", body);
    see("first", first);
    see("second", second);
  }

  /// h of each text, tokens [n, L] -> [n, 1, d]. @throws what the encoder does
  V forward(const Tensor<Index, B>& words) const {
    V x;  // [n, 1, d]
    {
      const auto guard = no_grad();
      x = narrow(detail::read_texts(embedding, body, words, true), 0, 1);
    }
    return sigmoid(second.forward(relu(first.forward(x))));
  }
};

}  // namespace infty
