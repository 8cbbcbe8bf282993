// SPDX-License-Identifier: MIT
#include <algorithm>
#include <atomic>
#include <barrier>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <fstream>
#include <initializer_list>
#include <list>
#include <new>
#include <sstream>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include <infty/core/pool.hpp>
#include <infty/core/random.hpp>

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
    REQUIRE(std::count(bytes, bytes + blocks[i].second, i % 256) ==
            std::ptrdiff_t(blocks[i].second));
    pool.release(blocks[i].first, blocks[i].second);
  }
}

TEST_CASE("HostPool: blocks of several large pages begin at one, and ask for them") {
  HostPool& pool = HostPool::instance();
  constexpr std::size_t page = infty::detail::large_page, bytes = 5 * page + page / 2;
  auto* const block = static_cast<unsigned char*>(pool.allocate(bytes));
  CHECK(reinterpret_cast<std::uintptr_t>(block) % page == 0);
  std::memset(block, 7, bytes);
  REQUIRE(std::count(block, block + bytes, 7) == std::ptrdiff_t{bytes});
  // Linux says of every range of addresses what was asked for: "hg" is large pages.
  if (std::ifstream ranges("/proc/self/smaps"); ranges) {
    std::string line, flags;
    const auto address = reinterpret_cast<std::uintptr_t>(block);
    for (bool within = false; std::getline(ranges, line);) {
      std::uintptr_t begin = 0, end = 0;
      char dash = 0;
      std::istringstream range(line);
      if (range >> std::hex >> begin >> dash >> end && dash == '-')
        within = begin <= address && address < end;
      if (within && line.starts_with("VmFlags:")) flags = line;
    }
    CAPTURE(flags);
    if (std::ifstream("/sys/kernel/mm/transparent_hugepage/enabled") && !flags.empty())
      CHECK(flags.find(" hg") != std::string::npos);
  }
  pool.release(block, bytes);
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

TEST_CASE("HostPool: what threads count is in the sums, whoever gives a block back") {
  auto& pool = HostPool::instance();
  const auto before = pool.statistics();
  std::vector<void*> blocks;
  std::size_t there = 0;
  std::thread([&] {
    for (int i = 0; i < 500; ++i) blocks.push_back(pool.allocate(1024));
    there = pool.statistics().bytes_in_use;
  }).join();
  CHECK(there == before.bytes_in_use + 500 * 1024);
  CHECK(pool.statistics().bytes_in_use == before.bytes_in_use + 500 * 1024);
  CHECK(pool.statistics().blocks == before.blocks + 500);
  for (void* const block : blocks) pool.release(block, 1024);
  CHECK(pool.statistics().bytes_in_use == before.bytes_in_use);
}

TEST_CASE("HostPool: threads that end leave their blocks to others") {
  auto& pool = HostPool::instance();
  const auto round = [&] {
    std::thread([&] {
      std::vector<void*> blocks;
      for (int i = 0; i < 300; ++i) blocks.push_back(pool.allocate(3000));
      for (void* const block : blocks) pool.release(block, 3000);
    }).join();
  };
  round();
  const std::size_t before = system_allocations();
  for (int i = 0; i < 100; ++i) round();
  CHECK(system_allocations() == before);
}

TEST_CASE("HostPool: what one thread makes and another gives back does not pile up") {
  auto& pool = HostPool::instance();
  std::vector<void*> blocks;
  const auto rounds = [&](int count) {
    for (int i = 0; i < count; ++i) {
      for (int j = 0; j < 100; ++j) blocks.push_back(pool.allocate(2000));
      std::thread([&] {
        for (void* const block : blocks) pool.release(block, 2000);
      }).join();
      blocks.clear();
    }
  };
  rounds(2);
  const std::size_t before = system_allocations();
  rounds(50);
  CHECK(system_allocations() == before);

  // And where neither thread ends.
  std::barrier both(2);
  std::thread other([&] {
    for (int i = 0; i < 52; ++i) {
      both.arrive_and_wait();
      for (void* const block : blocks) pool.release(block, 2000);
      blocks.clear();
      both.arrive_and_wait();
    }
  });
  std::size_t after_two = 0;
  for (int i = 0; i < 52; ++i) {
    for (int j = 0; j < 1000; ++j) blocks.push_back(pool.allocate(2000));
    both.arrive_and_wait();
    both.arrive_and_wait();
    if (i == 1) after_two = system_allocations();
  }
  CHECK(system_allocations() - after_two <= 64);  // of 50,000: what a thread keeps varies
  other.join();
}

TEST_CASE("HostPool: a living thread keeps blocks of less than 1 MiB, up to 4 MiB in all") {
  constexpr std::size_t mib = std::size_t{1} << 20, one = 300'000;
  auto& pool = HostPool::instance();
  pool.trim();
  std::vector<std::size_t> sizes;  // some of each that a thread keeps
  for (std::size_t bytes = 512; bytes < mib; bytes += bytes / 8)
    sizes.insert(sizes.end(), 8, bytes);
  const auto all_of = [&] {
    std::vector<void*> blocks;
    for (const std::size_t bytes : sizes) blocks.push_back(pool.allocate(bytes));
    return blocks;
  };
  const auto give_back = [&](const std::vector<void*>& blocks) {
    for (std::size_t i = 0; i < blocks.size(); ++i) pool.release(blocks[i], sizes[i]);
  };
  std::barrier both(2);
  std::thread other([&] {
    pool.release(pool.allocate(one), one);
    both.arrive_and_wait();
    both.arrive_and_wait();
    give_back(all_of());
    give_back(all_of());  // of lists that are full
    both.arrive_and_wait();
    both.arrive_and_wait();
  });
  const auto held = [&] { return pool.statistics().bytes_held; };
  both.arrive_and_wait();
  const std::size_t before = held();
  pool.release(pool.allocate(one), one);
  CHECK(held() >= before + one);  // the other one's is not to be had
  both.arrive_and_wait();
  both.arrive_and_wait();
  const std::size_t full = held();
  give_back(all_of());
  CHECK(held() - full <= 4 * mib);  // but most of what it has given back is
  both.arrive_and_wait();
  other.join();
  pool.trim();
}

TEST_CASE("HostPool: what a thread gave back last it has first, however much that was") {
  auto& pool = HostPool::instance();
  for (const std::size_t bytes : {std::size_t{512}, std::size_t{300'000}}) {
    pool.trim();
    std::vector<void*> blocks;
    for (int i = 0; i < 9 * (bytes == 512 ? 8 : 1); ++i) blocks.push_back(pool.allocate(bytes));
    for (void* const block : blocks) pool.release(block, bytes);
    void* const last = pool.allocate(bytes);
    CHECK(last == blocks.back());
    pool.release(last, bytes);
  }
}

TEST_CASE("HostPool: peaks of threads that are at work together are added up") {
  auto& pool = HostPool::instance();
  constexpr std::size_t bytes = 300'000;
  pool.release(pool.allocate(bytes), bytes);
  pool.reset_peak();
  const std::size_t before = pool.statistics().peak_bytes_in_use;
  std::barrier both(2);
  const auto take = [&] {
    void* const block = pool.allocate(bytes);
    both.arrive_and_wait();
    pool.release(block, bytes);
    both.arrive_and_wait();
  };
  std::thread other([&] {
    pool.release(pool.allocate(bytes), bytes);
    both.arrive_and_wait();
    take();
    both.arrive_and_wait();
  });
  both.arrive_and_wait();
  take();
  CHECK(pool.statistics().peak_bytes_in_use >= before + 2 * bytes);
  both.arrive_and_wait();
  other.join();
}

TEST_CASE("HostPool: trim takes what living threads keep") {
  auto& pool = HostPool::instance();
  std::barrier both(2);
  std::thread other([&] {
    std::vector<void*> blocks;
    for (int i = 0; i < 20; ++i) blocks.push_back(pool.allocate(1500));
    for (void* const block : blocks) pool.release(block, 1500);
    both.arrive_and_wait();
    both.arrive_and_wait();
    pool.release(pool.allocate(1500), 1500);  // goes on with what there is
  });
  both.arrive_and_wait();
  pool.trim();
  const auto now = pool.statistics();
  CHECK(now.bytes_held == now.bytes_in_use);
  both.arrive_and_wait();
  other.join();
}

TEST_CASE("HostPool: blocks of many threads are never two threads' at once") {
  auto& pool = HostPool::instance();
  const auto before = pool.statistics();
  std::atomic<int> wrong = 0;
  std::vector<std::thread> threads;
  for (unsigned t = 0; t < 4; ++t)
    threads.emplace_back([&, t] {
      std::vector<std::pair<unsigned*, std::size_t>> held;
      infty::Random random(t);
      for (int i = 0; i < 20000; ++i) {
        if (held.size() < 100 && random.uniform() < .55) {
          const auto bytes =
              static_cast<std::size_t>(4 + random.below(i % 50 == 0 ? 300000 : 5000));
          held.emplace_back(static_cast<unsigned*>(pool.allocate(bytes)), bytes);
          *held.back().first = t;
        } else if (!held.empty()) {
          const auto at = static_cast<std::size_t>(random.below(std::ssize(held)));
          std::swap(held[at], held.back());
          wrong += *held.back().first != t;
          pool.release(held.back().first, held.back().second);
          held.pop_back();
        }
        if (i % 5000 == 0) pool.trim();
      }
      for (const auto& [block, bytes] : held) pool.release(block, bytes);
    });
  for (auto& thread : threads) thread.join();
  CHECK(wrong == 0);
  CHECK(pool.statistics().bytes_in_use == before.bytes_in_use);
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
