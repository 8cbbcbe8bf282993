// SPDX-License-Identifier: MIT
#include <concepts>
#include <vector>

#include <infty/autograd/elementwise.hpp>
#include <infty/autograd/shape.hpp>
#include <infty/nn/feed_forward.hpp>
#include <infty/nn/layer_norm.hpp>
#include <infty/nn/sequence_layer.hpp>

#include "support/catch.hpp"
#include "support/tensors.hpp"
#include "support/types.hpp"

using infty::Index;
using infty::InputNorm;
using infty::Pass;
using infty::Shape;
using infty::Tensor;
using infty::Variable;

namespace {

/// A map of vectors, which knows of nothing.
template <class T, class B>
struct Twice {
  Variable<T, B> forward(const Variable<T, B>& x) const { return infty::scale(x, T(2)); }
  template <class Visitor>
  void visit(Visitor&&) {}
};

/// One that reports what it has seen of a pass.
template <class T, class B>
struct Reporting {
  Variable<T, B> forward(const Variable<T, B>& x, Pass<T, B>& pass) const {
    pass.show("before", Variable<T, B>(Tensor<T, B>::full({}, static_cast<T>(pass.before))));
    return x;
  }
  template <class Visitor>
  void visit(Visitor&&) {}
};

/// The last vector of every row.
template <class T, class B>
struct LastState {
  Tensor<T, B> vector;  ///< [B, 1, d]
  template <class Visitor>
  void visit(Visitor&& see) {
    see("vector", vector);
  }
};

/// Adds to a segment the last vector of the one before.
template <class T, class B>
struct AddsLast {
  using Scalar = T;
  using BackendType = B;
  using State = LastState<T, B>;
  using V = Variable<T, B>;

  State make_state(Index batch, Index = 0) const { return {Tensor<T, B>::zeros({batch, 1, 2})}; }
  V forward(State& state, const V& x, Pass<T, B>&) const {
    const Index L = x.dim(1);
    const V held(state.vector);
    V y = held;
    for (Index i = 1; i < L; ++i) y = concat(y, held);
    state.vector = narrow(x, L - 1, L).value();
    return x + y;
  }
  template <class Visitor>
  void visit(Visitor&&) {}
};

/// The same, but it holds its inputs as they were and norms them where it uses them.
template <class T, class B>
struct HoldsLast : AddsLast<T, B> {
  using typename AddsLast<T, B>::State;
  using V = Variable<T, B>;
  V forward(State& state, const V& x, const InputNorm<T, B>& norm, Pass<T, B>& pass) const {
    State normed{norm(V(state.vector)).value()};
    const V y = AddsLast<T, B>::forward(normed, norm(x), pass);
    state.vector = narrow(x, x.dim(1) - 1, x.dim(1)).value();
    return y;
  }
};

/// No layer: it has a state and does not make one.
template <class T, class B>
struct Stateless : Twice<T, B> {
  using Scalar = T;
  using BackendType = B;
  using State = LastState<T, B>;
};

using E = infty::EigenBackend;
static_assert(infty::VectorMap<Twice<float, E>, float, E>);
static_assert(infty::VectorMap<Reporting<float, E>, float, E>);
static_assert(infty::VectorMap<infty::LayerNorm<float>, float, E>);
static_assert(infty::SequenceLayer<infty::FeedForward<float>>);
static_assert(infty::SequenceLayer<Twice<float, E>, float, E>);
static_assert(!infty::VectorMap<Twice<float, E>, double, E>);
static_assert(infty::SequenceLayer<AddsLast<float, E>> &&
              !infty::HoldsInputs<AddsLast<float, E>, float, E>);
static_assert(infty::SequenceLayer<HoldsLast<float, E>> &&
              infty::HoldsInputs<HoldsLast<float, E>, float, E>);
static_assert(!infty::VectorMap<AddsLast<float, E>, float, E>);
static_assert(!infty::SequenceLayer<Stateless<float, E>>);
static_assert(!infty::SequenceLayer<int, float, E>);
static_assert(infty::remembers<AddsLast<float, E>> && !infty::remembers<Twice<float, E>>);
static_assert(std::same_as<infty::StateOf<Twice<float, E>>, infty::NoState>);
static_assert(std::same_as<infty::StateOf<AddsLast<float, E>>, LastState<float, E>>);

}  // namespace

TEMPLATE_LIST_TEST_CASE("run_layer: any layer, each with what it wants to know", "",
                        infty::tests::Types) {
  using T = typename TestType::T;
  using B = typename TestType::B;
  using V = Variable<T, B>;
  using Numbers = std::vector<T>;
  const V x(Tensor<T, B>::from({1, 2, 2}, {1, 3, 5, 1}));
  infty::LayerNorm<T, B> layer_norm(2);
  layer_norm.bias.value().fill(T(2));
  const InputNorm<T, B> norm(layer_norm);
  const Numbers normed = norm(x).value().to_vector();
  Pass<T, B> pass{.before = 3, .traced = true};

  const Twice<T, B> twice;
  auto nothing = infty::make_state(twice, 4);
  for (const Index batch : {Index{0}, Index{-5}})
    CHECK_THROWS_AS(infty::make_state(twice, batch), infty::ValueError);
  CHECK(run_layer(twice, nothing, x, pass).value().to_vector() == Numbers{2, 6, 10, 2});
  CHECK(run_layer(twice, nothing, x, norm, pass).value().to_vector() ==
        infty::scale(norm(x), T(2)).value().to_vector());

  const Reporting<T, B> reporting;
  CHECK(run_layer(reporting, nothing, x, norm, pass).value().to_vector() == normed);
  REQUIRE(pass.trace.size() == 1);
  CHECK(pass.trace[0].value.value().item() == T(3));

  const AddsLast<T, B> adds;
  const HoldsLast<T, B> holds;
  auto added = infty::make_state(adds, 1), held = infty::make_state(holds, 1);
  CHECK(added.vector.shape() == Shape{1, 1, 2});
  CHECK(run_layer(adds, added, x, pass).value().to_vector() == Numbers{1, 3, 5, 1});
  CHECK(run_layer(adds, added, x, pass).value().to_vector() == Numbers{6, 4, 10, 2});
  // What holds its inputs has them as they were, the other one as they were normed.
  run_layer(adds, added, x, norm, pass);
  run_layer(holds, held, x, norm, pass);
  CHECK(held.vector.to_vector() == Numbers{5, 1});
  CHECK(added.vector.to_vector() == Numbers{normed[2], normed[3]});
  const auto a = run_layer(adds, added, x, norm, pass), b = run_layer(holds, held, x, norm, pass);
  CHECK(a.value().to_vector() == b.value().to_vector());
  CHECK(a.value().to_vector() == Numbers{normed[0] + normed[2], normed[1] + normed[3],
                                         normed[2] + normed[2], normed[3] + normed[3]});
}
