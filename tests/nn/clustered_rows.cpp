// SPDX-License-Identifier: MIT
#include <vector>

#include <infty/nn/clustered_rows.hpp>
#include <infty/testing/gradient_check.hpp>

#include "support/catch.hpp"
#include "support/tensors.hpp"
#include "support/types.hpp"

using infty::Index;
using infty::Shape;
using infty::Tensor;
using infty::Variable;

namespace {

infty::detail::ClusterBounds three_clusters() {
  return infty::AdaptiveConfig{.vocabulary = 9, .model_dim = 1, .cutoffs = {2, 5}}.bounds();
}

}  // namespace

TEMPLATE_LIST_TEST_CASE("clustered_rows: rows by cluster, what lies in none left out", "",
                        infty::tests::Types) {
  using B = typename TestType::B;
  const auto tokens = Tensor<Index, B>::from({2, 4}, {5, 0, -1, 8, 1, 9, 5, 0});
  const auto rows = infty::detail::clustered_rows(three_clusters(), tokens);
  CHECK(rows.size(0) == 3);
  CHECK(rows.size(1) == 0);
  CHECK(rows.size(2) == 3);
  CHECK(rows.rows(0).to_vector() == std::vector<Index>{1, 4, 7});
  CHECK(rows.tokens(0).to_vector() == std::vector<Index>{0, 1, 0});
  CHECK(rows.rows(2).to_vector() == std::vector<Index>{0, 3, 6});
  CHECK(rows.tokens(2).to_vector() == std::vector<Index>{0, 3, 0});
  const auto none = infty::detail::clustered_rows(three_clusters(), Tensor<Index, B>::zeros({0}));
  CHECK(none.size(0) == 0);
}

TEMPLATE_LIST_TEST_CASE("spread: vectors at their rows, zeros elsewhere", "", infty::tests::Types) {
  using T = typename TestType::T;
  using B = typename TestType::B;
  const infty::detail::RowLists<B> rows{Tensor<Index, B>::from({2}, {3, 0}),
                                        Tensor<Index, B>::from({1}, {2})};
  const infty::detail::Variables<T, B> parts{Tensor<T, B>::from({2, 2}, {1, 2, 3, 4}),
                                             Tensor<T, B>::from({1, 2}, {5, 6})};
  CHECK(infty::detail::spread(4, 2, rows, parts).value().to_vector() ==
        std::vector<T>{3, 4, 0, 0, 5, 6, 1, 2});
}

TEST_CASE("spread: gradient") {
  infty::Random random(infty::tests::seed);
  const infty::detail::RowLists<infty::EigenBackend> rows{Tensor<Index>::from({2}, {3, 0}),
                                                          Tensor<Index>::from({1}, {2})};
  const infty::detail::Variables<double, infty::EigenBackend> parts{
      infty::tests::uniform_variable<double>({2, 3}, random),
      infty::tests::uniform_variable<double>({1, 3}, random)};
  const auto loss = [&] {
    const auto y = infty::detail::spread(4, 3, rows, parts);
    return infty::sum(y * y);
  };
  CHECK(infty::gradient_check(loss, std::vector{parts[0], parts[1]}) < 1e-8);
}
