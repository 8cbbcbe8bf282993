// SPDX-License-Identifier: MIT
#include <string>
#include <type_traits>
#include <vector>

#include <infty/autograd/elementwise.hpp>
#include <infty/autograd/parameters.hpp>
#include <infty/memory/long_term_memory.hpp>
#include <infty/signal/truncated_parabola.hpp>
#include <infty/testing/gradient_check.hpp>

#include "memory/long_term.hpp"
#include "support/catch.hpp"
#include "support/states.hpp"
#include "support/tensors.hpp"
#include "support/types.hpp"

using infty::DensityParameters;
using infty::Index;
using infty::LongTermConfig;
using infty::LongTermMemory;
using infty::Random;
using infty::Resampling;
using infty::RowCounts;
using infty::Shape;
using infty::Tensor;
using infty::Variable;
using infty::tests::numbers_of;
using infty::tests::small_config;
using infty::tests::uniform_tensor;
using infty::tests::uniform_variable;

TEST_CASE("LongTermMemory: parameters by name, and what a configuration leaves out") {
  const auto names = [](LongTermConfig settings) {
    LongTermMemory<float> memory(settings);
    std::vector<std::string> all;
    infty::for_each_parameter(
        memory, [&](const std::string& name, Variable<float>&) { all.push_back(name); });
    return all;
  };
  auto settings = small_config();
  CHECK(names(settings) == std::vector<std::string>{"gate_weight", "gate_bias", "key.weight",
                                                    "value.weight", "density_weight",
                                                    "out.weight"});
  settings.gate = false;
  settings.parameters = DensityParameters::moments;
  CHECK(names(settings) == std::vector<std::string>{"key.weight", "value.weight", "out.weight"});
}

TEMPLATE_LIST_TEST_CASE(
    "LongTermMemory: a sibling has parameters of its own, and the ridge matrices of all", "",
    infty::tests::Types) {
  using T = typename TestType::T;
  using B = typename TestType::B;
  using Memory = LongTermMemory<T, infty::GaussianDensity, infty::GaussianBasis<T>, B>;
  Memory memory(small_config(), Random(1));
  Memory other = memory.sibling(Random(2)), alone(small_config(), Random(2));
  const auto wanted = infty::parameters<T, B>(alone), ours = infty::parameters<T, B>(other),
             of_first = infty::parameters<T, B>(memory);
  REQUIRE(ours.size() == wanted.size());
  for (std::size_t i = 0; i < ours.size(); ++i) {
    CHECK(ours[i].value().to_vector() == wanted[i].value().to_vector());
    CHECK(ours[i].value().data() != of_first[i].value().data());
  }
  Random random(infty::tests::seed);
  auto state = other.make_state(1);
  const auto x = uniform_tensor<T, B>({1, 5, 4}, random);
  other.write(state, x);
  other.write(state, x);
  CHECK(memory.ridge().entries() == 2);  // solved by the other
  CHECK(memory.ridge().first(5).data() == other.ridge().first(5).data());
  CHECK(memory.ridge().next(5).carry.data() == other.ridge().next(5).carry.data());
  CHECK(alone.ridge().entries() == 0);
  // It answers as one made alone does.
  auto same = alone.make_state(1);
  alone.write(same, x);
  alone.write(same, x);
  const auto q = uniform_tensor<T, B>({1, 2, 6}, random);
  CHECK(other.read(state, q).value().to_vector() == alone.read(same, q).value().to_vector());
}

TEMPLATE_LIST_TEST_CASE("LongTermMemory: a fresh row reads zeros", "", infty::tests::Types) {
  using T = typename TestType::T;
  using B = typename TestType::B;
  Random random(infty::tests::seed);
  const LongTermMemory<T, infty::GaussianDensity, infty::GaussianBasis<T>, B> memory(
      small_config());
  auto state = memory.make_state(2);
  const auto z = memory.read(state, uniform_tensor<T, B>({2, 3, 6}, random));
  CHECK(z.shape() == Shape{2, 3, 4});
  CHECK(z.value().to_vector() == std::vector<T>(24, T(0)));
  CHECK(memory.read(state, Tensor<T, B>(Shape{2, 0, 6})).shape() == Shape{2, 0, 4});
}

