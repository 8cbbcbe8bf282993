// SPDX-License-Identifier: MIT
#include <cstddef>
#include <cstring>
#include <vector>

#include <infty/core/error.hpp>
#include <infty/core/pool.hpp>

#include "support/catch.hpp"
#include "threads/at_once.hpp"

using infty::HostPool;
using infty::tests::at_once;
using infty::tests::crowd;

TEST_CASE("threads: the pool gives each its own block, and takes back what others were given") {
  auto& pool = HostPool::instance();
  const std::size_t before = pool.statistics().bytes_in_use;
  std::vector<void*> handed(crowd);
  at_once(crowd, [&](int i) {
    for (std::size_t bytes = 1; bytes < 3000; bytes += 7) {
      auto* const block = static_cast<unsigned char*>(pool.allocate(bytes));
      std::memset(block, i, bytes);
      if (block[0] != i || block[bytes - 1] != i) throw infty::Error("a block is of two threads");
      pool.release(block, bytes);
      if (bytes % 100 == 1) pool.trim();
      if (bytes % 30 == 1) {  // so large and so many that others' are given back to the system
        const std::size_t large = bytes << 17;
        auto* const more = static_cast<unsigned char*>(pool.allocate(large));
        more[0] = more[large - 1] = static_cast<unsigned char>(i);
        if (more[0] != i) throw infty::Error("a block is of two threads");
        pool.release(more, large);
      }
      pool.statistics();
    }
    handed[static_cast<std::size_t>(i)] = pool.allocate(100);
  });
  at_once(crowd,
          [&](int i) { pool.release(handed[static_cast<std::size_t>((i + 1) % crowd)], 100); });
  CHECK(pool.statistics().bytes_in_use == before);
}
