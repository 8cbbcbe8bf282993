// SPDX-License-Identifier: MIT
// The second file that includes the single header: a definition without `inline` would not link.
#include <cmath>

#include "infty.hpp"

float norm_in_another_file(const infty::Tensor<float>& tensor);

float norm_in_another_file(const infty::Tensor<float>& tensor) {
  float sum = 0;
  for (infty::Index i = 0; i < tensor.size(); ++i) sum += tensor.data()[i] * tensor.data()[i];
  return std::sqrt(sum);
}
