// SPDX-License-Identifier: MIT
#include <infty/memory/long_term_memory.hpp>
#include <infty/model/presets/infty_video.hpp>
#include <infty/signal/gibbs_density.hpp>

#include "support/catch.hpp"
#include "support/tensors.hpp"

TEST_CASE("presets: ∞-Video's memory is made in a line") {
  using Memory = infty::LongTermMemory<float, infty::GibbsDensity, infty::RectangularBasis<float>>;
  const Memory memory(infty::presets::infty_video());
  CHECK(memory.key.bias.size() == 768);
  CHECK(memory.basis().size() == 256);
}

TEST_CASE("presets: ∞-Video's memory is written and read, as it should be and as it was") {
  using Narrow = infty::LongTermMemory<float, infty::GibbsDensity, infty::RectangularBasis<float>>;
  infty::Random random(infty::tests::seed);
  for (const bool as_program : {false, true}) {
    auto config = infty::presets::infty_video(true, as_program);
    CHECK_NOTHROW(config.validate());
    CHECK(config.shifted_bins == as_program);
    CHECK(infty::presets::infty_video(false, as_program).resampling == infty::Resampling::even);
    config.model_dim = 16;  // quicker
    const Narrow memory(config);
    auto state = memory.make_state(1);
    const auto queries = infty::tests::uniform_variable<float>({1, 32, 768}, random);
    for (int chunk = 0; chunk < 2; ++chunk) {
      memory.write(state, infty::tests::uniform_variable<float>({1, 20, 16}, random));
      CHECK(memory.read(state, queries).shape() == infty::Shape{1, 32, 768});
    }
    CHECK(infty::is_finite(state));
  }
}
