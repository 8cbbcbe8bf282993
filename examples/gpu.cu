// SPDX-License-Identifier: MIT
// The long-term memory on a GPU: examples/memory.cpp with another backend.
#include <iostream>

#include <infty/memory/long_term_memory.hpp>
#include <infty/thrust/cuda.hpp>

using Gpu = infty::ThrustBackend<infty::Cuda>;

int main() try {
  infty::gpu::set_device(0);
  infty::LongTermMemory<float, infty::GaussianDensity, infty::GaussianBasis<float>, Gpu> memory(
      {.model_dim = 64, .heads = 4, .basis = 128, .widths = {.01, .05}}, infty::Random(1));
  auto state = memory.make_state(1);

  infty::Random random(2);
  infty::Tensor<float, Gpu> segment({1, 512, 64}), queries({1, 8, 64});
  fill_normal(queries, 0, 1, random);
  for (int i = 0; i < 100; ++i) {
    fill_normal(segment, 0, 1, random);
    memory.write(state, segment);
  }
  const auto context = memory.read(state, queries);

  std::cout << infty::gpu::description() << ": " << state.written[0] << " vectors remembered in "
            << bytes_of(state) << " bytes, read as " << context.shape() << '\n';
} catch (const infty::Error& error) {
  std::cerr << error.what() << '\n';
  return 1;
}
