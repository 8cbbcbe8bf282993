// SPDX-License-Identifier: MIT
#include <cmath>
#include <cstdint>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include <infty/core/bfloat16.hpp>
#include <infty/core/pool.hpp>
#include <infty/memory/memorizing_attention.hpp>
#include <infty/model/transformer_lm.hpp>
#include <infty/nn/causal_attention.hpp>
#include <infty/testing/gradient_check.hpp>
#include <infty/testing/memory_invariants.hpp>
#include <infty/train/checkpoint.hpp>

#include "io/temporary_folder.hpp"
#include "support/catch.hpp"
#include "support/golden_memorizing.hpp"
#include "support/states.hpp"
#include "support/tensors.hpp"
#include "support/threads.hpp"
#include "support/types.hpp"

using infty::BFloat16;
using infty::Index;
using infty::MemorizingAttention;
using infty::MemorizingConfig;
using infty::MemorizingMerge;
using infty::Random;
using infty::RowCounts;
using infty::Shape;
using infty::Tensor;
using infty::Variable;
using infty::tests::error;
using infty::tests::numbers_of;
using infty::tests::tolerance;
using infty::tests::uniform_tensor;

static_assert(infty::SequenceLayer<MemorizingAttention<float>>);
static_assert(!infty::state_takes_gradient<MemorizingAttention<float>>);

