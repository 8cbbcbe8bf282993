// SPDX-License-Identifier: MIT
#include <algorithm>
#include <cmath>
#include <string>
#include <vector>

#include <infty/memory/titans.hpp>
#include <infty/testing/memory_invariants.hpp>

#include "io/temporary_folder.hpp"
#include "support/catch.hpp"
#include "support/golden_titans.hpp"
#include "support/states.hpp"
#include "support/tensors.hpp"
#include "support/types.hpp"

using infty::Index;
using infty::Pass;
using infty::RowCounts;
using infty::Shape;
using infty::Tensor;
using infty::Titans;
using infty::TitansConfig;
using infty::TitansMemory;
using infty::Variable;
using infty::tests::numbers_of;

namespace titans_test {

const infty::AttentionSizes sizes{.model_dim = 4, .heads = 2, .head_dim = 3};

infty::tests::Comparison replay(const std::string& name) {
  infty::tests::GoldenCase file(std::string(INFTY_TEST_DATA) + "/golden/" + name + ".safetensors");
  return infty::tests::replay_titans<double, infty::EigenBackend>(file);
}

/// Two rows of vectors [2, L, 4].
template <class T, class B>
Variable<T, B> vectors(Index length, std::uint64_t seed = infty::tests::seed) {
  infty::Random random(seed);
  return infty::tests::uniform_variable<T, B>({2, length, 4}, random);
}

/// What a layer answers to x in pieces of these lengths.
template <class T, class B>
Variable<T, B> in_pieces(const Titans<T, B>& layer, typename Titans<T, B>::State& state,
                         const Variable<T, B>& x, const std::vector<Index>& lengths) {
  Variable<T, B> all;
  Index begin = 0;
  for (const Index length : lengths) {
    Pass<T, B> pass;
    const auto y = layer.forward(state, narrow(x, begin, begin + length), pass);
    all = begin > 0 ? concat(all, y) : y;
    begin += length;
  }
  return all;
}

}  // namespace titans_test

TEST_CASE("Titans: the program's numbers in double, every value and gradient, to 1e-9") {
  const std::string name = GENERATE("titans_linear", "titans_mlp");
  const auto result = titans_test::replay(name);
  CAPTURE(name, result.worst_name);
  CHECK(result.worst <= 1e-9);
  CHECK(result.compared == (name == "titans_linear" ? 19 : 24));
}

TEST_CASE("Titans: two vectors by hand") {
  // One matrix of one number, and maps that are numbers: k = 2 x, v = 3 x, q = x.
  Titans<double> layer({.depth = 1, .max_rate = .5, .silu = false, .unit = false},
                       {.model_dim = 1, .heads = 1, .head_dim = 1});
  auto& memory = layer.memory;
  layer.query.weight.value().fill(1);
  memory.keys.weight.value().fill(2);
  memory.values.weight.value().fill(3);
  memory.initial[0].value().fill(.25);
  for (auto* map : {&memory.rate, &memory.decay, &memory.inertia}) map->weight.value().fill(0);
  memory.rate.bias.value().fill(0);                // θ = 1/4
  memory.decay.bias.value().fill(-std::log(9.));   // α = 1/10
  memory.inertia.bias.value().fill(std::log(4.));  // η = 4/5
  auto state = layer.make_state(1);
  Pass<double> pass;
  const auto y = layer.forward(
      state, Variable<double>(Tensor<double>::from({1, 2, 1}, std::vector<double>{1, -1})), pass);
  // ∇ = θ 2 (M k - v) k: of the first vector 1/4 2 (1/2 - 3) 2 = -5/2, so S = 5/2 and
  // M = 9/10 1/4 + 5/2 = 2.725; of the second -(2.725 2 - 3) (-1) ... = 2.45.
  const double second = .25 * 2 * (2.725 * -2 + 3) * -2;
  const double surprise = .8 * 2.5 - second, weight = .9 * 2.725 + surprise;
  CHECK(second == Approx(2.45));
  CHECK(y.value().to_vector()[0] == Approx(2.725));
  CHECK(y.value().to_vector()[1] == Approx(-weight));
  CHECK(state.learned[0].value().item() == Approx(weight - .25));
  CHECK(state.momentum[0].value().item() == Approx(surprise));
}

