// SPDX-License-Identifier: MIT
#include <string>
#include <vector>

#include <infty/memory/engram.hpp>
#include <infty/memory/short_term_memory.hpp>
#include <infty/memory/with_engram.hpp>
#include <infty/testing/memory_invariants.hpp>

#include "io/temporary_folder.hpp"
#include "support/catch.hpp"
#include "support/golden_engram.hpp"
#include "support/states.hpp"
#include "support/tensors.hpp"
#include "support/types.hpp"

using infty::Engram;
using infty::EngramConfig;
using infty::Index;
using infty::Pass;
using infty::Shape;
using infty::Tensor;
using infty::Variable;
using infty::tests::numbers_of;

namespace engram_test {

infty::tests::Comparison replay(const std::string& name) {
  infty::tests::GoldenCase file(std::string(INFTY_TEST_DATA) + "/golden/" + name + ".safetensors");
  return infty::tests::replay_engram<double, infty::EigenBackend>(file);
}

/// Five tokens, the first and the third of which are the same word.
const EngramConfig small{.lookup = {0, 1, 0, 2, 3},
                         .pad = 4,
                         .heads = 2,
                         .width = 4,
                         .table_sizes = {5, 11},
                         .kernel = 3,
                         .draw_taps = true};

template <class B>
Tensor<Index, B> two_rows(Index length) {
  infty::Random random(7);
  std::vector<Index> all;
  for (Index i = 0; i < 2 * length; ++i) all.push_back(random.below(5));
  return Tensor<Index, B>::from(Shape{2, length}, all);
}

/// Columns [begin, end) of tokens.
template <class B>
Tensor<Index, B> columns(const Tensor<Index, B>& tokens, Index begin, Index end) {
  std::vector<Index> all;
  const auto from = tokens.to_vector();
  for (Index row = 0; row < tokens.dim(0); ++row)
    for (Index i = begin; i < end; ++i)
      all.push_back(from[static_cast<std::size_t>(row * tokens.dim(1) + i)]);
  return Tensor<Index, B>::from(Shape{tokens.dim(0), end - begin}, all);
}

/// Attention with a lookup in front of it: a mixer that the kit can make.
struct Attended : infty::WithEngram<infty::ShortTermMemory<double>> {
  using Config = infty::ShortTermConfig;
  Attended(Config config, infty::AttentionSizes sizes, infty::Random random)
      : WithEngram(infty::ShortTermMemory<double>(config, sizes, random), small, sizes.model_dim,
                   random.split(9)) {}
};

}  // namespace engram_test

TEST_CASE("Engram: the program's numbers in double, hashes, values and gradients, to 1e-9") {
  const std::string name = GENERATE("engram_single", "engram_branches");
  const auto result = engram_test::replay(name);
  CAPTURE(name, result.worst_name);
  CHECK(result.worst <= 1e-9);
  CHECK(result.compared == (name == "engram_single" ? 17 : 27));
}

TEMPLATE_LIST_TEST_CASE("Engram: read in pieces it finds what it finds at once", "",
                        infty::tests::Types) {
  using T = typename TestType::T;
  using B = typename TestType::B;
  using V = Variable<T, B>;
  EngramConfig config = engram_test::small;
  config.branches = 2;
  config.gate_root = GENERATE(false, true);
  const Engram<T, B> layer(config, 6, infty::Random(1));
  infty::Random random(2);
  const V x(infty::tests::uniform_tensor<T, B>({2, 11, 6}, random));
  const auto tokens = engram_test::two_rows<B>(11);
  auto once = layer.make_state(2), pieces = once, silent = once;
  const auto rows = layer.rows(once, tokens).to_vector();
  const V whole = layer.forward(once, x, Pass<T, B>{.words = tokens});
  V parts;
  Index begin = 0;
  for (const Index length : {1, 2, 1, 5, 2}) {
    const Index end = begin + length;
    Pass<T, B> pass{.words = engram_test::columns(tokens, begin, end)};
    Pass<T, B> unanswered{.answer = false, .words = pass.words};
    const auto found = layer.rows(pieces, pass.words).to_vector();
    for (Index i = 0; i < length * 4; ++i)  // of the first row: two tables of each n
      CHECK(found[static_cast<std::size_t>(i)] == rows[static_cast<std::size_t>(begin * 4 + i)]);
    const V y = layer.forward(pieces, narrow(x, begin, end), pass);
    CHECK(layer.forward(silent, narrow(x, begin, end), unanswered).size() == 0);
    parts = begin > 0 ? concat(parts, y) : y;
    begin = end;
  }
  CHECK(infty::tests::error(parts.value().to_vector(), whole.value().to_vector()) <
        infty::tests::tolerance<T>);
  CHECK(infty::tests::error(numbers_of(pieces), numbers_of(once)) < infty::tests::tolerance<T>);
  CHECK(numbers_of(silent) == numbers_of(pieces));
}

