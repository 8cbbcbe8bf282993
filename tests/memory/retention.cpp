// SPDX-License-Identifier: MIT
#include <algorithm>
#include <cmath>
#include <numeric>
#include <vector>

#include <infty/memory/compressive_memory.hpp>
#include <infty/memory/ops/delta_rule.hpp>
#include <infty/memory/retention.hpp>
#include <infty/memory/short_term_memory.hpp>
#include <infty/memory/uniform_memory.hpp>

#include "support/catch.hpp"

namespace kept {

using infty::Index;
using infty::Random;
using infty::Shape;
using infty::Tensor;
using infty::Variable;

double sum(const std::vector<double>& x) { return std::accumulate(x.begin(), x.end(), 0.0); }

/// [1, n, n]: vector i is 1 at coordinate i, so that a linear memory's state is its map.
Tensor<double> unit_vectors(Index n) {
  auto x = Tensor<double>::zeros(Shape{1, n, n});
  for (Index i = 0; i < n; ++i) x.data()[i * n + i] = 1;
  return x;
}

/// [K], uniform on the sphere.
std::vector<double> unit_key(Index K, Random& random) {
  std::vector<double> k(static_cast<std::size_t>(K));
  double square = 0;
  for (double& x : k) {
    x = random.normal();
    square += x * x;
  }
  for (double& x : k) x /= std::sqrt(square);
  return k;
}

/// S' = S + k (b (v - Sᵀk))ᵀ of unit vectors as values: the map W [K, n] of n writes.
Tensor<double> delta_map(Index K, Index n, double beta, Random& random, std::vector<double>* keys) {
  std::vector<double> k;
  for (Index i = 0; i < n; ++i) {
    const auto key = unit_key(K, random);
    k.insert(k.end(), key.begin(), key.end());
  }
  if (keys) *keys = k;
  const auto key = Tensor<double>::from(Shape{1, n, 1, K}, k);
  std::vector<double> betas(static_cast<std::size_t>(n), beta);
  const infty::DeltaRuleInputs<double> in{.query = key,
                                          .key = key,
                                          .value = unit_vectors(n).reshape(Shape{1, n, 1, n}),
                                          .beta = Tensor<double>::from(Shape{1, n, 1}, betas)};
  const auto guard = infty::no_grad();
  return infty::delta_rule(in, Variable<double>(Tensor<double>::zeros(Shape{1, 1, K, n})))
      .state.value()
      .reshape(Shape{K, n});
}

}  // namespace kept

TEST_CASE("room: the places that contraction gives, of a fixed tau") {
  using namespace kept;
  for (const double tau : {.5, .75, .95})
    for (const Index length : {1, 7, 64}) {
      const infty::FixedContraction rule{tau};
      const Index written = 20 * length;
      const auto exact = infty::rooms(rule, std::vector<Index>(20, length));
      CHECK(sum(exact) == Approx(1).epsilon(1e-12));
      for (Index age = 0; age < written; ++age) {
        const double found = infty::room(rule, length, written, age),
                     by_writes = exact[static_cast<std::size_t>(written - 1 - age)];
        REQUIRE(std::fabs(found - by_writes) <= 1e-12 * by_writes);
        if (age >= length && age < written - length)  // forgotten exponentially
          REQUIRE(found == Approx(tau * infty::room(rule, length, written, age - length)));
      }
      // The first write is as dense as if it had been 1 / (1 - tau) times as short.
      CHECK(exact.front() == Approx(std::pow(tau, 19) / static_cast<double>(length)));
    }
  CHECK_THROWS_WITH(infty::room(infty::FixedContraction{}, 4, 10, 3),
                    Catch::Matchers::Contains("[room] age is 3, written is 10, length is 4"));
}

