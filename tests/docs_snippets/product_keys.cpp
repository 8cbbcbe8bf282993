// SPDX-License-Identifier: MIT
#include <infty/autograd/reduce.hpp>
#include <infty/memory/product_key_memory.hpp>
#include <infty/memory/slot_usage.hpp>
#include <infty/model/block.hpp>
#include <infty/nn/causal_attention.hpp>
#include <infty/train/trainer.hpp>

#include "support/catch.hpp"

TEST_CASE("docs: a block with product keys in the place of its feed-forward layer") {
  using infty::Random;
  using T = float;
  const infty::AttentionSizes sizes{.model_dim = 8, .heads = 2, .head_dim = 4};

  const infty::ProductKeyConfig config{.sub_keys = 128, .k = 8, .key_dim = 64};
  infty::Block<infty::CausalAttention<T>, infty::ProductKeyMemory<T>> block{
      .mixer = infty::CausalAttention<T>({}, sizes, Random(1)),
      .mixer_norm = infty::LayerNorm<T>(sizes.model_dim),
      .feed = infty::ProductKeyMemory<T>(config, sizes.model_dim, Random(2)),
      .feed_norm = infty::LayerNorm<T>(sizes.model_dim)};
  infty::Trainer trainer(block, {.adam = {.learning_rate = 2.5e-4}});
  trainer.fix_rate("values", 1e-3);  // of the table alone

  const infty::Variable<T> x(infty::Tensor<T>::full({2, 3, 8}, 1));
  trainer.step([&] {
    auto state = block.make_state(2);
    infty::Pass<T> pass;
    const auto y = block.forward(state, x, pass);
    return infty::sum(y * y);
  });
  infty::SlotUsage usage(config.slots());
  infty::Pass<T> pass;
  const auto reading = block.feed.read(x, pass);
  usage.add(reading.slots, reading.weights.value());
  CHECK(usage.fraction() > 0);
}
