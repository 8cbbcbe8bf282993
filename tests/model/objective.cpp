// SPDX-License-Identifier: MIT
#include <limits>
#include <vector>

#include <infty/autograd/elementwise.hpp>
#include <infty/autograd/reduce.hpp>
#include <infty/memory/compressive_memory.hpp>
#include <infty/memory/infty_memory.hpp>
#include <infty/model/objective.hpp>
#include <infty/model/transformer_lm.hpp>
#include <infty/testing/gradient_check.hpp>

#include "support/catch.hpp"
#include "support/tensors.hpp"
#include "support/types.hpp"

using infty::Index;
using infty::Random;
using infty::Tensor;
using infty::TransformerConfig;
using infty::Variable;

namespace {

/// A model of T with any memory whose losses all have something to say.
template <class Model>
struct OneSegment {
  using V = typename Model::V;
  Model model;
  typename Model::State state;
  Tensor<Index> inputs = Tensor<Index>::from({2, 3}, {1, 2, 3, 4, 5, 6});
  Tensor<Index> targets = Tensor<Index>::from({2, 3}, {2, 3, infty::ignore_index, 5, 6, 7});

  explicit OneSegment(const typename Model::MemoryConfig& memory)
      : model({.vocabulary = 9, .model_dim = 6, .layers = 2, .heads = 2, .feed_forward = 8}, memory,
              Random(3)),
        state(model.make_state(2)) {
    for (int i = 0; i < 4; ++i) model.observe(state, inputs);
  }
};

using Infty = infty::TransformerLM<infty::InftyMemory<double>>;
using Compressive = infty::TransformerLM<infty::CompressiveMemory<double>>;

OneSegment<Infty> with_long_term() {
  return OneSegment<Infty>(
      {.attention = {.capacity = 2},
       .memory = infty::LongTermConfig{.basis = 4, .widths = {.1, .3}, .samples = 6}});
}

}  // namespace

TEST_CASE("objective: the mean loss of known targets plus the weighted divergence") {
  auto s = with_long_term();
  infty::Tape tape;
  infty::Pass<double> pass;
  const auto hidden = s.model.forward(s.state, s.inputs, pass);
  REQUIRE(pass.losses.size() == 2);  // of two layers
  for (const auto& loss : pass.losses) CHECK(loss.name == "divergence");
  const double divergence =
      pass.losses[0].value.value().item() + pass.losses[1].value.value().item();
  REQUIRE(divergence > 0);

  const auto made = infty::objective(s.model, hidden, s.targets, pass,
                                     {{"compression", 1e9}, {"divergence", .25}});
  double sum = 0;
  for (const double loss : s.model.losses(hidden, s.targets).value().to_vector()) sum += loss;
  CHECK(made.loss.value().item() == Approx(sum / 5).epsilon(1e-14));
  CHECK(made.total.value().item() ==
        Approx(made.loss.value().item() + .25 * divergence).epsilon(1e-14));
}

TEST_CASE("objective: the loss of a compressive memory counts, by its weight") {
  OneSegment<Compressive> s({.capacity = 2, .compressed_capacity = 2, .rate = 2});
  infty::Tape tape;
  infty::Pass<double> pass;
  const auto hidden = s.model.forward(s.state, s.inputs, pass);
  REQUIRE(pass.losses.size() == 2);
  for (const auto& loss : pass.losses) CHECK(loss.name == "compression");
  const double compression = loss_named(pass, "compression").value().item();
  REQUIRE(compression > 0);
  const auto of_weight = [&](double weight) {
    return infty::objective(s.model, hidden, s.targets, pass, {{"compression", weight}});
  };
  CHECK(of_weight(0).total.value().item() == of_weight(3).loss.value().item());
  CHECK(of_weight(3).total.value().item() ==
        Approx(of_weight(3).loss.value().item() + 3 * compression).epsilon(1e-14));
}

TEST_CASE("regularised: its gradient is that of all its parts") {
  Random random(infty::tests::seed);
  const auto x = infty::tests::uniform_variable<double>({2, 3}, random, -1, 1);
  const auto y = infty::tests::uniform_variable<double>({4}, random, -1, 1);
  const auto total = [&] {
    infty::Pass<double> pass;
    pass.lose("x", infty::sum(x * x));
    pass.lose("y", infty::sum(y));
    return infty::regularised(infty::mean(infty::sigmoid(x)), pass, {{"x", .3}, {"y", -2}});
  };
  CHECK(infty::gradient_check(total, std::vector{x, y}) < 1e-8);
}

TEMPLATE_LIST_TEST_CASE("regularised: a loss plus others times their weights", "",
                        infty::tests::Types) {
  using T = typename TestType::T;
  using B = typename TestType::B;
  using V = Variable<T, B>;
  const auto scalar = [](T value) { return V(Tensor<T, B>::from({}, {value}), true); };
  const V loss = scalar(1), first = scalar(2), second = scalar(4);
  infty::Pass<T, B> losses;
  losses.lose("first", first);
  losses.lose("second", second);
  {
    infty::Tape tape;
    const V total = infty::regularised(loss, losses, {{"second", .5}, {"none", 7}, {"first", 3}});
    CHECK(total.value().item() == T(9));
    tape.backward(total);
  }
  CHECK(loss.grad().item() == T(1));
  CHECK(first.grad().item() == T(3));
  CHECK(second.grad().item() == T(.5));
  CHECK_THROWS_WITH(infty::regularised(loss, losses, {{"first", 1}}),
                    "[objective] the model's loss 'second' has no weight");
}

TEST_CASE("weight_of_sum: what a weight of a mean is for the sum") {
  CHECK(infty::weight_of_sum(1e-6, 8, 6, 100) == Approx(1e-6 / 4800).epsilon(1e-15));
  CHECK(infty::weight_of_sum(1, std::numeric_limits<infty::Index>::max(), 2, 2) ==
        Approx(0x1p-65).epsilon(1e-15));
  CHECK_THROWS_AS(infty::weight_of_sum(1, 0, 6, 100), infty::ValueError);
  CHECK_THROWS_AS(infty::weight_of_sum(1, 8, 0, 100), infty::ValueError);
  CHECK_THROWS_AS(infty::weight_of_sum(1, 8, 6, 0), infty::ValueError);
}
