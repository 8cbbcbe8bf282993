// SPDX-License-Identifier: MIT
#pragma once

#include <infty/core/tensor.hpp>
#include <infty/eigen/backend.hpp>
#include <infty/eigen/include.hpp>

namespace infty {

/// Maps the tensor's own memory as a row-major Eigen matrix, without a copy: the last dimension are
/// the columns, all others the rows. The tensor must outlive the map.
/// @throws infty::ShapeError for a scalar's shape; infty::ValueError as `Tensor::data`
template <class T>
auto matrix(Tensor<T, EigenBackend>& tensor) {
  const Index columns = tensor.dim(-1);
  return Eigen::Map<detail::RowMajor<T>>(tensor.data(), tensor.shape().size(0, tensor.rank() - 1),
                                         columns);
}

/// Maps the tensor's own memory as a read-only row-major Eigen matrix: the last dimension are the
/// columns, all others the rows. The tensor must outlive the map.
/// @throws infty::ShapeError for a scalar's shape
template <class T>
auto matrix(const Tensor<T, EigenBackend>& tensor) {
  const Index columns = tensor.dim(-1);
  return Eigen::Map<const detail::RowMajor<T>>(tensor.data(),
                                               tensor.shape().size(0, tensor.rank() - 1), columns);
}

/// Wraps a row-major Eigen matrix as a tensor [rows, cols], without a copy; it must outlive the
/// tensor.
template <class T>
Tensor<T, EigenBackend> wrap(detail::RowMajor<T>& matrix) {
  return Tensor<T, EigenBackend>::wrap(matrix.data(), Shape{matrix.rows(), matrix.cols()});
}

}  // namespace infty
