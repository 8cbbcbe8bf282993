// SPDX-License-Identifier: MIT
#include <cmath>
#include <cstddef>
#include <limits>
#include <stdexcept>
#include <string>
#include <vector>

#include <infty/autograd/elementwise.hpp>
#include <infty/autograd/linear.hpp>
#include <infty/autograd/reduce.hpp>
#include <infty/train/schedule.hpp>
#include <infty/train/train_step.hpp>

#include "support/catch.hpp"
#include "support/count_new.hpp"
#include "support/model.hpp"
#include "support/types.hpp"

using infty::Adam;
using infty::Index;
using infty::Random;
using infty::Tensor;
using infty::Variable;
using infty::tests::TwoLayers;

namespace {

constexpr double not_a_number = std::numeric_limits<double>::quiet_NaN();

// The mean square of model(x) - target.
template <class T, class B>
Variable<T, B> loss_of(TwoLayers<T, B>& model, const Variable<T, B>& x,
                       const Variable<T, B>& target) {
  const auto hidden = infty::sigmoid(infty::linear(x, model.first.weight, model.first.bias));
  const auto y = infty::linear(hidden, model.second.weight, model.second.bias);
  const auto difference = y + infty::scale(target, T(-1));
  return infty::mean(difference * difference);
}

struct Setup {
  Random random{infty::tests::seed};
  TwoLayers<double> model{3, 8, 2, Random(infty::tests::seed, 1)};
  Variable<double> x{infty::tests::uniform_tensor<double>({16, 3}, random)};
  Variable<double> target{infty::tests::uniform_tensor<double>({16, 2}, random)};
  Adam<double> adam{model};

  Variable<double> loss() { return loss_of(model, x, target); }

  // All parameters and all of the optimiser's state.
  std::vector<double> everything() {
    std::vector<double> all;
    const auto add = [&](const auto& values) {
      all.insert(all.end(), values.begin(), values.end());
    };
    for (const auto& parameter : adam.parameters()) add(parameter.variable.value().to_vector());
    adam.visit([&](const std::string&, auto& value) {
      if constexpr (requires { value.to_vector(); })
        add(value.to_vector());
      else
        all.push_back(static_cast<double>(value));
    });
    return all;
  }
};

// y = x, whose backward pass makes NaN.
Variable<double> poisoned(const Variable<double>& x) {
  return infty::record(
      Variable<double>(x.value().clone()),
      [x](const Tensor<double>&) { x.grad().fill(not_a_number); }, x);
}

}  // namespace

TEST_CASE("train_step: says what it did, and does what its parts do") {
  Setup a, b;
  const infty::TrainStep step =
      infty::train_step(a.adam, {.learning_rate = 0.01, .max_norm = 0.1}, [&] { return a.loss(); });

  {
    infty::Tape tape;
    const auto loss = b.loss();
    CHECK(step.loss == loss.value().item());
    tape.backward(loss);
  }
  CHECK(step.grad_norm == infty::clip_grad_norm(b.adam.parameters(), 0.1));
  CHECK(step.grad_norm > 0.1);
  CHECK(step.learning_rate == 0.01);
  b.adam.step(0.01);
  CHECK(a.everything() == b.everything());
}

TEST_CASE("train_step: old gradients do not count") {
  Setup a, b;
  a.model.first.weight.grad().fill(1000);
  infty::train_step(a.adam, {}, [&] { return a.loss(); });
  infty::train_step(b.adam, {}, [&] { return b.loss(); });
  CHECK(a.everything() == b.everything());
}

