// SPDX-License-Identifier: MIT
#include <type_traits>
#include <vector>

#include <infty/eigen/map.hpp>

#include "support/catch.hpp"

using infty::Shape;
using infty::Tensor;

TEMPLATE_TEST_CASE("matrix: a tensor's own memory, leading dimensions joined to rows", "", float,
                   double) {
  using T = TestType;
  auto x = Tensor<T>::from({2, 2, 3}, {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11});
  auto map = infty::matrix(x);
  CHECK(map.data() == x.data());
  CHECK(map.rows() == 4);
  CHECK(map.cols() == 3);
  CHECK(map(2, 1) == T(7));
  map(2, 1) = T(-1);
  CHECK(x.to_vector()[7] == T(-1));
  map.row(0).setConstant(T(5));
  CHECK(x.slice(0, 1).reshape({6}).to_vector() == std::vector<T>{5, 5, 5, 3, 4, 5});

  const Tensor<T>& constant = x;
  auto read_only = infty::matrix(constant);
  static_assert(std::is_const_v<std::remove_pointer_t<decltype(read_only.data())>>);
  CHECK(read_only.data() == x.data());
}

TEST_CASE("matrix: a vector is one row, an empty tensor an empty matrix, a scalar an error") {
  auto vector = Tensor<float>::zeros({5});
  CHECK(infty::matrix(vector).rows() == 1);
  CHECK(infty::matrix(vector).cols() == 5);
  auto none = Tensor<float>::zeros({0, 4});
  CHECK(infty::matrix(none).rows() == 0);
  CHECK(infty::matrix(none).cols() == 4);
  auto scalar = Tensor<float>::zeros({});
  CHECK_THROWS_AS(infty::matrix(scalar), infty::ShapeError);
}

TEST_CASE("wrap: an Eigen matrix's own memory as a tensor") {
  infty::detail::RowMajor<double> eigen(2, 3);
  eigen << 1, 2, 3, 4, 5, 6;
  auto x = infty::wrap(eigen);
  CHECK(x.data() == eigen.data());
  CHECK(x.shape() == Shape{2, 3});
  CHECK(x.to_vector() == std::vector<double>{1, 2, 3, 4, 5, 6});
  x.fill(9);
  CHECK(eigen.sum() == 54);
}

TEST_CASE("matrix: Eigen's expressions write into tensors") {
  auto a = Tensor<double>::from({2, 2}, {1, 2, 3, 4}),
       b = Tensor<double>::from({2, 2}, {0, 1, 1, 0});
  Tensor<double> c(Shape{2, 2});
  infty::matrix(c).noalias() = infty::matrix(a) * infty::matrix(b);
  CHECK(c.to_vector() == std::vector<double>{2, 1, 4, 3});
}
