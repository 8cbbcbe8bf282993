// SPDX-License-Identifier: MIT
#pragma once

#include <cmath>
#include <vector>

#include <infty/memory/ops/expected_values.hpp>

#include "support/catch.hpp"
#include "support/tensors.hpp"

namespace infty::tests {

/// Densities [2, B, H, Q] with means around [0, 1] and variances from narrow to wide, between
/// e^least and e^most.
template <class T, class B = EigenBackend>
Tensor<T, B> some_densities(const ReadSize& s, Random& random, double least = -8, double most = 0) {
  const Index n = s.batch * s.heads * s.queries;
  std::vector<T> numbers;
  for (Index i = 0; i < n; ++i) numbers.push_back(static_cast<T>(-.1 + 1.2 * random.uniform()));
  for (Index i = 0; i < n; ++i)
    numbers.push_back(static_cast<T>(std::exp(least + (most - least) * random.uniform())));
  return Tensor<T, B>::from({2, s.batch, s.heads, s.queries}, numbers);
}

/// The inputs of one call on a backend, and all that comes of it.
template <class T, class B>
struct ExpectationCase {
  ReadSize size;
  Tensor<T, B> density, values, d_out;

  /// With densities as given, or with some.
  explicit ExpectationCase(const ReadSize& s, Tensor<T, B> given = {}) : size(s) {
    Random random(infty::tests::seed);
    density = given.empty() ? some_densities<T, B>(s, random) : given;
    values = uniform_tensor<T, B>({s.batch, s.basis, s.heads * s.head_dim}, random);
    d_out = uniform_tensor<T, B>({s.batch, s.queries, s.heads * s.head_dim}, random);
  }

  /// What is read, and the gradients by the densities and by the values, added to ones. Bits of
  /// `wanted` say which of these are asked for.
  template <class Kernel, class Psi>
  std::vector<std::vector<T>> run(const Psi& psi, unsigned wanted = 3) const {
    auto out = Tensor<T, B>::full(d_out.shape(), T(9));
    auto d_density = Tensor<T, B>::full(density.shape(), T(1));
    auto d_values = Tensor<T, B>::full(values.shape(), T(1));
    Kernel::forward(size, psi, density.data(), values.data(), out.data());
    Kernel::backward(size, psi, density.data(), values.data(), d_out.data(),
                     wanted & 1 ? d_density.data() : nullptr,
                     wanted & 2 ? d_values.data() : nullptr);
    return {out.to_vector(), d_density.to_vector(), d_values.to_vector()};
  }
};

}  // namespace infty::tests