namespace memorizing_tests {

constexpr infty::AttentionSizes sizes{.model_dim = 6, .heads = 2, .head_dim = 3};

const char* const cases[] = {"gate", "gate_cache", "gate_dot", "joint", "joint_local", "joint_far"};

template <class T>
infty::tests::Comparison replay(const std::string& name) {
  infty::tests::GoldenCase file(std::string(INFTY_TEST_DATA) + "/golden/memorizing_" + name +
                                ".safetensors");
  return infty::tests::replay_memorizing<T, infty::EigenBackend>(file);
}

/// Configurations whose memories a dozen vectors fill: every option once.
std::vector<MemorizingConfig> all_kinds() {
  return {
      {.capacity = 7, .k = 3},
      {.capacity = 8, .k = 8, .normalized = false, .cache = 3, .buckets = 0},
      {.capacity = 9,
       .k = 2,
       .key_heads = 1,
       .cache = 4,
       .window = 3,
       .buckets = 4,
       .max_distance = 5,
       .strict = true,
       .null_score = -1,
       .attend_to_nothing = true},
      {.capacity = 7,
       .k = 3,
       .merge = MemorizingMerge::joint,
       .key_heads = 1,
       .cache = 2,
       .overlapping = false,
       .temperature = 2},
      {.capacity = 6, .k = 1, .merge = MemorizingMerge::joint, .normalized = false},
  };
}

/// A layer with all of its parameters drawn, those too that start as ones or zeros.
template <class T, class B = infty::EigenBackend, class Stored = T>
MemorizingAttention<T, B, Stored> drawn(const MemorizingConfig& config) {
  MemorizingAttention<T, B, Stored> layer(config, sizes, Random(1));
  Random random(2);
  for_each_parameter(layer, [&](const std::string&, Variable<T, B>& p) {
    p.value() = (p + Variable<T, B>(uniform_tensor<T, B>(p.shape(), random, -.3, .3))).value();
  });
  return layer;
}

/// What a layer makes of segments of these lengths, and its state behind them.
template <class T, class B, class Stored>
std::vector<T> answers(const MemorizingAttention<T, B, Stored>& layer,
                       infty::MemorizingState<T, B, Stored>& state, std::vector<Index> lengths,
                       std::uint64_t which = 3) {
  Random random(which);
  std::vector<T> all;
  for (const Index length : lengths) {
    infty::Pass<T, B> pass;
    const Variable<T, B> x(uniform_tensor<T, B>({state.memory.rows(), length, 6}, random));
    const auto part = layer.forward(state, x, pass).value().to_vector();
    all.insert(all.end(), part.begin(), part.end());
  }
  return all;
}

TEST_CASE("MemorizingAttention: the programs' numbers in double, every value and gradient") {
  for (const std::string name : cases) {
    const auto result = replay<double>(name);
    CAPTURE(name, result.worst_name);
    CHECK(result.worst <= 1e-12);
    CHECK(result.compared >= 36);
  }
}

TEST_CASE("MemorizingAttention: the programs' numbers in float to 1e-5") {
  for (const std::string name : cases) {
    const auto result = replay<float>(name);
    CAPTURE(name, result.worst_name);
    CHECK(result.worst <= 1e-5);  // about 100 units of 6e-8, as gradients add up
  }
}

TEST_CASE("MemorizingAttention: keeps to what every mixer keeps to") {
  const infty::tests::TemporaryFolder folder;
  for (const std::size_t kind :
       {std::size_t{2}, std::size_t{3}})  // all options, with a gate and jointly
    infty::testing::require_mixer<MemorizingAttention<double>>(all_kinds()[kind], folder / "state");
}

TEST_CASE("MemorizingAttention: kept as bfloat16 it keeps to the same") {
  const infty::tests::TemporaryFolder folder;
  infty::testing::require_mixer<MemorizingAttention<double, infty::EigenBackend, BFloat16>>(
      all_kinds()[3], folder / "state");
}

TEMPLATE_LIST_TEST_CASE("MemorizingAttention: kept as bfloat16 it reads the rounded numbers", "",
                        infty::tests::Types) {
  using T = typename TestType::T;
  using B = typename TestType::B;
  for (const MemorizingConfig& config : all_kinds()) {
    const auto narrow = drawn<T, B, BFloat16>(config);
    const auto wide = drawn<T, B>(config);
    auto state = narrow.make_state(2);
    answers(narrow, state, {5, 4});
    auto same = wide.make_state(2);
    same.cache = state.cache;
    same.memory.restore(state.memory.saved());
    CHECK(2 * state.memory.bytes() * (sizeof(T) / 4) == same.memory.bytes());
    const auto read = answers(narrow, state, {3}, 7);
    CHECK(read == answers(wide, same, {3}, 7));
    auto plain = wide.make_state(2);
    answers(wide, plain, {5, 4});
    CHECK(answers(wide, plain, {3}, 7) != read);
  }
}

TEST_CASE("MemorizingAttention: gradients behind a memory, an empty one and part of one") {
  for (const MemorizingConfig& config : all_kinds()) {
    const auto layer = drawn<double>(config);
    auto state = layer.make_state(3);
    answers(layer, state, {2, 2});
    infty::reset_row(state, 1);
    answers(layer, state, {1});  // 5, 1 and 5 vectors
    Random random(4);
    const auto weight = uniform_tensor<double>({3, 2, 6}, random);
    std::vector<Variable<double>> inputs{infty::tests::uniform_variable<double>({3, 2, 6}, random)};
    for_each_parameter(layer, [&](const std::string&, const auto& p) { inputs.push_back(p); });
    const auto fresh = layer.make_state(3);
    for (const auto& before : {state, fresh}) {
      const auto loss = [&] {
        auto after = before;
        infty::Pass<double> pass;
        return infty::sum(layer.forward(after, inputs[0], pass) * Variable<double>(weight));
      };
      CHECK(infty::gradient_check(loss, inputs) < 1e-7);
    }
  }
}

TEMPLATE_LIST_TEST_CASE("MemorizingAttention: a query reads the k nearest by hand", "",
                        infty::tests::Types) {
  using T = typename TestType::T;
  using B = typename TestType::B;
  // One head of one number, all maps the identity, no bias: scores are q k, values the inputs.
  MemorizingAttention<T, B> layer({.capacity = 3, .k = 2, .normalized = false, .buckets = 0},
                                  {.model_dim = 1, .heads = 1, .head_dim = 1});
  for_each_parameter(layer, [](const std::string& name, Variable<T, B>& p) {
    p.value().fill(name == "gate" ? T(0) : T(1));
  });
  auto state = layer.make_state(2);
  std::vector<T> distances;
  const auto read = [&](std::vector<T> x) {
    infty::Pass<T, B> pass{.traced = true};
    const Index length = static_cast<Index>(x.size()) / 2;
    const auto y = layer.forward(state, Tensor<T, B>::from({2, length, 1}, x), pass);
    for (const auto& entry : pass.trace)
      if (entry.name == "retrieved_distances") distances = entry.value.value().to_vector();
    CHECK(pass.trace.back().name == "retrieved");
    return std::pair{y.value().to_vector(), pass.trace.back().value.value().to_vector()};
  };
  // Nothing is remembered: half of what local attention reads, the first place itself.
  auto [y, retrieved] = read({2, 4, 3, 1, 0, 0, 0, 0});
  CHECK(retrieved == std::vector<T>(8, T(0)));
  CHECK(distances.empty());
  CHECK(static_cast<double>(y[0]) == Approx(1));
  CHECK(static_cast<double>(y[4]) == Approx(0));
  // Of 2 4 3 1 the last three are left; 1 finds 4 and 3, and so does 2, -1 finds 1 and 3.
  std::tie(y, retrieved) = read({1, -1, 0, 0});
  CHECK(distances == std::vector<T>{3, 2, 2, 3, 3, 2, 4, 3});  // of equal keys the older
  const double e = std::exp(1.), mixed = (4 * e + 3) / (e + 1),
               small = (1 * e * e + 3) / (e * e + 1);
  CHECK(static_cast<double>(retrieved[0]) == Approx(mixed));
  CHECK(static_cast<double>(retrieved[1]) == Approx(small));
  CHECK(static_cast<double>(y[0]) == Approx((mixed + 1) / 2));
  CHECK(infty::bytes_of(state) == 2 * 3 * 2 * sizeof(T) + 2 * sizeof(Index));
  infty::reset_row(state, 0);
  std::tie(y, retrieved) = read({1, 1});
  CHECK(distances[0] == 0);  // the row is fresh
  CHECK(retrieved[0] == 0);
  CHECK(infty::tests::error(std::vector<T>{retrieved[1]}, std::vector<T>{T(0)}) < 1e-6);
}

TEST_CASE("MemorizingAttention: what is retrieved stands behind the cache that the memory lacks") {
  const auto distance = [](bool overlapping, Index tokens) {
    MemorizingAttention<double> layer({.capacity = 8,
                                       .k = 1,
                                       .normalized = false,
                                       .cache = 2,
                                       .overlapping = overlapping,
                                       .buckets = 0},
                                      {.model_dim = 1, .heads = 1, .head_dim = 1});
    for_each_parameter(layer, [](const std::string&, Variable<double>& p) { p.value().fill(1); });
    auto state = layer.make_state(1);
    infty::Pass<double> pass{.traced = true};
    layer.forward(state, Tensor<double>::from({1, 5, 1}, {1, 5, 1, 1, 1}), pass);
    pass.trace.clear();
    pass.before = tokens;
    layer.forward(state, Tensor<double>::full({1, tokens + 2, 1}, 1), pass);
    for (const auto& entry : pass.trace)
      if (entry.name == "retrieved_distances") return entry.value.value().to_vector();
    return std::vector<double>{};
  };
  for (const bool overlapping : {true, false}) {
    CHECK(distance(overlapping, 0) == std::vector<double>{4, 5});
    // Memory tokens ask from where the first word stands.
    CHECK(distance(overlapping, 5) == std::vector<double>{4, 4, 4, 4, 4, 4, 5});
  }
}

TEST_CASE("MemorizingAttention: a row costs what it remembers, whatever the capacity") {
  const MemorizingAttention<float> layer({.capacity = Index{1} << 40, .k = 4}, sizes);
  const auto before = infty::HostPool::instance().statistics().bytes_in_use;
  auto state = layer.make_state(64);
  CHECK(infty::HostPool::instance().statistics().bytes_in_use - before < 10000);
  CHECK(infty::bytes_of(state) == 64 * sizeof(Index));
  answers(layer, state, {3});
  CHECK(infty::bytes_of(state) == 64 * (3 * 12 * sizeof(float) + sizeof(Index)));
}

TEST_CASE("MemorizingAttention: a state goes into a layer of another capacity") {
  const infty::tests::TemporaryFolder folder;
  const MemorizingConfig small{.capacity = 5, .k = 2}, large{.capacity = 9, .k = 2};
  const auto young = drawn<double>(small), old = drawn<double>(large);
  auto state = young.make_state(2), all = old.make_state(2);
  answers(young, state, {4, 3});
  infty::save_state(folder / "state", state);
  auto loaded = old.make_state(1);
  infty::load_state(folder / "state", loaded);
  CHECK(numbers_of(loaded) == numbers_of(state));
  answers(old, loaded, {3});
  CHECK(loaded.memory.count(0) == 8);  // 5 that it came with, and all that has come since

  // A smaller layer sees the latest of a larger one's, and forgets the others as it writes.
  answers(old, all, {4, 3});
  auto cut = all;
  const auto seen = answers(young, cut, {1});
  CHECK(cut.memory.count(0) == 5);
  auto latest = young.make_state(2);
  answers(young, latest, {4, 3});
  CHECK(answers(young, latest, {1}) == seen);
}

TEST_CASE("MemorizingAttention: a trained layer without a memory gets one, and begins as it was") {
  const infty::tests::TemporaryFolder folder;
  infty::CausalAttention<double> trained({.bias = false}, sizes, Random(5));
  infty::save_parameters(folder / "trained", trained);
  MemorizingAttention<double> layer(
      {.capacity = 20, .k = 3, .normalized = false, .buckets = 0, .gate_bias = -50}, sizes);
  const auto report = infty::load_parameters(folder / "trained", layer, "", {.strict = false});
  CHECK(report.missing == std::vector<std::string>{"gate"});
  CHECK(report.unexpected.empty());
  auto state = layer.make_state(2);
  answers(layer, state, {6});
  Random random(3);
  const Variable<double> x(uniform_tensor<double>({2, 5, 6}, random));
  infty::Pass<double> pass;
  CHECK(error(layer.forward(state, x, pass).value().to_vector(),
              trained.forward(x).value().to_vector()) < 1e-14);
  layer.gate.value().fill(0);
  CHECK(error(layer.forward(state, x, pass).value().to_vector(),
              trained.forward(x).value().to_vector()) > 1e-3);
}

TEST_CASE("MemorizingAttention: memory tokens are seen and not remembered") {
  const auto layer = drawn<double>({.capacity = 9, .k = 3, .cache = 4});
  Random random(6);
  const Variable<double> x(uniform_tensor<double>({2, 6, 6}, random));
  auto with = layer.make_state(2), without = with;
  infty::Pass<double> tokens{.before = 1, .behind = 2}, words;
  const auto y = layer.forward(with, x, tokens);
  CHECK(y.shape() == Shape{2, 6, 6});
  layer.forward(without, narrow(x, 1, 4), words);
  CHECK(error(numbers_of(with), numbers_of(without)) < 1e-15);
  CHECK(with.memory.count(0) == 3);
  infty::Pass<double> silent{.answer = false};
  auto observed = with;
  CHECK(layer.forward(observed, x, silent).size() == 0);
  layer.forward(with, x, words);
  CHECK(numbers_of(observed) == numbers_of(with));
}

TEST_CASE("MemorizingAttention: without memory between segments, places see those before them") {
  // Local attention alone: pieces are the whole where the cache holds all, for the gate is shut.
  const auto layer = drawn<double>(
      {.capacity = 30, .k = 1, .merge = MemorizingMerge::joint, .cache = 12, .overlapping = false});
  auto pieces = layer.make_state(1), whole = layer.make_state(1);
  Random random(8);
  const Variable<double> x(uniform_tensor<double>({1, 9, 6}, random));
  infty::Pass<double> pass;
  const auto all = layer.forward(whole, x, pass);
  for (const auto& [begin, end] : {std::pair{0, 4}, std::pair{4, 5}, std::pair{5, 9}})
    CHECK(error(layer.forward(pieces, narrow(x, begin, end), pass).value().to_vector(),
                narrow(all, begin, end).value().to_vector()) < 1e-14);
  CHECK(error(numbers_of(pieces), numbers_of(whole)) < 1e-14);
}

TEST_CASE("MemorizingAttention: what does not fit is refused, and the state is as it was") {
  const auto layer = drawn<double>({.capacity = 9, .k = 3, .cache = 4});
  auto state = layer.make_state(2);
  answers(layer, state, {5});
  const auto before = numbers_of(state);
  infty::Pass<double> pass, wrong{.before = 3, .behind = 3};
  const Variable<double> x(Tensor<double>::zeros({2, 5, 6}));
  CHECK_THROWS_AS(layer.forward(state, narrow(x, 0, 5), wrong), infty::ShapeError);
  CHECK_THROWS_AS(layer.forward(state, Variable<double>(Tensor<double>::zeros({3, 5, 6})), pass),
                  infty::ShapeError);
  CHECK(numbers_of(state) == before);
  auto other =
      infty::MemorizingAttention<double>({.capacity = 9, .k = 3, .key_heads = 1, .cache = 8}, sizes)
          .make_state(2);  // a cache of as many numbers
  CHECK_THROWS_AS(layer.forward(other, x, pass), infty::ShapeError);
  CHECK_THROWS_AS(layer.make_state(0), infty::ValueError);
}

TEST_CASE("MemorizingConfig: what cannot be is refused with words") {
  const auto refused = [](const MemorizingConfig& config, const char* words) {
    CHECK_THROWS_WITH(config.validate(), Catch::Contains(words));
    CHECK_THROWS_AS(MemorizingAttention<float>(config, sizes), infty::ValueError);
  };
  refused({.capacity = 0}, "capacity is 0: it must be at least 1");
  refused({.capacity = Index{1} << 60}, "capacity is");
  refused({.k = 0}, "k is 0: it must be at least 1");
  refused({.capacity = 8, .k = 9}, "k is 9: it must be at most capacity, 8");
  refused({.key_heads = 2}, "key_heads is 2");
  refused({.cache = -1}, "cache is -1");
  refused({.window = -1}, "window is -1");
  refused({.buckets = 1}, "buckets is 1");
  refused({.max_distance = 16}, "max_distance is 16");
  refused({.bias_scale = -1}, "bias_scale is -1");
  refused({.temperature = -1}, "temperature is -1");
  refused({.gate_bias = infty::math::infinity<double>}, "gate_bias is inf");
  refused({.epsilon = 0}, "epsilon is 0");
  // Sizes that each are fine, and no machine can hold together.
  CHECK_THROWS_AS(MemorizingAttention<float>({.capacity = Index{1} << 55, .k = 1}, sizes),
                  infty::ValueError);
}

TEST_CASE("MemorizingAttention: the same bits with any number of threads") {
  const auto run = [] {
    const auto layer = drawn<float>({.capacity = 200, .k = 5, .cache = 8});
    auto state = layer.make_state(3);
    return answers(layer, state, {130, 150, 1, 9});
  };
  CHECK(infty::tests::with_threads(1, run) == infty::tests::with_threads(3, run));
}

}  // namespace memorizing_tests
