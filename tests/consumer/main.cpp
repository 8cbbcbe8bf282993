// SPDX-License-Identifier: MIT
#include <iostream>

#include <infty/core/tensor.hpp>
#include <infty/eigen/map.hpp>
#include <infty/eigen/version.hpp>

static_assert(INFTY_VERSION_NUMBER >= 200 && infty::version == INFTY_VERSION);

int main() {
#if defined(_OPENMP)
  const char* const openmp = "with";
#else
  const char* const openmp = "without";
#endif
  const auto tensor = infty::Tensor<float>::zeros(infty::Shape{2, 3});
  std::cout << "infty " << infty::version << ", Eigen " << infty::eigen_version << ' ' << openmp
            << " OpenMP: a tensor of shape " << tensor.shape() << '\n';
  return matrix(tensor).sum() == 0 && tensor.size() == 6 ? 0 : 1;
}
