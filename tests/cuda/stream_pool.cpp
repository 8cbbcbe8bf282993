// SPDX-License-Identifier: MIT
// The pool of GPU memory on queues that are simulated: who has a block must run behind all that
// others did with it.
#include <algorithm>
#include <cstddef>
#include <cstdlib>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include <infty/core/error.hpp>
#include <infty/core/random.hpp>
#include <infty/thrust/stream_pool.hpp>

#include "support/catch.hpp"

namespace stream_pool_test {

using infty::Index;

/// How far each queue has come, as one of them knows it.
using Known = std::map<int, Index>;

/// Queues of one device that never wait for each other unless told so.
struct Machine {
  int here = 0;                       ///< the queue that the calling thread's work goes to
  std::map<int, Known> knows;         ///< by queue: what its next work runs behind
  std::map<void*, Known> used;        ///< by block: its last use on each queue
  std::map<void*, std::size_t> size;  ///< by block
  std::size_t room = std::size_t{1} << 40, marks = 0, waits = 0, finishes = 0;
  bool refuses = false;  ///< as CUDA does when a program ends

  /// Gives the current queue work on a block, which must run behind all other work on it.
  void use(void* block) {
    Known& mine = knows[here];
    for (const auto& [queue, time] : used[block])
      if (queue != here && mine[queue] < time) throw infty::Error("two queues work on a block");
    used[block][here] = ++mine[here];
  }
  std::size_t held() const {
    std::size_t sum = 0;
    for (const auto& [block, bytes] : size) sum += bytes;
    return sum;
  }
};

struct Driver {
  using Place = int;
  using Mark = Known;
  Machine* machine;

