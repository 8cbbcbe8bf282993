// SPDX-License-Identifier: MIT
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <string>
#include <type_traits>
#include <vector>

#include <infty/autograd/elementwise.hpp>
#include <infty/autograd/gradient_check.hpp>
#include <infty/core/pool.hpp>
#include <infty/memory/long_term_memory.hpp>
#include <infty/nn/parameters.hpp>
#include <infty/signal/truncated_parabola.hpp>

#include "support/catch.hpp"
#include "support/states.hpp"
#include "support/tensors.hpp"
#include "support/threads.hpp"
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
using infty::tests::uniform_tensor;
using infty::tests::uniform_variable;

namespace {

LongTermConfig config() {
  return {.model_dim = 4, .heads = 2, .head_dim = 3, .basis = 8, .widths = {.05, .2}, .samples = 6};
}

template <class T>
bool finite(const Tensor<T>& x) {
  for (const T value : x.to_vector())
    if (!std::isfinite(value)) return false;
  return true;
}

}  // namespace

TEST_CASE("LongTermMemory: parameters by name, and what a configuration leaves out") {
  const auto names = [](LongTermConfig settings) {
    LongTermMemory<float> memory(settings);
    std::vector<std::string> all;
    infty::for_each_parameter(
        memory, [&](const std::string& name, Variable<float>&) { all.push_back(name); });
    return all;
  };
  auto settings = config();
  CHECK(names(settings) == std::vector<std::string>{"gate_weight", "gate_bias", "key.weight",
                                                    "value.weight", "density_weight",
                                                    "out.weight"});
  settings.gate = false;
  settings.parameters = DensityParameters::moments;
  CHECK(names(settings) == std::vector<std::string>{"key.weight", "value.weight", "out.weight"});
}

TEMPLATE_LIST_TEST_CASE("LongTermMemory: a fresh row reads zeros", "", infty::tests::Types) {
  using T = typename TestType::T;
  Random random(infty::tests::seed);
  const LongTermMemory<T> memory(config());
  auto state = memory.make_state(2);
  const auto z = memory.read(state, uniform_tensor<T>({2, 3, 6}, random));
  CHECK(z.shape() == Shape{2, 3, 4});
  CHECK(z.value().to_vector() == std::vector<T>(24, T(0)));
  CHECK(memory.read(state, Tensor<T>(Shape{2, 0, 6})).shape() == Shape{2, 0, 4});
}

TEST_CASE("LongTermMemory: gradients of a write and a read") {
  auto settings = config();
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
      return infty::sum(reading.context * by) + infty::sum(infty::kl(reading.density, .3), .01);
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
  const LongTermMemory<double> memory(config());
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

TEST_CASE("LongTermMemory: an empty write changes nothing, and rows may sit one out") {
  Random random(infty::tests::seed);
  auto settings = config();
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
  const LongTermMemory<double> memory(config());
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
    memory.write(own, Variable<double>(infty::detail::aligned(x, row, row + 1, count)));
    const auto z = memory.read(own, q.slice(row, row + 1)).value().to_vector();
    alone.insert(alone.end(), z.begin(), z.end());
  }
  memory.write(state, x, {4, 4, 2});
  CHECK(infty::tests::error(memory.read(state, q).value().to_vector(), alone) < 1e-13);
  CHECK(state.written == RowCounts{9, 4, 7});
}

TEST_CASE("LongTermMemory: any length and any size, down to one of everything") {
  for (const Index length : {1, 2, 3, 7, 64, 101}) {
    LongTermConfig settings{
        .model_dim = 1, .heads = 1, .basis = 1, .widths = {.3}, .samples = 1, .bins = 1};
    settings.resampling = Resampling::sticky;
    Random random(infty::tests::seed);
    const LongTermMemory<double> memory(settings);
    auto state = memory.make_state(1);
    for (int i = 0; i < 3; ++i) {
      memory.write(state, uniform_tensor<double>({1, length, 1}, random));
      CHECK(finite(memory.read(state, uniform_tensor<double>({1, length, 1}, random)).value()));
    }
    CHECK(infty::is_finite(state));
    CHECK(state.written == RowCounts{3 * length});
  }
}