TEMPLATE_LIST_TEST_CASE("train_step: a small model learns its targets", "", infty::tests::Types) {
  using T = typename TestType::T;
  using B = typename TestType::B;
  Random random(infty::tests::seed);
  TwoLayers<T, B> model(3, 16, 1, random.split(0));
  const Variable<T, B> x(infty::tests::uniform_tensor<T, B>({8, 3}, random));
  const Variable<T, B> target(infty::tests::uniform_tensor<T, B>({8, 1}, random));
  Adam<T, B> adam(model);
  const infty::CosineSchedule rate{.peak = 0.03, .warmup_steps = 20, .total_steps = 1500};
  infty::TrainStep first, last;
  for (Index i = 0; i < rate.total_steps; ++i) {
    last = infty::train_step(adam, {.learning_rate = rate(i), .max_norm = 1},
                             [&] { return loss_of(model, x, target); });
    if (i == 0) first = last;
  }
  CHECK(first.loss > 0.05);
  CHECK(last.loss < 1e-4);  // more parameters than targets: it can be learnt to the end
}

TEST_CASE("train_step: a loss that is NaN stops with the step and changes nothing") {
  Setup s;
  infty::train_step(s.adam, {}, [&] { return s.loss(); });
  const auto before = s.everything();
  s.target.value().data()[5] = not_a_number;
  CHECK_THROWS_WITH(infty::train_step(s.adam, {}, [&] { return s.loss(); }),
                    "[train_step] step 1: the loss is nan, and all parameters are finite");
  CHECK(s.everything() == before);
  CHECK(infty::Tape::active() == nullptr);

  s.target.value().fill(0);
  CHECK_NOTHROW(infty::train_step(s.adam, {}, [&] { return s.loss(); }));
}

TEST_CASE("train_step: behind a NaN loss it finds the parameter") {
  Setup s;
  s.model.second.weight.value().data()[3] = -std::numeric_limits<double>::infinity();
  s.model.second.bias.value().fill(not_a_number);
  CHECK_THROWS_AS(infty::train_step(s.adam, {}, [&] { return s.loss(); }), infty::NonFiniteError);
  CHECK_THROWS_WITH(
      infty::train_step(s.adam, {}, [&] { return s.loss(); }),
      "[train_step] step 0: parameter second.weight is not finite, and the loss is nan");
}

TEST_CASE("train_step: a gradient that is NaN stops with its name and changes nothing") {
  Setup s;
  const auto before = s.everything();
  const auto loss = [&] { return s.loss() + infty::sum(poisoned(s.model.first.bias)); };
  CHECK_THROWS_AS(infty::train_step(s.adam, {}, loss), infty::NonFiniteError);
  std::string message;
  try {
    infty::train_step(s.adam, {}, loss);
  } catch (const infty::NonFiniteError& error) {
    message = error.what();
  }
  CHECK(message.find("[train_step] step 0, loss ") == 0);
  CHECK(message.find("the gradient of first.bias has norm nan") != message.npos);
  CHECK(s.everything() == before);
}

TEST_CASE("train_step: a gradient whose square overflows stops, unless it is clipped") {
  TwoLayers<float> model{3, 8, 2, Random(infty::tests::seed)};
  Adam<float> adam(model);
  const auto loss = [&] { return infty::scale(infty::sum(model.second.bias), 1e25F); };
  const auto before = model.second.bias.value().to_vector();
  CHECK_THROWS_WITH(infty::train_step(adam, {}, loss),
                    Catch::Contains("whose square is no number in Adam"));
  CHECK(model.second.bias.value().to_vector() == before);
  CHECK(adam.steps() == 0);
  CHECK_NOTHROW(infty::train_step(adam, {.max_norm = 1}, loss));
  CHECK(adam.steps() == 1);
}

TEST_CASE("train_step: an exception in the loss, or a loss that is none, changes nothing") {
  Setup s;
  const auto before = s.everything();
  const auto throws = []() -> Variable<double> { throw std::runtime_error("no data"); };
  CHECK_THROWS_WITH(infty::train_step(s.adam, {}, throws), "no data");
  CHECK_THROWS_WITH(infty::train_step(s.adam, {}, [&] { return s.x; }),
                    "[train_step] the loss is [16, 3]: it must have one element");
  CHECK_THROWS_AS(infty::train_step(s.adam, {.learning_rate = -1}, [&] { return s.loss(); }),
                  infty::ValueError);
  CHECK_THROWS_AS(infty::train_step(s.adam, {.max_norm = 0}, [&] { return s.loss(); }),
                  infty::ValueError);
  CHECK(s.everything() == before);
  CHECK(infty::Tape::active() == nullptr);
}

