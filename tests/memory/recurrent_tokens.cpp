// SPDX-License-Identifier: MIT
#include <algorithm>
#include <cmath>
#include <vector>

#include <infty/autograd/reduce.hpp>
#include <infty/autograd/shape.hpp>
#include <infty/memory/compressive_memory.hpp>
#include <infty/memory/delta_net.hpp>
#include <infty/memory/recurrent_tokens.hpp>
#include <infty/memory/short_term_memory.hpp>
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

namespace recurrent_tokens {

constexpr Index m = 2, d = 4;

/// What a Transformer-XL's tokens do, and what GPT-2's.
const std::vector<infty::RecurrentTokensConfig> both = {
    {.tokens = m}, {.tokens = m, .both_ways = true, .read_past = false, .held = true}};

/// Attention over the last vectors with tokens of its own: a mixer that the kit can make.
struct Mixer : infty::RecurrentTokens<infty::ShortTermMemory<double>> {
  using Config = infty::RecurrentTokensConfig;
  Mixer(Config config, infty::AttentionSizes sizes, infty::Random random)
      : RecurrentTokens(infty::ShortTermMemory<double>({.capacity = 5}, sizes, random), config,
                        sizes.model_dim, random.split(1)) {}
};

using Attention = infty::ShortTermMemory<double>;
using V = Variable<double>;

/// Tokens around one attention.
infty::RecurrentTokens<Attention> around_attention(infty::RecurrentTokensConfig config) {
  return {Attention({.capacity = 3}, {.model_dim = d, .heads = 2, .head_dim = 3}, infty::Random(1)),
          config, d, infty::Random(2)};
}

/// The largest gradient that the loss of the last of three segments leaves at the learned vectors.
/// It is that of a row which begins with these; another is a segment older.
double gradient_at_the_first(infty::RecurrentTokensConfig config) {
  auto tokens = around_attention(config);
  infty::Random random(3);
  const auto some = [&](Index rows) {
    return V(infty::tests::uniform_tensor<double>({rows, 3, d}, random));
  };
  Pass<double> pass;
  auto older = tokens.make_state(1);
  tokens.forward(older, some(1), pass);
  auto state = join_rows(std::vector{tokens.make_state(1), older});
  infty::Tape tape;
  V y;
  for (int segment = 0; segment < 3; ++segment) y = tokens.forward(state, some(2), pass);
  tape.backward(sum(narrow(reshape(y, {1, 2, 3 * d}), 0, 1)));
  double largest = 0;
  for (const double g : tokens.initial.weight.grad().to_vector())
    largest = std::max(largest, std::abs(g));
  return largest;
}

}  // namespace recurrent_tokens

TEMPLATE_LIST_TEST_CASE("RecurrentTokens: what is written behind is read in front", "",
                        infty::tests::Types) {
  using T = typename TestType::T;
  using B = typename TestType::B;
  using V = Variable<T, B>;
  using Attention = infty::ShortTermMemory<T, B>;
  using recurrent_tokens::d, recurrent_tokens::m;
  for (const auto& config : recurrent_tokens::both) {
    const Attention attention({.capacity = 3}, {.model_dim = d, .heads = 2, .head_dim = 3},
                              infty::Random(1));
    const infty::RecurrentTokens<Attention> tokens(attention, config, d, infty::Random(2));
    auto state = tokens.make_state(2), silent = state;
    auto inner = attention.make_state(2);
    // The memory of the first segment is learned, that of each later one was written.
    V written = V(Tensor<T, B>::zeros({2, m, d})) + reshape(tokens.initial.weight, {1, m, d});
    infty::Random random(infty::tests::seed);
    for (const Index length : {3, 1, 5}) {
      CAPTURE(config.held, length);
      const V x(infty::tests::uniform_tensor<T, B>({2, length, d}, random));
      Pass<T, B> pass;
      const auto got = tokens.forward(state, x, pass);
      CHECK(pass.before == 0);
      CHECK(pass.behind == 0);
      CHECK(pass.tokens == infty::TokenRules{});
      // By hand: the layer inside is told which vectors are none of the text.
      Pass<T, B> told{.before = m, .behind = m, .tokens = config.memory_tokens().rules()};
      const V y = attention.forward(inner, concat(concat(written, x), written), {}, told);
      written = narrow(y, m + length, m + length + m);
      CHECK(infty::tests::error(got.value().to_vector(),
                                narrow(y, m, m + length).value().to_vector()) <
            infty::tests::tolerance<T>);
      CHECK(infty::tests::error(state.tokens.value().to_vector(), written.value().to_vector()) <
            infty::tests::tolerance<T>);
      CHECK(numbers_of(state.inner) == numbers_of(inner));

      Pass<T, B> unanswered{.answer = false};
      CHECK(tokens.forward(silent, x, unanswered).size() == 0);
      CHECK_FALSE(unanswered.answer);
      CHECK(numbers_of(silent) == numbers_of(state));
    }
    const V narrower(Tensor<T, B>::zeros({2, 3, d - 1}));
    Pass<T, B> pass;
    const auto before = numbers_of(state);
    CHECK_THROWS_AS(tokens.forward(state, narrower, pass), infty::ShapeError);
    CHECK(numbers_of(state) == before);
  }
}

