// SPDX-License-Identifier: MIT
#include <algorithm>
#include <cmath>
#include <cstddef>
#include <set>
#include <string>
#include <vector>

#include <infty/autograd/clone.hpp>
#include <infty/autograd/elementwise.hpp>
#include <infty/autograd/reduce.hpp>
#include <infty/memory/product_key_memory.hpp>
#include <infty/model/block.hpp>
#include <infty/nn/any_layer.hpp>
#include <infty/nn/causal_attention.hpp>
#include <infty/nn/to.hpp>
#include <infty/testing/gradient_check.hpp>
#include <infty/train/trainer.hpp>

#include "io/temporary_folder.hpp"
#include "support/catch.hpp"
#include "support/golden_product_key.hpp"
#include "support/tensors.hpp"
#include "support/threads.hpp"
#include "support/types.hpp"

using infty::Index;
using infty::Pass;
using infty::ProductKeyConfig;
using infty::ProductKeyMemory;
using infty::ProductKeyOutput;
using infty::Random;
using infty::Shape;
using infty::Tensor;
using infty::Variable;
using infty::tests::error;
using infty::tests::tolerance;

static_assert(infty::VectorMap<ProductKeyMemory<float>, float, infty::EigenBackend>);
static_assert(infty::SequenceLayer<ProductKeyMemory<double>>);

namespace product_key_tests {

const ProductKeyConfig small{.sub_keys = 5, .heads = 2, .k = 3, .key_dim = 4};

template <class T, class B = infty::EigenBackend>
std::vector<T> answer(const ProductKeyMemory<T, B>& memory, const Tensor<T, B>& x,
                      bool training = false) {
  Pass<T, B> pass{.training = training};
  return memory.forward(Variable<T, B>(x), pass).value().to_vector();
}

/// A memory behind an attention, that learns which of 16 vectors goes with which.
template <class T, class B = infty::EigenBackend>
struct LookingUp {
  using V = Variable<T, B>;
  infty::Block<infty::CausalAttention<T, B>, ProductKeyMemory<T, B>> block;
  Tensor<T, B> x, y;

  explicit LookingUp(ProductKeyConfig config = small)
      : block{.mixer = infty::CausalAttention<T, B>({}, {.model_dim = 6, .heads = 2, .head_dim = 3},
                                                    Random(1)),
              .mixer_norm = infty::LayerNorm<T, B>(6),
              .feed = ProductKeyMemory<T, B>(config, 6, Random(2)),
              .feed_norm = infty::LayerNorm<T, B>(6)} {
    Random random(infty::tests::seed);
    x = infty::tests::uniform_tensor<T, B>({2, 8, 6}, random);
    y = infty::tests::uniform_tensor<T, B>({2, 8, 6}, random);
  }

  template <class Visitor>
  void visit(Visitor&& see) {
    see("block", block);
  }

  V loss() const {
    auto state = block.make_state(2);
    Pass<T, B> pass;
    const V difference = block.forward(state, V(x), pass) - V(y);
    return infty::mean(difference * difference);
  }
};

struct Two {
  ProductKeyMemory<double> first, second;

  template <class Visitor>
  void visit(Visitor&& see) {
    see("first", first);
    see("second", second);
  }
};

}  // namespace product_key_tests

TEST_CASE("ProductKeyMemory: the authors' numbers in double, every value and gradient, to 1e-9") {
  const std::string name = GENERATE("single", "heads", "mlp");
  infty::tests::GoldenCase file(std::string(INFTY_TEST_DATA) + "/golden/product_key_" + name +
                                ".safetensors");
  const auto result = infty::tests::replay_product_key<double, infty::EigenBackend>(file);
  CAPTURE(name, result.worst_name);
  CHECK(result.worst <= 1e-9);
  CHECK(result.compared >= 9);
}

