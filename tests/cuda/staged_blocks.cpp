// SPDX-License-Identifier: MIT
#include <cstddef>
#include <deque>
#include <memory>
#include <mutex>
#include <vector>

#include <infty/core/error.hpp>
#include <infty/thrust/staged_blocks.hpp>

#include "support/catch.hpp"
#include "threads/at_once.hpp"

namespace staged_blocks_test {

/// Devices whose work is done when a test says so.
struct Machine {
  std::mutex mutex;
  bool busy = true;  ///< whether recorded work is still to be done
  int device = 0;
  std::deque<std::vector<char>> blocks;
  std::size_t marks = 0, recorded = 0;
};

struct Driver {
  using Mark = std::size_t;
  Machine* machine;

  int device() const { return machine->device; }
  void* allocate(std::size_t bytes) {
    machine->blocks.emplace_back(bytes);
    return machine->blocks.back().data();
  }
  Mark make() { return machine->marks++; }
  void record(Mark) {
    const std::lock_guard lock(machine->mutex);
    ++machine->recorded;
  }
  bool done(Mark) { return !machine->busy; }
};

using Blocks = infty::detail::StagedBlocks<Driver>;

TEST_CASE("StagedBlocks: a block is another's only when the device has read it") {
  Machine machine;
  Blocks blocks(Driver{&machine});
  const auto send = [&](std::size_t bytes) {
    auto block = blocks.take(bytes);
    block.sent();
    return block.data();
  };
  void* const first = send(100);
  CHECK(send(100) != first);
  CHECK(blocks.blocks() == 2);
  machine.busy = false;
  CHECK(send(4096) == first);
  CHECK(blocks.blocks() == 2);
  void* const large = send(100000);
  CHECK(blocks.blocks() == 3);
  for (int i = 0; i < 4; ++i) CHECK(send(100) != large);  // far too large for that
  CHECK(blocks.blocks() == 3);
  machine.device = 1;
  send(100);
  CHECK(blocks.blocks() == 4);  // the mark of a block is its device's
}

TEST_CASE("StagedBlocks: what was never sent can be taken at once") {
  Machine machine;
  Blocks blocks(Driver{&machine});
  void* const first = blocks.take(10).data();
  CHECK(blocks.take(10).data() == first);
  CHECK(machine.recorded == 0);
}

TEST_CASE("StagedBlocks: threads that end leave their blocks to others") {
  Machine machine;
  machine.busy = false;
  Blocks blocks(Driver{&machine});
  for (int generation = 0; generation < 20; ++generation)
    infty::tests::at_once(infty::tests::crowd, [&](int i) {
      for (int round = 0; round < 50; ++round) {
        auto block = blocks.take(100);
        int* const mine = static_cast<int*>(block.data());
        *mine = i;
        block.sent();
        if (*mine != i) throw infty::Error("two threads have one block");
      }
    });
  CHECK(blocks.blocks() <= static_cast<std::size_t>(infty::tests::crowd));
  CHECK(machine.recorded == 20U * 50U * static_cast<std::size_t>(infty::tests::crowd));
}

}  // namespace staged_blocks_test
