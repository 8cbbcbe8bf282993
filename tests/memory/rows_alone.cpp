// SPDX-License-Identifier: MIT
#include <cstddef>
#include <vector>

#include <infty/core/random.hpp>
#include <infty/eigen/gemm.hpp>
#include <infty/memory/long_term_memory.hpp>
#include <infty/memory/uniform_memory.hpp>

#include "memory/uniform.hpp"
#include "support/catch.hpp"
#include "support/tensors.hpp"

namespace rows_alone {

using infty::Index;
using infty::Random;
using infty::Tensor;
using infty::tests::uniform_tensor;

/// Checks what rows of a batch read, written together and each by itself.
template <class Memory>
void check(const typename Memory::Config& config, Index length) {
  const Memory memory(config, Random(1));
  Random random(infty::tests::seed);
  constexpr Index rows = 17;
  std::vector<Tensor<float>> written, read;
  for (int k = 0; k < 2; ++k) {
    written.push_back(uniform_tensor<float>({rows, length, config.model_dim}, random));
    read.push_back(uniform_tensor<float>({rows, 9, config.heads * config.head_dim}, random));
  }
  const auto numbers = [&](Index begin, Index end) {
    auto state = memory.make_state(end - begin);
    std::vector<std::vector<float>> all(static_cast<std::size_t>(end - begin));
    for (std::size_t k = 0; k < written.size(); ++k) {
      memory.write(state, written[k].slice(begin, end));
      const auto z = memory.read(state, read[k].slice(begin, end)).value();
      for (Index row = 0; row < end - begin; ++row) {
        const auto more = z.slice(row, row + 1).to_vector();
        auto& to = all[static_cast<std::size_t>(row)];
        to.insert(to.end(), more.begin(), more.end());
      }
    }
    return all;
  };
  const auto together = numbers(0, rows);
  for (const Index row : {Index{0}, Index{8}, rows - 1})
    CHECK(numbers(row, row + 1).front() == together[static_cast<std::size_t>(row)]);
}

}  // namespace rows_alone

// A library's products may sum otherwise where there are more rows.
TEST_CASE("memories: a row has the same bits alone and beside others, of long writes, too") {
  if (!infty::detail::own_products()) return;
  using namespace rows_alone;
  {
    infty::LongTermConfig config;
    config.model_dim = 64;
    config.heads = 2;
    config.head_dim = 32;
    config.basis = config.samples = 64;
    check<infty::LongTermMemory<float>>(config, 1100);
  }
  {
    using Memory = uniform::UniformOf<float>;
    auto config = uniform::small<Memory>();
    config.model_dim = 32;
    config.head_dim = 16;
    config.basis = 64;
    config.samples = 1024;
    config.block = 16;
    check<Memory>(config, 160);
  }
}