TEMPLATE_LIST_TEST_CASE("ProductKeyMemory: the weighted sum of the slots that it names", "",
                        infty::tests::Types) {
  using T = typename TestType::T;
  using B = typename TestType::B;
  const ProductKeyMemory<T, B> memory(product_key_tests::small, 6, Random(1));
  Random random(infty::tests::seed);
  const auto x = infty::tests::uniform_tensor<T, B>({2, 3, 6}, random);
  Pass<T, B> pass{.traced = true};
  const auto reading = memory.read(Variable<T, B>(x), pass);
  CHECK(reading.slots.shape() == Shape{2, 3, 2, 3});
  const auto slots = reading.slots.to_vector();
  const auto weights = reading.weights.value().to_vector();
  const auto values = memory.values.value().to_vector();
  std::vector<double> expected(36);
  for (std::size_t place = 0; place < 6; ++place)
    for (std::size_t j = 6 * place; j < 6 * (place + 1); ++j)
      for (std::size_t column = 0; column < 6; ++column)
        expected[6 * place + column] +=
            static_cast<double>(weights[j]) *
            static_cast<double>(values[6 * static_cast<std::size_t>(slots[j]) + column]);
  CHECK(error(reading.output.value().to_vector(), expected) < tolerance<T>);

  const auto y = memory.forward(Variable<T, B>(x), pass);
  CHECK(y.value().to_vector() == reading.output.value().to_vector());
  REQUIRE(pass.trace.size() == 3);
  CHECK(first_shown(pass, "product_key_weights").value().to_vector() == weights);
  CHECK(pass.trace[0].axes == "row word head rank");
  CHECK(first_shown(pass, "product_key_slots").value().to_vector() ==
        std::vector<T>(slots.begin(), slots.end()));
  // The share of each slot in what a head reads of six vectors.
  const Index n = product_key_tests::small.sub_keys;
  std::vector<double> use(static_cast<std::size_t>(2 * n * n));
  for (std::size_t i = 0; i < slots.size(); ++i)
    use[i / 3 % 2 * use.size() / 2 + static_cast<std::size_t>(slots[i])] +=
        static_cast<double>(weights[i]) / 6;
  const auto& shown = first_shown(pass, "product_key_use");
  CHECK(shown.shape() == Shape{2, n, n});
  CHECK(error(shown.value().to_vector(), use) < tolerance<T>);
}

TEMPLATE_LIST_TEST_CASE("ProductKeyMemory: learns, and a step touches the slots that were read", "",
                        infty::tests::Types) {
  using T = typename TestType::T;
  using B = typename TestType::B;
  ProductKeyConfig config = product_key_tests::small;
  config.sub_keys = 40;
  product_key_tests::LookingUp<T, B> model(config);
  infty::Trainer trainer(infty::named_parameters<T, B>(model),
                         {.steps = 30, .adam = {.learning_rate = .02, .weight_decay = .1}});
  const auto& memory = model.block.feed;
  std::set<Index> read;
  std::vector<double> losses;
  const auto before = memory.values.value().to_vector();
  for (int step = 0; step < 30; ++step) {
    losses.push_back(trainer.step([&] { return model.loss(); }).loss);
    REQUIRE(memory.values.row_grad());
    const auto rows = memory.values.row_grad()->rows.to_vector();
    CHECK(rows.size() <= 2 * 8 * 2 * 3);
    read.insert(rows.begin(), rows.end());
  }
  CHECK(losses.back() < .5 * losses.front());
  CHECK(read.size() < 1600);
  const auto after = memory.values.value().to_vector();
  for (Index slot = 0; slot < 1600; ++slot) {
    const auto at = static_cast<std::ptrdiff_t>(6 * slot);
    const bool same = std::equal(before.begin() + at, before.begin() + at + 6, after.begin() + at);
    if (same == read.contains(slot)) FAIL("slot " << slot);
  }
}

TEST_CASE("ProductKeyMemory: gradients, with what may stand around the sum") {
  ProductKeyConfig config = product_key_tests::small;
  const int option = GENERATE(0, 1, 2, 3, 4);
  if (option == 1) config.query_hidden = {7, 5};
  if (option == 2) config.query_batch_norm = false;
  if (option >= 3) config.value_dim = 5;
  if (option == 3) config.output = ProductKeyOutput::linear;
  if (option == 4) config.output = ProductKeyOutput::silu_gated;
  config.gate = option >= 3;
  config.row_gradients = option != 2;
  ProductKeyMemory<double> memory(config, 6, Random(3));
  Random random(infty::tests::seed);
  const auto x = infty::tests::uniform_variable<double>({2, 4, 6}, random);
  const auto weight = infty::tests::uniform_variable<double>({2, 4, 6}, random).detach();
  const bool training = GENERATE(true, false);
  const auto loss = [&] {
    Pass<double> pass{.training = training};
    return infty::sum(memory.forward(x, pass) * weight);
  };
  std::vector<infty::NamedParameter<double>> all{{"x", x}};
  for (const auto& parameter : infty::named_parameters<double>(memory))
    if (parameter.variable.requires_grad()) all.push_back(parameter);  // not the statistics
  CHECK(infty::gradient_check(loss, all) < 1e-7);
  if (training && config.query_batch_norm)
    CHECK_FALSE(memory.query.norms[0].running_mean.has_grad());
}

