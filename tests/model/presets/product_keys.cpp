// SPDX-License-Identifier: MIT
#include <cmath>

#include <infty/memory/product_key_memory.hpp>
#include <infty/model/presets/product_keys.hpp>

#include "support/catch.hpp"

TEST_CASE("presets: product keys are valid, and a memory of their kind reads") {
  for (auto e : {infty::presets::product_keys(), infty::presets::memory_plus()}) {
    CHECK_NOTHROW(e.memory.validate());
    CHECK_NOTHROW(e.adam.validate());
    for (const infty::Index layer : e.layers) CHECK((layer >= 0 && layer < e.depth));
    e.memory.sub_keys = 40;  // the table would be of gigabytes
    e.model_dim = 8;
    const infty::ProductKeyMemory<float> memory(e.memory, e.model_dim, infty::Random(1));
    infty::Pass<float> pass;
    const infty::Variable<float> x(infty::Tensor<float>::full({1, 2, 8}, 1));
    CHECK(memory.forward(x, pass).shape() == x.shape());
  }
  CHECK(infty::presets::product_keys().memory.slots() == 512 * 512);
  CHECK(infty::presets::memory_plus().memory.key_bound == Catch::Approx(1 / std::sqrt(512.)));
}
