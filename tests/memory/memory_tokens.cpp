// SPDX-License-Identifier: MIT
#include <type_traits>
#include <vector>

#include <infty/autograd/shape.hpp>
#include <infty/memory/memory_tokens.hpp>
#include <infty/memory/recurrent_tokens.hpp>
#include <infty/memory/short_term_memory.hpp>
#include <infty/nn/causal_attention.hpp>
#include <infty/testing/memory_invariants.hpp>

#include "io/temporary_folder.hpp"
#include "support/catch.hpp"
#include "support/states.hpp"
#include "support/tensors.hpp"
#include "support/types.hpp"

using infty::Index;
using infty::Pass;
using infty::Shape;
using infty::Tensor;
using infty::Variable;
using infty::tests::numbers_of;

namespace memory_tokens {

constexpr Index m = 2, d = 4;

/// Attention over the last vectors with tokens of its own: a mixer that the kit can make.
struct Mixer : infty::MemoryTokens<infty::ShortTermMemory<double>> {
  using Config = infty::MemoryTokensConfig;
  Mixer(Config config, infty::AttentionSizes sizes, infty::Random random)
      : MemoryTokens(infty::ShortTermMemory<double>({.capacity = 5}, sizes, random), config,
                     sizes.model_dim, random.split(1)) {}
};

/// Gives the answers that are wanted, which are its input.
struct Sparing {
  using Scalar = double;
  using BackendType = infty::EigenBackend;
  template <class Visitor>
  void visit(Visitor&&) {}
  Variable<double> forward(const Variable<double>& x, Pass<double>& pass) const {
    return narrow(x, pass.answer_before ? 0 : pass.before, x.dim(1));
  }
};

/// Wants to be asked for all answers, and gives them: its input.
struct Whole {
  using Scalar = double;
  using BackendType = infty::EigenBackend;
  template <class Visitor>
  void visit(Visitor&&) {}
  Variable<double> forward(const Variable<double>& x, Pass<double>& pass) const {
    CHECK(pass.first == 0);
    return narrow(x, 0, x.dim(1));
  }
};

/// The numbers of x that a change of place i of the input changes, by places.
template <class Run>
std::vector<bool> places_that_see(Index i, Index length, Run&& run) {
  infty::Random random(7);
  auto x = infty::tests::uniform_tensor<double>({1, length, d}, random), changed = x.clone();
  changed.data()[i * d] += 1;
  const auto a = run(Variable<double>(x)).value().to_vector(),
             b = run(Variable<double>(changed)).value().to_vector();
  std::vector<bool> seen;
  for (Index place = 0; place < length; ++place) {
    bool differs = false;
    for (Index j = place * d; j < (place + 1) * d; ++j)
      differs = differs || a[static_cast<std::size_t>(j)] != b[static_cast<std::size_t>(j)];
    seen.push_back(differs);
  }
  return seen;
}

}  // namespace memory_tokens

TEMPLATE_LIST_TEST_CASE("MemoryTokens: the same tokens in front of every segment", "",
                        infty::tests::Types) {
  using T = typename TestType::T;
  using B = typename TestType::B;
  using V = Variable<T, B>;
  using Attention = infty::ShortTermMemory<T, B>;
  using memory_tokens::d, memory_tokens::m;
  for (const bool behind : {false, true}) {
    const infty::MemoryTokensConfig config{.tokens = m, .behind = behind};
    const Attention attention({.capacity = 6}, {.model_dim = d, .heads = 2, .head_dim = 3},
                              infty::Random(1));
    const infty::MemoryTokens<Attention> tokens(attention, config, d, infty::Random(2));
    auto state = tokens.make_state(2), silent = state;
    auto inner = attention.make_state(2);
    const V front = V(Tensor<T, B>::zeros({2, m, d})) + reshape(tokens.initial.weight, {1, m, d});
    infty::Random random(infty::tests::seed);
    for (const Index length : {3, 1, 5}) {
      CAPTURE(behind, length);
      const V x(infty::tests::uniform_tensor<T, B>({2, length, d}, random));
      Pass<T, B> pass{.traced = true};
      const auto got = tokens.forward(state, x, pass);
      CHECK(pass.before + pass.behind == 0);
      Pass<T, B> told{.before = m, .behind = behind ? m : 0, .tokens = config.rules()};
      const V all = concat(front, x);
      const V y = attention.forward(inner, behind ? concat(all, front) : all, {}, told);
      CHECK(infty::tests::error(got.value().to_vector(),
                                narrow(y, m, m + length).value().to_vector()) <
            infty::tests::tolerance<T>);
      CHECK(numbers_of(state.inner) == numbers_of(inner));
      CHECK(first_shown(pass, "memory_tokens").value().to_vector() ==
            narrow(y, 0, m).value().to_vector());

      Pass<T, B> unanswered{.answer = false};
      CHECK(tokens.forward(silent, x, unanswered).size() == 0);
      CHECK(numbers_of(silent) == numbers_of(state));
    }
    // Held as words are: two in front of five, then two behind or not, and what came before.
    CHECK(state.inner.recent.length == infty::RowCounts{6, 6});
  }
}

