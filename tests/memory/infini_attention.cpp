// SPDX-License-Identifier: MIT
#include <cmath>
#include <filesystem>
#include <limits>
#include <string>
#include <utility>
#include <vector>

#include <infty/memory/infini_attention.hpp>
#include <infty/memory/recurrent_tokens.hpp>
#include <infty/memory/to.hpp>
#include <infty/testing/memory_invariants.hpp>

#include "io/temporary_folder.hpp"
#include "support/catch.hpp"
#include "support/golden_infini.hpp"
#include "support/other_backend.hpp"
#include "support/states.hpp"
#include "support/tensors.hpp"
#include "support/types.hpp"

using infty::AttentionSizes;
using infty::Index;
using infty::InfiniAttention;
using infty::InfiniConfig;
using infty::Pass;
using infty::Random;
using infty::Shape;
using infty::Tensor;
using infty::Variable;
using infty::tests::numbers_of;

static_assert(infty::SequenceLayer<InfiniAttention<float>>);

namespace infini_tests {

const AttentionSizes sizes{.model_dim = 4, .heads = 2, .head_dim = 3};

/// A layer with a gate of its own in each head.
template <class T, class B = infty::EigenBackend>
InfiniAttention<T, B> layer(InfiniConfig config) {
  InfiniAttention<T, B> out(config, sizes, Random(1));
  const auto gate = Tensor<T, B>::from({2}, {T(-.7), T(.4)});
  out.gate.value().copy_from(gate);
  return out;
}

/// One row by the paper's equations, in plain loops over the whole text: x [L, d] -> [L, d].
std::vector<double> by_hand(const InfiniAttention<double>& layer, const Tensor<double>& x) {
  const InfiniConfig config = layer.config();
  const Index L = x.dim(0), d = sizes.model_dim, D = sizes.head_dim, e = sizes.inner();
  const auto map = [&](const infty::Linear<double>& of, Index from, const std::vector<double>& in) {
    const Index out = of.weight.dim(0);
    std::vector<double> y(static_cast<std::size_t>(out));
    for (Index i = 0; i < out; ++i)
      for (Index j = 0; j < of.weight.dim(1); ++j)
        y[static_cast<std::size_t>(i)] += of.weight.value().data()[i * of.weight.dim(1) + j] *
                                          in[static_cast<std::size_t>(from + j)];
    return y;
  };
  const std::vector<double> text = x.to_vector();
  std::vector<std::vector<double>> q, k, v;
  for (Index t = 0; t < L; ++t) {
    q.push_back(map(layer.maps.query, t * d, text));
    k.push_back(map(layer.maps.key, t * d, text));
    v.push_back(map(layer.maps.value, t * d, text));
  }
  const auto sigma = [](double y) { return y > 0 ? y + 1 : std::exp(y); };
  std::vector<double> memory(static_cast<std::size_t>(2 * D * D)),
      mass(static_cast<std::size_t>(2 * D)), out;
  for (Index t = 0; t < L; ++t) {
    const Index begin = t / config.segment * config.segment;
    std::vector<double> joined;
    const auto at = [](const auto& all, Index place, Index i) {
      return all[static_cast<std::size_t>(place)][static_cast<std::size_t>(i)];
    };
    const auto recall = [&](const auto& of, Index place, Index h, Index j) {
      double sum = 0, total = 0;
      for (Index i = 0; i < D; ++i) {
        const double phi = sigma(at(of, place, h * D + i));
        sum += phi * memory[static_cast<std::size_t>((h * D + i) * D + j)];
        total += phi * mass[static_cast<std::size_t>(h * D + i)];
      }
      return sum / std::max(total, config.floor);
    };
    for (Index h = 0; h < 2; ++h) {
      // One pair of three dimensions turns, by an angle of 1 a place.
      std::vector<double> weight;
      double whole = 0;
      for (Index s = begin; s <= t; ++s) {
        const double angle = static_cast<double>(t - s);
        const double q0 = at(q, t, h * D), q1 = at(q, t, h * D + 1), k0 = at(k, s, h * D),
                     k1 = at(k, s, h * D + 1);
        const double score = std::cos(angle) * (q0 * k0 + q1 * k1) +
                             std::sin(angle) * (q0 * k1 - q1 * k0) +
                             at(q, t, h * D + 2) * at(k, s, h * D + 2);
        weight.push_back(std::exp(score / std::sqrt(3.)));
        whole += weight.back();
      }
      const double beta = layer.gate.value().data()[h], of_memory = 1 / (1 + std::exp(-beta));
      for (Index j = 0; j < D; ++j) {
        double local = 0;
        for (Index s = begin; s <= t; ++s)
          local += weight[static_cast<std::size_t>(s - begin)] / whole * at(v, s, h * D + j);
        joined.push_back(of_memory * recall(q, t, h, j) + (1 - of_memory) * local);
      }
    }
    for (const double y : map(layer.maps.out, 0, joined)) out.push_back(y);
    if ((t + 1) % config.segment != 0) continue;
    std::vector<double> next = memory;
    for (Index s = begin; s <= t; ++s)
      for (Index h = 0; h < 2; ++h)
        for (Index i = 0; i < D; ++i)
          for (Index j = 0; j < D; ++j)
            next[static_cast<std::size_t>((h * D + i) * D + j)] +=
                sigma(at(k, s, h * D + i)) *
                (at(v, s, h * D + j) - (config.delta ? recall(k, s, h, j) : 0));
    for (Index s = begin; s <= t; ++s)
      for (Index i = 0; i < e; ++i) mass[static_cast<std::size_t>(i)] += sigma(at(k, s, i));
    memory = next;
  }
  return out;
}

/// Vectors [B, L, d] read in pieces of so many.
template <class Layer, class State, class V>
V in_pieces(const Layer& layer, State& state, const V& x, const std::vector<Index>& pieces) {
  V y;
  Index begin = 0;
  for (const Index n : pieces) {
    infty::Pass<typename Layer::Scalar, typename Layer::BackendType> pass;
    const V piece = layer.forward(state, narrow(x, begin, begin + n), pass);
    y = begin == 0 ? piece : concat(y, piece);
    begin += n;
  }
  return y;
}

}  // namespace infini_tests

