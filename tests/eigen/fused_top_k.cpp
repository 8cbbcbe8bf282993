// SPDX-License-Identifier: MIT
#include <cstddef>
#include <functional>
#include <limits>
#include <type_traits>
#include <vector>

#include <infty/autograd/top_k.hpp>
#include <infty/core/kernel/chosen.hpp>
#include <infty/core/random.hpp>
#include <infty/eigen/backend.hpp>

#include "support/catch.hpp"
#include "support/tensors.hpp"

namespace fused_top_k_tests {

using infty::Index;
using infty::Random;
using Kernel = infty::EigenBackend::FusedTopK;
using Composed = infty::detail::ComposedTopK<infty::EigenBackend>;
static_assert(std::is_same_v<infty::detail::chosen_t<Composed>, Kernel>);

template <class Way, class T>
std::vector<Index> found(Index k, const std::vector<T>& x) {
  // Elements behind those that are asked for must stay as they are.
  std::vector<Index> out(static_cast<std::size_t>(k) + 3, -7);
  Way::row(static_cast<Index>(x.size()), k, x.data(), out.data());
  return out;
}

template <class T>
void same(Index k, const std::vector<T>& x) {
  CAPTURE(k, x.size());
  REQUIRE(found<Kernel>(k, x) == found<Composed>(k, x));
}

template <class T>
std::vector<T> row(Index n, const std::function<double(Index)>& f) {
  std::vector<T> x;
  for (Index i = 0; i < n; ++i) x.push_back(static_cast<T>(f(i)));
  return x;
}

TEMPLATE_TEST_CASE("top_k: the kernel finds what the heap finds, of rows in any order", "", float,
                   double) {
  using T = TestType;
  Random random(infty::tests::seed);
  for (const Index n : {1, 31, 64, 65, 127, 129, 256, 1000, 1024, 5003})
    for (const Index k : {0, 1, 2, 7, 8, 9, 31, 32, 33, 100, 128, 129, 300}) {
      if (k > n) continue;
      same<T>(k, row<T>(n, [&](Index) { return random.normal(); }));
      // Few numbers, so that many are equal, and more may count than there is room for.
      same<T>(k, row<T>(n, [&](Index) { return static_cast<double>(random.below(5)); }));
      same<T>(k, row<T>(n, [&](Index) { return random.below(9) == 0 ? 0. : -0.; }));
      same<T>(k, row<T>(n, [](Index) { return 3.; }));
      same<T>(k, row<T>(n, [](Index i) { return static_cast<double>(i); }));
      same<T>(k, row<T>(n, [](Index i) { return -static_cast<double>(i); }));
      // All that is large in one group of every power of two.
      same<T>(k, row<T>(n, [&](Index i) { return random.normal() + (i % 64 == 5 ? 100 : 0); }));
      same<T>(k, row<T>(n, [&](Index i) { return random.normal() + (i + 50 > n ? 100 : 0); }));
      same<T>(k, row<T>(n, [&](Index) { return 1e-40 * random.normal(); }));
      same<T>(k, row<T>(n, [&](Index) { return 1e30 * random.normal(); }));
    }
}

TEMPLATE_TEST_CASE("top_k: the kernel meets NaN and infinities as the heap does", "", float,
                   double) {
  using T = TestType;
  const T nan = std::numeric_limits<T>::quiet_NaN(), most = std::numeric_limits<T>::infinity();
  Random random(infty::tests::seed);
  for (const Index share : {2, 10, 200})
    for (int trial = 0; trial < 30; ++trial) {
      auto x = row<T>(700, [&](Index) { return random.normal(); });
      for (T& v : x)
        if (random.below(share) == 0) {
          const Index kind = random.below(4);
          v = kind == 0 ? nan : kind == 1 ? most : kind == 2 ? -most : -nan;
        }
      for (const Index k : {1, 5, 32, 128}) same<T>(k, x);
    }
  for (const T all : {nan, most, -most})
    for (const Index k : {1, 32}) same<T>(k, std::vector<T>(600, all));
  // Fewer that are numbers than are asked for.
  auto x = std::vector<T>(600, -most);
  for (Index i = 0; i < 20; ++i) x[static_cast<std::size_t>(29 * i)] = T(i);
  same<T>(32, x);
  for (T& v : x)
    if (v == -most) v = nan;
  same<T>(32, x);
}

}  // namespace fused_top_k_tests
