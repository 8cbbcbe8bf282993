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
#include <infty/model/transformer_lm.hpp>
#include <infty/testing/difference.hpp>
#include <infty/testing/gradient_check.hpp>
#include <infty/testing/invariants.hpp>
#include <infty/train/checkpoint.hpp>
#include <infty/train/named_parameters.hpp>

// What every mixer that remembers, and every `Memory`, keeps to, tried inside a language model of
// two small layers: `require_mixer<MyMixer<double>>(config, file)` is a whole test of a mixer of
// your own, `require_memory<MyMemory<double>>(config, file)` one of a memory. They need exceptions:
// that wrong states are refused is tried, too.

namespace infty::testing {

/// A small language model as a memory of tokens, as the streams of testing/invariants.hpp want it:
/// it is written by observing and read by answering, of which the state does not come to know.
template <class Mixer>
class TokenMemory {
  using T = typename Mixer::Scalar;
  using Backend = typename Mixer::BackendType;

 public:
  /// What is wrapped.
  using Model = TransformerLM<Mixer>;
  using Tokens = typename Model::Tokens;

  /// Parameters are drawn, those that start as zeros and ones too.
  explicit TokenMemory(const typename Model::MemoryConfig& memory, bool pre_norm = false)
      : model_({.vocabulary = 5,
                .model_dim = 4,
                .layers = 2,
                .heads = 2,
                .head_dim = 3,
                .feed_forward = 5,
                .pre_norm = pre_norm,
                .embedding_deviation = 0},
               memory, Random(1)) {
    Random random(2);
    for_each_parameter(model_, [&](const std::string&, Variable<T, Backend>& parameter) {
      Tensor<T, Backend> shift(parameter.shape());
      fill_uniform(shift, T(-.2), T(.2), random);
      Backend::copy(parameter.value().data(),
                    (parameter + Variable<T, Backend>(shift)).value().data(), parameter.size());
    });
  }

  /// The model inside.
  Model& model() { return model_; }
  /// The model inside.
  const Model& model() const { return model_; }

  /// A state of fresh rows.
  typename Model::State make_state(Index batch) const { return model_.make_state(batch); }
  /// Observes tokens [batch, L].
  void write(typename Model::State& state, const Tokens& tokens) const {
    model_.observe(state, tokens);
  }
  /// Hidden vectors [batch, L, d] of tokens [batch, L] behind a state, which stays as it is.
  Variable<T, Backend> read(const typename Model::State& state, const Tokens& tokens) const {
    auto branch = state;
    return model_.forward(branch, tokens);
  }

 private:
  Model model_;
};

/// Random tokens [batch, length] for a `TokenMemory`.
template <class Backend = EigenBackend>
Tensor<Index, Backend> some_tokens(Index batch, Index length, Random& random) {
  std::vector<Index> tokens(static_cast<std::size_t>(batch * length));
  for (Index& token : tokens) token = random.below(5);
  return Tensor<Index, Backend>::from(Shape{batch, length}, tokens);
}

/// A stream of three rows for a `TokenMemory`: 18 tokens in pieces of 1 to 8, and queries.
template <class Backend = EigenBackend>
Stream<Tensor<Index, Backend>> some_stream() {
  Random random(3);
  Stream<Tensor<Index, Backend>> stream;
  for (const Index length : {3, 1, 8, 6})
    stream.pieces.push_back(some_tokens<Backend>(3, length, random));
  stream.queries = some_tokens<Backend>(3, 5, random);
  return stream;
}

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
/// largest difference, relative to a parameter's largest one.
template <class Mixer>
Difference<double> model_gradient(TokenMemory<Mixer>& memory) {
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
  return gradient_check(loss, named_parameters<double, B>(memory.model()));
}

/// Whether a promise holds, and if it does not, in words what was seen.
struct Promise {
  std::string broken = {};  ///< empty where it holds
  /// Whether it holds.
  explicit operator bool() const { return broken.empty(); }
};

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
  for_each_member(state, [&](const std::string& name, const auto& member) {
    if constexpr (infty::detail::is_tensor<std::remove_cvref_t<decltype(member)>>)
      if (!infty::detail::all_finite(detail::tensor_of(member)))
        promise.broken =
            detail::words("state member '", name, "' ", detail::tensor_of(member).shape(),
                          " holds NaN or infinity behind 490 tokens");
  });
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

}  // namespace detail

/// Whether a model with a wider embedding and wider heads refuses a state, as infty::ShapeError,
/// and leaves it as it was.
template <class Mixer>
Promise refuses_foreign_states(const TokenMemory<Mixer>& memory) {
  using B = typename Mixer::BackendType;
  auto config = memory.model().config();
  config.model_dim += 2;
  config.head_dim += 1;
  const typename TokenMemory<Mixer>::Model other(config, memory.model().memory_config());
  Random random(6);
  const auto tokens = some_tokens<B>(2, 9, random);
  auto state = memory.make_state(2);
  memory.write(state, tokens);
  const auto before = state;
  for (const bool observe : {false, true}) {
    const bool refused = detail::throws<ShapeError>(
        [&] { observe ? other.observe(state, tokens) : void(other.forward(state, tokens)); });
    const char* const what = observe ? "observe" : "forward";
    if (!refused)
      return {detail::words(what, " of a model with model_dim ", config.model_dim,
                            " took a state of one with ", config.model_dim - 2,
                            " and threw no infty::ShapeError")};
    const auto change = detail::state_difference(state, before, {"", "after", "before"});
    if (change != 0) return {detail::words(what, " threw and changed the state: ", change.where)};
  }
  return {};
}

/// Tries a mixer with a configuration of few vectors, so that a dozen tokens fill it, in a model
/// with its norms behind and in one with its norms in front: the invariants of a stream (a batch is
/// its rows one by one, a reset row is fresh, a state that was saved and loaded continues, copies
/// branch, outputs do not depend on later input), gradients, that `observe` is `forward` without an
/// answer, that a state stays as large as it is and another model's is refused, that products are
/// counted where the mixer has `flops`.
/// @param file       where states are saved; is overwritten
/// @param tolerance  of what is computed in another order, as in a batch and row by row
/// @throws infty::testing::InvariantError that names what is broken
template <class Mixer>
void require_mixer(const typename Mixer::Config& config, const std::filesystem::path& file,
                   double tolerance = 1e-12) {
  static_assert(sizeof(infty::detail::CheckedMixer<Mixer>) > 0);  // says what the mixer lacks
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
    const Promise bounded = stays_bounded(memory), refused = refuses_foreign_states(memory);
    hold(bool(bounded), "stays_bounded",
         "; a full state stays as large as it is, and finite: ", bounded.broken);
    hold(bool(refused), "refuses_foreign_states",
         "; another model's state is refused and left as it was: ", refused.broken);
    if (!pre_norm) continue;  // gradients go the same way, and through the norm of what is held
    const auto gradient = model_gradient(memory);
    hold(gradient < 1e-6, "model_gradient", ": a difference of ", gradient.largest, ", allowed is ",
         1e-6, "; gradients are those of central differences: parameter ", gradient.where);
  }
  if constexpr (requires(const Mixer& mixer) { mixer.flops(Index(2), Index(8)); }) {
    const Mixer mixer(config, {.model_dim = 4, .heads = 2, .head_dim = 3}, Random(1));
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
