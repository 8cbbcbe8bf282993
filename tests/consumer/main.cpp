// SPDX-License-Identifier: MIT
#include <iostream>

#include <infty/infty.hpp>

int main() {
  const auto tensor = infty::Tensor<float>::zeros(infty::Shape{2, 3});
  std::cout << "infty " << infty::version << ": a tensor of shape " << tensor.shape() << '\n';
  return tensor.size() == 6 ? 0 : 1;
}
