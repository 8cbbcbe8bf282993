// SPDX-License-Identifier: MIT
#include <cstddef>
#include <thread>
#include <vector>

#include <infty/core/error.hpp>
#include <infty/parallel/background.hpp>

#include "support/catch.hpp"

using infty::detail::Background;
using infty::detail::Slice;

namespace background_tests {

TEST_CASE("Background: all slices in their order, on another thread") {
  std::vector<std::size_t> done;
  bool elsewhere = true;
  const auto here = std::this_thread::get_id();
  const auto job = [&](Slice slice) {
    done.push_back(slice.first);
    elsewhere = elsewhere && std::this_thread::get_id() != here;
  };
  std::vector<std::size_t> expected;
  Background thread(job);
  for (std::size_t i = 0; i < 100; ++i) {
    thread.push({i, i + 1});
    expected.push_back(i);
  }
  thread.finish();
  CHECK(done == expected);
  CHECK(elsewhere);
  {
    Background dropped(job);  // by an exception, say: what it has got is done
    dropped.push({100, 101});
  }
  CHECK(done.back() == 100);
  Background idle(job);
  idle.finish();
  CHECK(done.size() == 101);
}

TEST_CASE("Background: what the job throws ends it, and is thrown by finish") {
  int jobs = 0;
  Background thread([&](Slice slice) {
    ++jobs;
    infty::require(slice.first != 2, "job", "two");
  });
  for (std::size_t i = 0; i < 5; ++i) thread.push({i, i});
  CHECK_THROWS_WITH(thread.finish(), "[job] two");
  CHECK(jobs == 3);
}

}  // namespace background_tests
