// SPDX-License-Identifier: MIT
// expect: Tensor: T must be trivially copyable
#include <string>

#include <infty/core/tensor.hpp>
#include <infty/eigen/backend.hpp>

#ifdef BAD
using Scalar = std::string;
#else
using Scalar = int;
#endif

int main() { return infty::Tensor<Scalar>().empty() ? 0 : 1; }