using infini_tests::in_pieces;

TEST_CASE("InfiniAttention: the program's numbers in double, every value and gradient, to 1e-9") {
  const std::string name = GENERATE("infini_linear", "infini_delta");
  infty::tests::GoldenCase file(std::string(INFTY_TEST_DATA) + "/golden/" + name + ".safetensors");
  const auto result = infty::tests::replay_infini<double, infty::EigenBackend>(file);
  CAPTURE(name, result.worst_name);
  CHECK(result.worst <= 1e-9);
  CHECK(result.compared >= 24);
}

TEST_CASE("InfiniAttention: the paper's equations, in plain loops") {
  const bool delta = GENERATE(false, true);
  const auto layer = infini_tests::layer<double>({.segment = 3, .delta = delta, .rotary_base = 1});
  Random random(infty::tests::seed);
  const auto x = infty::tests::uniform_tensor<double>({11, 4}, random, -2, 2);
  auto state = layer.make_state(1);
  Pass<double> pass;
  const auto y = layer.forward(state, Variable<double>(x.reshape(Shape{1, 11, 4})), pass);
  CHECK(infty::tests::error(y.value().to_vector(), infini_tests::by_hand(layer, x)) < 1e-13);
  CHECK(state.written == infty::RowCounts{3});
  CHECK(state.segment.length == infty::RowCounts{2});
}

