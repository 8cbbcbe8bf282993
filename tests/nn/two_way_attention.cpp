// SPDX-License-Identifier: MIT
#include <cmath>
#include <vector>

#include <infty/autograd/elementwise.hpp>
#include <infty/autograd/reduce.hpp>
#include <infty/nn/two_way_attention.hpp>
#include <infty/testing/gradient_check.hpp>

#include "support/catch.hpp"
#include "support/tensors.hpp"
#include "support/types.hpp"

namespace two_way {

using infty::AheadPositions;
using infty::Index;
using infty::Tensor;
using infty::Variable;
using infty::tests::uniform_variable;

/// The inputs of one call, drawn evenly.
template <class T, class B>
struct Case {
  Index batch, queries, keys, heads, head_dim;
  Variable<T, B> q, k, v, r, u, w;

  Case(Index rows, Index L, Index K, Index H, Index D)
      : batch(rows), queries(L), keys(K), heads(H), head_dim(D) {
    infty::Random random(infty::tests::seed);
    q = uniform_variable<T, B>({rows, L, H * D}, random);
    k = uniform_variable<T, B>({rows, K, H * D}, random);
    v = uniform_variable<T, B>({rows, K, H * D}, random);
    r = uniform_variable<T, B>({K + L - 1, H * D}, random);
    u = uniform_variable<T, B>({H, D}, random);
    w = uniform_variable<T, B>({H, D}, random);
  }

  Variable<T, B> read(AheadPositions ahead, const Tensor<Index, B>& visible = {}) const {
    return infty::two_way_attention(q, k, v, r, u, w, ahead, visible);
  }

  /// The definition, one sum after the other.
  std::vector<double> by_definition(AheadPositions ahead, const std::vector<Index>& visible) const {
    const Index M = keys - queries, e = heads * head_dim;
    const auto host = [](const Variable<T, B>& x) { return x.value().to_vector(); };
    const std::vector<T> hq = host(q), hk = host(k), hv = host(v), hr = host(r), hu = host(u),
                         hw = host(w);
    const auto at = [](const std::vector<T>& x, Index i) {
      return static_cast<double>(x[static_cast<std::size_t>(i)]);
    };
    std::vector<double> out;
    for (Index b = 0; b < batch; ++b)
      for (Index i = 0; i < queries; ++i)
        for (Index h = 0; h < heads; ++h) {
          const Index first = visible.empty() ? 0 : M - visible[static_cast<std::size_t>(b)];
          std::vector<double> weight;
          double total = 0;
          for (Index j = first; j < keys; ++j) {
            const Index by = j - M - i;  // the key is ahead by so many
            const bool shifted = ahead == AheadPositions::shifted && by > 0;
            const Index asks = shifted ? i + 1 : i;
            double score = 0;
            for (Index c = h * head_dim; c < (h + 1) * head_dim; ++c) {
              score +=
                  (at(hq, (b * queries + i) * e + c) + at(hu, c)) * at(hk, (b * keys + j) * e + c);
              if (shifted && by == 1) continue;
              score += (at(hq, (b * queries + asks) * e + c) + at(hw, c)) *
                       at(hr, (keys - 1 + by) * e + c);
            }
            weight.push_back(std::exp(score / std::sqrt(static_cast<double>(head_dim))));
            total += weight.back();
          }
          for (Index c = h * head_dim; c < (h + 1) * head_dim; ++c) {
            double sum = 0;
            for (Index j = first; j < keys; ++j)
              sum += weight[static_cast<std::size_t>(j - first)] / total *
                     at(hv, (b * keys + j) * e + c);
            out.push_back(sum);
          }
        }
    return out;
  }
};

constexpr AheadPositions both[] = {AheadPositions::distance, AheadPositions::shifted};

}  // namespace two_way

TEMPLATE_LIST_TEST_CASE("two_way_attention: its definition", "", infty::tests::Types) {
  using T = typename TestType::T;
  using B = typename TestType::B;
  using infty::Index;
  for (const auto ahead : two_way::both)
    for (const bool limited : {false, true})
      for (const Index L : {1, 2, 4}) {
        CAPTURE(static_cast<int>(ahead), limited, L);
        const two_way::Case<T, B> c(2, L, L + 3, 2, 3);
        const std::vector<Index> seen = limited ? std::vector<Index>{2, 0} : std::vector<Index>{};
        const auto visible =
            limited ? infty::Tensor<Index, B>::from({2}, seen) : infty::Tensor<Index, B>();
        const auto got = c.read(ahead, visible).value().to_vector();
        CHECK(infty::tests::error(got, c.by_definition(ahead, seen)) < infty::tests::tolerance<T>);
      }
}

TEST_CASE("two_way_attention: the gradients of all six inputs are those of differences") {
  using infty::Index;
  for (const auto ahead : two_way::both) {
    CAPTURE(static_cast<int>(ahead));
    const two_way::Case<double, infty::EigenBackend> c(2, 3, 5, 2, 2);
    const auto visible = infty::Tensor<Index>::from({2}, std::vector<Index>{1, 2});
    const auto loss = [&] {
      const auto y = c.read(ahead, visible);
      return infty::sum(y * y);
    };
    const std::vector<infty::Variable<double>> inputs{c.q, c.k, c.v, c.r, c.u, c.w};
    CHECK(infty::gradient_check(loss, inputs) < 1e-7);
  }
}

TEST_CASE("two_way_attention: what does not fit is refused") {
  using infty::Index;
  two_way::Case<double, infty::EigenBackend> c(2, 2, 3, 2, 2);
  CHECK_THROWS_AS(c.read(infty::AheadPositions::distance,
                         infty::Tensor<Index>::from({2}, std::vector<Index>{0, 2})),
                  infty::ValueError);
  c.r = infty::Variable<double>(infty::Tensor<double>({3, 4}));
  CHECK_THROWS_AS(c.read(infty::AheadPositions::distance), infty::ShapeError);
}
