// SPDX-License-Identifier: MIT
// expect: the density has no expectation of the basis's functions
#include <infty/memory/long_term_memory.hpp>

struct Constant {
  using Scalar = float;
  infty::Index n;

  infty::Index size() const { return n; }
  float operator()(infty::Index, float) const { return 1; }
#ifndef BAD
  infty::Expectation<float> gaussian_expectation(infty::Index, float, float) const {
    return {1, 0, 0};
  }
#endif
};

infty::LongTermMemory<float, infty::GaussianDensity, Constant> memory({});
