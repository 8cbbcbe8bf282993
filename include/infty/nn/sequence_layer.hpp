// SPDX-License-Identifier: MIT
#pragma once

#include <concepts>
#include <type_traits>
#include <utility>

#include <infty/core/checked.hpp>
#include <infty/core/state.hpp>
#include <infty/nn/input_norm.hpp>
#include <infty/nn/pass.hpp>

namespace infty {

/// The state of a layer that remembers nothing.
struct NoState {
  template <class Visitor>
  void visit(Visitor&&) {}
};

namespace detail {

template <class L>
struct StateOfLayer {
  using type = NoState;
};
template <class L>
  requires requires { typename L::State; }
struct StateOfLayer<L> {
  using type = typename L::State;
};

}  // namespace detail

/// What a layer remembers: `L::State`, or `NoState` where there is no such type.
template <class L>
using StateOf = typename detail::StateOfLayer<L>::type;

/// Whether a layer remembers anything.
template <class L>
inline constexpr bool remembers = !std::is_same_v<StateOf<L>, NoState>;

/// Whether the loss of a segment reaches what its call writes into the state first, of what has
/// waited there. What takes no gradient at all, such as an index, says so by a member `static
/// constexpr bool state_takes_gradient = false`; testing/memory_invariants.hpp then tries gradients
/// of a segment with all that waits written before. How far gradients go back beyond that is each
/// memory's own, and is not tried there.
template <class L>
inline constexpr bool state_takes_gradient = [] {
  if constexpr (requires { L::state_takes_gradient; })
    return L::state_takes_gradient;
  else
    return true;
}();

/// Whether a layer goes by `pass.first` and gives no more answers than are wanted: what its member
/// `static constexpr bool answers_first` says; without one, it does not.
template <class L>
inline constexpr bool answers_first = [] {
  if constexpr (requires { L::answers_first; })
    return L::answers_first;
  else
    return false;
}();

/// Whether a layer goes by `pass.visible`, so that padding in front of a row's words changes none
/// of their answers: what its member of this name says; without one, it does not.
template <class L>
bool reads_padded(const L& layer) {
  if constexpr (requires { layer.reads_padded(); })
    return layer.reads_padded();
  else
    return false;
}

/// A map [B, L, d] -> [B, L, d] without a state: `forward(x)`, or `forward(x, pass)` for one that
/// drops out, reports losses, or wants to know of memory tokens.
template <class L, class T, class B>
concept VectorMap = Layer<L> && !remembers<L> &&
                    (
                        requires(const L& layer, const Variable<T, B>& x, Pass<T, B>& pass) {
                          { layer.forward(x, pass) } -> std::convertible_to<Variable<T, B>>;
                        } ||
                        requires(const L& layer, const Variable<T, B>& x) {
                          { layer.forward(x) } -> std::convertible_to<Variable<T, B>>;
                        });

/// A mixer that holds its inputs as they were, and norms them where it uses them: a block with its
/// norm in front hands it the norm and not what the norm has made.
template <class L, class T, class B>
concept HoldsInputs =
    remembers<L> && requires(const L& layer, StateOf<L>& state, const Variable<T, B>& x,
                             const InputNorm<T, B>& norm, Pass<T, B>& pass) {
      { layer.forward(state, x, norm, pass) } -> std::convertible_to<Variable<T, B>>;
    };

/// What a model is made of: [B, L, d] -> [B, L, d] behind a state of rows, which the caller owns.
/// Mixers, feeds, blocks, stacks and decorators are all of them such layers, so each may stand
/// where another does.
///
/// - `make_state(batch, first_row)` is a state of fresh rows; row i draws its random numbers, if
///   it draws any, from stream `first_row` + i. The state names its members by `visit`: from
///   that come copying, resetting rows, saving and loading (core/state.hpp).
/// - `forward(state, x, pass)` answers, each place seeing those up to itself and what the state
///   remembers, and moves the state on. If it throws, the state is as it was.
///
/// A layer without a state leaves `State` and `make_state` out: see `VectorMap`.
template <class L, class T = typename L::Scalar, class B = typename L::BackendType>
concept SequenceLayer =
    VectorMap<L, T, B> ||
    (Layer<L> && Visitable<StateOf<L>> && std::copyable<StateOf<L>> &&
     requires(const L& layer, Index n) {
       { layer.make_state(n, n) } -> std::same_as<StateOf<L>>;
     } &&
     (HoldsInputs<L, T, B> ||
      requires(const L& layer, StateOf<L>& state, const Variable<T, B>& x, Pass<T, B>& pass) {
        { layer.forward(state, x, pass) } -> std::convertible_to<Variable<T, B>>;
      }));

namespace detail {

// What `SequenceLayer` asks beside `visit`, one by one, for assertions that say what is missing.
template <class L>
inline constexpr bool state_fits = Visitable<StateOf<L>> && std::copyable<StateOf<L>>;
template <class L>
inline constexpr bool makes_state = !remembers<L> || requires(const L& layer, Index n) {
  { layer.make_state(n, n) } -> std::same_as<StateOf<L>>;
};
template <class L, class T = typename L::Scalar, class B = typename L::BackendType>
inline constexpr bool runs =
    HoldsInputs<L, T, B> ||
    requires(const L& layer, StateOf<L>& state, const Variable<T, B>& x, Pass<T, B>& pass) {
      requires remembers<L>;
      { layer.forward(state, x, pass) } -> std::convertible_to<Variable<T, B>>;
    } || requires(const L& layer, const Variable<T, B>& x, Pass<T, B>& pass) {
      requires !remembers<L>;
      { layer.forward(x, pass) } -> std::convertible_to<Variable<T, B>>;
    } || requires(const L& layer, const Variable<T, B>& x) {
      requires !remembers<L>;
      { layer.forward(x) } -> std::convertible_to<Variable<T, B>>;
    };

}  // namespace detail

/// A state of fresh rows of any layer. @throws infty::ValueError unless 1 <= batch <=
/// `largest_size`
template <class L>
StateOf<L> make_state(const L& layer, Index batch, Index first_row = 0) {
  if constexpr (remembers<L>) {
    return layer.make_state(batch, first_row);
  } else {
    require_rows("make_state", batch);
    return {};
  }
}

/// What any layer makes of x [B, L, d] behind its state, which moves on. With a norm, x is normed
/// first, or by the layer itself if it `HoldsInputs`. One that does not say `answers_first` gives
/// all answers, whatever it holds: `pass.first` is 0 within it.
template <class L, class T, class B>
Variable<T, B> run_layer(const L& layer, StateOf<L>& state, const Variable<T, B>& x,
                         const InputNorm<T, B>& norm, Pass<T, B>& pass) {
  if constexpr (!answers_first<L>)
    if (pass.first != 0) {
      const Index first = std::exchange(pass.first, 0);
      auto y = run_layer(layer, state, x, norm, pass);
      pass.first = first;
      return y;
    }
  if constexpr (HoldsInputs<L, T, B>)
    return layer.forward(state, x, norm, pass);
  else if constexpr (remembers<L>)
    return layer.forward(state, norm(x), pass);
  else if constexpr (requires { layer.forward(x, pass); })
    return layer.forward(norm(x), pass);
  else
    return layer.forward(norm(x));
}

/// The same without a norm.
template <class L, class T, class B>
Variable<T, B> run_layer(const L& layer, StateOf<L>& state, const Variable<T, B>& x,
                         Pass<T, B>& pass) {
  return run_layer(layer, state, x, InputNorm<T, B>(), pass);
}

}  // namespace infty