TEST_CASE("ProductKeyMemory: in use a vector is read alone, wherever it stands") {
  const ProductKeyMemory<double> memory(product_key_tests::small, 6, Random(1));
  Random random(infty::tests::seed);
  const auto x = infty::tests::uniform_tensor<double>({3, 4, 6}, random);
  product_key_tests::answer(memory, x, true);  // the statistics are those of something
  const auto whole = product_key_tests::answer(memory, x);
  std::vector<double> pieces;
  for (Index row = 0; row < 3; ++row) {
    const auto one = x.slice(row, row + 1).reshape(Shape{4, 6});
    for (Index place = 0; place < 4; ++place) {
      const auto part = product_key_tests::answer(memory, one.slice(place, place + 1));
      pieces.insert(pieces.end(), part.begin(), part.end());
    }
  }
  CHECK(error(pieces, whole) < 1e-14);
  CHECK(product_key_tests::answer(memory, Tensor<double>(Shape{0, 4, 6})).empty());
}

TEST_CASE("ProductKeyMemory: a pass trains while a tape records, unless it says otherwise") {
  const ProductKeyMemory<double> memory(product_key_tests::small, 6, Random(1));
  Random random(infty::tests::seed);
  const auto x = infty::tests::uniform_variable<double>({3, 4, 6}, random);
  const auto moves = [&](Pass<double> pass, bool taped) {
    const auto before = memory.query.norms[0].running_mean.value().to_vector();
    if (taped) {
      const infty::Tape tape;
      memory.forward(x, pass);
    } else {
      memory.forward(x, pass);
    }
    return memory.query.norms[0].running_mean.value().to_vector() != before;
  };
  CHECK(moves({}, true));
  CHECK_FALSE(moves({}, false));
  CHECK_FALSE(moves({.training = false}, true));
  CHECK(moves({.training = true}, false));
}

TEST_CASE("ProductKeyMemory: siblings share the values, and both train them") {
  ProductKeyConfig config = product_key_tests::small;
  config.output = ProductKeyOutput::silu_gated;
  config.query_batch_norm = false;
  ProductKeyMemory<double> first(config, 6, Random(1));
  product_key_tests::Two two{first, first.sibling(Random(2))};
  CHECK(same(two.first.values, two.second.values));
  CHECK(two.first.keys.value().to_vector() != two.second.keys.value().to_vector());
  CHECK(infty::count_parameters(two) == 2 * infty::count_parameters(first) - 25 * 6);
  Random random(infty::tests::seed);
  const auto x = infty::tests::uniform_variable<double>({1, 2, 6}, random);
  std::vector<Index> rows[3];
  for (const int which : {0, 1, 2}) {
    infty::zero_grad(two);
    infty::Tape tape;
    Pass<double> pass;
    Variable<double> y(Tensor<double>::zeros({1, 2, 6}));
    if (which != 1) y = y + two.first.forward(x, pass);
    if (which != 0) y = y + two.second.forward(x, pass);
    tape.backward(infty::sum(y));
    REQUIRE(two.first.values.row_grad());
    rows[which] = two.first.values.row_grad()->rows.to_vector();
  }
  std::set<Index> both(rows[0].begin(), rows[0].end());
  both.insert(rows[1].begin(), rows[1].end());
  CHECK(rows[2] == std::vector<Index>(both.begin(), both.end()));

  auto copy = infty::clone(two);
  CHECK(same(copy.first.values, copy.second.values));
  CHECK_FALSE(same(copy.first.values, two.first.values));
  CHECK(copy.first.values.grad_by_rows());
}