TEST_CASE("MemoryTokens: keeps what every mixer keeps, whatever its tokens see") {
  const infty::tests::TemporaryFolder folder;
  using memory_tokens::m, memory_tokens::Mixer;
  infty::testing::require_mixer<Mixer>({.tokens = m}, folder / "state");
  infty::testing::require_mixer<Mixer>({.tokens = m, .behind = true, .read_past = true},
                                       folder / "state");
}

TEST_CASE("memory tokens: around each other, whoever leaves out answers that nobody wants") {
  using namespace memory_tokens;
  infty::Random random(infty::tests::seed);
  const Variable<double> x(infty::tests::uniform_tensor<double>({2, 3, d}, random));
  const auto check = [&](const auto& layer) {
    for (const bool traced : {false, true}) {
      CAPTURE(traced);
      auto state = layer.make_state(2);
      Pass<double> pass{.first = 1, .traced = traced};
      const auto y = infty::run_layer(layer, state, x, pass);
      CHECK(y.value().to_vector() == x.value().to_vector());
      CHECK(pass.first == 1);
    }
  };
  const auto around = [&](const auto& inner) {
    using Inner = std::remove_cvref_t<decltype(inner)>;
    for (const bool behind : {false, true}) {
      CAPTURE(behind);
      const infty::MemoryTokens<Inner> tokens(inner, {.tokens = m, .behind = behind}, d, random);
      const infty::RecurrentTokens<Inner> recurrent(inner, {.tokens = m, .behind = behind}, d,
                                                    random);
      check(tokens);
      check(recurrent);
      if (behind) continue;  // which is another rule than that of those in front alone
      check(infty::MemoryTokens<infty::MemoryTokens<Inner>>(tokens, {.tokens = m}, d, random));
      const infty::MemoryTokensConfig same;  // rules
      check(infty::RecurrentTokens<infty::MemoryTokens<Inner>>(tokens,
                                                               {.tokens = m,
                                                                .behind = false,
                                                                .both_ways = same.both_ways,
                                                                .read_past = same.read_past,
                                                                .held = same.held},
                                                               d, random));
    }
  };
  around(Sparing{});
  around(Whole{});
}

TEST_CASE("memory tokens: who sees whom") {
  using namespace memory_tokens;
  using Seen = std::vector<bool>;
  // [token token word word token token], behind a segment of the same.
  const infty::ShortTermMemory<double> xl(
      {.capacity = 6}, {.model_dim = d, .heads = 2, .head_dim = 3}, infty::Random(1));
  const infty::CausalAttention<double> gpt({}, {.model_dim = d, .heads = 2, .head_dim = 3},
                                           infty::Random(1));
  const auto rules = [](bool both_ways) {
    return Pass<double>{.before = 2, .behind = 2, .tokens = {.both_ways = both_ways}};
  };
  for (const bool both_ways : {false, true}) {
    CAPTURE(both_ways);
    const auto of_xl = [&](const Variable<double>& x) {
      auto state = xl.make_state(1);
      auto pass = rules(both_ways);
      return xl.forward(state, x, {}, pass);
    };
    const auto of_gpt = [&](const Variable<double>& x) {
      auto pass = rules(both_ways);
      return gpt.forward(x, pass);
    };
    const auto check = [&](Index place, const Seen& wanted) {
      CAPTURE(place);
      CHECK(places_that_see(place, 6, of_xl) == wanted);
      CHECK(places_that_see(place, 6, of_gpt) == wanted);
    };
    check(0, {true, true, true, true, true, true});
    check(1, {both_ways, true, true, true, true, true});
    check(3, {false, false, false, true, true, true});
    check(4, {false, false, false, false, true, true});
    check(5, {false, false, false, false, both_ways, true});
  }
  // And of the past: words always, tokens if they are let.
  for (const bool read_past : {false, true}) {
    CAPTURE(read_past);
    const auto behind_x = [&](const Variable<double>& x) {
      auto state = xl.make_state(1);
      Pass<double> first, then = rules(true);
      then.tokens.read_past = read_past;
      xl.forward(state, x, {}, first);
      return xl.forward(state, Variable<double>(Tensor<double>::full({1, 6, d}, .5)), {}, then);
    };
    CHECK(places_that_see(5, 6, behind_x) ==
          Seen{read_past, read_past, true, true, read_past, read_past});
  }
}
