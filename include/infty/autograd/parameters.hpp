// SPDX-License-Identifier: MIT
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <type_traits>
#include <unordered_set>
#include <vector>

#include <infty/autograd/variable.hpp>
#include <infty/core/bfloat16.hpp>
#include <infty/core/needs.hpp>
#include <infty/core/visit.hpp>

namespace infty {

namespace detail {

template <class M>
inline constexpr bool is_variable = false;
template <class T, class B>
inline constexpr bool is_variable<Variable<T, B>> = true;

// What walks through layers is compiled for each layer and everything that is done at its places.
// So what is done to all models is no lambda of a function that is a template on the model: such a
// lambda is of another type for every model, and the walk through what models have in common would
// be compiled for each of them.

template <class Member, class F>
void for_each_place(Member& member, F& f, const std::string& name = "");

/// What a walk is to the members of one layer.
template <class F, bool is_const>
struct PlaceWalk {
  F& f;
  const std::string& name;

  template <class Inner>
  void operator()(std::string_view part, Inner& inner) const {
    std::conditional_t<is_const, const Inner, Inner>& as_it_is = inner;
    for_each_place(as_it_is, f, name.empty() ? std::string(part) : name + '.' + std::string(part));
  }
};

/// Calls f(name, variable) for every place of a layer where a parameter stands: see below.
template <class Member, class F>
void for_each_place(Member& member, F& f, const std::string& name) {
  using M = std::remove_const_t<Member>;
  if constexpr (is_variable<M>) {
    f(name, member);
  } else if constexpr (Layer<M>) {
    const PlaceWalk<F, std::is_const_v<Member>> walk{f, name};
    const_cast<M&>(member).visit(walk);
  } else if constexpr (is_optional<M>) {
    if (member) for_each_place(*member, f, name);
  } else {
    static_assert(
        requires { member[member.size()]; },
        "a layer's visit names a member that is none of: a Variable, a layer with visit, an "
        "optional or a vector of these");
    for (std::size_t i = 0; i < member.size(); ++i)
      for_each_place(member[i], f, name + '.' + std::to_string(i));
  }
}

/// Calls f(name, parameter) where a parameter stands first.
template <class F>
struct AtFirstPlaces {
  F& f;
  std::unordered_set<const void*> known = {};

  template <class V>
  void operator()(const std::string& name, V& parameter) {
    if (known.insert(parameter.identity()).second) f(name, parameter);
  }
};

template <class V>
struct CollectParameters {
  std::vector<V>& all;

  void operator()(const std::string&, V& parameter) const { all.push_back(parameter); }
};

struct CountNumbers {
  Index count = 0;

  template <class V>
  void operator()(const std::string&, const V& parameter) {
    count += parameter.size();
  }
};

struct SetRequiresGrad {
  bool on;
  std::string_view part;
  Index found = 0, passed_over = 0;

  template <class V>
  void operator()(const std::string& name, V& parameter) {
    if (name.find(part) == std::string::npos) return;
    if (on && parameter.is_buffer()) {
      ++passed_over;
      return;
    }
    parameter.set_requires_grad(on);
    if (!on) parameter.zero_grad();
    ++found;
  }
};

struct StoreInBFloat16 {
  std::size_t saved = 0;