TEMPLATE_LIST_TEST_CASE("InfiniAttention: a text in pieces is the text at once", "",
                        infty::tests::Types) {
  using T = typename TestType::T;
  using B = typename TestType::B;
  const Index segment = GENERATE(1, 4);
  const auto layer = infini_tests::layer<T, B>({.segment = segment, .delta = true});
  Random random(infty::tests::seed);
  const Variable<T, B> x(infty::tests::uniform_tensor<T, B>({2, 14, 4}, random));
  // Rows that stand at different places of their segments.
  auto start = layer.make_state(2);
  in_pieces(layer, start, narrow(x, 0, 3), {3});
  reset_row(start, 1);
  in_pieces(layer, start, narrow(x, 3, 5), {2});
  auto at_once = start, one_by_one = start, uneven = start, silent = start;
  const auto whole = in_pieces(layer, at_once, x, {14});
  const double allowed = infty::tests::tolerance<T>;
  const auto same = [&](const auto& state, const Variable<T, B>& y) {
    CHECK(infty::tests::error(y.value().to_vector(), whole.value().to_vector()) < allowed);
    CHECK(infty::tests::error(numbers_of(state), numbers_of(at_once)) < allowed);
  };
  const auto single = in_pieces(layer, one_by_one, x, std::vector<Index>(14, 1));
  same(one_by_one, single);
  const auto several = in_pieces(layer, uneven, x, {5, 1, 6, 2});
  same(uneven, several);
  Pass<T, B> pass{.answer = false};
  CHECK(layer.forward(silent, x, pass).size() == 0);
  CHECK(numbers_of(silent) == numbers_of(at_once));
  CHECK(at_once.written == (segment == 1 ? infty::RowCounts{19, 16} : infty::RowCounts{4, 4}));
}

TEST_CASE("InfiniAttention: within a segment the memory is read and not written") {
  const auto layer = infini_tests::layer<double>({.segment = 4});
  Random random(infty::tests::seed);
  const Variable<double> x(infty::tests::uniform_tensor<double>({1, 8, 4}, random));
  auto state = layer.make_state(1);
  in_pieces(layer, state, narrow(x, 0, 4), {4});
  const auto before = state;
  in_pieces(layer, state, narrow(x, 4, 7), {1, 2});
  CHECK(same(state.memory, before.memory));
  CHECK(same(state.mass, before.mass));
  in_pieces(layer, state, narrow(x, 7, 8), {1});
  CHECK_FALSE(same(state.memory, before.memory));
}

TEST_CASE("InfiniAttention: gradients flow through pieces, segments and the start of a row") {
  const bool delta = GENERATE(false, true), program = GENERATE(false, true);
  auto layer = infini_tests::layer<double>(
      {.segment = 3, .delta = delta, .gate_on_local = program, .ungated_first = program});
  Random random(infty::tests::seed);
  const auto x = infty::tests::uniform_variable<double>({2, 9, 4}, random);
  auto start = layer.make_state(2);
  // Both rows have a memory, and stand at different places of their segments.
  in_pieces(layer, start, narrow(x.detach(), 0, 4), {4});
  reset_row(start, 0);
  in_pieces(layer, start, narrow(x.detach(), 4, 8), {4});
  start.memory.set_requires_grad(true);
  start.mass.set_requires_grad(true);
  start.segment.keys.set_requires_grad(true);
  const auto loss = [&] {
    auto state = start;
    const auto y = in_pieces(layer, state, x, {4, 5});
    return infty::sum(y * y) + infty::sum(state.memory * state.memory, .1);
  };
  auto all = infty::named_parameters<double, infty::EigenBackend>(layer);
  all.push_back({"x", x});
  all.push_back({"memory", start.memory});
  all.push_back({"mass", start.mass});
  all.push_back({"keys", start.segment.keys});
  const auto worst = infty::gradient_check(loss, all, 1e-6);
  CAPTURE(worst.where);
  CHECK(worst.largest < 1e-7);
}

TEST_CASE("InfiniAttention: keeps to what every memory keeps to") {
  const infty::tests::TemporaryFolder folder;
  const auto config =
      GENERATE(InfiniConfig{.segment = 5}, InfiniConfig{.segment = 3, .delta = true},
               InfiniConfig{.segment = 2, .rotary_base = 0, .ungated_first = true});
  infty::testing::require_mixer<InfiniAttention<double>>(config, folder / "state.safetensors");
}

