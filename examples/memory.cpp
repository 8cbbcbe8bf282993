// SPDX-License-Identifier: MIT
// The long-term memory in a few lines: it takes in a text of any length and stays the same size.

#include <iostream>

#include <infty/memory/long_term_memory.hpp>

int main() {
  infty::LongTermMemory<float> memory(
      {.model_dim = 64, .heads = 4, .basis = 128, .widths = {.01, .05}}, infty::Random(1));
  auto state = memory.make_state(1);  // one row: one document

  infty::Random random(2);
  infty::Tensor<float> segment({1, 512, 64}), queries({1, 8, 64});
  fill_normal(queries, 0, 1, random);
  for (int i = 0; i < 100; ++i) {
    fill_normal(segment, 0, 1, random);
    memory.write(state, segment);  // (1, L, 64), any L, any number of times
  }
  const auto context =
      memory.read(state, queries);  // (1, 8, 64), the cost of N, not of what was read

  std::cout << state.written[0] << " vectors remembered in " << bytes_of(state)
            << " bytes, read as " << context.shape() << '\n';
}