TEST_CASE("room: the places that contraction gives, of a power, whatever the writes") {
  using namespace kept;
  for (const double power : {.5, 1., 2., 3.7}) {
    const infty::PowerContraction rule{power};
    const auto ones = infty::rooms(rule, std::vector<Index>(300, 1));
    for (Index age = 0; age < 300; ++age) {
      const double found = infty::room(rule, 300, age);
      REQUIRE(std::fabs(found - ones[static_cast<std::size_t>(299 - age)]) <= 1e-11 * found);
      if (age == 0) continue;
      const double younger = infty::room(rule, 300, age - 1);
      if (power < 1) REQUIRE(found > younger);
      if (power == 1) REQUIRE(found == Approx(younger).epsilon(1e-10));
      if (power > 1) REQUIRE(found < younger);
    }
    // A whole write has what its vectors have one by one.
    const std::vector<Index> lengths{5, 64, 1, 100, 30};
    const auto mixed = infty::rooms(rule, lengths);
    CHECK(sum(mixed) == Approx(1).epsilon(1e-12));
    Index begin = 0;
    for (const Index length : lengths) {
      double by_writes = 0, by_vectors = 0;
      for (Index i = begin; i < begin + length; ++i) {
        by_writes += mixed[static_cast<std::size_t>(i)];
        by_vectors += infty::room(rule, 200, 199 - i);
      }
      CHECK(by_writes == Approx(by_vectors).epsilon(1e-11));
      begin += length;
    }
  }
  CHECK_THROWS_WITH(infty::room(infty::PowerContraction{}, 10, 10),
                    Catch::Matchers::Contains("[room] age is 10, written is 10"));
  CHECK_THROWS_AS(infty::rooms([](Index, Index) { return 1.; }, {1, 1}), infty::ValueError);
}

TEST_CASE("kept: no memory keeps more vectors than it has numbers") {
  using namespace kept;
  const Index n = 4096;
  const infty::FixedContraction fixed{.9};
  const infty::PowerContraction uniform{1}, newer{2};
  double of_fixed = 0, of_uniform = 0, of_newer = 0, queue = 0, compression = 0, delta = 0,
         slow = 0;
  for (Index age = 0; age < n; ++age) {
    of_fixed += infty::kept_by_signal(32, infty::room(fixed, 16, n, age));
    of_uniform += infty::kept_by_signal(32, infty::room(uniform, n, age));
    of_newer += infty::kept_by_signal(32, infty::room(newer, n, age));
    queue += infty::kept_by_queue(32, age);
    compression += infty::kept_by_compression(16, 16, 4, age);
    delta += infty::kept_by_delta_rule(32, 1, age);
    slow += infty::kept_by_delta_rule(32, .25, age);
  }
  for (const double all : {of_fixed, of_uniform, of_newer, queue, compression, delta, slow})
    CHECK(all == Approx(32).epsilon(1e-9));
  // Where little was written a vector has all there is of it, and no more.
  CHECK(infty::kept_by_signal(32, infty::room(uniform, 20, 3)) == 1);
  CHECK(infty::kept_by_compression(16, 16, 4, 15) == 1);
  CHECK(infty::kept_by_compression(16, 16, 4, 79) == .25);
  CHECK(infty::kept_by_compression(16, 16, 4, 80) == 0);
}

TEST_CASE("kept_by_map: the best read of a queue, of means and of sums") {
  using namespace kept;
  // x0 alone, the mean of x1 and x2, and nothing of x3.
  const auto map = Tensor<double>::from(Shape{2, 4}, {1, 0, 0, 0, 0, .5, .5, 0});
  const auto found = infty::kept_by_map(map, 1e-6);
  CHECK(found[0] == Approx(1));
  CHECK(found[1] == Approx(.5));
  CHECK(found[2] == Approx(.5));
  CHECK(found[3] == 0);
  CHECK(infty::kept_by_map(map, 1.)[0] < .8);
  CHECK_THROWS_AS(infty::kept_by_map(map, 0.), infty::ValueError);
  CHECK_THROWS_AS(infty::kept_by_map(unit_vectors(3)), infty::ShapeError);
}