TEST_CASE("Engram: rows by hand, words that are the same and places in front of the first") {
  EngramConfig config = engram_test::small;
  config.multipliers = {3, 5, 7};
  const Engram<double> layer(config, 6);
  const auto state = layer.make_state(1);
  CHECK(layer.hash().primes == std::vector<Index>{5, 7, 11, 13});
  const auto rows = [&](std::vector<Index> tokens) {
    const Shape shape{1, static_cast<Index>(tokens.size())};
    return layer.rows(state, Tensor<Index>::from(shape, tokens)).to_vector();
  };
  // pad 4 is word 3: 3 5 xor 3 0 = 15; with 3 7: 15 xor 21 = 26. Tables begin at 0, 5, 12 and 23.
  CHECK(rows({0}) == std::vector<Index>{15 % 5, 5 + 15 % 7, 12 + 26 % 11, 23 + 26 % 13});
  CHECK(rows({2}) == rows({0}));
  CHECK(rows({3}) != rows({0}));
  CHECK(rows({1, 0, 3}) == rows({1, 2, 3}));
}

TEST_CASE("Engram: all gradients, and what is held, are those of central differences") {
  EngramConfig config = engram_test::small;
  config.branches = 2;
  config.gate_root = GENERATE(false, true);
  Engram<double> layer(config, 6, infty::Random(1));
  infty::Random random(4);
  const auto x = infty::tests::uniform_variable<double>({2, 7, 6}, random);
  const Variable<double> seed(infty::tests::uniform_tensor<double>({2, 7, 6}, random));
  auto start = layer.make_state(2);
  start.past = infty::tests::uniform_variable<double>(start.past.shape(), random);
  const auto tokens = engram_test::two_rows<infty::EigenBackend>(7);
  const auto loss = [&] {
    auto state = start;
    Pass<double> first{.words = engram_test::columns(tokens, 0, 4)},
        second{.words = engram_test::columns(tokens, 4, 7)};
    const auto a = layer.forward(state, narrow(x, 0, 4), first);
    return sum(multiply(concat(a, layer.forward(state, narrow(x, 4, 7), second)), seed)) +
           sum(state.past * state.past);
  };
  auto inputs = infty::named_parameters<double, infty::EigenBackend>(layer);
  inputs.push_back({"x", x});
  inputs.push_back({"past", start.past});
  // The root of small scores bends: steps of 1e-5 see that.
  const auto difference = infty::gradient_check<double, infty::EigenBackend>(loss, inputs, 1e-6);
  CAPTURE(difference.where);
  CHECK(difference < 1e-6);
}

TEST_CASE("Engram: a model tells it the words, and it keeps to what every layer keeps to") {
  const infty::tests::TemporaryFolder folder;
  infty::testing::require_mixer<engram_test::Attended>({.capacity = 2},
                                                       folder / "state.safetensors");
}

TEST_CASE("Engram: a state that is saved in bfloat16 finds the same words") {
  EngramConfig config = engram_test::small;
  config.lookup.clear();
  for (Index id = 0; id < 1000; ++id) config.lookup.push_back(id);
  const Engram<float> layer(config, 6, infty::Random(1));
  auto state = layer.make_state(1), again = state;
  const auto words = Tensor<Index>::from({1, 2}, {700, 801});
  layer.forward(state, Variable<float>(Tensor<float>::zeros({1, 2, 6})), {.words = words});
  const infty::tests::TemporaryFolder folder;
  infty::save_state(folder / "state", state, "", infty::StoredFloats::bfloat16);
  infty::load_state(folder / "state", again);
  const auto next = Tensor<Index>::from({1, 3}, {5, 999, 700});
  CHECK(layer.rows(again, next).to_vector() == layer.rows(state, next).to_vector());
}

TEST_CASE("Engram: without taps drawn it begins as the gated values, linear in them") {
  EngramConfig config = engram_test::small;
  config.draw_taps = false;
  Engram<double> layer(config, 6, infty::Random(1));
  infty::Random random(4);
  const Variable<double> x(infty::tests::uniform_tensor<double>({2, 7, 6}, random));
  const auto answer = [&] {
    auto state = layer.make_state(2);
    return layer.forward(state, x, {.words = engram_test::two_rows<infty::EigenBackend>(7)});
  };
  const auto once = answer();
  for (auto* parameter : {&layer.value.weight, &layer.value.bias})
    *parameter = Variable<double>(scale(*parameter, 2.).value(), true);
  CHECK(answer().value().to_vector() == scale(once, 2.).value().to_vector());
}