TEMPLATE_LIST_TEST_CASE("LongTermMemory: huge and tiny numbers stay finite, and so do gradients",
                        "", infty::tests::Types) {
  using T = typename TestType::T;
  const auto parameters = GENERATE(DensityParameters::affine, DensityParameters::moments);
  for (const double size : {1e30, 1e-30, 1e-42}) {
    auto settings = config();
    settings.parameters = parameters;
    settings.resampling = Resampling::sticky_quantiles;
    Random random(infty::tests::seed);
    const LongTermMemory<T> memory(settings);
    auto state = memory.make_state(1);
    for (int i = 0; i < 3; ++i) {
      const auto x = uniform_variable<T>({1, 5, 4}, random, -size, size);
      const auto q = uniform_variable<T>({1, 5, 6}, random);
      infty::Tape tape;
      memory.write(state, x);
      const auto z = memory.read(state, q);
      CHECK(finite(z.value()));
      tape.backward(infty::sum(z));
      CHECK(finite(x.grad()));
      CHECK(finite(q.grad()));
    }
    CHECK(infty::is_finite(state));
  }
}

TEST_CASE("LongTermMemory: 100,000 vectors and as many bytes as after the first thousand") {
  auto settings = config();
  settings.resampling =
      GENERATE(Resampling::even, Resampling::sticky, Resampling::sticky_quantiles);
  Random random(infty::tests::seed);
  const LongTermMemory<float> memory(settings);
  auto state = memory.make_state(1);
  const auto guard = infty::no_grad();
  const auto x = uniform_tensor<float>({1, 50, 4}, random);
  const auto q = uniform_tensor<float>({1, 2, 6}, random);
  double largest = 0;
  std::size_t bytes = 0, held = 0;
  for (int i = 0; i < 2000; ++i) {
    if (i == 20) {
      bytes = infty::bytes_of(state);
      held = infty::HostPool::instance().statistics().bytes_held;
    }
    memory.write(state, x);
    memory.read(state, q);
    if (i % 100 == 0)
      for (const float b : state.coefficients.value().to_vector())
        largest = std::max(largest, static_cast<double>(std::abs(b)));
  }
  CHECK(state.written == RowCounts{100000});
  CHECK(infty::is_finite(state));
  CHECK(largest < 100);  // one write makes them about 1
  CHECK(infty::bytes_of(state) == bytes);
  CHECK(infty::HostPool::instance().statistics().bytes_held == held);
}

TEST_CASE("LongTermMemory: the threshold clears a row that has taken in more") {
  auto settings = config();
  settings.threshold = 6;
  Random random(infty::tests::seed);
  const LongTermMemory<double> memory(settings);
  auto state = memory.make_state(2);
  const auto x = uniform_tensor<double>({2, 4, 4}, random);
  memory.write(state, x, {4, 3});
  memory.write(state, x, {4, 3});
  CHECK(state.written ==
        RowCounts{8, 6});  // over the threshold, but cleared by the next write only
  memory.write(state, x);
  CHECK(state.written == RowCounts{4, 10});
  auto fresh = memory.make_state(2);
  memory.write(fresh, x);
  CHECK(infty::tests::error(state.coefficients.value().slice(0, 1).to_vector(),
                            fresh.coefficients.value().slice(0, 1).to_vector()) < 1e-14);
}

TEST_CASE("LongTermMemory: sticky by quantiles of even attention is even") {
  Random random(infty::tests::seed);
  const auto x = uniform_tensor<double>({1, 5, 4}, random);
  const auto after = [&](Resampling resampling, bool attention) {
    auto settings = config();
    settings.resampling = resampling;
    const LongTermMemory<double> memory(settings);
    auto state = memory.make_state(1);
    memory.write(state, x);
    if (attention) state.attention.fill(.25);
    memory.write(state, x);
    return state.coefficients.value().to_vector();
  };
  const auto even = after(Resampling::even, false);
  CHECK(infty::tests::error(after(Resampling::sticky_quantiles, true), even) < 1e-12);
  // Without any read in between there is nothing to go by, which is even attention too.
  CHECK(infty::tests::error(after(Resampling::sticky_quantiles, false), even) < 1e-12);
}