  template <class T, class B>
  void operator()(const std::string&, Variable<T, B>& parameter) {
    if (parameter.shape().rank() != 2 || parameter.stored_in_bfloat16()) return;
    saved += static_cast<std::size_t>(parameter.size()) * (sizeof(T) - sizeof(BFloat16));
    parameter.store_in_bfloat16();
  }
};

struct ZeroGrad {
  template <class V>
  void operator()(const std::string&, V& parameter) const {
    parameter.zero_grad();
  }
};

}  // namespace detail

/// Calls f(name, variable) for every parameter of a layer, in the order in which the layer names
/// them. Names of nested layers are joined by dots, entries of a vector are numbered, an
/// empty optional is passed over: what a checkpoint calls them. A parameter that stands in two
/// places (tied weights) comes once, under its first name. Those of a const layer are const.
template <Addressed L, class F>
void for_each_parameter(L& layer, F&& f) {
  static_assert(Layer<std::remove_const_t<L>>, "for_each_parameter: the layer" INFTY_NO_VISIT);
  detail::AtFirstPlaces<std::remove_reference_t<F>> first{f};
  detail::for_each_place(layer, first);
}

/// Handles of all parameters of a layer, in the order of `for_each_parameter`.
template <class T, class B = EigenBackend, Addressed L>
  requires(!std::is_const_v<L>)
std::vector<Variable<T, B>> parameters(L& layer) {
  static_assert(Layer<L>, "parameters: the layer" INFTY_NO_VISIT);
  std::vector<Variable<T, B>> all;
  for_each_parameter(layer, detail::CollectParameters<Variable<T, B>>{all});
  return all;
}

/// Number of scalars in all parameters of a layer; those of tied weights count once.
template <Addressed L>
Index count_parameters(const L& layer) {
  static_assert(Layer<L>, "count_parameters: the layer" INFTY_NO_VISIT);
  detail::CountNumbers numbers;
  for_each_parameter(layer, numbers);
  return numbers.count;
}

/// Freezes all parameters of a layer whose names hold `part`, such as ".mixer.memory.", or trains
/// them again: whether operations recorded from now on compute gradients of them, as PyTorch's
/// `requires_grad_`; what gradients frozen ones have is forgotten. A backward pass through what was
/// recorded before, with those that it changes, is refused. An optimiser that is made then keeps no
/// moments of them, and leaves them as they are. Returns how many parameters these are. Buffers,
/// such as a batch norm's statistics, drawn features and fixed keys, are passed over where this
/// thaws: `Variable::set_requires_grad` trains one all the same.
///
///     set_requires_grad(model, false);                    // all are frozen,
///     set_requires_grad(model, true, ".mixer.memory.");   // but those of the memories
///
/// @throws infty::ValueError if no parameter has such a name, or buffers alone where this thaws
template <Addressed L>
  requires(!std::is_const_v<L>)
Index set_requires_grad(L& layer, bool on, std::string_view part = "") {
  static_assert(Layer<L>, "set_requires_grad: the layer" INFTY_NO_VISIT);
  detail::SetRequiresGrad set{on, part};
  for_each_parameter(layer, set);
  require(set.found > 0, "set_requires_grad",
          set.passed_over > 0 ? "only buffers have '" : "no parameter has '", part, "' in ",
          set.passed_over > 0 ? "their names, which are not trained" : "its name");
  return set.found;
}

/// Rounds the matrices among a layer's parameters to bfloat16 and keeps them in these two bytes a
/// number, half of a float's: for a model that is read from, or generates, and is not trained. All
/// else is computed in T. A token takes the time that reading the weights takes, so that a model
/// larger than the caches is up to twice as fast (docs/performance.md); several tokens at once take
/// a little longer. The matrices are frozen; `set_requires_grad` has them in full again, rounded.
/// A number of 3.4e38 or more is infinity. Returns how many bytes that saves, which the backend's
/// pool gives back to the system when it is trimmed. A matrix that is read otherwise than by
/// `linear`, `embedding` and `weighted_rows` is kept in full beside, once it has been: by
/// `project_heads`, say, or where it is saved, copied or gone back through.
///
///     load_parameters("model.safetensors", model);
///     store_in_bfloat16(model);
template <Addressed L>
  requires(!std::is_const_v<L>)
std::size_t store_in_bfloat16(L& layer) {
  static_assert(Layer<L>, "store_in_bfloat16: the layer" INFTY_NO_VISIT);
  detail::StoreInBFloat16 store;
  for_each_parameter(layer, store);
  return store.saved;
}

/// Forgets the gradients of all parameters of a layer.
template <Addressed L>
  requires(!std::is_const_v<L>)
void zero_grad(L& layer) {
  static_assert(Layer<L>, "zero_grad: the layer" INFTY_NO_VISIT);
  for_each_parameter(layer, detail::ZeroGrad());
}

}  // namespace infty
