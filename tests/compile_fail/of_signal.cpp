// SPDX-License-Identifier: MIT
// A long-term memory says what basis and density lack.
// clang-format off
// bad 1: LongTermMemory: the basis is not trivially copyable, so that no kernel could carry it
// bad 2: LongTermMemory: the basis has no Scalar that is the memory's
// bad 3: LongTermMemory: the basis has no `Index size() const`
// bad 4: LongTermMemory: the basis has no `Scalar operator()(Index j, Scalar t) const`
// bad 5: LongTermMemory: the density has no `static T pdf(T t, T mu, T var)`
// bad 6: LongTermMemory: the density has no `static T mass(T a, T b, T mu, T var)`
// bad 7: LongTermMemory: the density has no expectation of the basis's functions: GaussianDensity wants
// bad 8: LongTermMemory: the basis cannot be made of N, of N and widths
// clang-format on
#include <vector>

#include <infty/memory/long_term_memory.hpp>
#ifndef BAD
#define BAD 0
#endif

struct Constant {
#if BAD != 2
  using Scalar = float;
#endif
  infty::Index n;
#if BAD == 1
  std::vector<float> values = {};
#elif BAD == 8
  explicit Constant(const char*) {}
#endif
#if BAD != 3
  infty::Index size() const { return n; }
#endif
#if BAD != 4
  float operator()(infty::Index, float) const { return 1; }
#endif
};

struct Point {
#if BAD != 5
  static double pdf(double, double, double) { return 0; }
#endif
#if BAD != 6
  static double mass(double a, double b, double mu, double) { return a <= mu && mu < b ? 1 : 0; }
#endif
#if BAD != 7
  static infty::Expectation<float> expectation_gradient(const Constant&, infty::Index, float,
                                                        float) {
    return {1, 0, 0};
  }
#endif
};

infty::LongTermMemory<float, Point, Constant> memory({});