TEST_CASE("LongTermMemory: sticky memories sample where attention was") {
  auto settings = config();
  settings.resampling = Resampling::sticky_quantiles;
  const LongTermMemory<double> memory(settings);
  Random random(infty::tests::seed);
  auto state = memory.make_state(1);
  memory.write(state, uniform_tensor<double>({1, 12, 4}, random));
  for (Index bin = 0; bin < 8; ++bin) state.attention.data()[bin] = 1;
  // All of the attention in the first sixteenth, so m / samples of it.
  auto places = infty::even_locations<double, infty::EigenBackend>(settings.samples);
  for (Index m = 0; m < settings.samples; ++m) places.data()[m] /= 16;
  const auto x = uniform_tensor<double>({1, 3, 4}, random);
  auto by_hand = state;
  memory.write_at(by_hand, x, {3}, places.reshape({1, settings.samples}));
  memory.write(state, x);
  CHECK(infty::tests::error(state.coefficients.value().to_vector(),
                            by_hand.coefficients.value().to_vector()) < 1e-12);
}

TEST_CASE("LongTermMemory: a read is noted once, and forgotten with the next write") {
  auto settings = config();
  settings.resampling = Resampling::sticky;
  const LongTermMemory<double> memory(settings);
  Random random(infty::tests::seed);
  auto state = memory.make_state(2);
  memory.write(state, uniform_tensor<double>({2, 5, 4}, random));
  CHECK(state.attention.to_vector() == std::vector<double>(256, 0.0));
  const auto copy = state;
  memory.read(state, uniform_tensor<double>({2, 3, 6}, random));
  const auto p = state.attention.to_vector();
  double sum = 0;
  for (const double x : p) sum += x;
  CHECK(sum == Approx(2));
  CHECK(copy.attention.to_vector() == std::vector<double>(256, 0.0));
  memory.write(state, uniform_tensor<double>({2, 5, 4}, random), {5, 0});
  const auto after = state.attention.to_vector();
  for (std::size_t i = 0; i < 128; ++i) CHECK((after[i] == 0 && after[128 + i] == p[128 + i]));
}

TEST_CASE("LongTermMemory: sampled places depend on seed, row and write, not on the batch") {
  auto settings = config();
  settings.resampling = Resampling::sticky;
  Random random(infty::tests::seed);
  const auto x = uniform_tensor<double>({1, 5, 4}, random);
  const auto q = uniform_tensor<double>({1, 3, 6}, random);
  const auto run = [&](std::uint64_t seed, Index stream, Index batch, Index row) {
    settings.sampling_seed = seed;
    const LongTermMemory<double> memory(settings);
    auto state = memory.make_state(batch, stream);
    Tensor<double> xs(Shape{batch, 5, 4}), qs(Shape{batch, 3, 6});
    for (Index b = 0; b < batch; ++b) {
      xs.slice(b, b + 1).copy_from(x);
      qs.slice(b, b + 1).copy_from(q);
    }
    for (int i = 0; i < 3; ++i) {
      memory.write(state, xs);
      memory.read(state, qs);
    }
    return state.coefficients.value().slice(row, row + 1).to_vector();
  };
  const auto one = run(1, 0, 1, 0);
  CHECK(run(1, 0, 1, 0) == one);
  CHECK(infty::tests::error(run(1, 0, 4, 0), one) < 1e-12);
  CHECK(infty::tests::error(run(1, 2, 1, 0), run(1, 0, 4, 2)) < 1e-12);
  CHECK(infty::tests::error(run(1, 0, 4, 1), one) > 1e-6);
  CHECK(infty::tests::error(run(2, 0, 1, 0), one) > 1e-6);
}

