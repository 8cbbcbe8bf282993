// SPDX-License-Identifier: MIT
#include <cmath>
#include <cstddef>
#include <vector>

#include <infty/autograd/reduce.hpp>
#include <infty/core/pool.hpp>
#include <infty/nn/gru_cell.hpp>
#include <infty/testing/gradient_check.hpp>

#include "support/catch.hpp"
#include "support/tensors.hpp"
#include "support/types.hpp"

namespace gru_cell_tests {

using infty::Tensor;
using infty::Variable;
using infty::tests::uniform_variable;

TEMPLATE_LIST_TEST_CASE("gru: the next state, element by element", "", infty::tests::Types) {
  using T = typename TestType::T;
  using B = typename TestType::B;
  infty::Random random(infty::tests::seed);
  const auto a = uniform_variable<T, B>({2, 2, 9}, random),
             b = uniform_variable<T, B>({2, 2, 9}, random),
             h = uniform_variable<T, B>({2, 2, 3}, random);
  const auto pa = a.value().to_vector(), pb = b.value().to_vector(), ph = h.value().to_vector();
  std::vector<double> expected;
  const auto sigmoid = [](T x) { return 1 / (1 + std::exp(-static_cast<double>(x))); };
  for (std::size_t i = 0; i < ph.size(); ++i) {
    const std::size_t r = i / 3 * 9 + i % 3, z = r + 3, n = r + 6;
    const double update = sigmoid(pa[z] + pb[z]);
    expected.push_back((1 - update) *
                           std::tanh(static_cast<double>(pa[n]) +
                                     sigmoid(pa[r] + pb[r]) * static_cast<double>(pb[n])) +
                       update * static_cast<double>(ph[i]));
  }
  CHECK(infty::tests::error(gru(a, b, h).value().to_vector(), expected) <
        infty::tests::tolerance<T>);
  const infty::GruCell<T, B> cell(4, 3, infty::Random(1));
  const auto x = uniform_variable<T, B>({2, 2, 4}, random);
  CHECK(cell.forward(x, h).value().to_vector() ==
        gru(cell.input.forward(x), cell.state.forward(h), h).value().to_vector());
}

TEST_CASE("gru: gradients are those of central differences") {
  infty::Random random(infty::tests::seed);
  const auto a = uniform_variable<double>({3, 6}, random),
             b = uniform_variable<double>({3, 6}, random),
             h = uniform_variable<double>({3, 2}, random),
             weight = uniform_variable<double>({3, 2}, random);
  CHECK(gradient_check([&] { return sum(gru(a, b, h) * weight); }, std::vector{a, b, h}) < 1e-8);
  CHECK(gradient_check([&] { return sum(gru(a, a, h) * weight); }, std::vector{a, h}) < 1e-8);
  CHECK_THROWS_AS(gru(a, h, h), infty::ShapeError);
  CHECK_THROWS_AS(gru(h, h, h), infty::ShapeError);
  infty::HostPool& pool = infty::HostPool::instance();
  pool.reset_peak();
  const std::size_t before = pool.statistics().bytes_in_use;
  for (const infty::Index most : {infty::Index{0}, infty::Index{1} << 28, infty::Index{1} << 62}) {
    CHECK_THROWS_AS((infty::GruCell<float>(1, most, random)), infty::ValueError);
    if (most != infty::Index{1} << 28)
      CHECK_THROWS_AS((infty::GruCell<float>(most, 1, random)), infty::ValueError);
  }
  CHECK(pool.statistics().peak_bytes_in_use == before);  // no map was made, however small
}

}  // namespace gru_cell_tests
