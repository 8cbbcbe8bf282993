// SPDX-License-Identifier: MIT
#pragma once

#include <cmath>
#include <cstdint>
#include <numbers>
#include <vector>

#include <infty/memory/uniform_memory.hpp>

#include "support/tensors.hpp"

// Uniform memories that are small enough for every test, and what is written to them.

namespace uniform {

using infty::Index;
using infty::Random;
using infty::RowCounts;
using infty::Shape;
using infty::Tensor;
using infty::Variable;

template <class T = double, class B = infty::EigenBackend>
using UniformOf = infty::UniformMemory<T, infty::GaussianDensity, infty::GaussianBasis<T>, B>;

template <class M>
typename M::Config small() {
  typename M::Config config;
  config.model_dim = 2;
  config.heads = 2;
  config.head_dim = 2;
  config.basis = 16;
  config.widths = {.05};
  config.samples = 32;
  config.ridge = .1;
  config.block = 4;
  return config;
}

/// A stream of two coordinates: where it is of `length`, and noise.
template <class T, class B>
Tensor<T, B> stream_of(Index length, Index begin, Index end) {
  std::vector<T> x;
  for (Index i = begin; i < end; ++i) {
    const double t = (static_cast<double>(i) + .5) / static_cast<double>(length);
    x.push_back(static_cast<T>(std::sin(2 * std::numbers::pi * t)));
    Random random(7, static_cast<std::uint64_t>(i));
    x.push_back(static_cast<T>(2 * random.uniform() - 1));
  }
  return Tensor<T, B>::from(Shape{1, end - begin, 2}, x);
}

}  // namespace uniform