TEST_CASE("LongTermMemory: the same bits with one thread and with two") {
  auto settings = config();
  settings.resampling = GENERATE(Resampling::even, Resampling::sticky);
  const auto run = [&] {
    Random random(infty::tests::seed);
    LongTermMemory<float> memory(settings);
    auto state = memory.make_state(3);
    for (int i = 0; i < 3; ++i) {
      infty::Tape tape;
      memory.write(state, uniform_tensor<float>({3, 130, 4}, random));
      const auto reading = memory.attend(state, uniform_tensor<float>({3, 200, 6}, random));
      tape.backward(infty::sum(reading.context) + infty::sum(infty::kl(reading.density, .05f)));
    }
    auto all = numbers_of(state);
    infty::for_each_parameter(memory, [&](const std::string&, Variable<float>& p) {
      for (const float g : p.grad().to_vector()) all.push_back(static_cast<double>(g));
    });
    return all;
  };
  CHECK(infty::tests::with_threads(1, run) == infty::tests::with_threads(2, run));
}

TEST_CASE("LongTermMemory: a step allocates nothing after the first ones") {
  auto settings = config();
  settings.resampling = GENERATE(Resampling::even, Resampling::sticky_quantiles);
  Random random(infty::tests::seed);
  LongTermMemory<float> memory(settings);
  auto state = memory.make_state(2);
  const auto x = uniform_tensor<float>({2, 5, 4}, random);
  const auto q = uniform_tensor<float>({2, 3, 6}, random);
  const auto step = [&] {
    infty::zero_grad(memory);
    infty::Tape tape;
    memory.write(state, x);
    tape.backward(infty::sum(memory.read(state, q)));
  };
  const auto allocations = [] {
    return infty::HostPool::instance().statistics().system_allocations;
  };
  // The second is the first that contracts.
  for (int i = 0; i < 3; ++i) step();
  const std::size_t pool = allocations();
  for (int i = 0; i < 5; ++i) step();
  CHECK(allocations() == pool);
}

TEST_CASE("LongTermMemory: what does not fit is refused and leaves the state as it was") {
  Random random(infty::tests::seed);
  auto settings = config();
  settings.basis = 7;
  CHECK_THROWS_AS(LongTermMemory<float>(settings), infty::ValueError);
  settings.basis = 0;
  CHECK_THROWS_WITH(LongTermMemory<float>(settings),
                    "[LongTermConfig] basis is 0: it must be at least 1");
  const LongTermMemory<float> memory(config());
  CHECK_THROWS_WITH(memory.make_state(0),
                    "[LongTermMemory::make_state] batch is 0: it must be >= 1");
  auto state = memory.make_state(2);
  memory.write(state, uniform_tensor<float>({2, 3, 4}, random));
  const auto before = numbers_of(state);
  const auto x = [](Index b, Index l, Index d) { return Tensor<float>::zeros({b, l, d}); };
  CHECK_THROWS_WITH(memory.write(state, x(2, 3, 5)),
                    "[write] the vectors are [2, 3, 5]: they must be [2, L, 4]");
  CHECK_THROWS_AS(memory.write(state, x(1, 3, 4)), infty::ShapeError);
  CHECK_THROWS_AS(memory.write(state, Tensor<float>::zeros({3, 4})), infty::ShapeError);
  CHECK_THROWS_WITH(memory.write(state, x(2, 3, 4), {3, 4}),
                    "[write] a count is 4: it must lie in [0, 3]");
  CHECK_THROWS_WITH(memory.write(state, x(2, 3, 4), {3}), "[write] 1 counts for 2 rows");
  CHECK_THROWS_AS(memory.write(state, x(2, 3, 4), {-1, 3}), infty::ValueError);
  CHECK_THROWS_WITH(memory.write_at(state, x(2, 3, 4), {3, 3}, Tensor<float>::zeros({2, 5})),
                    "[write] locations are [2, 5]: they must be [2, 6]");
  CHECK_THROWS_WITH(memory.read(state, x(2, 3, 4)),
                    "[read] queries are [2, 3, 4]: they must be [2, Q, 6], 6 = heads * head_dim");
  CHECK_THROWS_AS(memory.read(state, x(1, 3, 6)), infty::ShapeError);
  settings.basis = 10;
  const LongTermMemory<float> other(settings);
  CHECK_THROWS_WITH(other.read(state, x(2, 3, 6)),
                    "[read] the state holds coefficients [2, 8, 4]: another memory made it, ours "
                    "are [batch, 10, 4]");
  CHECK_THROWS_AS(other.write(state, x(2, 3, 4)), infty::ShapeError);
  CHECK(numbers_of(state) == before);
}