TEST_CASE("Engram: nothing is added to memory tokens, which are no words") {
  const Engram<double> layer(engram_test::small, 6, infty::Random(1));
  infty::Random random(4);
  const Variable<double> x(infty::tests::uniform_tensor<double>({2, 8, 6}, random));
  const auto tokens = engram_test::two_rows<infty::EigenBackend>(5);
  auto plain = layer.make_state(2), around = plain, left_out = plain;
  const auto words = layer.forward(plain, narrow(x, 2, 7), {.words = tokens});
  Pass<double> told{.before = 2, .behind = 1, .words = tokens};
  const auto all = layer.forward(around, x, told);
  CHECK(narrow(all, 2, 7).value().to_vector() == words.value().to_vector());
  for (const double zero : narrow(all, 0, 2).value().to_vector()) CHECK(zero == 0);
  for (const double zero : narrow(all, 7, 8).value().to_vector()) CHECK(zero == 0);
  CHECK(layer.forward(left_out, narrow(x, 2, 8), told).value().to_vector() ==
        narrow(all, 2, 8).value().to_vector());
  CHECK(numbers_of(around) == numbers_of(plain));
  CHECK(numbers_of(left_out) == numbers_of(plain));
}

TEST_CASE("Engram: what does not fit is refused, and changes nothing") {
  using Catch::Matchers::Contains;
  CHECK_THROWS_AS(Engram<double>({}, 6), infty::ValueError);
  EngramConfig config = engram_test::small;
  config.branches = 4;
  CHECK_THROWS_WITH(Engram<double>(config, 6), Contains("branches must divide model_dim"));
  const Engram<double> layer(engram_test::small, 6), other(engram_test::small, 8);
  const auto tokens = engram_test::two_rows<infty::EigenBackend>(3);
  auto state = layer.make_state(2);
  const Variable<double> x(Tensor<double>::full({2, 3, 6}, 1.)),
      wide(Tensor<double>::full({2, 3, 8}, 1.));
  layer.forward(state, x, {.words = tokens});
  const auto before = numbers_of(state);
  CHECK_THROWS_WITH(layer.forward(state, x, {}), Contains("pass.words"));
  CHECK_THROWS_AS(layer.forward(state, x, {.behind = 1, .words = tokens}), infty::ShapeError);
  CHECK_THROWS_AS(layer.forward(state, wide, {.words = tokens}), infty::ShapeError);
  CHECK_THROWS_AS(other.forward(state, wide, {.words = tokens}), infty::ShapeError);
  for (const Index wrong : {-1, 5})
    CHECK_THROWS_AS(layer.forward(state, x, {.words = Tensor<Index>::full({2, 3}, wrong)}),
                    infty::ValueError);
  CHECK(numbers_of(state) == before);
  // What a file says of ids is not believed.
  state.last.fill(-7);
  CHECK(layer.rows(state, tokens).to_vector() ==
        layer.rows(layer.make_state(2), tokens).to_vector());
  state.last.fill(infty::math::infinity<double>);
  CHECK(layer.rows(state, tokens).to_vector() ==
        layer.rows(layer.make_state(2), tokens).to_vector());
}

TEST_CASE("Engram: a traced pass sees the gate of every word") {
  EngramConfig config = engram_test::small;
  config.draw_taps = false;  // the convolution adds nothing
  config.branches = 2;
  Engram<double> layer(config, 6, infty::Random(1));
  // Every value is one: what is added is the gate.
  layer.value.weight.value().fill(0);
  layer.value.bias.value().fill(1);
  const auto tokens = engram_test::two_rows<infty::EigenBackend>(4);
  infty::Random random(2);
  const Variable<double> x(infty::tests::uniform_tensor<double>({2, 7, 6}, random));
  auto state = layer.make_state(2);
  Pass<double> pass{.before = 1, .behind = 2, .traced = true, .words = tokens};
  const auto y = layer.forward(state, x, pass).value().to_vector();
  const auto gate = first_shown(pass, "engram_gate");
  REQUIRE(gate.shape() == Shape{2, 4, 2});
  const auto open = gate.value().to_vector();
  for (std::size_t row = 0; row < 2; ++row)
    for (std::size_t i = 0; i < 4; ++i)
      for (std::size_t j = 0; j < 6; ++j)
        CHECK(y[(row * 7 + 1 + i) * 6 + j] == Approx(open[(row * 4 + i) * 2 + j / 3]));
}
