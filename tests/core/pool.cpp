// SPDX-License-Identifier: MIT
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <initializer_list>
#include <list>
#include <new>
#include <utility>
#include <vector>

#include <infty/core/pool.hpp>

#include "support/catch.hpp"

using infty::HostPool;

namespace {

std::size_t system_allocations() { return HostPool::instance().statistics().system_allocations; }

}  // namespace

TEST_CASE("HostPool: what is given back is handed out again") {
  HostPool& pool = HostPool::instance();
  void* const first = pool.allocate(100'000);
  pool.release(first, 100'000);
  const std::size_t before = system_allocations();
  void* const second = pool.allocate(99'999);  // the same size class
  CHECK(second == first);
  CHECK(system_allocations() == before);
  pool.release(second, 99'999);
}

TEST_CASE("HostPool: blocks are aligned, apart, and wholly writable") {
  HostPool& pool = HostPool::instance();
  std::vector<std::pair<void*, std::size_t>> blocks;
  for (std::size_t bytes = 0; bytes < 6000; bytes += 37) {
    void* const block = pool.allocate(bytes);
    CHECK(reinterpret_cast<std::uintptr_t>(block) % HostPool::alignment == 0);
    std::memset(block, static_cast<int>(blocks.size() % 256), bytes);
    blocks.emplace_back(block, bytes);
  }
  for (std::size_t i = 0; i < blocks.size(); ++i) {
    const auto* const bytes = static_cast<const unsigned char*>(blocks[i].first);
    for (std::size_t j = 0; j < blocks[i].second; ++j) REQUIRE(bytes[j] == i % 256);
    pool.release(blocks[i].first, blocks[i].second);
  }
}

TEST_CASE("HostPool: a block is never smaller than asked for, nor more than an eighth larger") {
  HostPool& pool = HostPool::instance();
  for (std::size_t bytes = 1; bytes < (std::size_t{1} << 24); bytes += 1 + bytes / 7) {
    const std::size_t before = pool.statistics().bytes_in_use;
    void* const block = pool.allocate(bytes);
    const std::size_t got = pool.statistics().bytes_in_use - before;
    CAPTURE(bytes, got);
    CHECK(got >= bytes);
    CHECK(got <= std::max<std::size_t>(512, (bytes + 63) / 64 * 64 * 9 / 8));
    pool.release(block, bytes);
    CHECK(pool.statistics().bytes_in_use == before);
    pool.trim();
  }
}

TEST_CASE("HostPool: trim returns what is cached and nothing that is in use") {
  HostPool& pool = HostPool::instance();
  pool.trim();
  const auto before = pool.statistics();
  CHECK(before.bytes_held == before.bytes_in_use);
  void* const kept = pool.allocate(1024);
  void* const cached = pool.allocate(4096);
  std::memset(kept, 7, 1024);
  pool.release(cached, 4096);
  CHECK(pool.statistics().bytes_held == before.bytes_held + 1024 + 4096);
  pool.trim();
  CHECK(pool.statistics().bytes_held == before.bytes_held + 1024);
  CHECK(static_cast<const unsigned char*>(kept)[1023] == 7);
  pool.release(kept, 1024);
}

TEST_CASE("HostPool: the peak is the most that was in use since it was reset") {
  HostPool& pool = HostPool::instance();
  pool.reset_peak();
  const std::size_t before = pool.statistics().bytes_in_use;
  CHECK(pool.statistics().peak_bytes_in_use == before);
  void* const a = pool.allocate(1 << 20);
  void* const b = pool.allocate(1 << 20);
  pool.release(a, 1 << 20);
  pool.release(b, 1 << 20);
  CHECK(pool.statistics().peak_bytes_in_use == before + (2 << 20));
  pool.reset_peak();
  CHECK(pool.statistics().peak_bytes_in_use == before);
}

TEST_CASE("HostPool: more than the machine has is std::bad_alloc and changes nothing") {
  HostPool& pool = HostPool::instance();
  const auto before = pool.statistics();
  CHECK_THROWS_AS(pool.allocate((std::size_t{1} << 62) + 1), std::bad_alloc);
  CHECK_THROWS_AS(pool.allocate(~std::size_t{0}), std::bad_alloc);
  CHECK_THROWS_AS(infty::PoolAllocator<double>().allocate(std::size_t{1} << 61), std::bad_alloc);
#if !defined(__SANITIZE_ADDRESS__)  // which ends the program where operator new throws
  CHECK_THROWS_AS(pool.allocate(std::size_t{1} << 56), std::bad_alloc);
#endif
  const auto after = pool.statistics();
  CHECK(after.bytes_in_use == before.bytes_in_use);
#if !defined(__SANITIZE_ADDRESS__)
  CHECK(after.bytes_held == after.bytes_in_use);  // what was cached was given up for it
#else
  CHECK(after.bytes_held == before.bytes_held);
#endif
  CHECK(after.system_allocations == before.system_allocations);
}

TEST_CASE("HostPool: blocks that grow leave no more behind than half of what was ever in use") {
  constexpr std::size_t mib = std::size_t{1} << 20;
  HostPool& pool = HostPool::instance();
  pool.trim();
  std::vector<std::pair<void*, std::size_t>> blocks;
  for (int i = 0; i < 5; ++i) blocks.emplace_back(pool.allocate(16 * mib), 16 * mib);
  std::size_t asked = 0;
  while (blocks.front().second < 256 * mib)
    for (auto& [block, bytes] : blocks) {  // as a layer's keys with another token
      const std::size_t more = bytes + bytes / 8;
      void* const larger = pool.allocate(more);
      asked += more;
      pool.release(block, bytes);
      block = larger, bytes = more;
      const auto now = pool.statistics();
      const std::size_t most = now.most_bytes_in_use;
      REQUIRE(now.bytes_held <= most + most / 2 + 64 * mib + now.bytes_missed);
    }
  CHECK(asked > 10'000 * mib);  // which all would be held without
  for (const auto& [block, bytes] : blocks) pool.release(block, bytes);
  pool.trim();
}

TEST_CASE("HostPool: rounds of two kinds of sizes in turns stay cached") {
  constexpr std::size_t mib = std::size_t{1} << 20;
  HostPool& pool = HostPool::instance();
  pool.trim();
  const auto round = [&](std::initializer_list<std::size_t> sizes) {
    std::vector<std::pair<void*, std::size_t>> blocks;
    for (const std::size_t bytes : sizes) blocks.emplace_back(pool.allocate(bytes), bytes);
    for (const auto& [block, bytes] : blocks) pool.release(block, bytes);
  };
  const auto both = [&] {
    round({400 * mib, 100 * mib});
    round({200 * mib});
  };
  both();
  const std::size_t before = system_allocations();
  both();
  CHECK(system_allocations() == before);
  pool.trim();
}

TEST_CASE("HostPool: sizes that are never there together stay cached when they have come thrice") {
  constexpr std::size_t mib = std::size_t{1} << 20;
  HostPool& pool = HostPool::instance();
  pool.trim();
  const auto pass = [&](const std::vector<std::size_t>& sizes) {
    const std::size_t before = system_allocations();
    for (const std::size_t bytes : sizes) pool.release(pool.allocate(bytes), bytes);
    return system_allocations() - before;
  };
  // The blocks together exceed what may stay, whatever tests before this one have used.
  const std::size_t unit = 80 * mib + pool.statistics().most_bytes_in_use / 4;
  for (const std::vector<std::size_t>& sizes :
       {std::vector{3 * unit, 4 * unit, 5 * unit, 6 * unit},
        std::vector{6 * unit, 5 * unit, 4 * unit}, std::vector{unit, 2 * unit, unit, 6 * unit}}) {
    pass(sizes);
    pass(sizes);
    pass(sizes);
    CHECK(pass(sizes) == 0);
  }
  CHECK(pool.statistics().bytes_missed > 0);
  pool.trim();
}

TEST_CASE("PoolAllocator: a standard container comes back to its blocks") {
  const auto fill = [] {
    std::list<int, infty::PoolAllocator<int>> list;
    for (int i = 0; i < 50; ++i) list.push_back(i);
    CHECK(list.back() == 49);
  };
  fill();
  const std::size_t before = system_allocations();
  fill();
  CHECK(system_allocations() == before);
  CHECK(infty::PoolAllocator<int>() == infty::PoolAllocator<int>());
}
