// SPDX-License-Identifier: MIT
// What grows, where memory runs out on the way.
#include <cstddef>
#include <new>
#include <span>
#include <type_traits>
#include <vector>

#include <infty/core/random.hpp>
#include <infty/retrieval/exact_index.hpp>
#include <infty/retrieval/knn_tuning.hpp>

#include "support/catch.hpp"
#include "support/count_new.hpp"
#include "support/other_backend.hpp"
#include "support/types.hpp"

using infty::Datastore;
using infty::ExactIndex;
using infty::Index;
using infty::SearchMetric;
using infty::Tensor;

namespace without_memory_tests {

/// A backend that has memory for so many blocks more.
template <class B>
struct Scarce : B {
  static constexpr std::size_t enough = ~std::size_t{0};
  inline static std::size_t blocks = enough;

  static void* allocate(std::size_t bytes) {
    if (blocks == 0) throw std::bad_alloc();
    if (blocks != enough) --blocks;
    return B::allocate(bytes);
  }

  /// f() with memory for n blocks. @return whether f missed more
  template <class F>
  static bool runs_out_after(std::size_t n, F&& f) {
    bool missed = false;
    blocks = n;
    try {
      f();
    } catch (const std::bad_alloc&) {
      missed = true;
    }
    blocks = enough;
    return missed;
  }
};

/// Appends to a datastore in steps, and lets the update of an index fail at each of its allocations
/// before it works.
/// @param runs_out_after  (n, f) calls f with n allocations that work @return how often one failed
template <class T, class B, class RunsOut>
Index updates(SearchMetric metric, const RunsOut& runs_out_after) {
  const Index dim = 3, n = 40;
  infty::Random random(7);
  std::vector<T> keys(static_cast<std::size_t>(n * dim));
  for (T& x : keys) x = static_cast<T>(random.below(5) - 2);
  const auto asked = Tensor<T, B>::from({2, dim}, std::vector<T>{0, 1, -1, 2, 0, 1});
  const std::vector<Index> tokens(static_cast<std::size_t>(n), 1);
  Datastore<T> store(dim, 8);
  ExactIndex<T, B> index(store, metric);
  const auto check = [&] {
    Datastore<T> held(dim, 8);
    held.append(keys.data(), tokens.data(), index.size());
    const ExactIndex<T, B> fresh(held, metric);
    const auto found = index.search(asked, 6), wanted = fresh.search(asked, 6);
    CHECK(found.indices.to_vector() == wanted.indices.to_vector());
    CHECK(found.scores.to_vector() == wanted.scores.to_vector());
  };
  Index failed = 0;
  // Within a block, beyond what it has room for, over its end, up to its end, and whole ones.
  for (const Index to : {1, 2, 5, 13, 16, 24, 40}) {
    const Index before = index.size();
    store.append(keys.data() + before * dim, tokens.data(), to - before);
    for (std::size_t calls = 0; runs_out_after(calls, [&] { index.update(); }); ++calls, ++failed) {
      CHECK(index.size() == before);
      check();
    }
    CHECK(index.size() == to);
    check();
  }
  return failed;
}

}  // namespace without_memory_tests

TEMPLATE_LIST_TEST_CASE("ExactIndex: an update that finds no memory changes nothing", "",
                        infty::tests::Types) {
  using T = typename TestType::T;
  using B = typename TestType::B;
  using without_memory_tests::Scarce, without_memory_tests::updates;
  for (const SearchMetric metric : {SearchMetric::squared_l2, SearchMetric::inner_product}) {
    CAPTURE(static_cast<int>(metric));
    CHECK(updates<T, Scarce<B>>(metric, [](std::size_t n, const auto& f) {
            return Scarce<B>::runs_out_after(n, f);
          }) >= 7);
    // Of the host's memory vectors are made, too; what other backends do without it is theirs.
    if constexpr (std::is_same_v<B, infty::EigenBackend>) {
      const auto host = [](std::size_t n, const auto& f) {
        return infty::tests::runs_out_after(n, f);
      };
      CHECK(updates<T, B>(metric, host) >= 14);
      CHECK(updates<T, infty::tests::OtherBackend>(metric, host) >= 14);
    }
  }
}

TEST_CASE("KnnTuning: places that find no memory are not counted") {
  const infty::Retrieved<double> found{Tensor<double>::from({3, 2}, {0, -1, 0, -1, 0, -1}),
                                       Tensor<Index>::from({3, 2}, {5, 3, 5, 3, 3, 5})};
  const std::vector<double> losses{.5, 1, 2};
  const std::vector<Index> targets{5, 3, 5};
  infty::KnnTuning tuning({1, 2}, {1, 2}), fresh({1, 2}, {1, 2});
  const auto add = [&](infty::KnnTuning& to) {
    to.add(found, std::span<const double>(losses), targets);
  };
  add(fresh);
  std::size_t calls = 0;
  for (; infty::tests::runs_out_after(calls, [&] { add(tuning); }); ++calls) {
    CHECK(tuning.places() == 0);
    CHECK_THROWS_AS(tuning.best(), infty::ValueError);
  }
  CHECK(calls >= 2);
  CHECK(tuning.places() == 3);
  for (const Index k : {1, 2}) CHECK(tuning.nats(k, 2, .3) == fresh.nats(k, 2, .3));
}
