// SPDX-License-Identifier: MIT
#include <algorithm>
#include <cmath>
#include <cstddef>
#include <string>
#include <vector>

#include <infty/autograd/elementwise.hpp>
#include <infty/autograd/parameters.hpp>
#include <infty/core/pool.hpp>
#include <infty/memory/long_term_memory.hpp>

#include "memory/long_term.hpp"
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
using infty::Tensor;
using infty::Variable;
using infty::tests::numbers_of;
using infty::tests::small_config;
using infty::tests::uniform_tensor;
using infty::tests::uniform_variable;

namespace {

template <class T, class B>
bool finite(const Tensor<T, B>& x) {
  for (const T value : x.to_vector())
    if (!std::isfinite(value)) return false;
  return true;
}

}  // namespace

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

TEST_CASE("LongTermMemory: writes of ten thousand vectors, first and behind others") {
  const LongTermConfig settings{
      .model_dim = 1, .heads = 1, .basis = 8, .widths = {.05, .2}, .samples = 16, .gate = false};
  const LongTermMemory<float> memory(settings);
  auto state = memory.make_state(1);
  const Index length = 10'000;
  Random random(infty::tests::seed);
  Tensor<float> x(infty::Shape{1, length, 1});
  for (int i = 0; i < 2; ++i) {
    for (Index at = 0; at < length; ++at) x.data()[at] = random.uniform() < .5 ? -1.F : 1.F;
    memory.write(state, x);
    CHECK(infty::is_finite(state));
  }
  CHECK(state.written == RowCounts{2 * length});
  for (const float v : resample(memory.basis(), state.coefficients.value(),
                                infty::even_locations<float, infty::EigenBackend>(64))
                           .to_vector())
    CHECK(std::fabs(v) <= 8);
}

TEMPLATE_LIST_TEST_CASE("LongTermMemory: huge and tiny numbers stay finite, and so do gradients",
                        "", infty::tests::Types) {
  using T = typename TestType::T;
  using B = typename TestType::B;
  const auto parameters = GENERATE(DensityParameters::affine, DensityParameters::moments);
  for (const double size : {1e30, 1e-30, 1e-42}) {
    auto settings = small_config();
    settings.parameters = parameters;
    settings.resampling = Resampling::sticky_quantiles;
    Random random(infty::tests::seed);
    const LongTermMemory<T, infty::GaussianDensity, infty::GaussianBasis<T>, B> memory(settings);
    auto state = memory.make_state(1);
    for (int i = 0; i < 3; ++i) {
      const auto x = uniform_variable<T, B>({1, 5, 4}, random, -size, size);
      const auto q = uniform_variable<T, B>({1, 5, 6}, random);
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
  auto settings = small_config();
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
  // One thread: with more, the pool grows by a second one's scratch memory when two first happen to
  // need some at once.
  infty::tests::with_threads(1, [&] {
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
  });
  CHECK(state.written == RowCounts{100000});
  CHECK(infty::is_finite(state));
  CHECK(largest < 100);  // one write makes them about 1
  CHECK(infty::bytes_of(state) == bytes);
  CHECK(infty::HostPool::instance().statistics().bytes_held == held);
}

TEST_CASE("LongTermMemory: the same bits with one thread and with two") {
  auto settings = small_config();
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
  auto settings = small_config();
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
  infty::tests::with_threads(1, [&] {
    for (int i = 0; i < 3; ++i) step();  // the second is the first that contracts
    const std::size_t pool = allocations();
    for (int i = 0; i < 5; ++i) step();
    CHECK(allocations() == pool);
  });
}

TEST_CASE("LongTermMemory: what does not fit is refused and leaves the state as it was") {
  Random random(infty::tests::seed);
  auto settings = small_config();
  settings.basis = 7;
  CHECK_THROWS_AS(LongTermMemory<float>(settings), infty::ValueError);
  settings.basis = 0;
  CHECK_THROWS_WITH(LongTermMemory<float>(settings),
                    "[LongTermConfig] basis is 0: it must be at least 1");
  const LongTermMemory<float> memory(small_config());
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