TEMPLATE_LIST_TEST_CASE("Titans: read in pieces it answers and learns as at once", "",
                        infty::tests::Types) {
  using T = typename TestType::T;
  using B = typename TestType::B;
  const Index every = GENERATE(0, 3, 6);
  CAPTURE(every);
  const Titans<T, B> layer({.hidden = 5, .chunk = 3, .weights_every = every}, titans_test::sizes,
                           infty::Random(1));
  const auto x = titans_test::vectors<T, B>(16);
  auto once = layer.make_state(2), pieces = once;
  const auto whole = titans_test::in_pieces<T, B>(layer, once, x, {16});
  const auto parts = titans_test::in_pieces<T, B>(layer, pieces, x, {1, 1, 4, 2, 7, 1});
  CHECK(whole.shape() == x.shape());
  CHECK(infty::tests::error(parts.value().to_vector(), whole.value().to_vector()) <
        10 * infty::tests::tolerance<T>);
  CHECK(infty::tests::error(numbers_of(pieces), numbers_of(once)) <
        10 * infty::tests::tolerance<T>);
  CHECK(once.waiting.length == RowCounts{1, 1});
  CHECK(*std::max_element(once.since.begin(), once.since.end()) == (every == 6 ? 3 : 0));
}

TEMPLATE_LIST_TEST_CASE("Titans: with convolutions, too, pieces are the whole", "",
                        infty::tests::Types) {
  using T = typename TestType::T;
  using B = typename TestType::B;
  const Titans<T, B> layer({.hidden = 5, .chunk = 3, .weights_every = 3, .convolution = 4},
                           titans_test::sizes, infty::Random(1));
  const auto x = titans_test::vectors<T, B>(16);
  auto once = layer.make_state(2), pieces = once, silent = once;
  const auto whole = titans_test::in_pieces<T, B>(layer, once, x, {16});
  const auto parts = titans_test::in_pieces<T, B>(layer, pieces, x, {1, 1, 4, 2, 7, 1});
  CHECK(infty::tests::error(parts.value().to_vector(), whole.value().to_vector()) <
        10 * infty::tests::tolerance<T>);
  CHECK(infty::tests::error(numbers_of(pieces), numbers_of(once)) <
        10 * infty::tests::tolerance<T>);
  // The last of fifteen vectors that filled chunks, and the queries of the last of sixteen.
  const auto shaped = [](const Variable<T, B>& y) { return y.value().to_vector(); };
  for (Index row = 0; row < 2; ++row) {
    const auto of_row = [&](const std::vector<T>& all, Index places, Index from, Index to,
                            Index width) {
      const auto begin = all.begin() + (row * places + from) * width;
      return std::vector<T>(begin, begin + (to - from) * width);
    };
    CHECK(of_row(shaped(once.before->past), 4, 0, 4, 4) == of_row(shaped(x), 16, 11, 15, 4));
    CHECK(infty::tests::error(of_row(shaped(once.asked->past), 4, 0, 4, 6),
                              of_row(shaped(layer.query.forward(x)), 16, 12, 16, 6)) <
          infty::tests::tolerance<T>);
  }
  Pass<T, B> unanswered{.answer = false};
  layer.forward(silent, x, unanswered);
  CHECK(infty::tests::error(numbers_of(silent), numbers_of(once)) <
        10 * infty::tests::tolerance<T>);

  // With one tap of 1 the layer is what it is without.
  const infty::TitansConfig none{.hidden = 5, .chunk = 3, .weights_every = 3};
  auto with = none;
  with.convolution = 1;
  Titans<T, B> same(with, titans_test::sizes, infty::Random(1));
  for (auto* taps :
       {&same.query_convolution, &same.memory.convolutions.key, &same.memory.convolutions.value})
    taps->weight.value().fill(T(1));
  const Titans<T, B> plain(none, titans_test::sizes, infty::Random(1));
  auto a = same.make_state(2), b = plain.make_state(2);
  CHECK(infty::tests::error(shaped(titans_test::in_pieces<T, B>(same, a, x, {5, 11})),
                            shaped(titans_test::in_pieces<T, B>(plain, b, x, {5, 11}))) <
        infty::tests::tolerance<T>);
  Pass<T, B> pass;
  CHECK_THROWS_AS(plain.forward(a, x, pass), infty::ShapeError);
  CHECK_THROWS_AS(same.forward(b, x, pass), infty::ShapeError);
}

