// SPDX-License-Identifier: MIT
// expect: not an infty::Backend
// expect: B::sort(to, n)
#include <infty/core/tensor.hpp>
#include <infty/eigen/backend.hpp>

struct Mine : infty::EigenBackend {
#ifdef BAD
  static void sort();  // hides the one that sorts numbers
#endif
};

infty::Index size(const infty::Tensor<float, Mine>& tensor) { return tensor.size(); }