TEST_CASE("InfiniAttention: memory tokens are read in their call, and not written") {
  const auto layer = infini_tests::layer<double>({.segment = 3});
  Random random(infty::tests::seed);
  const Variable<double> x(infty::tests::uniform_tensor<double>({1, 8, 4}, random)),
      m(infty::tests::uniform_tensor<double>({1, 2, 4}, random));
  auto with = layer.make_state(1), without = with;
  Pass<double> tokens{.before = 2, .behind = 2}, none;
  const auto y = layer.forward(with, concat(concat(m, x), m), tokens);
  layer.forward(without, x, none);
  CHECK(y.shape() == Shape{1, 12, 4});
  CHECK(infty::tests::error(numbers_of(with), numbers_of(without)) < 1e-14);
  // Those in front are seen by words of all segments, those behind see the last segment.
  const auto changed = [&](const Variable<double>& front, const Variable<double>& words) {
    auto state = layer.make_state(1);
    return layer.forward(state, concat(concat(front, words), m), tokens).value().to_vector();
  };
  const auto as_it_was = y.value().to_vector(), other = changed(m * 2., x);
  for (Index i = 0; i < 12; ++i)
    CHECK(as_it_was[static_cast<std::size_t>(i * 4)] != other[static_cast<std::size_t>(i * 4)]);
  const auto later = changed(m, concat(narrow(x, 0, 7), narrow(x, 0, 1)));
  for (Index i = 0; i < 12; ++i)
    CHECK((as_it_was[static_cast<std::size_t>(i * 4)] == later[static_cast<std::size_t>(i * 4)]) ==
          (i < 9));
  // None but tokens.
  auto state = with;
  CHECK(layer.forward(state, concat(m, m), tokens).shape() == Shape{1, 4, 4});
  CHECK(numbers_of(state) == numbers_of(with));
}

TEST_CASE("InfiniAttention: rows elsewhere in their segments change no row's places") {
  const auto config =
      GENERATE(InfiniConfig{.segment = 5}, InfiniConfig{.segment = 4, .rotary_base = 0},
               InfiniConfig{.segment = 3, .delta = true, .ungated_first = true});
  CAPTURE(config.segment);
  const auto layer = infini_tests::layer<double>(config);
  Random random(infty::tests::seed);
  const auto drawn = [&](Index length) {
    return Variable<double>(infty::tests::uniform_tensor<double>({4, length, 4}, random));
  };
  // Behind 4, 3, 2 and 1 words, of which some have filled segments.
  auto state = layer.make_state(4);
  Pass<double> none;
  for (Index row = 0; row < 4; ++row) {
    layer.forward(state, drawn(1), none);
    for (Index later = row + 1; later < 4; ++later) infty::reset_row(state, later);
  }
  for (const Index words : {0, 1, 4, 9, 13}) {
    CAPTURE(words);
    Pass<double> tokens{.before = 2, .behind = 1};
    const auto x = drawn(2 + words + 1);
    auto together = state;
    const auto y = layer.forward(together, x, tokens).value();
    for (Index row = 0; row < 4; ++row) {
      CAPTURE(row);
      auto alone = infty::take_rows(state, row, row + 1);
      const Variable<double> of_row(x.value().slice(row, row + 1));
      const auto expected = layer.forward(alone, of_row, tokens).value();
      CHECK(infty::tests::error(y.slice(row, row + 1).to_vector(), expected.to_vector()) < 1e-12);
      CHECK(infty::tests::error(numbers_of(infty::take_rows(together, row, row + 1)),
                                numbers_of(alone)) < 1e-12);
    }
    state = together;
  }
}

TEST_CASE("InfiniAttention: a copy of model and state on a backend goes on as they do") {
  using Model = infty::TransformerLM<InfiniAttention<double>>;
  const Model model({.vocabulary = 5, .model_dim = 4, .layers = 1, .heads = 2, .feed_forward = 4},
                    {.segment = 3, .delta = true}, Random(3));
  auto state = model.make_state(1);
  const auto tokens = Tensor<Index>::from({1, 5}, {0, 3, 4, 2, 1});
  model.observe(state, tokens);
  const auto copy = infty::to<infty::tests::OtherBackend>(model);
  auto copied = infty::to<infty::tests::OtherBackend>(state);
  const auto a = model.forward(state, tokens);
  const auto b = copy.forward(copied, tokens.to<infty::tests::OtherBackend>());
  CHECK(b.value().to_vector() == a.value().to_vector());
}

