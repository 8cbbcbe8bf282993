// SPDX-License-Identifier: MIT
#pragma once

#include <cmath>
#include <filesystem>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include <infty/autograd/elementwise.hpp>
#include <infty/autograd/reduce.hpp>
#include <infty/core/finite.hpp>
#include <infty/memory/no_memory.hpp>
#include <infty/memory/with_memory.hpp>
#include <infty/testing/difference.hpp>
#include <infty/testing/gradient_check.hpp>
#include <infty/testing/invariants.hpp>
#include <infty/testing/promises.hpp>
#include <infty/testing/token_memory.hpp>
#include <infty/train/checkpoint.hpp>
#include <infty/train/named_parameters.hpp>

// What every mixer that remembers, and every `Memory`, keeps to, tried inside a language model of
// two small layers: `require_mixer<MyMixer<double>>(config, file)` is a whole test of a mixer of
// your own, `require_memory<MyMemory<double>>(config, file)` one of a memory. They need exceptions:
// that wrong states are refused is tried, too.

namespace infty::testing {

/// `observe` leaves the state that `forward` leaves, with a tape and without one, and what is read
/// does not depend on the tape.
template <class Mixer>
Difference<double> observe_equals_forward(const TokenMemory<Mixer>& memory) {
  using B = typename Mixer::BackendType;
  const auto stream = some_stream<B>();
  auto observed = memory.make_state(3), read = observed, recorded = observed;
  Difference<double> worst;
  for (const auto& piece : stream.pieces) {
    memory.write(observed, piece);
    const auto answer = memory.model().forward(read, piece);
    {
      Tape tape;
      const auto same = memory.model().forward(recorded, piece);
      detail::raise_to(worst, detail::difference(answer.value(), same.value(),
                                                 {"the answer", "without a tape", "with one"}));
    }
    detail::raise_to(worst, detail::state_difference(observed, read, {"", "observed", "forward"}));
    detail::raise_to(worst,
                     detail::state_difference(recorded, read, {"", "with a tape", "without"}));
  }
  return worst;
}

/// The gradients of all parameters of a model with the memory, of the losses of a segment and of
/// the regulariser, against central differences; a loss of the memory's own is left out, for it
/// may stop gradients on purpose. Where the state takes no gradient (`state_takes_gradient`), all
/// that waits is written before, so that the segment reads what no parameter changes any more. The
/// largest difference, relative to a parameter's largest one or to 1e-3, as `fast_gradient_check`
/// has it.
template <class Mixer>
Difference<double> model_gradient(TokenMemory<Mixer>& memory, double allowed = 1e-6) {
  using B = typename Mixer::BackendType;
  Random random(4);
  auto before = memory.make_state(2);
  for (const Index length : {7, 8}) {
    memory.write(before, some_tokens<B>(2, length, random));
    if (length == 7) reset_row(before, 1);  // rows of different age
  }
  if constexpr (!state_takes_gradient<Mixer>) {
    // A memory token is read and not held: what has waited is written, and nothing waits behind it.
    Pass<double, B> pass{.answer = false, .before = 1};
    memory.model().forward(before, some_tokens<B>(2, 1, random), pass);
  }
  const auto tokens = some_tokens<B>(2, 3, random), targets = some_tokens<B>(2, 3, random);
  const auto loss = [&] {
    auto state = before;
    Pass<double, B> pass{.regularised = true};
    const auto hidden = memory.model().forward(state, tokens, pass);
    return mean(memory.model().losses(hidden, targets)) +
           scale(loss_named(pass, "divergence"), 1e-3);
  };
  // So much less than the gradients here that one that is missing is no small one.
  constexpr double least = 1e-3;
  return fast_gradient_check(loss, named_parameters<double, B>(memory.model()), allowed, 1e-5,
                             least);
}

/// Tries a mixer with a configuration of few vectors, so that a dozen tokens fill it, in a model
/// with its norms behind and in one with its norms in front: the invariants of a stream (a batch is
/// its rows one by one, a reset row is fresh, a state that was saved and loaded continues, copies
/// branch, outputs do not depend on later input), gradients of a segment, that `observe` is
/// `forward` without an answer, that a state stays as large as it is and another's is refused, that
/// `visit` names what is drawn, that the first answers are alike where the mixer `answers_first`,
/// that products are counted where it has `flops`. Gradients that go on to the next segment, for
/// a mixer may stop them, and padding are not tried.
/// @param file       where states are saved; is overwritten
/// @param tolerance  of what is computed in another order, as in a batch and row by row
/// @throws infty::testing::InvariantError that names what is broken
template <class Mixer>
void require_mixer(const typename Mixer::Config& config, const std::filesystem::path& file,
                   double tolerance = 1e-12) {
  static_assert(sizeof(infty::detail::CheckedMixer<Mixer>) > 0);  // says what the mixer lacks
  static_assert(remembers<Mixer>, "require_mixer: the mixer has no State: it remembers nothing");
  static_assert(std::is_same_v<typename Mixer::Scalar, double>,
                "require_mixer: the mixer's Scalar must be double, for gradients are checked");
  const auto hold = [](bool good, const char* what, const auto&... more) {
    require<InvariantError>(good, what, "does not hold", more...);
  };
  for (const bool pre_norm : {false, true}) {
    TokenMemory<Mixer> memory(config, pre_norm);
    const auto through = [&](const auto& state) {
      save_state(file, state);
      auto loaded = memory.make_state(1);
      load_state(file, loaded);
      return loaded;
    };
    require_invariants(memory, some_stream<typename Mixer::BackendType>(), through, tolerance);
    const auto observed = observe_equals_forward(memory);
    hold(observed <= tolerance, "observe_equals_forward", ": a difference of ", observed.largest,
         ", allowed is ", tolerance,
         "; observe leaves the state that forward leaves, with a tape and without one: ",
         observed.where);
    const Promise bounded = stays_bounded(memory), refused = refuses_foreign_states(memory),
                  visited = visits_all(memory), first = answers_first_alike<Mixer>(config);
    hold(bool(bounded), "stays_bounded",
         "; a full state stays as large as it is, and finite: ", bounded.broken);
    hold(bool(refused), "refuses_foreign_states",
         "; another's state is refused and left as it was: ", refused.broken);
    hold(bool(visited), "visits_all", "; `visit` names all parameters: ", visited.broken);
    hold(bool(first), "answers_first",
         "; the first answers are the same by themselves: ", first.broken);
    if (!pre_norm) continue;  // gradients go the same way, and through the norm of what is held
    constexpr double allowed = 1e-6;
    const auto gradient = model_gradient(memory, allowed);
    hold(gradient <= allowed, "model_gradient", ": a difference of ", gradient.largest,
         ", allowed is ", allowed, "; gradients are those of central differences: parameter ",
         gradient.where);
  }
  if constexpr (requires(const Mixer& mixer) { mixer.flops(Index(2), Index(8)); }) {
    const Mixer mixer(config, detail::mixer_sizes, Random(1));
    const double count = mixer.flops(2, 8);
    hold(count > 0 && mixer.flops(4, 8) > count && mixer.flops(2, 16) > count, "flops",
         ": they are ", count, " for 2 rows of 8, ", mixer.flops(4, 8), " for 4 rows of 8, ",
         mixer.flops(2, 16), " for 2 rows of 16");
  }
}

/// Tries a memory beside attention over each segment alone, as `require_mixer` does.
/// @throws infty::testing::InvariantError that names what is broken
template <class M>
void require_memory(const typename M::Config& config, const std::filesystem::path& file,
                    double tolerance = 1e-12) {
  using T = typename M::Scalar;
  using B = typename M::BackendType;
  static_assert(sizeof(WithMemory<NoMemory<T, B>, M>) > 0);  // says what the memory lacks
  require_mixer<WithMemory<NoMemory<T, B>, M>>({.memory = config}, file, tolerance);
}

}  // namespace infty::testing
