// SPDX-License-Identifier: MIT
#include <cstddef>
#include <deque>
#include <string>
#include <thread>
#include <vector>

#include <infty/core/error.hpp>
#include <infty/thrust/pending_checks.hpp>

#include "support/catch.hpp"

namespace pending_checks_test {

using infty::Index;

/// A device that writes its findings when it is waited for, and not before.
struct Machine {
  struct Finding {
    Index* slot;
    Index value;
  };
  int here = 0, finishes = 0;
  std::deque<std::vector<Index>> slots;
  std::vector<Finding> queue;

  void run() {
    for (const Finding& finding : queue) *finding.slot = finding.value;
    queue.clear();
  }
};

struct Driver {
  using Place = int;
  Machine* machine;

  int place() const { return machine->here; }
  Index* slots(std::size_t n) {
    machine->slots.emplace_back(n, Index{123});  // of no meaning until a check has written
    return machine->slots.back().data();
  }
  void finish(int) {
    ++machine->finishes;
    machine->run();
  }
};

using Checks = infty::detail::PendingChecks<Driver>;

/// Adds a check that will find `value`, -1 for nothing.
void add(Checks& checks, Machine& machine, const std::string& name, Index value) {
  Index* const slot =
      checks.add([name](Index found) { infty::raise<infty::ValueError>(name, "found ", found); });
  machine.queue.push_back({slot, value});
}

TEST_CASE("PendingChecks: the first finding is thrown at the next look, and then forgotten") {
  Machine machine;
  Checks::Shared shared(Driver{&machine});
  Checks checks(shared);
  checks.look();
  add(checks, machine, "one", -1);
  add(checks, machine, "two", 7);
  add(checks, machine, "three", 0);
  machine.run();
  CHECK_THROWS_WITH(checks.look(), "[two] found 7");
  checks.look();
  add(checks, machine, "four", -1);
  machine.run();
  checks.look();
  CHECK(machine.finishes == 0);
}

TEST_CASE("PendingChecks: more than there are slots for are waited for, and none is lost") {
  Machine machine;
  Checks::Shared shared(Driver{&machine});
  Checks checks(shared);
  for (std::size_t i = 0; i < Checks::most; ++i) add(checks, machine, "early", -1);
  CHECK(machine.finishes == 0);
  add(checks, machine, "late", 3);  // the 257th
  CHECK(machine.finishes == 1);
  for (std::size_t i = 1; i < Checks::most; ++i) add(checks, machine, "later", -1);
  CHECK_THROWS_WITH(add(checks, machine, "latest", -1), "[late] found 3");
  CHECK(machine.finishes == 2);
  CHECK(shared.blocks() == 1);
}

TEST_CASE("PendingChecks: those of another place are waited for before one is added here") {
  Machine machine;
  Checks::Shared shared(Driver{&machine});
  Checks checks(shared);
  add(checks, machine, "there", 5);
  machine.here = 1;
  checks.look();  // says nothing of another place's work, which may not be done
  CHECK_THROWS_WITH(add(checks, machine, "here", 6), "[there] found 5");
  CHECK(machine.finishes == 1);
}

TEST_CASE("PendingChecks: what a thread has not looked at is thrown in another when it has ended") {
  Machine machine;
  Checks::Shared shared(Driver{&machine});
  Checks mine(shared);
  std::thread([&] {
    Checks checks(shared);
    add(checks, machine, "ended", -1);
    add(checks, machine, "lost", 4);
    add(checks, machine, "lost too", 9);
  }).join();
  CHECK(machine.finishes == 1);
  CHECK_THROWS_WITH(mine.look(), Catch::Contains("[lost too] found 9"));
  CHECK_THROWS_WITH(mine.look(), Catch::Contains("[lost] found 4"));
  mine.look();
}

TEST_CASE("PendingChecks: threads that end leave their slots to others") {
  Machine machine;
  Checks::Shared shared(Driver{&machine});
  for (int i = 0; i < 10; ++i)
    std::thread([&] {
      Checks checks(shared);
      add(checks, machine, "fine", -1);
      machine.run();
      checks.look();
    }).join();
  CHECK(shared.blocks() == 1);
  CHECK(machine.finishes == 0);
  Checks one(shared), other(shared);
  add(one, machine, "one", -1);
  add(other, machine, "other", -1);
  CHECK(shared.blocks() == 2);
  machine.run();
}

}  // namespace pending_checks_test
