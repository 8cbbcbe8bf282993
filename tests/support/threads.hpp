// SPDX-License-Identifier: MIT
#pragma once

#include <infty/eigen/parallel.hpp>

namespace infty::tests {

/// f() with a given number of threads; the number is put back after it.
template <class F>
auto with_threads(int threads, F f) {
  struct Restore {
    int before = num_threads();
    ~Restore() { set_num_threads(before); }
  } restore;
  set_num_threads(threads);
  return f();
}

}  // namespace infty::tests