TEST_CASE("Titans: gradients flow through segments, the state's start among them") {
  const Index taps = GENERATE(0, 3);
  const double longest = GENERATE(0., .05);  // which about half of the chunks exceed
  Titans<double> layer(
      {.hidden = 5, .chunk = 2, .weights_every = 4, .max_surprise = longest, .convolution = taps},
      titans_test::sizes, infty::Random(1));
  auto start = layer.make_state(2);
  const auto x = titans_test::vectors<double, infty::EigenBackend>(9);
  auto inputs = infty::named_parameters<double, infty::EigenBackend>(layer);
  inputs.push_back({"x", x});
  infty::Random random(3);
  const auto draw = [&](auto& variables, const char* name) {
    for (auto& variable : variables) {
      variable = infty::tests::uniform_variable<double>(variable.shape(), random, -.3, .3);
      inputs.push_back({name, variable});
    }
  };
  draw(start.learned, "learned");
  draw(start.momentum, "momentum");
  draw(start.base, "base");
  if (taps > 0) {
    std::vector<Variable<double>> past{start.before->past, start.asked->past};
    draw(past, "past");
    start.before->past = past[0], start.asked->past = past[1];
  }
  const auto seed = Variable<double>(infty::tests::uniform_tensor<double>({2, 9, 4}, random));
  const auto loss = [&] {
    auto state = start;
    return sum(multiply(titans_test::in_pieces(layer, state, x, {5, 1, 3}), seed)) +
           sum(state.learned[0] * state.learned[0]);
  };
  const auto difference = infty::fast_gradient_check(loss, inputs, 1e-7);
  CAPTURE(difference.where);
  CHECK(difference < 1e-7);
}

TEST_CASE("Titans: with the greatest surprise no stream and no weights make it swing for ever") {
  // Sixteen steps of up to 1 at the same weights, which without a bound is NaN in 257 vectors.
  const double longest = GENERATE(.1, 10.);
  const TitansConfig config{.chunk = 16, .weights_every = 64, .max_surprise = longest};
  Titans<float> layer(config, {.model_dim = 16, .heads = 2, .head_dim = 8}, infty::Random(1));
  const float first = GENERATE(1.f, 100.f);  // how much larger than drawn the first weights are
  for (auto& weight : layer.memory.initial)
    for (Index i = 0; i < weight.size(); ++i) weight.value().data()[i] *= first;
  auto state = layer.make_state(1);
  infty::Random random(2);
  Tensor<float> x({1, 64, 16});
  fill_normal(x, 0, 1, random);
  for (Index i = 1; i < 64; ++i)
    for (Index j = 0; j < 16; ++j) x.data()[i * 16 + j] = (i % 2 ? -1.f : 1.f) * x.data()[j];
  const auto off = infty::no_grad();
  for (int segment = 0; segment < 100; ++segment) {
    Pass<float> pass;
    const auto y = layer.forward(state, Variable<float>(x), pass);
    for (const float number : y.value().to_vector()) REQUIRE(std::isfinite(number));
  }
  for (const double number : numbers_of(state)) CHECK(std::isfinite(number));
}

TEST_CASE("Titans: keeps to what every mixer keeps to") {
  const bool momentum = GENERATE(true, false);
  const infty::tests::TemporaryFolder folder;
  infty::testing::require_mixer<Titans<double>>({.hidden = 4,
                                                 .chunk = 2,
                                                 .weights_every = momentum ? 4 : 0,
                                                 .momentum = momentum,
                                                 .convolution = momentum ? 3 : 0},
                                                folder / "state.safetensors", 1e-11);
}

TEST_CASE("TitansMemory: keeps to what every memory keeps to, beside attention") {
  const infty::tests::TemporaryFolder folder;
  infty::testing::require_memory<TitansMemory<double>>(
      {.depth = 1, .chunk = 3, .weights_every = 3, .convolution = 2}, folder / "state.safetensors",
      1e-11);
}

TEST_CASE("TitansMemory: rows may bring different numbers of vectors") {
  const TitansMemory<double> memory(
      {.model_dim = 4, .heads = 2, .head_dim = 3, .chunk = 2, .weights_every = 2},
      infty::Random(1));
  const auto x = titans_test::vectors<double, infty::EigenBackend>(5);
  auto both = memory.make_state(2);
  memory.write(both, x, {5, 2});
  memory.write(both, x, {0, 3});
  auto first = memory.make_state(1), second = first;
  memory.write(first, Variable<double>(x.value().slice(0, 1)), {5});
  const Variable<double> row(x.value().slice(1, 2));
  memory.write(second, narrow(row, 3, 5), {2});
  memory.write(second, narrow(row, 2, 5), {3});
  CHECK(both.waiting.length == RowCounts{1, 1});
  CHECK(infty::tests::error(numbers_of(take_rows(both, 0, 1)), numbers_of(first)) < 1e-14);
  CHECK(infty::tests::error(numbers_of(take_rows(both, 1, 2)), numbers_of(second)) < 1e-14);
}