TEST_CASE("ProductKeyMemory: stopped, saved and gone on with, a training is bit for bit one run") {
  const infty::tests::TemporaryFolder folder;
  struct Run {
    product_key_tests::LookingUp<float> model;
    infty::Trainer<float> trainer;
    Run()
        : trainer(
              model,
              {.steps = 6, .adam = {.learning_rate = .05, .weight_decay = .1}, .max_norm = .5}) {
      trainer.fix_rate("values", .01);
    }
    void steps(int count) {
      for (int i = 0; i < count; ++i) trainer.step([&] { return model.loss(); });
    }
  };
  Run once;
  once.steps(6);
  once.trainer.save(folder / "once");
  {
    Run first;
    first.steps(3);
    first.trainer.save(folder / "half");
  }
  Run again;
  again.steps(1);  // nothing of it stays
  again.trainer.load(folder / "half");
  again.steps(3);
  again.trainer.save(folder / "again");
  CHECK(infty::tests::read_text(folder / "again") == infty::tests::read_text(folder / "once"));
  // What is saved counts the reads of each slot, and the statistics of the queries.
  const infty::SafetensorsFile file(folder / "once");
  CHECK(file.shape("optimizer.row_steps.block.feed.values") == Shape{25});
  const auto counts = file.read<float>("optimizer.row_steps.block.feed.values");
  CHECK(*std::max_element(counts.begin(), counts.end()) == 6);
  CHECK(file.read<float>("model.block.feed.query.norms.0.running_mean") !=
        std::vector<float>(8, 0));
}

TEST_CASE("ProductKeyMemory: the share of slots and memory of a step do not grow with the table") {
  const auto bytes = [](Index sub_keys) {
    ProductKeyConfig config = product_key_tests::small;
    config.sub_keys = sub_keys;
    product_key_tests::LookingUp<float> model(config);
    infty::Trainer trainer(infty::named_parameters<float>(model), {.steps = 3});
    std::size_t most = 0;
    for (int step = 0; step < 3; ++step) {
      infty::HostPool::instance().reset_peak();
      const std::size_t before = infty::HostPool::instance().statistics().bytes_in_use;
      infty::tests::with_threads(1, [&] { trainer.step([&] { return model.loss(); }); });
      most = infty::HostPool::instance().statistics().peak_bytes_in_use - before;
    }
    return most;
  };
  // 16 times the slots; the scores of four times the halves: 16 places, 2 heads, 2 halves.
  CHECK(bytes(128) <= bytes(32) + 2 * 16 * 2 * 2 * 96 * sizeof(float));
}

TEST_CASE("ProductKeyMemory: dropout falls where a pass brings random numbers") {
  Random numbers(infty::tests::seed);
  const auto x = infty::tests::uniform_tensor<double>({2, 3, 6}, numbers);
  for (const int which : {0, 1, 2}) {
    ProductKeyConfig config = product_key_tests::small;
    (which == 0   ? config.input_dropout
     : which == 1 ? config.query_dropout
                  : config.value_dropout) = .5;
    const ProductKeyMemory<double> memory(config, 6, Random(1));
    Random random(7);
    Pass<double> with{.random = &random, .training = false}, without{.training = false};
    const Variable<double> in(x);
    const auto dropped = memory.forward(in, with).value().to_vector();
    CHECK(random.counter() > 0);
    CHECK(dropped != memory.forward(in, without).value().to_vector());
    CHECK((std::count(dropped.begin(), dropped.end(), 0.) > 0) == (which == 2));
  }
  const ProductKeyMemory<double> memory(product_key_tests::small, 6, Random(1));
  Random random(7);
  Pass<double> with{.random = &random, .training = false};
  CHECK(memory.forward(Variable<double>(x), with).value().to_vector() ==
        product_key_tests::answer(memory, x));
  CHECK(random.counter() == 0);
}