TEST_CASE("kept_by_queue, kept_by_compression: what the memories hold") {
  using namespace kept;
  constexpr Index n = 60;
  const auto x = unit_vectors(n);
  const infty::AttentionSizes sizes{.model_dim = n, .heads = 1, .head_dim = 1};
  const auto guard = infty::no_grad();
  infty::Pass<double> pass{.answer = false};
  const infty::ShortTermMemory<double, infty::EigenBackend> xl({.capacity = 8}, sizes);
  auto held = xl.make_state(1);
  xl.forward(held, Variable<double>(x), {}, pass);
  const auto queue = infty::kept_by_map(held.recent.vectors.reshape(Shape{8, n}), 1e-6);
  const infty::CompressiveMemory<double, infty::EigenBackend> compressive(
      {.capacity = 8, .compressed_capacity = 5, .rate = 4, .compression = infty::Compression::mean},
      sizes);
  auto state = compressive.make_state(1);
  compressive.forward(state, Variable<double>(x), {}, pass);
  // Of memory and compressed vectors the places that hold something.
  std::vector<double> rows;
  for (const auto* part : {&state.memory, &state.compressed}) {
    const auto all = part->vectors.to_vector();
    rows.insert(rows.end(), all.end() - static_cast<std::ptrdiff_t>(part->length[0] * n),
                all.end());
  }
  const auto numbers = static_cast<Index>(rows.size()) / n;
  const auto both = infty::kept_by_map(Tensor<double>::from(Shape{numbers, n}, rows), 1e-6);
  CHECK(numbers == 13);
  for (Index age = 0; age < n; ++age) {
    CAPTURE(age);
    const auto at = static_cast<std::size_t>(n - 1 - age);
    CHECK(queue[at] == Approx(infty::kept_by_queue(8, age)).margin(1e-9));
    CHECK(both[at] == Approx(infty::kept_by_compression(8, 5, 4, age)).margin(1e-9));
  }
}

TEST_CASE("retention: numbers that divide and cannot be are refused") {
  CHECK_THROWS_AS(infty::kept_by_compression(0, 10, 0, 5), infty::ValueError);
  CHECK_THROWS_AS(infty::kept_by_delta_rule(0, 1, 5), infty::ValueError);
  CHECK_THROWS_AS(infty::read_by_delta_rule(0, 1, 5), infty::ValueError);
  CHECK_THROWS_AS(infty::expected_refits({}, 0, .01, 3), infty::ValueError);
  CHECK_THROWS_AS(infty::expected_refits({}, 1, 0, 3), infty::ValueError);
}

TEST_CASE("kept_by_delta_rule, read_by_delta_rule: means over random keys") {
  using namespace kept;
  constexpr Index K = 8, n = 80;
  constexpr int trials = 100;
  for (const double beta : {1., .5}) {
    std::vector<double> kept(n, 0), squares(n, 0), own(n, 0), variance(n, 0);
    Random random(11);
    for (int trial = 0; trial < trials; ++trial) {
      std::vector<double> keys;
      const auto map = delta_map(K, n, beta, random, &keys);
      const auto shares = infty::kept_by_map(map, 1e-6);
      const auto reads = infty::detail::matrix_product(Tensor<double>::from(Shape{n, K}, keys),
                                                       false, map, false);  // [n, n]
      for (Index i = 0; i < n; ++i) {
        const auto at = static_cast<std::size_t>(i);
        kept[at] += shares[at] / trials;
        squares[at] += shares[at] * shares[at] / trials;
        for (Index j = 0; j < n; ++j) {  // what is read at key i is made of vector j
          const double read = reads.data()[i * n + j];
          variance[at] += read * read / trials;
          if (j == i) own[at] += read * read / trials;
        }
      }
    }
    for (const Index age : {0, 1, 3, 8, 16}) {
      const auto at = static_cast<std::size_t>(n - 1 - age);
      CAPTURE(beta, age);
      const double deviation = std::sqrt(std::fabs(squares[at] - kept[at] * kept[at]) / trials),
                   expected = infty::kept_by_delta_rule(K, beta, age);
      // For b < 1 the formula neglects how W Wᵀ fluctuates.
      CHECK(std::fabs(kept[at] - expected) < 5 * deviation + (beta < 1 ? .1 * expected : 1e-6));
      CHECK(own[at] / variance[at] ==
            Approx(infty::read_by_delta_rule(K, beta, age)).epsilon(.2).margin(2e-3));
    }
  }
  CHECK(infty::read_by_delta_rule(K, 1, 0) == Approx(1));
  CHECK(infty::read_by_delta_rule(1000, 1, 100) ==
        Approx(std::pow(1 - 2. / 1000, 100)).epsilon(1e-3));
  for (Index age = 0; age < 50; ++age) {
    CHECK(infty::kept_by_delta_rule(K, 1, age) >= infty::read_by_delta_rule(K, 1, age));
    CHECK(infty::read_by_delta_rule(K, .5, age) > infty::read_by_delta_rule(K, .5, age + 1));
  }
}

