// SPDX-License-Identifier: MIT
#pragma once

#include <string>

#include <infty/autograd/shape.hpp>
#include <infty/core/finite.hpp>
#include <infty/nn/sequence_layer.hpp>
#include <infty/nn/to.hpp>
#include <infty/testing/difference.hpp>
#include <infty/testing/token_memory.hpp>

// What a mixer promises by what it is, tried: `require_mixer` asks for all of it.

namespace infty::testing {

/// Whether a promise holds, and if it does not, in words what was seen.
struct Promise {
  std::string broken = {};  ///< empty where it holds
  /// Whether it holds.
  explicit operator bool() const { return broken.empty(); }
};

namespace detail {

/// Names the last tensor that is not finite.
struct FindNotFinite {
  std::string& broken;

  template <class M>
  void operator()(const std::string& name, const M& member) const {
    if constexpr (infty::detail::is_tensor<M>)
      if (!infty::detail::all_finite(tensor_of(member)))
        broken = words("state member '", name, "' ", tensor_of(member).shape(),
                       " holds NaN or infinity behind 490 tokens");
  }
};

}  // namespace detail

/// Whether a state stays as large as it was, once its memories are full, and finite.
template <class Mixer>
Promise stays_bounded(const TokenMemory<Mixer>& memory) {
  using B = typename Mixer::BackendType;
  Random random(5);
  auto state = memory.make_state(1);
  const auto tokens = some_tokens<B>(1, 7, random);
  for (int i = 0; i < 20; ++i) memory.write(state, tokens);
  const auto full = state;
  for (int i = 0; i < 50; ++i) memory.write(state, tokens);
  if (bytes_of(state) != bytes_of(full))
    return {detail::state_difference(state, full, {"", "behind 490 tokens", "behind 140"}).where};
  Promise promise;
  for_each_member(state, detail::FindNotFinite{promise.broken});
  return promise;
}

namespace detail {

/// Whether f() throws an E. Without exceptions it ends the program.
template <class E, class F>
bool throws(const F& f) {
#if defined(__cpp_exceptions)
  try {
    f();
  } catch (const E&) {
    return true;
  }
#else
  f();
#endif
  return false;
}

/// Random vectors [2, length, width] for a mixer by itself.
template <class T, class B>
Variable<T, B> some_vectors(Index length, Index width, Random& random) {
  Tensor<T, B> x(Shape{2, length, width});
  fill_uniform(x, -1, 1, random);
  return Variable<T, B>(x);
}

}  // namespace detail

/// Whether two models with the same parameters answer alike: one that `visit` does not name is
/// neither copied nor trained nor saved. One that begins as a constant is not missed.
template <class Mixer>
Promise visits_all(const TokenMemory<Mixer>& memory) {
  using B = typename Mixer::BackendType;
  TokenMemory<Mixer> copy(memory.model().memory_config(), memory.model().config().pre_norm,
                          Random(9));
  copy_parameters(memory.model(), copy.model());
  Random random(7);
  auto state = memory.make_state(2), of_copy = copy.make_state(2);
  Promise promise;
  for (const Index length : {9, 5, 3}) {
    const auto tokens = some_tokens<B>(2, length, random);
    const auto apart = detail::difference(
        memory.read(state, tokens).value(), copy.read(of_copy, tokens).value(),
        {"the answer", "by a model", "by another with all parameters that visit names"});
    if (apart != 0 && promise) promise.broken = apart.where;
    memory.write(state, tokens);
    copy.write(of_copy, tokens);
  }
  return promise;
}

/// Whether a mixer that says `answers_first` answers for the first vectors as for all.
template <class Mixer>
Promise answers_first_alike(const typename Mixer::Config& config) {
  if constexpr (answers_first<Mixer>) {
    using T = typename Mixer::Scalar;
    using B = typename Mixer::BackendType;
    const Mixer mixer(config, detail::mixer_sizes, Random(1));
    Random random(8);
    auto all = infty::make_state(mixer, 2), some = all;
    for (const Index length : {9, 6}) {
      const auto x = detail::some_vectors<T, B>(length, detail::mixer_sizes.model_dim, random);
      Pass<T, B> whole, first{.first = 2};
      const auto y = run_layer(mixer, all, x, whole), begin = run_layer(mixer, some, x, first);
      const Index answers = begin.dim(1);
      if (answers < 2 || answers > length)
        return {detail::words("of 2 answers that are wanted of ", length, " it gives ", answers)};
      const auto apart = detail::difference(begin.value(), narrow(y, 0, answers).value(),
                                            {"the answer", "where 2 are wanted", "of all"});
      if (apart > 1e-12) return {apart.where};
    }
  }
  return {};
}

namespace detail {

/// Whether `call(state)` refuses a state, as infty::ShapeError, and leaves it as it was.
template <class State, class Call>
Promise refuses(State& state, const std::string& what, const Call& call) {
  const State before = state;
  if (!throws<ShapeError>([&] { call(state); }))
    return {words(what, " took a state of one with ", mixer_sizes.model_dim,
                  " and threw no infty::ShapeError")};
  const auto change = state_difference(state, before, {"", "after", "before"});
  return {change != 0 ? words(what, " threw and changed the state: ", change.where) : ""};
}

/// Whether two fresh states have other members, or members of another shape.
template <class State>
bool differ(const State& a, const State& b) {
  return state_difference(a, b) == math::infinity<double>;
}

}  // namespace detail

/// Whether a mixer and a model with a wider embedding and wider heads refuse a state, as
/// infty::ShapeError, and leave it as it was. Where their own is of the same shapes there is
/// nothing to refuse; a mixer that wants words or slots of its pass is tried in the model alone.
template <class Mixer>
Promise refuses_foreign_states(const TokenMemory<Mixer>& memory) {
  using T = typename Mixer::Scalar;
  using B = typename Mixer::BackendType;
  Random random(6);
  auto config = memory.model().config();
  config.model_dim += 2;
  config.head_dim += 1;
  const typename TokenMemory<Mixer>::Model other(config, memory.model().memory_config());
  const std::string wider = detail::words(" with model_dim ", config.model_dim);
  const auto tokens = some_tokens<B>(2, 9, random);
  auto state = memory.make_state(2);
  memory.write(state, tokens);
  if (detail::differ(memory.make_state(2), other.make_state(2)))
    for (const bool observe : {false, true}) {
      const Promise promise = detail::refuses(
          state, (observe ? "observe" : "forward") + (" of a model" + wider), [&](auto& foreign) {
            observe ? other.observe(foreign, tokens) : void(other.forward(foreign, tokens));
          });
      if (!promise) return promise;
    }
  // A model works on a copy, a mixer need not.
  const AttentionSizes sizes{
      .model_dim = config.model_dim, .heads = config.heads, .head_dim = config.head_dim};
  const auto& of_memory = memory.model().memory_config();
  const Mixer mixer(of_memory, detail::mixer_sizes, Random(1)),
      foreign(of_memory, sizes, Random(1));
  auto own = infty::make_state(mixer, 2);
  if (!detail::differ(own, infty::make_state(foreign, 2))) return {};
  Pass<T, B> pass, refused;
  const auto x = detail::some_vectors<T, B>(9, detail::mixer_sizes.model_dim, random),
             wide = detail::some_vectors<T, B>(9, sizes.model_dim, random);
  // One that wants more of a pass than a mixer by itself is given is tried in a model alone.
  if (detail::throws<Error>([&] { run_layer(mixer, own, x, pass); })) return {};
  return detail::refuses(own, "forward of a mixer" + wider,
                         [&](auto& taken) { run_layer(foreign, taken, wide, refused); });
}

}  // namespace infty::testing
