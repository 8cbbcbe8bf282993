// SPDX-License-Identifier: MIT
#pragma once

#include <cstddef>
#include <exception>
#include <latch>
#include <thread>
#include <vector>

namespace infty::tests {

/// Threads enough to meet each other on any machine.
inline constexpr int crowd = 4;

/// f(i) for all i in [0, threads), each in a thread of its own, which start together. What one of
/// them throws is thrown from here once all have ended.
template <class F>
void at_once(int threads, const F& f) {
  std::latch start(threads);
  std::vector<std::exception_ptr> errors(static_cast<std::size_t>(threads));
  std::vector<std::thread> all;
  for (int i = 0; i < threads; ++i)
    all.emplace_back([&, i] {
      start.arrive_and_wait();
      try {
        f(i);
      } catch (...) {
        errors[static_cast<std::size_t>(i)] = std::current_exception();
      }
    });
  for (auto& thread : all) thread.join();
  for (const auto& error : errors)
    if (error) std::rethrow_exception(error);
}

/// f(0), ..., f(crowd - 1) one after the other, and at once several times over: they answer the
/// same.
template <class F>
bool same_at_once(const F& f) {
  std::vector<decltype(f(0))> expected;
  for (int i = 0; i < crowd; ++i) expected.push_back(f(i));
  for (int repeat = 0; repeat < 8; ++repeat) {
    std::vector<decltype(f(0))> got(crowd);
    at_once(crowd, [&](int i) { got[static_cast<std::size_t>(i)] = f(i); });
    if (got != expected) return false;
  }
  return true;
}

}  // namespace infty::tests