TEST_CASE(
    "LongTermMemory: what is read and its divergence are finite for all constants of a density") {
  for (const double sigma0 : {1e-4, .05, 1e4})
    for (const double floor : {1e-30, 1e-6, 1e30})
      for (const double mu0 : {-1e4, -1., 1e4}) {
        auto settings = small_config();
        settings.sigma0 = sigma0, settings.variance_floor = floor;
        settings.mean_term = true, settings.mu0 = mu0;
        CAPTURE(sigma0, floor, mu0);
        Random random(infty::tests::seed);
        const LongTermMemory<float> memory(settings);
        auto state = memory.make_state(1);
        memory.write(state, Variable<float>(uniform_tensor<float>({1, 7, 4}, random)));
        infty::Pass<float> pass{.regularised = true};
        const auto y =
            memory.read(state, Variable<float>(uniform_tensor<float>({1, 3, 6}, random)), pass);
        CHECK(infty::detail::all_finite(y.value()));
        REQUIRE(pass.losses.size() == 1);
        CHECK(std::isfinite(pass.losses[0].value.value().item()));
      }
}

TEST_CASE("LongTermMemory: gradients of a write and a read") {
  auto settings = small_config();
  settings.sigma0 = .3;
  const auto check = [&]<class Density>(std::type_identity<Density>) {
    Random random(infty::tests::seed);
    LongTermMemory<double, Density> memory(settings, Random(3));
    // Weights that spread the densities, so that the test means something.
    if (memory.density_weight.size() > 0) {
      Random wide(4);
      infty::fill_uniform(memory.density_weight.value(), -2, 2, wide);
    }
    auto before = memory.make_state(2);
    memory.write(before, uniform_tensor<double>({2, 7, 4}, random));
    const auto x = uniform_variable<double>({2, 3, 4}, random);
    const auto q = uniform_variable<double>({2, 2, 6}, random);
    const Variable<double> by(uniform_tensor<double>({2, 2, 4}, random));
    const auto loss = [&] {
      auto state = before;
      memory.write(state, x);
      const auto reading = memory.attend(state, q);
      return infty::sum(reading.context * by) + infty::sum(memory.divergence(reading.density), .01);
    };
    auto inputs = infty::parameters<double>(memory);
    inputs.push_back(x);
    inputs.push_back(q);
    CHECK(infty::gradient_check(loss, inputs) < 1e-6);
  };
  SECTION("affine") { check(std::type_identity<infty::GaussianDensity>{}); }
  SECTION("moments") {
    settings.parameters = DensityParameters::moments;
    check(std::type_identity<infty::GaussianDensity>{});
  }
  SECTION("no gate") {
    settings.gate = false;
    check(std::type_identity<infty::GaussianDensity>{});
  }
  SECTION("quantiles") {
    settings.resampling = Resampling::sticky_quantiles;
    check(std::type_identity<infty::GaussianDensity>{});
  }
  SECTION("parabola") { check(std::type_identity<infty::TruncatedParabola>{}); }
}

TEST_CASE("LongTermMemory: no gradient reaches what was written before the last write") {
  Random random(infty::tests::seed);
  const LongTermMemory<double> memory(small_config());
  auto state = memory.make_state(1);
  const auto first = uniform_variable<double>({1, 4, 4}, random);
  const auto second = uniform_variable<double>({1, 4, 4}, random);
  infty::Tape tape;
  memory.write(state, first);
  memory.write(state, second);
  tape.backward(infty::sum(memory.read(state, uniform_tensor<double>({1, 3, 6}, random))));
  CHECK_FALSE(first.has_grad());
  CHECK(second.has_grad());
}