  int place() const {
    if (machine->refuses) throw infty::Error("the device is gone");
    return machine->here;
  }
  void* allocate(std::size_t bytes, int) { return allocate_alone(bytes); }
  void* allocate_alone(std::size_t bytes) {
    if (machine->held() + bytes > machine->room) return nullptr;
    void* const block = ::operator new(bytes);
    machine->size[block] = bytes;
    machine->used[block] = {};  // nothing of what stood at the same address
    return block;
  }
  void free(void* block) {
    machine->size.erase(block);
    ::operator delete(block);
  }
  Known mark(int place) {
    ++machine->marks;
    return machine->knows[place];
  }
  void wait(int place, const Known& mark) {
    ++machine->waits;
    for (const auto& [queue, time] : mark) {
      Index& known = machine->knows[place][queue];
      known = std::max(known, time);
    }
  }
  void finish(const Known&) { ++machine->finishes; }
  void finish(int) { ++machine->finishes; }
  [[noreturn]] void raise_out_of_memory(std::size_t bytes, int place, std::size_t in_use) {
    infty::raise<infty::Error>("allocate", bytes, " bytes at ", place, ", ", in_use, " in use");
  }
};

using Pool = infty::detail::StreamPool<Driver>;

TEST_CASE("StreamPool: a block goes round on its own queue without any wait") {
  Machine machine;
  Pool pool(Driver{&machine}, false);
  void* const first = pool.allocate(1000);
  machine.use(first);
  pool.release(first, 1000);
  CHECK(pool.allocate(990) == first);
  pool.release(first, 990);
  CHECK(machine.marks + machine.waits + machine.finishes == 0);
  CHECK(pool.statistics().system_allocations == 1);
  CHECK(pool.statistics().blocks == 2);
  CHECK(pool.statistics().bytes_in_use == 0);
  pool.trim();
  CHECK(machine.size.empty());
  CHECK(pool.statistics().bytes_held == 0);
}

TEST_CASE("StreamPool: a block given back under another queue waits for what that still does") {
  Machine machine;
  Pool pool(Driver{&machine}, false);
  void* const state = pool.allocate(1000);
  machine.use(state);
  machine.knows[1] = machine.knows[0];  // the user's own order: made first, then read on queue 1
  machine.here = 1;
  machine.use(state);
  pool.release(state, 1000);
  machine.here = 0;
  REQUIRE(pool.allocate(1000) == state);
  CHECK(machine.waits == 1);
  machine.use(state);  // throws where nobody has waited
  pool.release(state, 1000);
  CHECK(pool.allocate(1000) == state);
  CHECK(machine.waits == 1);  // the mark is no longer asked for
  pool.release(state, 1000);
  pool.trim();
}

TEST_CASE("StreamPool: no block is ever worked on by two queues at once") {
  Machine machine;
  Pool pool(Driver{&machine}, false);
  struct Held {
    void* block;
    std::size_t bytes;
  };
  std::vector<Held> held;
  infty::Random random(infty::tests::seed);
  for (int step = 0; step < 20000; ++step) {
    machine.here = static_cast<int>(random.below(4));
    if (held.size() < 20 || random.below(2) == 0) {
      const auto bytes = static_cast<std::size_t>(random.below(5000));
      held.push_back({pool.allocate(bytes), bytes});
      machine.use(held.back().block);
    } else {
      std::swap(
          held[static_cast<std::size_t>(random.below(static_cast<infty::Index>(held.size())))],
          held.back());
      // Whoever works on another's block has waited for it; the pool has to do the rest.
      for (const auto& [queue, time] : machine.used[held.back().block])
        machine.knows[machine.here][queue] = std::max(machine.knows[machine.here][queue], time);
      machine.use(held.back().block);
      pool.release(held.back().block, held.back().bytes);
      held.pop_back();
    }
    if (step % 5000 == 4999) pool.trim();
  }
  CHECK(machine.waits > 100);
  for (const auto& [block, bytes] : held) pool.release(block, bytes);
  pool.trim();
  CHECK(machine.size.empty());
  CHECK(pool.statistics().bytes_in_use == 0);
  CHECK(pool.statistics().bytes_held == 0);
}

TEST_CASE(
    "StreamPool: what is cached is let go before memory lacks, and a refusal changes nothing") {
  Machine machine;
  machine.room = 10000;
  Pool pool(Driver{&machine}, false);
  void* const first = pool.allocate(6000);
  machine.here = 1;
  pool.release(first, 6000);
  void* const second = pool.allocate(9000);
  CHECK(machine.finishes == 5);  // for the mark, and before and after for each of two places
  const auto before = pool.statistics();
  CHECK_THROWS_WITH(pool.allocate(5000),
                    Catch::Contains("[allocate] 5120 bytes at 1, 9216 in use"));
  CHECK(pool.statistics().bytes_in_use == before.bytes_in_use);
  CHECK(pool.statistics().bytes_held == before.bytes_held);
  CHECK(pool.statistics().blocks == before.blocks);
  pool.release(second, 9000);
  void* const third = pool.allocate(5000);
  pool.release(third, 5000);
  pool.trim();
  CHECK(machine.size.empty());
}

TEST_CASE("StreamPool: what captured work has had is nobody else's until it is forgotten") {
  Machine machine;
  Pool pool(Driver{&machine}, false);
  void* const input = pool.allocate(1000);
  machine.here = 1;
  pool.capture(1);
  void* const temporary = pool.allocate(2000);
  pool.release(temporary, 2000);
  CHECK(pool.allocate(2000) == temporary);  // one after the other, as it will be done
  pool.release(temporary, 2000);
  void* const result = pool.allocate(3000);
  pool.release(input, 1000);
  machine.here = 0;
  pool.release(result, 3000);
  const std::size_t held = machine.size.size();
  CHECK(held == 3);
  for (const std::size_t bytes : {1000u, 2000u, 3000u}) {
    void* const other = pool.allocate(bytes);
    CHECK(other != input);
    CHECK(other != temporary);
    CHECK(other != result);
    pool.release(other, bytes);
  }
  pool.trim();  // leaves what captured work will need
  CHECK(machine.size.size() == held);
  CHECK(machine.marks == 1);  // of the result, which queue 0 may still read
  const std::size_t finishes = machine.finishes;
  pool.forget(1);
  CHECK(machine.finishes == finishes + 1);
  CHECK(machine.size.size() == 1);
  CHECK(pool.allocate(1000) == input);
  pool.release(input, 1000);
  pool.trim();
  CHECK(machine.size.empty());
  CHECK(pool.statistics().bytes_in_use == 0);
  CHECK(pool.statistics().bytes_held == 0);
}

TEST_CASE("StreamPool: a block of two captured works is kept until both are forgotten") {
  for (const bool first_goes : {true, false}) {
    Machine machine;
    Pool pool(Driver{&machine}, false);
    machine.here = 1;
    pool.capture(1);
    void* const result = pool.allocate(1000);
    machine.here = 2;
    pool.capture(2);
    pool.release(result, 1000);  // the second has read it, the first writes it
    machine.here = 0;
    pool.forget(first_goes ? 1 : 2);
    pool.trim();
    CHECK(machine.size.size() == 1);
    pool.forget(first_goes ? 2 : 1);
    pool.trim();
    CHECK(machine.size.empty());
    CHECK(pool.statistics().bytes_held == 0);
  }
}

TEST_CASE("StreamPool: a block of captured work may outlive it") {
  for (const bool exact : {false, true}) {
    Machine machine;
    Pool pool(Driver{&machine}, exact);
    machine.here = 1;
    pool.capture(1);
    void* const temporary = pool.allocate(10);
    void* const result = pool.allocate(20);
    pool.release(temporary, 10);
    CHECK(machine.size.size() == 2);
    machine.here = 0;
    pool.forget(1);
    CHECK(machine.size.size() == 1);
    pool.release(result, 20);
    pool.trim();
    CHECK(machine.size.empty());
    CHECK(pool.statistics().bytes_held == 0);
  }
}

TEST_CASE("StreamPool: while work is captured nobody waits, even where memory lacks") {
  Machine machine;
  machine.room = 4000;
  Pool pool(Driver{&machine}, false);
  pool.release(pool.allocate(3000), 3000);
  machine.here = 1;
  pool.capture(1);
  CHECK_THROWS_WITH(pool.allocate(2000), Catch::Contains("[allocate] 2048 bytes at 1"));
  CHECK(machine.finishes == 0);
  machine.here = 0;
  pool.forget(1);
  pool.trim();
  CHECK(machine.size.empty());
}

TEST_CASE("StreamPool: an exact pool asks for what it is asked for, and keeps nothing") {
  Machine machine;
  Pool pool(Driver{&machine}, true);
  void* const block = pool.allocate(1001);
  CHECK(machine.size.at(block) == 1001);
  void* const empty = pool.allocate(0);
  CHECK(machine.size.at(empty) == 1);
  machine.here = 1;
  pool.release(block, 1001);
  CHECK(machine.finishes == 1);  // before the memory is let go
  CHECK(machine.size.size() == 1);
  pool.release(empty, 0);
  CHECK(machine.size.empty());
  CHECK(pool.statistics().bytes_held == 0);
  CHECK(pool.statistics().bytes_in_use == 0);
  CHECK(pool.statistics().system_allocations == 2);
}

TEST_CASE("StreamPool: a block that comes back when the device is gone is nobody's") {
  Machine machine;
  Pool pool(Driver{&machine}, false);
  void* const block = pool.allocate(100);
  machine.refuses = true;
  pool.release(block, 100);
  machine.refuses = false;
  void* const next = pool.allocate(100);
  CHECK(next != block);
  pool.release(next, 100);
  pool.trim();
  CHECK(machine.size.size() == 1);
  ::operator delete(block);
}

TEST_CASE("StreamPool: INFTY_DEVICE_POOL=exact makes it exact") {
  const char* const before = std::getenv("INFTY_DEVICE_POOL");
  const std::string kept = before ? before : "";
  ::setenv("INFTY_DEVICE_POOL", "exact", 1);
  CHECK(infty::detail::exact_pool_wanted());
  ::setenv("INFTY_DEVICE_POOL", "other", 1);
  CHECK_FALSE(infty::detail::exact_pool_wanted());
  ::unsetenv("INFTY_DEVICE_POOL");
  CHECK_FALSE(infty::detail::exact_pool_wanted());
  if (before) ::setenv("INFTY_DEVICE_POOL", kept.c_str(), 1);
}

}  // namespace stream_pool_test
