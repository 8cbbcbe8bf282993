// SPDX-License-Identifier: MIT
// What is kept with the parameters and never trained stays so when all of a layer is frozen and
// thawed, and in its copies.
#include <string>
#include <vector>

#include <infty/autograd/clone.hpp>
#include <infty/autograd/parameters.hpp>
#include <infty/memory/linear_attention.hpp>
#include <infty/memory/memsizer.hpp>
#include <infty/nn/batch_norm.hpp>
#include <infty/nn/to.hpp>

#include "support/catch.hpp"

using infty::Random;

namespace buffers {

constexpr infty::AttentionSizes sizes{.model_dim = 4, .heads = 2, .head_dim = 2};

/// The names of what is not trained.
template <class L>
std::vector<std::string> frozen(const L& layer) {
  std::vector<std::string> names;
  infty::for_each_parameter(layer, [&](const std::string& name, const auto& p) {
    if (!p.requires_grad()) names.push_back(name);
  });
  return names;
}

/// Freezes all and thaws all, in the layer and in a copy of it while it is frozen.
template <class L>
void check_thawed(L layer, const std::vector<std::string>& wanted) {
  REQUIRE(frozen(layer) == wanted);
  const auto all = infty::set_requires_grad(layer, false);
  L copy = infty::clone(layer);
  for (L* const each : {&layer, &copy}) {
    CHECK(infty::set_requires_grad(*each, true) == all - std::ssize(wanted));
    CHECK(frozen(*each) == wanted);
  }
  for (const std::string& name : wanted) {
    CHECK_THROWS_WITH(infty::set_requires_grad(layer, true, name),
                      Catch::Contains("only buffers have '" + name + "' in their names"));
    infty::for_each_parameter(layer, [&](const std::string& own, auto& p) {
      if (own == name) p.set_requires_grad(true);
    });
  }
  CHECK(frozen(layer).empty());
}

}  // namespace buffers

TEST_CASE("buffers: what is never trained is not thawed with the rest") {
  using namespace buffers;
  check_thawed(infty::BatchNorm<float, infty::EigenBackend>(3),
               {"running_mean", "running_variance"});
  check_thawed(
      infty::LinearAttention<float>({.features = infty::FeatureMap::gaussian}, sizes, Random(1)),
      {"features.projections"});
  check_thawed(infty::MemSizer<float>({.slots = 4, .train_keys = false}, sizes, Random(1)),
               {"query.weight"});
  check_thawed(infty::MemSizer<float>({.slots = 4}, sizes, Random(1)), {});
}

TEST_CASE("buffers: a copy is one if what it was made of is") {
  infty::Variable<float> x(infty::Tensor<float>::zeros({2}));
  CHECK_FALSE(x.is_buffer());
  x.set_buffer(true);
  CHECK(x.to<infty::EigenBackend>().is_buffer());
  x.set_buffer(false);
  CHECK_FALSE(x.to<infty::EigenBackend>().is_buffer());
}