TEST_CASE("LongTermMemory: a row that takes nothing in keeps its gradient, whatever others take") {
  Random random(infty::tests::seed);
  const LongTermMemory<double> memory(small_config());
  const auto x = uniform_tensor<double>({2, 5, 4}, random),
             more = uniform_tensor<double>({2, 5, 4}, random);
  const auto q = uniform_tensor<double>({2, 3, 6}, random);
  // Of row 0 behind a second write of so many vectors, none if there are no counts.
  const auto gradient = [&](const std::vector<RowCounts>& writes) {
    const Variable<double> first(x, true);
    auto state = memory.make_state(2);
    infty::Tape tape;
    memory.write(state, first);
    for (const RowCounts& counts : writes) memory.write(state, more, counts);
    tape.backward(infty::sum(memory.read(state, q)));
    return first.grad().slice(0, 1).to_vector();
  };
  const auto expected = gradient({});
  REQUIRE(std::fabs(expected[0]) > 1e-3);
  CHECK(gradient({{0, 0}}) == expected);
  CHECK(gradient({{0, 5}}) == expected);
  CHECK(gradient({{0, 5}, {0, 2}, {0, 0}}) == expected);
  CHECK(gradient({{1, 5}}) == std::vector<double>(20, 0));
}

TEST_CASE("LongTermMemory: an empty write changes nothing, and rows may sit one out") {
  Random random(infty::tests::seed);
  auto settings = small_config();
  settings.resampling = GENERATE(Resampling::even, Resampling::sticky);
  const LongTermMemory<double> memory(settings);
  auto state = memory.make_state(2);
  memory.write(state, uniform_tensor<double>({2, 3, 4}, random));
  memory.read(state, uniform_tensor<double>({2, 3, 6}, random));
  const auto before = numbers_of(state);
  memory.write(state, Tensor<double>(Shape{2, 0, 4}));
  CHECK(numbers_of(state) == before);
  auto x = uniform_tensor<double>({2, 3, 4}, random);
  x.slice(1, 2).fill(0);
  const auto row = numbers_of(infty::take_rows(state, 1, 2));
  memory.write(state, x, {3, 0});
  CHECK(numbers_of(infty::take_rows(state, 1, 2)) == row);
  CHECK(state.written == RowCounts{6, 3});
  CHECK(state.writes == RowCounts{2, 1});
}

TEST_CASE("LongTermMemory: rows of different age and length are as if alone") {
  Random random(infty::tests::seed);
  const LongTermMemory<double> memory(small_config());
  auto state = memory.make_state(3);
  memory.write(state, uniform_tensor<double>({3, 5, 4}, random));
  infty::reset_row(state, 1);
  auto x = uniform_tensor<double>({3, 4, 4}, random);
  x.slice(2, 3).reshape({16}).slice(0, 8).fill(0);  // only two of row 2 are to be written
  const auto q = uniform_tensor<double>({3, 2, 6}, random);
  std::vector<double> alone;
  for (Index row = 0; row < 3; ++row) {
    auto own = infty::take_rows(state, row, row + 1);
    const Index count = row == 2 ? 2 : 4;
    memory.write(own, Variable<double>(infty::detail::aligned(x.slice(row, row + 1), count)));
    const auto z = memory.read(own, q.slice(row, row + 1)).value().to_vector();
    alone.insert(alone.end(), z.begin(), z.end());
  }
  memory.write(state, x, {4, 4, 2});
  CHECK(infty::tests::error(memory.read(state, q).value().to_vector(), alone) < 1e-13);
  CHECK(state.written == RowCounts{9, 4, 7});
}

