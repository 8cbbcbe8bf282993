// SPDX-License-Identifier: MIT
// expect: is_trivially_copyable
#include <vector>

#include <infty/signal/basis.hpp>

struct Table {
  using Scalar = float;
#ifdef BAD
  std::vector<float> values;  // would not reach a device
#endif
  infty::Index size() const { return 1; }
  float operator()(infty::Index, float t) const { return t; }
};

template <infty::Basis Psi>
void use(const Psi&) {}

void test() { use(Table{}); }
