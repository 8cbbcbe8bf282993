// SPDX-License-Identifier: MIT
#include <vector>

#include <infty/nn/pass.hpp>

#include "support/catch.hpp"
#include "support/tensors.hpp"
#include "support/types.hpp"

using infty::Pass;
using infty::Random;
using infty::Tensor;
using infty::Variable;

TEMPLATE_LIST_TEST_CASE("Pass: drops out with the random numbers that it brings, or not at all", "",
                        infty::tests::Types) {
  using T = typename TestType::T;
  using B = typename TestType::B;
  Random random(infty::tests::seed);
  const auto x = infty::tests::uniform_variable<T, B>({40}, random),
             y = infty::tests::uniform_variable<T, B>({40}, random);
  const Pass<T, B> none{.dropout = .5};
  CHECK(none.drop() == 0);
  CHECK(none.dropped(x).identity() == x.identity());
  CHECK(none.add_dropped(x, y).value().to_vector() == (x + y).value().to_vector());

  Random draws(5), same(5);
  const Pass<T, B> pass{.random = &draws, .dropout = .5};
  CHECK(pass.drop() == .5);
  const auto dropped = pass.dropped(x).value().to_vector();
  CHECK(dropped == infty::dropout(x, .5, same).value().to_vector());
  CHECK(dropped != x.value().to_vector());
  CHECK(pass.add_dropped(x, y).value().to_vector() ==
        infty::add_dropped(x, y, .5, same).value().to_vector());
  CHECK(draws.counter() == same.counter());
}

TEST_CASE("Pass: losses are wanted where somebody learns, or says so") {
  Pass<float> pass, silent{.answer = false}, regularised{.regularised = true};
  CHECK_FALSE(pass.wants_losses());
  CHECK(regularised.wants_losses());
  {
    infty::Tape tape;
    CHECK(pass.wants_losses());
    CHECK_FALSE(silent.wants_losses());
    const auto guard = infty::no_grad();
    CHECK_FALSE(pass.wants_losses());
  }
  silent.regularised = true;
  CHECK_FALSE(silent.wants_losses());
}

TEMPLATE_LIST_TEST_CASE("loss_named: the sum of all losses of a name, with their gradients", "",
                        infty::tests::Types) {
  using T = typename TestType::T;
  using B = typename TestType::B;
  const auto scalar = [](T x) { return Variable<T, B>(Tensor<T, B>::full({}, x), true); };
  const auto a = scalar(2), b = scalar(3), c = scalar(5);
  infty::Tape tape;
  Pass<T, B> pass;
  pass.lose("far", a * a);
  pass.lose("near", b);
  pass.lose("far", c);
  const auto far = loss_named(pass, "far");
  CHECK(far.value().item() == T(9));
  CHECK(loss_named(pass, "near").value().item() == T(3));
  CHECK(loss_named(pass, "none").value().item() == T(0));
  tape.backward(far);
  CHECK(a.grad().item() == T(4));
  CHECK(c.grad().item() == T(1));
  CHECK_FALSE(b.has_grad());
}

TEST_CASE("Pass: what layers show is kept if anybody looks") {
  const Variable<float> x(Tensor<float>::full({2}, 1));
  Pass<float> blind, traced{.traced = true};
  blind.show("density", x);
  traced.show("density", x);
  traced.show("weights", x);
  CHECK(blind.trace.empty());
  REQUIRE(traced.trace.size() == 2);
  CHECK(traced.trace[0].name == "density");
  CHECK(traced.trace[1].name == "weights");
  CHECK(traced.trace[0].axes.empty());
  CHECK(traced.trace[0].layer == -1);
  traced.layer = 3;
  traced.show("weights", x + x, "row word");
  CHECK(traced.trace[2].axes == "row word");
  CHECK(traced.trace[2].layer == 3);
  CHECK(first_shown(traced, "weights").identity() == x.identity());
  CHECK_THROWS_WITH(first_shown(traced, "gate"), Catch::Matchers::Contains("has shown gate"));
  CHECK_THROWS_WITH(first_shown(blind, "gate"), Catch::Matchers::Contains("is not traced"));
  CHECK(traced.trace[1].value.identity() == x.identity());
}