TEST_CASE("LongTermMemory: the threshold clears a row that has reached it") {
  auto settings = small_config();
  settings.threshold = 8;
  Random random(infty::tests::seed);
  const LongTermMemory<double> memory(settings);
  auto state = memory.make_state(2);
  const auto x = uniform_tensor<double>({2, 4, 4}, random);
  memory.write(state, x, {4, 3});
  memory.write(state, x, {4, 3});
  CHECK(state.written ==
        RowCounts{8, 6});  // the first has reached it, but is cleared by the next write only
  memory.write(state, x);
  CHECK(state.written == RowCounts{4, 10});
  auto fresh = memory.make_state(2);
  memory.write(fresh, x);
  CHECK(infty::tests::error(state.coefficients.value().slice(0, 1).to_vector(),
                            fresh.coefficients.value().slice(0, 1).to_vector()) < 1e-14);
}

TEST_CASE(
    "LongTermMemory: keys of densities are made anew when what they were made of is written") {
  Random random(infty::tests::seed);
  const LongTermMemory<double> memory(small_config());
  auto state = memory.make_state(1);
  memory.write(state, uniform_tensor<double>({1, 5, 4}, random));
  const auto q = uniform_tensor<double>({1, 2, 6}, random);
  const auto read = [&](bool forget) {
    if (forget) state.density_keys = {};
    return memory.read(state, q).value().to_vector();
  };
  Tensor<double> handles[] = {state.coefficients.value(), memory.density_weight.value(),
                              memory.key.weight.value()};
  for (auto& handle : handles) {
    const auto before = read(false);
    fill_uniform(handle, -1, 1, random);
    const auto after = read(false);
    CHECK(after != before);
    CHECK(after == read(true));
  }
}

TEST_CASE("LongTermMemory: every member of a state is checked before it is used") {
  Random random(infty::tests::seed);
  auto settings = small_config();
  settings.resampling = Resampling::sticky;
  const LongTermMemory<double> memory(settings);
  const auto x = uniform_tensor<double>({2, 3, 4}, random),
             q = uniform_tensor<double>({2, 3, 6}, random);
  auto state = memory.make_state(2);
  memory.write(state, x);
  const auto good = state;
  const auto refused = [&](const std::string& why) {
    const auto before = numbers_of(state);
    CHECK_THROWS_WITH(memory.read(state, q), "[read] " + why);
    CHECK_THROWS_WITH(memory.write(state, x), "[write] " + why);
    CHECK_THROWS_WITH(memory.next_locations(state), "[next_locations] " + why);
    CHECK_THROWS_WITH(memory.check("here", state), "[here] " + why);
    CHECK(numbers_of(state) == before);
    state = good;
  };
  auto other = settings;
  other.bins = settings.bins / 2;
  state.attention = LongTermMemory<double>(other).make_state(2).attention;
  refused("the state holds attention [2, 64]: another memory made it, ours is [2, 128]");
  state.attention = Tensor<double>::zeros({2, 0});
  refused("the state holds attention [2, 0]: another memory made it, ours is [2, 128]");
  state.written = {3};
  refused("the state's written has 1 rows, its coefficients 2");
  state.writes = {1, 1, 1};
  refused("the state's writes has 3 rows, its coefficients 2");
  state.row_id.id.clear();
  refused("the state's row_id has 0 rows, its coefficients 2");
  state.written = {3, -1};
  refused("row 1 has taken in -1 vectors in 1 writes, 3 in the last: none may be negative");
  state.writes = {-2, 1};
  refused("row 0 has taken in 3 vectors in -2 writes, 3 in the last: none may be negative");
  state.last = {3, -4};
  refused("row 1 has taken in 3 vectors in 1 writes, -4 in the last: none may be negative");
  state.last = {};
  refused("the state's last has 0 rows, its coefficients 2");
  state.largest = Tensor<double>::zeros({2, 3});
  refused("the state holds the largest |x| as [2, 3]: another memory made it, ours is [batch, 4]");
  state.coefficients = Tensor<double>::zeros({2, 8, 5});
  refused("the state holds coefficients [2, 8, 5]: another memory made it, ours are [batch, 8, 4]");
  memory.read(state, q);
}
