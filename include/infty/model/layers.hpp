// SPDX-License-Identifier: MIT
#pragma once

#include <algorithm>
#include <cstddef>
#include <string>
#include <tuple>
#include <type_traits>
#include <utility>
#include <vector>

#include <infty/core/error.hpp>
#include <infty/core/finite.hpp>
#include <infty/core/needs.hpp>
#include <infty/core/pool.hpp>
#include <infty/nn/sequence_layer.hpp>

namespace infty {

namespace detail {

/// f(), whose NonFiniteError names the layer.
template <class F>
auto in_layer(std::size_t i, F&& f) {
  return explained<NonFiniteError>(
      f, [&](const char* what) { raise<NonFiniteError>("Layers", "layer ", i, ": ", what); });
}

/// What layer i of a stack makes of x, which is finite while no tape records; while one does, the
/// loss tells.
template <class L, class T, class B>
Variable<T, B> run_layer_of(std::size_t i, const L& layer, StateOf<L>& state,
                            const Variable<T, B>& x, Pass<T, B>& pass) {
  return in_layer(i, [&] {
    const Index outer = std::exchange(pass.layer, static_cast<Index>(i));
    auto y = run_layer(layer, state, x, pass);
    pass.layer = outer;
    if (!Tape::active() && y.size() > 0)
      require_finite(y.value(),
                     [] { raise<NonFiniteError>("forward", "NaN or infinity came up"); });
    return y;
  });
}

}  // namespace detail

/// What a stack of layers of one type remembers.
template <class LayerState>
struct StackState {
  PoolVector<LayerState> layers;  ///< one a layer, the lowest first

  template <class Visitor>
  void visit(Visitor&& see) {
    see("layers", layers);
  }
};

/// What a stack of layers of several types remembers.
template <class... LayerStates>
struct MixedStackState {
  std::tuple<LayerStates...> layers;  ///< one a layer, the lowest first

  template <class Visitor>
  void visit(Visitor&& see) {
    [&]<std::size_t... At>(std::index_sequence<At...>) {
      (see(std::to_string(At), std::get<At>(layers)), ...);
    }(std::index_sequence_for<LayerStates...>());
  }
};

/// Layers one behind the other: of one type as many as wanted, `Layers<L>{{a, b, c}}`, or of
/// several types, `Layers<A, B, C>(a, b, c)`. Each is a `SequenceLayer`; so is the stack. Where the
/// pass wants no answer, the last layers' work is left out as far as no state depends on it.
template <class... L>
class Layers;

/// Layers of one type, as many as wanted: `Layers<L>{{a, b, c}}`. They are saved as "layers.0" and
/// so on.
template <class L>
class Layers<L> {
  static_assert(Layer<L>, "Layers: the layer" INFTY_NO_VISIT);
  static_assert(detail::state_fits<L>, "Layers: the layer" INFTY_NO_STATE);
  static_assert(detail::makes_state<L>, "Layers: the layer" INFTY_NO_MAKE_STATE);
  static_assert(detail::runs<L>, "Layers: the layer" INFTY_NO_FORWARD);

 public:
  using Scalar = typename L::Scalar;
  using BackendType = typename L::BackendType;
  using V = Variable<Scalar, BackendType>;
  using State = StackState<StateOf<L>>;

  static constexpr bool answers_first = infty::answers_first<L>;  ///< see `Pass::first`

  std::vector<L> layers;  ///< the lowest first; one at least

  template <class Visitor>
  void visit(Visitor&& see) {
    see("layers", layers);
  }

  /// Whether padding changes no answer of any of them.
  bool reads_padded() const {
    return std::all_of(layers.begin(), layers.end(),
                       [](const L& layer) { return infty::reads_padded(layer); });
  }

  /// A state of fresh rows. @throws infty::ValueError unless 1 <= batch <= `largest_size`
  State make_state(Index batch, Index first_row = 0) const {
    State state;
    for (const L& layer : layers)
      state.layers.push_back(infty::make_state(layer, batch, first_row));
    return state;
  }

