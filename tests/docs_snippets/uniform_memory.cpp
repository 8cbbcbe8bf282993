// SPDX-License-Identifier: MIT
// The code of docs/uniform_memory.md.

#include <infty/core/state.hpp>
#include <infty/memory/uniform_memory.hpp>

#include "support/catch.hpp"

TEST_CASE("docs/uniform_memory.md: vectors are written and read, and the state stays as large") {
  infty::Variable<float> vectors(infty::Tensor<float>(infty::Shape{1, 1000, 64}));
  infty::Variable<float> queries(infty::Tensor<float>(infty::Shape{1, 3, 64}));
  infty::Random random(1);
  fill_normal(vectors.value(), 0., 1., random);
  fill_normal(queries.value(), 0., 1., random);

  infty::UniformMemory<float>::Config config;
  config.model_dim = 64;
  config.heads = 4;
  config.head_dim = 16;
  config.basis = 48;
  config.widths = {.8 / 47};  // of the distances between the functions, four fifths
  config.samples = 96;
  config.block = 16;
  const infty::UniformMemory<float> memory(config);

  auto state = memory.make_state(1);
  memory.write(state, vectors);  // [1, L, d], any L
  const auto answer = memory.read(state, queries);

  const std::size_t bytes = infty::bytes_of(memory.make_state(1));
  CHECK(answer.shape() == infty::Shape{1, 3, 64});
  memory.write(state, vectors);
  CHECK(infty::bytes_of(state) == bytes);
  const std::size_t numbers = 4 * (48 + 16 + 1) * 64 + 8 * 64;  // as the page says
  CHECK(bytes >= numbers);
  CHECK(bytes < numbers + 128);  // and counters
}