TEST_CASE("train_step: asks the system for no memory after the first") {
  Setup s;
  const auto step = [&] {
    infty::train_step(s.adam, {.learning_rate = 1e-3, .max_norm = 0.01}, [&] { return s.loss(); });
  };
  const auto allocations = [] {
    return infty::HostPool::instance().statistics().system_allocations;
  };
  step();
  const std::size_t pool = allocations(), heap = infty::tests::new_calls;
  for (int i = 0; i < 5; ++i) step();
  const std::size_t pool_after = allocations(), heap_after = infty::tests::new_calls;
  CHECK(pool_after == pool);
  CHECK(heap_after == heap);
}

TEST_CASE("train_step: gradients whose joint square overflows are clipped, and parameters move") {
  for (const bool apart : {false, true}) {
    CAPTURE(apart);
    TwoLayers<double> model{3, 8, 2, Random(infty::tests::seed)};
    Adam<double> adam(model);
    if (apart) adam.fix_rate("second", .5);
    const auto loss = [&] {
      return infty::sum(model.second.bias, .9e154) + infty::sum(model.second.weight, -.3e154) +
             infty::sum(model.first.bias, .4e154);
    };
    const double squares = .9 * .9 * 2 + .3 * .3 * 16 + .4 * .4 * 8;
    const auto bias = model.second.bias.value().to_vector(),
               weight = model.second.weight.value().to_vector();
    const auto step = infty::train_step(adam, {.max_norm = 1}, loss);
    CHECK(step.grad_norm == Approx(std::sqrt(squares) * 1e154).epsilon(1e-14));
    const double clipped = std::sqrt(squares - (apart ? .4 * .4 * 8 : 0));
    CHECK(model.second.bias.grad().to_vector()[0] == Approx(.9 / clipped).epsilon(1e-14));
    CHECK(model.second.weight.grad().to_vector()[0] == Approx(-.3 / clipped).epsilon(1e-14));
    CHECK(model.second.bias.value().to_vector()[0] < bias[0]);
    CHECK(model.second.weight.value().to_vector()[0] > weight[0]);
    CHECK_THROWS_WITH(infty::train_step(adam, {}, loss),
                      Catch::Contains("whose square is no number in Adam"));
  }
}

TEST_CASE("train_step: gradients of parameters with a rate of their own are clipped apart") {
  for (const bool apart : {false, true}) {
    Setup setup;
    if (apart) setup.adam.fix_rate("second.weight", .5);
    const auto& parameters = setup.adam.parameters();
    setup.adam.zero_grad();
    {
      infty::Tape tape;
      tape.backward(setup.loss());
    }
    double own = 0, rest = 0;  // squares before
    for (std::size_t i = 0; i < parameters.size(); ++i) {
      const bool is_own = parameters[i].name == "second.weight";
      CHECK(setup.adam.has_own_rate(i) == (apart && is_own));
      for (const double g : parameters[i].variable.grad().to_vector())
        (is_own ? own : rest) += g * g;
    }
    constexpr double most = 1e-2;
    const auto step =
        infty::train_step(setup.adam, {.max_norm = most}, [&] { return setup.loss(); });
    CHECK(step.grad_norm == Catch::Approx(std::sqrt(own + rest)));
    double clipped_own = 0, clipped_rest = 0;
    for (const auto& parameter : parameters)
      for (const double g : parameter.variable.grad().to_vector())
        (parameter.name == "second.weight" ? clipped_own : clipped_rest) += g * g;
    CHECK(std::sqrt(clipped_own + clipped_rest) ==
          Catch::Approx(apart ? std::sqrt(2.) * most : most).epsilon(1e-3));
    if (apart) CHECK(std::sqrt(clipped_own) == Catch::Approx(most).epsilon(1e-3));
  }
}