  /// [B, L, d] -> [B, L, d], moving the state on.
  /// @throws infty::ShapeError, infty::NonFiniteError that names the layer; then the state is as it
  /// was
  V forward(State& state, const V& x, Pass<Scalar, BackendType>& pass) const {
    require<ShapeError>(state.layers.size() == layers.size(), "Layers", "the state has ",
                        state.layers.size(), " layers, the model ", layers.size(),
                        state.layers.empty() ? ": make_state has not made it" : "");
    require(!layers.empty(), "Layers",
            "there are no layers: none was added, or the model was moved from");
    State next = state;
    V y = x;
    const bool answer = pass.answer, answer_before = pass.answer_before;
    const Index first = std::exchange(pass.first, 0);
    for (std::size_t i = 0; i < layers.size(); ++i) {
      const bool last = i + 1 == layers.size();
      pass.answer = answer || !last;
      pass.answer_before = answer_before || !last;
      if (answers_first && last) pass.first = first;
      y = detail::run_layer_of(i, layers[i], next.layers[i], y, pass);
    }
    pass.first = first;
    state = std::move(next);
    return y;
  }
};

/// Layers of several types, `Layers<A, B, C>(a, b, c)`. They are saved as "0" and so on.
template <class First, class Second, class... More>
class Layers<First, Second, More...> {
 public:
  using Scalar = typename First::Scalar;
  using BackendType = typename First::BackendType;
  using V = Variable<Scalar, BackendType>;
  using State = MixedStackState<StateOf<First>, StateOf<Second>, StateOf<More>...>;
  static_assert(Layer<First> && (Layer<Second> && ... && Layer<More>),
                "Layers: one of the layers" INFTY_NO_VISIT);
  static_assert(detail::state_fits<First> &&
                    (detail::state_fits<Second> && ... && detail::state_fits<More>),
                "Layers: one of the layers" INFTY_NO_STATE);
  static_assert(detail::makes_state<First> &&
                    (detail::makes_state<Second> && ... && detail::makes_state<More>),
                "Layers: one of the layers" INFTY_NO_MAKE_STATE);
  static_assert(detail::runs<First> && (detail::runs<Second, Scalar, BackendType> && ... &&
                                        detail::runs<More, Scalar, BackendType>),
                "Layers: one of the layers" INFTY_NO_FORWARD);

  /// See `Pass::first`.
  static constexpr bool answers_first = infty::answers_first<
      std::tuple_element_t<1 + sizeof...(More), std::tuple<First, Second, More...>>>;

  std::tuple<First, Second, More...> layers;  ///< the lowest first

  /// Takes the layers, the lowest first.
  explicit Layers(First first, Second second, More... more)
      : layers(std::move(first), std::move(second), std::move(more)...) {}

  template <class Visitor>
  void visit(Visitor&& see) {
    each([&]<std::size_t At>(std::integral_constant<std::size_t, At>) {
      see(std::to_string(At), std::get<At>(layers));
    });
  }

  /// Whether padding changes no answer of any of them.
  bool reads_padded() const {
    return std::apply([](const auto&... layer) { return (infty::reads_padded(layer) && ...); },
                      layers);
  }

  /// A state of fresh rows. @throws infty::ValueError unless 1 <= batch <= `largest_size`
  State make_state(Index batch, Index first_row = 0) const {
    State state;
    each([&]<std::size_t At>(std::integral_constant<std::size_t, At>) {
      std::get<At>(state.layers) = infty::make_state(std::get<At>(layers), batch, first_row);
    });
    return state;
  }

  /// [B, L, d] -> [B, L, d], moving the state on. @throws as of layers of one type
  V forward(State& state, const V& x, Pass<Scalar, BackendType>& pass) const {
    State next = state;
    V y = x;
    const bool answer = pass.answer, answer_before = pass.answer_before;
    const Index first = std::exchange(pass.first, 0);
    each([&]<std::size_t At>(std::integral_constant<std::size_t, At>) {
      if (!answer && At > last_that_remembers) {
        y = V();
        return;
      }
      pass.answer = answer || At < last_that_remembers;
      pass.answer_before = answer_before || At + 1 < count;
      if (answers_first && At + 1 == count) pass.first = first;
      y = detail::run_layer_of(At, std::get<At>(layers), std::get<At>(next.layers), y, pass);
    });
    pass.answer = answer;
    pass.answer_before = answer_before;
    pass.first = first;
    state = std::move(next);
    return y;
  }

 private:
  static constexpr std::size_t count = 2 + sizeof...(More);
  static constexpr std::size_t last_that_remembers = [] {
    const bool remember[] = {remembers<First>, remembers<Second>, remembers<More>...};
    std::size_t last = 0;
    for (std::size_t i = 0; i < count; ++i)
      if (remember[i]) last = i;
    return last;
  }();

  template <class F>
  static void each(F&& f) {
    [&]<std::size_t... At>(std::index_sequence<At...>) {
      (f(std::integral_constant<std::size_t, At>()), ...);
    }(std::make_index_sequence<count>());
  }
};

}  // namespace infty
