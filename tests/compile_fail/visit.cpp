// SPDX-License-Identifier: MIT
// What wants to go through a layer's parameters, or a state's members, says that there is no visit.
// clang-format off
// bad 1: parameters: the layer has no public `template <class Visitor> void visit(Visitor&& see)`
// bad 2: count_parameters: the layer has no public `template <class Visitor> void visit(Visitor&& see)`
// bad 3: zero_grad: the layer has no public `template <class Visitor> void visit(Visitor&& see)`
// bad 4: named_parameters: the layer has no public `template <class Visitor> void visit(Visitor&& see)`
// bad 5: Adam: the layer has no public `template <class Visitor> void visit(Visitor&& see)`
// bad 6: Trainer: the layer has no public `template <class Visitor> void visit(Visitor&& see)`
// bad 7: save_parameters: the layer has no public `template <class Visitor> void visit(Visitor&& see)`
// bad 8: load_parameters: the layer has no public `template <class Visitor> void visit(Visitor&& see)`
// bad 9: save_parameters: the layer has no public `template <class Visitor> void visit(Visitor&& see)`
// bad 10: clone: the layer has no public `template <class Visitor> void visit(Visitor&& see)`
// clang-format on
#include <infty/autograd/clone.hpp>
#include <infty/train/trainer.hpp>
#ifndef BAD
#define BAD 0
#endif

struct Mine {
  infty::Variable<float> weight;
#if BAD == 0
  template <class Visitor>
  void visit(Visitor&& see) {
    see("weight", weight);
  }
#endif
};

void test(Mine& mine, infty::SafetensorsWriter& writer) {
#if BAD == 0 || BAD == 1
  infty::parameters<float>(mine);
#endif
#if BAD == 0 || BAD == 2
  infty::count_parameters(mine);
#endif
#if BAD == 0 || BAD == 3
  infty::zero_grad(mine);
#endif
#if BAD == 0 || BAD == 4
  infty::named_parameters<float>(mine);
#endif
#if BAD == 0 || BAD == 5
  infty::Adam<float> adam(mine);
#endif
#if BAD == 0 || BAD == 6
  infty::Trainer<float> trainer(mine);
#endif
#if BAD == 0 || BAD == 7
  infty::save_parameters("file", mine);
#endif
#if BAD == 0 || BAD == 8
  infty::load_parameters("file", mine);
#endif
#if BAD == 0 || BAD == 9
  infty::save_parameters(writer, mine);
#endif
#if BAD == 0 || BAD == 10
  Mine copy = infty::clone(mine);
#endif
}
