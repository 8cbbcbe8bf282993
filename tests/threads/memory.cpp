// SPDX-License-Identifier: MIT
#include <atomic>
#include <chrono>
#include <cmath>
#include <cstdint>
#include <future>
#include <thread>
#include <vector>

#include <infty/memory/long_term_memory.hpp>
#include <infty/memory/memorizing_attention.hpp>
#include <infty/nn/any_layer.hpp>

#include "memory/long_term.hpp"
#include "support/catch.hpp"
#include "support/states.hpp"
#include "support/tensors.hpp"
#include "threads/at_once.hpp"

using infty::Index;
using infty::Random;
using infty::Shape;
using infty::tests::at_once;
using infty::tests::crowd;
using infty::tests::numbers_of;
using infty::tests::same_at_once;
using infty::tests::small_config;
using infty::tests::uniform_tensor;
using Memory = infty::LongTermMemory<float>;

namespace {

infty::LongTermConfig sticky_config() {
  auto config = small_config();
  config.resampling = infty::Resampling::sticky;
  config.bins = 7;
  return config;
}

/// Writes and reads of lengths that other threads ask for, too; all numbers that come of it.
std::vector<double> session(const Memory& memory, Memory::State& state, int thread) {
  Random random(static_cast<std::uint64_t>(thread));
  std::vector<double> all;
  for (int n = 0; n < 12; ++n) {
    const Index length = 1 + (n + thread) % 5;
    memory.write(state, uniform_tensor<float>({2, length, 4}, random));
    const auto read = memory.attend(state, uniform_tensor<float>({2, 3, 6}, random));
    for (const float x : read.context.value().to_vector()) all.push_back(x);
  }
  const auto rest = numbers_of(state);
  all.insert(all.end(), rest.begin(), rest.end());
  return all;
}

std::atomic<bool> solving{false}, may_solve{true};

/// Powers that are not evaluated, so that nothing is solved, until they may be.
struct Waiting {
  using Scalar = double;
  Index size() const { return 3; }
  double operator()(Index j, double t) const {
    solving = true;
    while (!may_solve) std::this_thread::yield();
    return std::pow(t, j);
  }
};

}  // namespace

TEST_CASE("threads: one long-term memory serves states of their own") {
  for (const auto& config : {small_config(), sticky_config()}) {
    const Memory memory(config, Random(1));
    CHECK(same_at_once([&](int i) {
      auto state = memory.make_state(2, i);
      return session(memory, state, i);
    }));
  }
}

TEST_CASE("threads: states that were branched from one another go their own ways") {
  const Memory memory(sticky_config(), Random(1));
  auto trunk = memory.make_state(2);
  session(memory, trunk, 0);
  const auto state = trunk;
  CHECK(same_at_once([&](int i) {
    auto branch = state;
    return session(memory, branch, i);
  }));
}

TEST_CASE("threads: rows of one state are taken and joined") {
  const Memory memory(small_config(), Random(1));
  auto written = memory.make_state(6);
  Random random(3);
  memory.write(written, uniform_tensor<float>({6, 5, 4}, random));
  const auto state = written;
  CHECK(same_at_once([&](int i) {
    std::vector<double> all;
    for (int n = 0; n < 20; ++n) {
      const std::vector<Memory::State> parts{infty::take_rows(state, i, 6),
                                             infty::take_rows(state, 0, i)};
      auto joined = infty::join_rows(parts);
      infty::reset_row(joined, 0);
      infty::put_rows(joined, 1, infty::take_rows(state, 2, 4));
      all = numbers_of(joined);
    }
    return all;
  }));
}

TEST_CASE("threads: rows of one state of any layer, with a store inside, are taken") {
  using Attention = infty::MemorizingAttention<float>;
  const infty::AnyLayer<float> layer(
      Attention({.capacity = 4, .k = 2}, {.model_dim = 4, .heads = 2, .head_dim = 2}, Random(1)));
  Random random(3);
  auto written = layer.make_state(4);
  infty::Pass<float> pass;
  layer.forward(written, uniform_tensor<float>({4, 5, 4}, random), {}, pass);
  for (int n = 0; n < 20; ++n) {
    const auto state = written;  // at which nobody has looked yet
    std::vector<Index> rows(crowd);
    at_once(crowd, [&](int i) {
      rows[static_cast<std::size_t>(i)] = infty::batch_of(infty::take_rows(state, i, 4));
    });
    CHECK(rows == std::vector<Index>{4, 3, 2, 1});
  }
}

TEST_CASE("threads: matrices of the same and of new lengths are asked for") {
  using Psi = infty::GaussianBasis<double>;
  const infty::RidgeCache<double, infty::EigenBackend, Psi> cache(Psi(6, {.1, .2}),
                                                                  {.samples = 5, .entries = 3});
  CHECK(same_at_once([&](int i) {
    double sum = 0;
    for (int n = 0; n < 30; ++n) {
      const Index length = 1 + (n * (i + 1)) % 6;
      sum += cache.first(length).to_vector().back() + cache.next(length).carry.to_vector().back();
      if (cache.entries() > 6 || cache.bytes() == 0) throw infty::Error("too much is kept");
    }
    return sum;
  }));
}

TEST_CASE("threads: nobody who asks for what is solved waits for somebody's solving") {
  const infty::RidgeCache<double, infty::EigenBackend, Waiting> cache({}, {.samples = 4});
  const auto first = cache.first(2);
  const auto next = cache.next(2);
  solving = may_solve = false;
  // Two who solve the same, and with it what a first write of that length needs.
  const auto slow = [&] { return cache.next(3).carry; };
  auto one = std::async(std::launch::async, slow), other = std::async(std::launch::async, slow);
  while (!solving) std::this_thread::yield();
  auto reader = std::async(std::launch::async, [&] {
    return cache.first(2).data() == first.data() && cache.next(2).carry.data() == next.carry.data();
  });
  const bool waited = reader.wait_for(std::chrono::seconds(20)) != std::future_status::ready;
  may_solve = true;
  CHECK_FALSE(waited);
  CHECK(reader.get());
  // The first to come back gave it to both.
  CHECK(one.get().data() == other.get().data());
  CHECK(cache.entries() == 3);
}

TEST_CASE("threads: siblings write and read, and solve for each other") {
  std::vector<Memory> layers{Memory(sticky_config(), Random(1))};
  for (int i = 1; i < crowd; ++i)
    layers.push_back(layers.front().sibling(Random(static_cast<std::uint64_t>(i))));
  CHECK(same_at_once([&](int i) {
    const Memory& layer = layers[static_cast<std::size_t>(i)];
    auto state = layer.make_state(2, i);
    return session(layer, state, i);
  }));
}

TEST_CASE("threads: branches of a state that share blocks go their own ways at once") {
  const infty::MemorizingAttention<float> layer(
      {.capacity = 40, .k = 3, .cache = 2}, {.model_dim = 4, .heads = 2, .head_dim = 3}, Random(1));
  auto common = layer.make_state(2);
  Random random(2);
  infty::Pass<float> pass;
  layer.forward(common, uniform_tensor<float>({2, 9, 4}, random), pass);
  CHECK(same_at_once([&](int thread) {
    auto branch = common;
    Random own(static_cast<std::uint64_t>(thread));
    std::vector<float> all;
    for (int n = 0; n < 20; ++n) {
      infty::Pass<float> each;
      const auto y = layer.forward(branch, uniform_tensor<float>({2, 3, 4}, own), each);
      const auto numbers = y.value().to_vector();
      all.insert(all.end(), numbers.begin(), numbers.end());
    }
    return all;
  }));
}