TEST_CASE("RecurrentTokens: keeps what every mixer keeps, whatever its tokens see") {
  const infty::tests::TemporaryFolder folder;
  for (const auto& config : recurrent_tokens::both)
    infty::testing::require_mixer<recurrent_tokens::Mixer>(config, folder / "state");
}

TEST_CASE("RecurrentTokens: a gradient flows back through so many segments") {
  using recurrent_tokens::gradient_at_the_first, recurrent_tokens::m;
  const double all = gradient_at_the_first({.tokens = m});
  CHECK(all > 1e-6);
  CHECK(gradient_at_the_first({.tokens = m, .back_through = 4}) == all);
  CHECK(gradient_at_the_first({.tokens = m, .back_through = 3}) == all);
  CHECK(gradient_at_the_first({.tokens = m, .back_through = 2}) == 0);
  CHECK(gradient_at_the_first({.tokens = m, .back_through = 1}) == 0);
}

TEST_CASE("RecurrentTokens: what a stack remembers takes the gradient no further back") {
  using namespace recurrent_tokens;
  using Stack = infty::DeltaNet<double>;
  // Of the last of three segments at the first, of a row that is fresh and of one a segment older.
  const auto gradient_at_the_first = [](Index back_through) {
    const infty::RecurrentTokens<Stack> tokens(
        Stack({}, {.model_dim = d, .heads = 2, .head_dim = 3}, infty::Random(1)),
        {.tokens = m, .back_through = back_through}, d, infty::Random(2));
    infty::Random random(3);
    const auto some = [&](Index rows) {
      return V(infty::tests::uniform_tensor<double>({rows, 3, d}, random), true);
    };
    Pass<double> pass;
    auto older = tokens.make_state(1);
    tokens.forward(older, some(1), pass);
    auto state = join_rows(std::vector{tokens.make_state(1), older});
    infty::Tape tape;
    const V first = some(2);
    tokens.forward(state, first, pass);
    tokens.forward(state, some(2), pass);
    tape.backward(sum(tokens.forward(state, some(2), pass)));
    std::vector<double> largest(2, 0);
    for (std::size_t i = 0; i < 6 * d; ++i)
      largest[i / (3 * d)] = std::max(largest[i / (3 * d)], std::abs(first.grad().to_vector()[i]));
    return largest;
  };
  const auto all = gradient_at_the_first(0);
  CHECK(all[0] > 1e-6);
  CHECK(all[1] > 1e-6);
  CHECK(gradient_at_the_first(5) == all);
  CHECK(gradient_at_the_first(3) == std::vector<double>{all[0], 0});  // behind 2 of its segments
  CHECK(gradient_at_the_first(2) == std::vector<double>{0, 0});
  CHECK(gradient_at_the_first(1) == std::vector<double>{0, 0});
}

TEST_CASE("RecurrentTokens: a pass that is traced sees what came out at the tokens") {
  using namespace recurrent_tokens;
  auto tokens = around_attention({.tokens = m});
  auto state = tokens.make_state(2);
  infty::Random random(3);
  Pass<double> pass{.traced = true};
  tokens.forward(state, V(infty::tests::uniform_tensor<double>({2, 3, d}, random)), pass);
  CHECK(first_shown(pass, "memory_tokens").shape() == Shape{2, m, d});
  CHECK(first_shown(pass, "memory_tokens_behind").value().to_vector() ==
        state.tokens.value().to_vector());
}

TEST_CASE("RecurrentTokens: what cannot be is refused in words") {
  using namespace recurrent_tokens;
  using Catch::Matchers::Contains;
  CHECK_THROWS_WITH(around_attention({.tokens = 0}), Contains("tokens is 0"));
  CHECK_THROWS_WITH(around_attention({.back_through = -1}), Contains("back_through is -1"));
  CHECK_THROWS_WITH(around_attention({.tokens = Index{1} << 60}), Contains("tokens is"));
  CHECK_THROWS_WITH(around_attention({.deviation = -1}), Contains("deviation is -1"));
  CHECK_THROWS_WITH(infty::RecurrentTokens<Attention>(
                        Attention({.capacity = 3}, {.model_dim = d, .heads = 2, .head_dim = 3}), {},
                        0, infty::Random(1)),
                    Contains("d is 0"));

  // Mixers that know of no rules, and other tokens that ride along already.
  const infty::CompressiveMemory<double> compressive(
      {.capacity = 2, .compressed_capacity = 2, .rate = 2},
      {.model_dim = d, .heads = 2, .head_dim = 3}, infty::Random(1));
  const infty::RecurrentTokens around(compressive, {.tokens = m, .both_ways = true}, d,
                                      infty::Random(2));
  const infty::RecurrentTokens twice(around_attention({.tokens = m, .held = true}), {.tokens = m},
                                     d, infty::Random(2));
  const V x(Tensor<double>::zeros({1, 3, d}));
  const auto refuses = [&](const auto& layer, const char* what) {
    auto state = layer.make_state(1);
    const auto before = numbers_of(state);
    Pass<double> pass;
    CHECK_THROWS_WITH(layer.forward(state, x, pass), Contains(what));
    CHECK(numbers_of(state) == before);
  };
  refuses(around, "memory tokens have rules of their own");
  refuses(twice, "ride along already");
}
