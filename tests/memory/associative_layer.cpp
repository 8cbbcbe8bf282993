// SPDX-License-Identifier: MIT
#include <string>

#include <infty/memory/associative_layer.hpp>
#include <infty/memory/tokens_behind.hpp>
#include <infty/nn/causal_attention.hpp>
#include <infty/testing/memory_invariants.hpp>

#include "io/temporary_folder.hpp"
#include "support/catch.hpp"
#include "support/golden_armt.hpp"
#include "support/states.hpp"
#include "support/tensors.hpp"
#include "support/types.hpp"

using infty::AssociativeConfig;
using infty::AssociativeLayer;
using infty::Index;
using infty::Pass;
using infty::Random;
using infty::Shape;
using infty::Tensor;
using infty::TokensBehind;
using infty::Variable;
using infty::tests::numbers_of;

namespace associative_layer_tests {

template <class T, class B = infty::EigenBackend>
using Wrapped = AssociativeLayer<infty::CausalAttention<T, B>>;

/// A memory around attention, whose values are no zeros.
template <class T, class B = infty::EigenBackend>
Wrapped<T, B> wrapped(AssociativeConfig config, infty::AttentionSizes sizes, Random random) {
  Wrapped<T, B> layer(infty::CausalAttention<T, B>({}, sizes, random.split(0)), config,
                      sizes.model_dim, random.split(1));
  fill_uniform(layer.memory.value.weight.value(), -1, 1, random);
  return layer;
}

const infty::AttentionSizes sizes{.model_dim = 4, .heads = 2, .head_dim = 3};

/// Attention with a memory and memory tokens behind: a mixer that the kit can make.
struct Mixer : TokensBehind<Wrapped<double>> {
  using Config = AssociativeConfig;
  Mixer(Config config, infty::AttentionSizes of, Random random)
      : TokensBehind(wrapped<double>(config, of, random.split(0)), 2, of.model_dim,
                     random.split(1)) {}
};

}  // namespace associative_layer_tests

TEST_CASE("AssociativeLayer: the authors' numbers in double, every value and gradient, to 1e-9") {
  using infty::EigenBackend;
  const std::string name =
      GENERATE("armt_memory", "armt_memory_uncorrected", "armt_heads", "armt_gpt2");
  infty::tests::GoldenCase file(std::string(INFTY_TEST_DATA) + "/golden/" + name + ".safetensors");
  const auto result = file.text("kind") == "armt"
                          ? infty::tests::replay_armt<double, EigenBackend>(file)
                          : infty::tests::replay_armt_gpt2<double, EigenBackend>(file);
  CAPTURE(name, result.worst_name);
  CHECK(result.worst <= 1e-9);
  CHECK(result.compared >= 24);
}

TEMPLATE_LIST_TEST_CASE("AssociativeLayer: all vectors read, and the tokens behind are written", "",
                        infty::tests::Types) {
  using T = typename TestType::T;
  using B = typename TestType::B;
  using V = Variable<T, B>;
  const auto layer = associative_layer_tests::wrapped<T, B>(
      {.heads = 2, .key_dim = 4}, associative_layer_tests::sizes, Random(1));
  Random random(infty::tests::seed);
  const V x(infty::tests::uniform_tensor<T, B>({2, 7, 4}, random));
  auto state = layer.make_state(2);
  auto memory = layer.memory.make_state(2);
  for (int segment = 0; segment < 3; ++segment) {
    const V expected = layer.inner.forward(x + layer.memory.read(memory, x));
    layer.memory.write(memory, narrow(expected, 4, 7));
    Pass<T, B> pass{.before = 1, .behind = 3}, silent{.answer = false, .behind = 3};
    auto other = state;
    const V y = layer.forward(state, x, pass);
    CHECK(y.value().to_vector() == expected.value().to_vector());
    CHECK(numbers_of(state.memory) == numbers_of(memory));
    CHECK(layer.forward(other, x, silent).size() == 0);
    CHECK_FALSE(silent.answer);
    CHECK(numbers_of(other) == numbers_of(state));
  }
  // Without tokens the memory is read and not written.
  const auto before = numbers_of(state);
  Pass<T, B> pass, silent{.answer = false};
  CHECK(layer.forward(state, x, pass).value().to_vector() ==
        layer.inner.forward(x + layer.memory.read(memory, x)).value().to_vector());
  CHECK(layer.forward(state, x, silent).size() == 0);
  CHECK(numbers_of(state) == before);

  Pass<T, B> too_many{.behind = 8};
  CHECK_THROWS_AS(layer.forward(state, x, too_many), infty::ShapeError);
  CHECK_THROWS_AS(layer.forward(state, narrow(reshape(x, {7, 2, 4}), 0, 1), pass),
                  infty::ShapeError);
  CHECK(numbers_of(state) == before);
}

TEST_CASE("AssociativeLayer: keeps to what every memory keeps to") {
  // γ stops the gradient on purpose, so that central differences are others than backward.
  const infty::tests::TemporaryFolder folder;
  const auto config = GENERATE(
      AssociativeConfig{.key_dim = 4, .correction = false},
      AssociativeConfig{
          .heads = 2, .key_dim = 6, .unit_features = true, .denominator = false, .gating = true});
  infty::testing::require_mixer<associative_layer_tests::Mixer>(config, folder / "state", 1e-11);
}
