// SPDX-License-Identifier: MIT
#pragma once

// What `infty::compiled` has of memories: see eigen/compiled.hpp.

#include <infty/memory/long_term_memory.hpp>
#include <infty/nn/compiled.hpp>

/// The long-term memory, and the operations that it is made of.
#define INFTY_COMPILED_MEMORY(how, T)                                                             \
  how Tensor<double> ridge_matrix<EigenBackend>(const GaussianBasis<T>&, const Positions&,        \
                                                double);                                          \
  how FitSize fit_size<EigenBackend>(const GaussianBasis<T>&, const Tensor<double>&);             \
  how std::vector<FewerGaussians<T, EigenBackend>> fewer_gaussians(const GaussianBasis<T>&);      \
  how LowRank<T, EigenBackend> detail::low_rank_leaving(Tensor<double>&);                         \
  how class RidgeCache<T, EigenBackend, GaussianBasis<T>>;                                        \
  how Tensor<T> sample_locations(const Tensor<T>&, Index, std::span<Random>, bool);               \
  how Tensor<T> quantile_locations(const Tensor<T>&, Index);                                      \
  how Tensor<T> detail::attention_since<GaussianDensity>(const Tensor<T>&, const Tensor<T>&);     \
  how Tensor<T> detail::largest_with(const Tensor<T>&, const Tensor<T>&);                         \
  how T detail::largest_writable(const RidgeCache<T, EigenBackend, GaussianBasis<T>>&,            \
                                 const RowCounts&, const RowCounts&);                             \
  how void detail::require_writable(const char*, const Tensor<T>&, T);                            \
  how void detail::require_finite_read(const Tensor<T>&, const Tensor<T>&, const Tensor<T>&);     \
  how void detail::check_long_term_state(const char*, const LongTermConfig&, Index,               \
                                         const Fifo<T>&, const LongTermState<T>&);                \
  how void detail::check_locations(const char*, const Tensor<T>&, const Shape&);                  \
  how void detail::clear_full_rows(LongTermState<T>&, Index, const RowCounts&);                   \
  how Variable<T> gate(const Variable<T>&, const Variable<T>&, const Variable<T>&);               \
  how Variable<T> write_coefficients(const RidgeCache<T, EigenBackend, GaussianBasis<T>>&,        \
                                     const WrittenSignal<T, EigenBackend>&, const Variable<T>&,   \
                                     const RowCounts&, const Tensor<T>&);                         \
  how Variable<T> weighted_coefficients(const Variable<T>&, const Variable<T>&);                  \
  how Variable<T> affine_density(const Variable<T>&, const Variable<T>&, Index, T);               \
  how Variable<T> moment_density(const Variable<T>&, const Variable<T>&, const GaussianBasis<T>&, \
                                 Index);                                                          \
  how Variable<T> divergence<GaussianDensity>(const Variable<T>&, T);                             \
  how Variable<T> expected_head_values<GaussianDensity>(                                          \
      const GaussianBasis<T>&, const Variable<T>&, const Variable<T>&, const Variable<T>&, bool,  \
      const std::vector<FewerGaussians<T, EigenBackend>>&);                                       \
  how class Fifo<T>;                                                                              \
  how class LongTermMemory<T>;

#if defined(INFTY_COMPILED)
namespace infty {
INFTY_COMPILED_MEMORY(extern template, float)
INFTY_COMPILED_MEMORY(extern template, double)
}  // namespace infty
#endif