TEST_CASE("InfiniAttention: configurations that are refused by name") {
  const auto refused = [](InfiniConfig config, const std::string& name) {
    CAPTURE(name);
    try {
      const InfiniAttention<float> layer(config, infini_tests::sizes);
      FAIL("was made");
    } catch (const infty::ValueError& error) {
      CHECK(std::string(error.what()).find(name) != std::string::npos);
    }
  };
  refused({.segment = 0}, "segment is 0");
  refused({.segment = -3}, "segment is -3");
  refused({.segment = std::numeric_limits<Index>::max()}, "segment");
  refused({.rotary_base = -1}, "rotary_base");
  refused({.floor = 0}, "floor");
  refused({.gate = std::nan("")}, "gate");
  CHECK_THROWS_AS(InfiniAttention<float>({}, {.model_dim = 4, .heads = 0, .head_dim = 3}),
                  infty::ValueError);
  const InfiniAttention<float> layer({.segment = 2}, infini_tests::sizes);
  CHECK_THROWS_AS(layer.make_state(0), infty::ValueError);
  auto state = layer.make_state(2);
  const auto before = numbers_of(state);
  const Variable<float> wide(Tensor<float>::zeros({2, 3, 5})),
      one_row(Tensor<float>::zeros({1, 3, 4}));
  Pass<float> pass, tokens{.before = 2, .behind = 2};
  CHECK_THROWS_AS(layer.forward(state, wide, pass), infty::ShapeError);
  CHECK_THROWS_AS(layer.forward(state, one_row, pass), infty::ShapeError);
  CHECK_THROWS_AS(layer.forward(state, Variable<float>(Tensor<float>::zeros({2, 3, 4})), tokens),
                  infty::ShapeError);
  CHECK(numbers_of(state) == before);
  state.segment.length = {0, 2};  // more than there is room for
  CHECK_THROWS_AS(layer.forward(state, one_row, pass), infty::ShapeError);
}

TEST_CASE("InfiniAttention: a traced pass sees the memory's share in each head") {
  for (const bool on_local : {false, true}) {
    const auto layer = infini_tests::layer<double>({.segment = 3, .gate_on_local = on_local});
    auto state = layer.make_state(1);
    Pass<double> pass{.traced = true};
    Random random(infty::tests::seed);
    layer.forward(state, Variable<double>(infty::tests::uniform_tensor<double>({1, 4, 4}, random)),
                  pass);
    const auto share = first_shown(pass, "memory_gate").value().to_vector();
    REQUIRE(share.size() == 2);
    const double sign = on_local ? -1 : 1;
    CHECK(share[0] == Approx(1 / (1 + std::exp(sign * .7))));
    CHECK(share[1] == Approx(1 / (1 + std::exp(-sign * .4))));
    CHECK(pass.trace.size() == 1);
  }
}

TEST_CASE("InfiniAttention: counts the products of a segment, and its share of a piece") {
  const double maps = 4 * 2. * 4 * 4 * 6, pairs = 2 * 2. * (1 + 2 + 3 + 4) * 6,
               of_memory = 2 * 2. * 4 * 6 * 3;  // a segment of 4 vectors
  const auto layer = infini_tests::layer<float>({.segment = 4});
  CHECK(layer.flops(1, 4) == maps + pairs + of_memory);
  CHECK(infini_tests::layer<float>({.segment = 4, .delta = true}).flops(1, 4) ==
        maps + pairs + of_memory * 3 / 2);
  CHECK(4 * layer.flops(3, 1) == 3 * layer.flops(1, 4));
  CHECK(layer.flops(1, 12) == 3 * layer.flops(1, 4));
}