TEST_CASE("Titans: memory tokens read, those in front before and those behind after") {
  const Titans<double> layer({}, titans_test::sizes, infty::Random(1));
  auto state = layer.make_state(2);
  titans_test::in_pieces(layer, state, titans_test::vectors<double, infty::EigenBackend>(3, 1),
                         {3});
  const auto x = titans_test::vectors<double, infty::EigenBackend>(7, 2);
  auto words = state, all = state, silent = state;
  Pass<double> told{.before = 2, .behind = 1},
      unanswered{.answer = false, .before = 2, .behind = 1}, plain;
  const auto y = layer.forward(all, x, told);
  const auto middle = layer.forward(words, narrow(x, 2, 6), plain);
  CHECK(numbers_of(all) == numbers_of(words));
  CHECK(layer.forward(silent, x, unanswered).size() == 0);
  CHECK(numbers_of(silent) == numbers_of(words));
  CHECK(narrow(y, 2, 6).value().to_vector() == middle.value().to_vector());
  const auto asked = layer.query.forward(x);
  CHECK(infty::tests::error(narrow(y, 0, 2).value().to_vector(),
                            layer.memory.read(state, narrow(asked, 0, 2)).value().to_vector()) <
        1e-14);
  CHECK(infty::tests::error(narrow(y, 6, 7).value().to_vector(),
                            layer.memory.read(words, narrow(asked, 6, 7)).value().to_vector()) <
        1e-14);
}

TEST_CASE("Titans: what cannot be is refused by name, and changes nothing") {
  using Catch::Matchers::Contains;
  const auto refused = [](TitansConfig config) { Titans<double>(config, titans_test::sizes); };
  CHECK_THROWS_WITH(refused({.depth = 0}), Contains("depth is 0"));
  CHECK_THROWS_WITH(refused({.hidden = -1}), Contains("hidden is -1"));
  CHECK_THROWS_WITH(refused({.chunk = 0}), Contains("chunk is 0"));
  CHECK_THROWS_WITH(refused({.chunk = 4, .weights_every = 6}), Contains("multiple of chunk"));
  CHECK_THROWS_WITH(refused({.weights_every = -1}), Contains("weights_every is -1"));
  CHECK_THROWS_WITH(refused({.max_rate = 0}), Contains("max_rate is 0"));
  CHECK_THROWS_WITH(refused({.max_rate = std::nan("")}), Contains("max_rate"));
  CHECK_THROWS_WITH(refused({.max_surprise = -1}), Contains("max_surprise is -1"));
  CHECK_THROWS_AS(refused({.hidden = Index{1} << 55}), infty::ValueError);
  CHECK_THROWS_AS(refused({.depth = Index{1} << 55}), infty::ValueError);
  CHECK_THROWS_WITH(TitansMemory<double>({.model_dim = 4, .heads = 2}), Contains("head_dim is 0"));

  const Titans<double> layer({.chunk = 2, .weights_every = 2}, titans_test::sizes);
  auto state = layer.make_state(2);
  titans_test::in_pieces(layer, state, titans_test::vectors<double, infty::EigenBackend>(3), {3});
  const auto before = numbers_of(state);
  Pass<double> pass, crowded{.before = 2, .behind = 2};
  using V = Variable<double>;
  for (const Shape& shape : {Shape{2, 3, 5}, Shape{3, 3, 4}, Shape{3, 4}})
    CHECK_THROWS_AS(layer.forward(state, V(Tensor<double>::zeros(shape)), pass), infty::ShapeError);
  const V x(Tensor<double>::zeros({2, 3, 4}));
  CHECK_THROWS_AS(layer.forward(state, x, crowded), infty::ShapeError);
  CHECK_THROWS_AS(layer.memory.write(state, x, {4, 0}), infty::ShapeError);
  CHECK_THROWS_AS(layer.memory.write(state, x, {-1, 0}), infty::ShapeError);
  CHECK_THROWS_AS(layer.memory.write(state, x, {3}), infty::ShapeError);
  CHECK_THROWS_AS(layer.memory.read(state, x), infty::ShapeError);
  const Titans<double> other({.chunk = 3, .weights_every = 3}, titans_test::sizes);
  CHECK_THROWS_AS(other.forward(state, x, pass), infty::ShapeError);
  CHECK(numbers_of(state) == before);
}

TEST_CASE("Titans: a traced pass sees how much is learned of every word") {
  const Titans<double> layer({.chunk = 2, .weights_every = 2, .max_rate = .5}, titans_test::sizes,
                             infty::Random(1));
  auto state = layer.make_state(2);
  const auto x = titans_test::vectors<double, infty::EigenBackend>(5);
  Pass<double> pass{.before = 1, .traced = true};
  layer.forward(state, x, pass);
  const auto steps = first_shown(pass, "titans_step");
  REQUIRE(steps.shape() == Shape{2, 4, 2});
  const auto scores = layer.memory.rate.forward(narrow(x, 1, 5)).value().to_vector();
  const auto got = steps.value().to_vector();
  for (std::size_t i = 0; i < got.size(); ++i)
    CHECK(got[i] == Approx(.5 / (1 + std::exp(-scores[i]))));
}
