// SPDX-License-Identifier: MIT
#include <string>
#include <vector>

#include <infty/autograd/parameters.hpp>
#include <infty/memory/short_term_memory.hpp>
#include <infty/model/transformer_lm.hpp>
#include <infty/retrieval/spalm.hpp>
#include <infty/testing/gradient_check.hpp>

#include "support/catch.hpp"
#include "support/golden_retrieval.hpp"
#include "support/tensors.hpp"
#include "support/types.hpp"

using infty::Index;
using infty::Random;
using infty::Tensor;
using infty::Variable;

namespace spalm_tests {

using Base = infty::TransformerLM<infty::ShortTermMemory<double>>;
using Model = infty::Spalm<Base>;

const infty::TransformerConfig sizes{
    .vocabulary = 7, .model_dim = 4, .layers = 1, .heads = 2, .feed_forward = 5};
const infty::ShortTermConfig memory{.capacity = 3};

Tensor<Index> drawn(const infty::Shape& shape, std::uint64_t seed) {
  Random random(seed);
  std::vector<Index> tokens;
  for (Index i = 0; i < shape.size(); ++i) tokens.push_back(random.below(7));
  return Tensor<Index>::from(shape, tokens);
}

}  // namespace spalm_tests

TEMPLATE_LIST_TEST_CASE("Spalm: the recorded cases", "", infty::tests::Types) {
  using T = typename TestType::T;
  using B = typename TestType::B;
  for (const char* const name : {"inner", "l2"}) {
    infty::tests::GoldenCase file(std::string(INFTY_TEST_DATA) + "/golden/spalm_" + name +
                                  ".safetensors");
    CAPTURE(name);
    CHECK(infty::tests::replay_retrieval<T, B>(file).worst < 8 * infty::tests::tolerance<T>);
  }
}

TEST_CASE("Spalm: gradients of a whole model behind another segment against differences") {
  spalm_tests::Model model(spalm_tests::sizes, spalm_tests::memory, Random(3));
  const auto tokens = spalm_tests::drawn({2, 3}, 1), targets = spalm_tests::drawn({2, 3}, 2);
  const auto found = spalm_tests::drawn({2, 3, 2}, 4);
  auto read = model.make_state(2);
  model.observe(read, spalm_tests::drawn({2, 3}, 5));  // needs nothing that was looked up
  const auto loss = [&] {
    auto state = read;
    infty::Pass<double> pass{.retrieved = found};
    return infty::sum(model.losses(model.forward(state, tokens, pass), targets));
  };
  CHECK(infty::gradient_check(loss, infty::parameters<double>(model), 1e-6) < 1e-8);
}

TEST_CASE("Spalm: what it answers is the base's answer and what it attends to, by its gate") {
  spalm_tests::Model model(spalm_tests::sizes, spalm_tests::memory, Random(3));
  const spalm_tests::Base base(spalm_tests::sizes, spalm_tests::memory, Random(3));
  const auto tokens = spalm_tests::drawn({1, 4}, 1);
  auto own = model.make_state(1), of_base = base.make_state(1);
  infty::Pass<double> pass{.traced = true, .retrieved = spalm_tests::drawn({1, 4, 3}, 4)};
  const auto h = base.forward(of_base, tokens);
  const auto mixed = model.forward(own, tokens, pass);
  const auto gate = infty::first_shown(pass, "spalm_gate").value().to_vector();
  const auto weights = infty::first_shown(pass, "spalm_attention").value().to_vector();
  CHECK(gate.size() == 4);
  CHECK(weights.size() == 12);
  const auto vectors = model.embedding.vectors(pass.retrieved.reshape({1, 12})).value().to_vector();
  std::vector<double> wanted;
  const auto hidden = h.value().to_vector();
  for (std::size_t t = 0; t < 4; ++t)
    for (std::size_t i = 0; i < 4; ++i) {
      double m = 0;
      for (std::size_t j = 0; j < 3; ++j) m += weights[3 * t + j] * vectors[(3 * t + j) * 4 + i];
      wanted.push_back((1 - gate[t]) * m + gate[t] * hidden[4 * t + i]);
    }
  CHECK(infty::tests::error(mixed.value().to_vector(), wanted) < 1e-14);
}

TEST_CASE("Spalm: without what was looked up it reads nothing, and its state stays") {
  const spalm_tests::Model model(spalm_tests::sizes, spalm_tests::memory, Random(3));
  const auto tokens = spalm_tests::drawn({1, 4}, 1);
  auto state = model.make_state(1);
  CHECK_THROWS_AS(model.forward(state, tokens), infty::ShapeError);
  infty::Pass<double> pass{.retrieved = spalm_tests::drawn({1, 3, 2}, 4)};
  CHECK_THROWS_AS(model.forward(state, tokens, pass), infty::ShapeError);
  infty::Pass<double> wrong{.retrieved = Tensor<Index>::full({1, 4, 1}, 7)};
  CHECK_THROWS_AS(model.forward(state, tokens, wrong), infty::ValueError);
  auto fresh = model.make_state(1);
  infty::Pass<double> good{.retrieved = spalm_tests::drawn({1, 4, 2}, 4)};
  infty::Pass<double> same = good;
  CHECK(model.forward(state, tokens, good).value().to_vector() ==
        model.forward(fresh, tokens, same).value().to_vector());
}

TEST_CASE("SpalmGate: shapes that do not fit") {
  const infty::SpalmGate<double> gate(3, Random(1));
  const auto x = [](const infty::Shape& shape) {
    return Variable<double>(Tensor<double>::zeros(shape));
  };
  CHECK_THROWS_AS(gate.forward(x({1, 2, 4}), x({1, 2, 1, 4})), infty::ShapeError);
  CHECK_THROWS_AS(gate.forward(x({1, 2, 3}), x({1, 1, 1, 3})), infty::ShapeError);
  CHECK_THROWS_AS(gate.forward(x({1, 2, 3}), x({1, 2, 0, 3})), infty::ShapeError);
  CHECK_THROWS_AS(infty::SpalmGate<double>(0, Random(1)), infty::ValueError);
}