TEST_CASE("ProductKeyMemory: any layer holds it, and `to` copies it with its statistics") {
  const ProductKeyMemory<double> memory(product_key_tests::small, 6, Random(1));
  Random random(infty::tests::seed);
  const auto x = infty::tests::uniform_tensor<double>({2, 3, 6}, random);
  product_key_tests::answer(memory, x, true);
  const auto expected = product_key_tests::answer(memory, x);
  const auto copy = infty::to<infty::EigenBackend>(memory);
  CHECK(product_key_tests::answer(copy, x) == expected);
  CHECK(copy.values.grad_by_rows());
  CHECK_FALSE(copy.query.norms[0].running_mean.requires_grad());
  infty::AnyLayer<double> any(memory);
  CHECK(infty::count_parameters(any) == infty::count_parameters(memory));
  auto state = any.make_state(2);
  Pass<double> pass;
  CHECK(infty::run_layer(any, state, Variable<double>(x), pass).value().to_vector() == expected);
}

TEST_CASE("ProductKeyConfig: what cannot be is refused by name") {
  const auto make = [](ProductKeyConfig config, Index d = 6) {
    const ProductKeyMemory<float> memory(config, d, Random(1));
  };
  const auto with = [](auto change) {
    ProductKeyConfig config = product_key_tests::small;
    change(config);
    return config;
  };
  CHECK_THROWS_WITH(make(with([](auto& c) { c.sub_keys = 0; })),
                    "[ProductKeyConfig] sub_keys is 0: it must be at least 1");
  CHECK_THROWS_WITH(make(with([](auto& c) { c.heads = 0; })),
                    "[ProductKeyConfig] heads is 0: it must be at least 1");
  CHECK_THROWS_WITH(make(with([](auto& c) { c.k = 0; })),
                    "[ProductKeyConfig] k is 0: it must be at least 1");
  CHECK_THROWS_WITH(make(with([](auto& c) { c.k = 6; })),
                    "[ProductKeyConfig] k is 6, sub_keys is 5: a head finds its k among the best k "
                    "of either half, so k must be at most sub_keys");
  CHECK_THROWS_WITH(make(with([](auto& c) { c.key_dim = 5; })),
                    "[ProductKeyConfig] key_dim is 5: it must be even, for it is halved between "
                    "the two sets of keys");
  CHECK_THROWS_WITH(make(with([](auto& c) { c.key_dim = 0; })),
                    "[ProductKeyConfig] key_dim is 0: it must be at least 2");
  CHECK_THROWS_AS(make(with([](auto& c) { c.value_dim = -1; })), infty::ValueError);
  CHECK_THROWS_WITH(make(with([](auto& c) { c.value_dim = 5; })),
                    "[ProductKeyMemory] value_dim is 5, model_dim is 6: values of another width "
                    "need an output, `linear` or `silu_gated`");
  CHECK_THROWS_AS(make(with([](auto& c) { c.query_hidden = {4, 0}; })), infty::ValueError);
  CHECK_THROWS_AS(make(with([](auto& c) { c.batch_norm_momentum = 2; })), infty::ValueError);
  CHECK_THROWS_AS(make(with([](auto& c) { c.batch_norm_epsilon = 0; })), infty::ValueError);
  CHECK_THROWS_WITH(make(with([](auto& c) { c.value_dropout = 1; })),
                    "[ProductKeyConfig] value_dropout is 1: it must lie in [0, 1)");
  CHECK_THROWS_AS(make(with([](auto& c) { c.query_dropout = -.5; })), infty::ValueError);
  CHECK_THROWS_AS(make(with([](auto& c) { c.input_dropout = std::nan(""); })), infty::ValueError);
  CHECK_THROWS_AS(make(with([](auto& c) { c.key_bound = -1; })), infty::ValueError);
  CHECK_THROWS_AS(make(with([](auto& c) { c.sub_keys = Index{1} << 40; })), infty::ValueError);
  CHECK_THROWS_AS(make(with([](auto& c) { c.heads = Index{1} << 60; })), infty::ValueError);
  CHECK_THROWS_WITH(make(product_key_tests::small, 0),
                    "[ProductKeyMemory] model_dim is 0: it must be at least 1");

  const ProductKeyMemory<float> memory(product_key_tests::small, 6, Random(1));
  Pass<float> pass;
  CHECK_THROWS_WITH(memory.forward(Variable<float>(Tensor<float>::zeros({2, 3, 5})), pass),
                    "[ProductKeyMemory] x is [2, 3, 5], model_dim is 6: x must be [..., 6]");
}
