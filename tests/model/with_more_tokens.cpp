// SPDX-License-Identifier: MIT
#include <cmath>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include <infty/memory/long_term_memory.hpp>
#include <infty/memory/with_memory.hpp>
#include <infty/model/with_more_tokens.hpp>

#include "support/catch.hpp"
#include "support/types.hpp"

namespace with_more_tokens_tests {

using infty::Index;
using infty::Random;
using infty::Shape;
using infty::Tensor;

infty::Gpt2Config small(bool tied) {
  return {.vocabulary = 11,
          .places = 8,
          .model_dim = 6,
          .layers = 2,
          .heads = 2,
          .tie_embedding = tied};
}

template <class Model>
std::vector<double> old_logits(const Model& model) {
  auto state = model.make_state(1);
  std::vector<double> all;
  for (int call = 0; call < 2; ++call) {
    const auto hidden = model.forward(state, Tensor<Index>::from(Shape{1, 3}, {4, 1, 10}));
    const auto some = model.logits(hidden).value();
    for (Index i = 0; i < 3; ++i)
      for (Index j = 0; j < 11; ++j) all.push_back(some.data()[i * model.config().vocabulary + j]);
  }
  return all;
}

}  // namespace with_more_tokens_tests

using namespace with_more_tokens_tests;

TEST_CASE("with_more_tokens: old tokens score as they did, new rows are GPT-2's own, copies") {
  const bool tied = GENERATE(true, false);
  using Mixer = infty::WithMemory<infty::CachedAttention<double>, infty::LongTermMemory<double>>;
  Mixer::Config memory{.attention = {.capacity = 3}};
  memory.memory->basis = 4;
  memory.memory->samples = 6;
  infty::Gpt2<Mixer> model(small(tied), memory, Random(3));
  infty::set_requires_grad(model, false, ".mixer.memory.");
  const auto larger = infty::with_more_tokens(model, 500, Random(5));
  CHECK(larger.config().vocabulary == 511);
  CHECK(larger.embedding.weight.shape() == Shape{511, 6});
  CHECK((larger.head.weight.identity() == larger.embedding.weight.identity()) == tied);
  CHECK(old_logits(larger) == old_logits(model));
  double square = 0;
  const auto table = larger.embedding.weight.value().to_vector();
  for (std::size_t i = 66; i < table.size(); ++i) square += table[i] * table[i];
  CHECK(std::sqrt(square / 3000) == Approx(.02).epsilon(.1));
  std::map<std::string, bool> trained;
  infty::for_each_parameter(
      model, [&](const std::string& name, const auto& p) { trained[name] = p.requires_grad(); });
  infty::for_each_parameter(larger, [&](const std::string& name, const auto& p) {
    CHECK(p.requires_grad() == trained.at(name));
  });
  const auto before = old_logits(larger);
  model.embedding.weight.value().fill(1);
  CHECK(old_logits(larger) == before);
  CHECK(infty::with_more_tokens(model, 0).config().vocabulary == 11);
}

TEST_CASE("with_more_tokens: refuses what no vocabulary has") {
  const infty::Gpt2<infty::CausalAttention<double>> model(small(true));
  CHECK_THROWS_AS(infty::with_more_tokens(model, -1), infty::ValueError);
  CHECK_THROWS_AS(infty::with_more_tokens(model, Index{1} << 62), infty::Error);
}

TEST_CASE("with_more_tokens: refuses a model that was moved from") {
  infty::Gpt2<infty::CausalAttention<double>> model(small(true));
  const auto taken = std::move(model);
  CHECK_THROWS_WITH(infty::with_more_tokens(model, 1),
                    "[with_more_tokens] the model's parameters are not there: it was moved from");
}
