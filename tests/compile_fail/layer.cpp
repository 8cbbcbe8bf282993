// SPDX-License-Identifier: MIT
// expect: member.visit(
#include <infty/autograd/parameters.hpp>

struct Scale {
  infty::Variable<float> factor;
#ifndef BAD
  template <class Visitor>
  void visit(Visitor&& see) {
    see("factor", factor);
  }
#endif
};

template <infty::Layer L>
void use() {}

void test() { use<Scale>(); }
