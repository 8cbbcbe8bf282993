// SPDX-License-Identifier: MIT
// That the package is found and complete: a long-term memory is written and read.
#include <iostream>

#include <infty/memory/long_term_memory.hpp>
#include <infty/version.hpp>

int main() {
  infty::LongTermMemory<float> memory(
      {.model_dim = 16, .heads = 2, .basis = 32, .widths = {.01, .05}}, infty::Random(1));
  auto state = memory.make_state(1);
  infty::Random random(2);
  infty::Tensor<float> segment({1, 64, 16}), queries({1, 8, 16});
  fill_normal(segment, 0, 1, random);
  fill_normal(queries, 0, 1, random);
  memory.write(state, segment);
  const auto context = memory.read(state, queries);
  std::cout << "infty " << infty::version << ": " << state.written[0] << " vectors read as "
            << context.shape() << '\n';
  return context.shape() == infty::Shape{1, 8, 16} ? 0 : 1;
}
