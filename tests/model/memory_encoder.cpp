// SPDX-License-Identifier: MIT
#include <infty/memory/memory_tokens.hpp>
#include <infty/model/layers.hpp>
#include <infty/model/memory_encoder.hpp>

#include "support/catch.hpp"
#include "support/tensors.hpp"

namespace memory_encoder {

using infty::Index;
using infty::MemoryEncoding;
using V = infty::Variable<double>;
using Layer = infty::MemoryEncoderLayer<double>;

constexpr infty::AttentionSizes sizes{.model_dim = 4, .heads = 2, .head_dim = 2};

Layer layer(MemoryEncoding encoding) {
  return Layer({.encoding = encoding, .feed_forward = 5}, sizes, infty::Random(1));
}

}  // namespace memory_encoder

TEST_CASE("MemoryEncoderLayer: both read both, or the sequence the new memory alone") {
  using namespace memory_encoder;
  infty::Random random(infty::tests::seed);
  const V x(infty::tests::uniform_tensor<double>({2, 5, 4}, random));
  const V old = narrow(x, 0, 2), words = narrow(x, 2, 5);
  for (const auto encoding : {MemoryEncoding::control, MemoryEncoding::bottleneck}) {
    const Layer own = layer(encoding);
    infty::Pass<double> pass{.before = 2};
    const V y = own.forward(x, pass), memory = own.memory.forward(old, x, pass);
    CHECK(narrow(y, 0, 2).value().to_vector() == memory.value().to_vector());
    const V& context = encoding == MemoryEncoding::control ? x : memory;
    CHECK(narrow(y, 2, 5).value().to_vector() ==
          own.sequence.forward(words, context, pass).value().to_vector());
  }
}

TEST_CASE("MemoryEncoderLayer: is refused in words without memory tokens in front") {
  using namespace memory_encoder;
  using Catch::Matchers::Contains;
  const Layer own = layer(MemoryEncoding::control);
  const V x(infty::Tensor<double>::zeros({2, 5, 4}));
  infty::Pass<double> none, behind{.before = 1, .behind = 1}, more{.before = 6};
  CHECK_THROWS_WITH(own.forward(x, none), Contains("0 memory tokens are in front"));
  CHECK_THROWS_WITH(own.forward(x, behind), Contains("1 behind"));
  CHECK_THROWS_AS(own.forward(x, more), infty::ShapeError);
  CHECK_THROWS_WITH(Layer({.feed_forward = 0}, sizes, infty::Random(1)),
                    Contains("feed_forward is 0"));

  // Inside of memory tokens it is a layer as others are.
  infty::Layers<Layer> stack{{own, layer(MemoryEncoding::bottleneck)}};
  const infty::MemoryTokens model(stack, {.tokens = 3}, 4, infty::Random(2));
  auto state = model.make_state(2);
  infty::Pass<double> pass;
  CHECK(model.forward(state, x, pass).shape() == infty::Shape{2, 5, 4});
}
