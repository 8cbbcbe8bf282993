// SPDX-License-Identifier: MIT
// What a library of products is told of a batch, held to the addresses that a kernel would compute.
#include <infty/core/random.hpp>
#include <infty/thrust/matmul_batch.hpp>

#include "support/catch.hpp"

using infty::Index;
using infty::Matmul;
using infty::Random;

TEST_CASE("matmul batch: begins at 16 bytes where all addresses do, whatever the strides") {
  alignas(16) static const float memory[64] = {};
  Random random(infty::tests::seed);
  const auto below = [&](Index n) {
    return static_cast<Index>(random.uniform() * static_cast<double>(n));
  };
  int all_even = 0, not_all = 0;
  for (int i = 0; i < 20000; ++i) {
    Matmul s;
    s.outer = 1 + below(4);
    s.inner = 1 + below(4);
    const float* first[3];
    bool wanted = true;
    Matmul::Operand* const operands[] = {&s.a, &s.b, &s.c};
    for (int x = 0; x < 3; ++x) {
      // Mostly even, so that all three are often enough; 0 is an operand that is shared.
      const auto stride = [&] { return below(10) == 0 ? below(40) : 4 * below(10); };
      operands[x]->outer = stride();
      operands[x]->inner = stride();
      first[x] = memory + (below(10) == 0 ? below(8) : 4 * below(2));
      for (Index o = 0; o < s.outer; ++o)
        for (Index n = 0; n < s.inner; ++n) {
          const Index at = (first[x] - memory) + o * operands[x]->outer + n * operands[x]->inner;
          wanted = wanted && at % 4 == 0;
        }
    }
    CAPTURE(i);
    REQUIRE(infty::detail::begins_at_16_bytes(s, sizeof(float), first[0], first[1], first[2]) ==
            wanted);
    ++(wanted ? all_even : not_all);
  }
  CHECK(all_even > 1000);
  CHECK(not_all > 1000);
}

TEST_CASE("matmul batch: evenly strided where one stride leads through it") {
  Matmul s;
  s.outer = 2;
  s.inner = 3;
  s.a = {4, 12, 4};
  s.b = {4, 0, 0};
  s.c = {4, 48, 16};
  CHECK(infty::detail::evenly_strided(s));
  s.b.outer = 8;  // shared by the inner products alone
  CHECK_FALSE(infty::detail::evenly_strided(s));
  s.inner = 1;
  CHECK(infty::detail::evenly_strided(s));
}