namespace kept {

using Uniform = infty::UniformMemory<double, infty::GaussianDensity, infty::GaussianBasis<double>,
                                     infty::EigenBackend>;

Uniform::Config uniform_config(Index model_dim) {
  Uniform::Config config;
  config.model_dim = model_dim;
  config.heads = config.head_dim = 1;
  config.basis = 16;
  config.widths = {.05};
  config.samples = 32;
  config.ridge = .1;
  config.gate = false;
  config.block = 4;
  return config;
}

}  // namespace kept

TEST_CASE("pooled_writes: as a uniform memory counts, and as the logarithm says") {
  using namespace kept;
  for (const double power : {.5, 1., 2.})
    for (const double least_share : {0., .05, .5}) {
      auto config = uniform_config(1);
      config.power = power;
      config.least_share = least_share;
      const Uniform memory(config);
      auto state = memory.make_state(1);
      Index taken = 0;
      for (const Index more : {1, 3, 4, 1, 100, 500, 1000, 4000, 20000, 60000}) {
        memory.write(state, Variable<double>(Tensor<double>::zeros(Shape{1, more, 1})));
        taken += more;
        const auto s = infty::pooled_writes(infty::PowerContraction{power}, 4,
                                            config.resolved_least_share(), taken);
        CAPTURE(power, least_share, taken);
        CHECK(state.refits.front() == s.refits);
        CHECK((std::max<Index>)(state.rate.front(), 1) == s.rate);  // a fresh row says 0
        CHECK(state.held.front() == s.held);
      }
    }
  CHECK(uniform_config(1).resolved_least_share() == .125);  // 4 / (2 * 16)
  // A share that fewer means do not change is not waited for.
  CHECK(infty::pooled_writes(infty::FixedContraction{.95}, 4, .125, 4000).rate == 1);
  for (const double power : {.5, 1., 2.})
    for (const Index taken : {Index{10'000}, Index{1'000'000}, Index{1'000'000'000'000}}) {
      const infty::PowerContraction rule{power};
      const auto s = infty::pooled_writes(rule, 16, 1. / 64, taken);
      CAPTURE(power, taken, s.refits);
      CHECK(static_cast<double>(s.refits) ==
            Approx(infty::expected_refits(rule, 16, 1. / 64, taken)).epsilon(.1));
    }
  CHECK(infty::expected_refits({1}, 16, .02, 160) == 10);
}

TEST_CASE(
    "pooled_writes: never more than docs/memories.md says, whatever the block, the share and the "
    "power") {
  for (const infty::Index block : {1, 2, 3, 16, 64})
    for (const double share : {.001, .02, .25, .5, .75, .99, 3.})
      for (const double power : {.1, .25, .5, 1., 1.7, 4.})
        for (const infty::Index doublings : {1, 5, 10, 27, 40}) {
          const infty::Index taken = (block << doublings) + 1;
          const auto s = infty::pooled_writes(infty::PowerContraction{power}, block, share, taken);
          CAPTURE(block, share, power, taken, s.refits);
          CHECK(static_cast<double>(s.refits) <=
                (1.05 * power / share + 2) * (1 + .5 * static_cast<double>(doublings)));
          CHECK(s.refits >= 1);
        }
}

TEST_CASE("kept_by_signal: a uniform memory keeps of all vectors alike what its functions hold") {
  using namespace kept;
  constexpr Index n = 1024;
  const Uniform memory(uniform_config(n));
  auto state = memory.make_state(1);
  memory.write(state, Variable<double>(unit_vectors(n)));
  CHECK(state.rate.front() > 1);
  const auto coefficients =
      memory.seen(state).coefficients.value().reshape(Shape{memory.config().basis, n});
  const auto found = infty::kept_by_map(coefficients);
  CHECK(sum(found) <= 16);
  CHECK(sum(found) > 14);
  const double expected = infty::kept_by_signal(16, infty::room(infty::PowerContraction{}, n, 0));
  for (Index tenth = 1; tenth < 9; ++tenth) {  // the ends have a little more
    double mean = 0;
    for (Index i = tenth * n / 10; i < (tenth + 1) * n / 10; ++i)
      mean += found[static_cast<std::size_t>(i)] * 10 / n;
    CAPTURE(tenth, mean / expected);
    CHECK(mean == Approx(expected).epsilon(.2));
  }
}
