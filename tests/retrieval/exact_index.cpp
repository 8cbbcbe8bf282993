// SPDX-License-Identifier: MIT
#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>
#include <vector>

#include <infty/core/bfloat16.hpp>
#include <infty/retrieval/exact_index.hpp>
#include <infty/retrieval/knn_lm.hpp>

#include "io/temporary_folder.hpp"
#include "support/catch.hpp"
#include "support/tensors.hpp"
#include "support/types.hpp"

using infty::Datastore;
using infty::ExactIndex;
using infty::Index;
using infty::SearchMetric;
using infty::Shape;
using infty::Tensor;

namespace exact_index_tests {

static_assert(infty::RetrievalIndex<ExactIndex<float>, float, infty::EigenBackend>);

/// Whole numbers, so that every score is exact and many are equal.
template <class T>
std::vector<T> drawn(Index n, std::uint64_t seed, Index values = 5) {
  infty::Random random(seed);
  std::vector<T> out(static_cast<std::size_t>(n));
  for (T& x : out)
    x = static_cast<T>(static_cast<Index>(random.uniform() * static_cast<double>(values)) - 2);
  return out;
}

template <class T>
Datastore<T> store_of(const std::vector<T>& keys, Index dim, Index block) {
  Datastore<T> store(dim, block);
  const Index n = std::ssize(keys) / dim;
  std::vector<Index> tokens;
  for (Index i = 0; i < n; ++i) tokens.push_back(7 * i);
  store.append(keys.data(), tokens.data(), n);
  return store;
}

/// What a search finds among the entries [begin, end), by sorting all scores.
template <class T>
std::pair<std::vector<T>, std::vector<Index>> sorted(const std::vector<T>& keys,
                                                     const std::vector<T>& queries, Index dim,
                                                     Index k, SearchMetric metric, Index begin,
                                                     Index end) {
  std::pair<std::vector<T>, std::vector<Index>> out;
  for (auto q = queries.begin(); q != queries.end(); q += dim) {
    std::vector<std::pair<T, Index>> all;
    for (Index i = begin; i < end; ++i) {
      T score = 0;
      for (Index d = 0; d < dim; ++d) {
        const T key = keys[static_cast<std::size_t>(i * dim + d)];
        score += metric == SearchMetric::squared_l2 ? (q[d] - key) * (q[d] - key) : -q[d] * key;
      }
      all.emplace_back(score, i);
    }
    std::sort(all.begin(), all.end());
    for (Index j = 0; j < k; ++j) {
      const bool any = j < std::ssize(all);
      out.first.push_back(any ? -all[static_cast<std::size_t>(j)].first
                              : -infty::math::infinity<T>);
      out.second.push_back(any ? all[static_cast<std::size_t>(j)].second : -1);
    }
  }
  return out;
}

}  // namespace exact_index_tests

TEMPLATE_LIST_TEST_CASE("ExactIndex: what sorting all scores finds, the older first of equal ones",
                        "", infty::tests::Types) {
  using T = typename TestType::T;
  using B = typename TestType::B;
  const Index dim = 3, n = 61;
  const auto keys = exact_index_tests::drawn<T>(n * dim, 1);
  const auto store = exact_index_tests::store_of(keys, dim, 16);
  const std::vector<std::pair<Index, Index>> ranges{{0, n}, {5, 40}, {16, 17}, {20, 20}};
  for (const SearchMetric metric : {SearchMetric::squared_l2, SearchMetric::inner_product})
    for (const Index queries : {0, 1, 9})
      for (const Index k : {1, 7, 80})
        for (const auto& range : ranges) {
          CAPTURE(static_cast<int>(metric), queries, k, range.first, range.second);
          const auto asked = exact_index_tests::drawn<T>(queries * dim, 2);
          const ExactIndex<T, B> index(store, metric);
          const auto found =
              index.search(Tensor<T, B>::from({queries, dim}, asked), k, range.first, range.second);
          const auto wanted =
              exact_index_tests::sorted(keys, asked, dim, k, metric, range.first, range.second);
          REQUIRE(found.indices.shape() == Shape{queries, k});
          CHECK(found.indices.to_vector() == wanted.second);
          CHECK(found.scores.to_vector() == wanted.first);
        }
}

TEMPLATE_LIST_TEST_CASE("ExactIndex: what is appended later is found after an update", "",
                        infty::tests::Types) {
  using T = typename TestType::T;
  using B = typename TestType::B;
  const Index dim = 4;
  const auto keys = exact_index_tests::drawn<T>(50 * dim, 3);
  Datastore<T> store(dim, 8);
  ExactIndex<T, B> index(store);
  const auto queries = Tensor<T, B>::from({5, dim}, exact_index_tests::drawn<T>(5 * dim, 4));
  CHECK(index.search(queries, 2).indices.to_vector() == std::vector<Index>(10, -1));
  for (Index at = 0, n; at < 50; at += n) {
    n = std::min<Index>(11, 50 - at);
    const std::vector<Index> tokens(static_cast<std::size_t>(n), at);
    store.append(keys.data() + at * dim, tokens.data(), n);
    CHECK(index.size() == at);
    index.update();
    CHECK(index.size() == at + n);
    const std::vector<T> seen(keys.begin(), keys.begin() + (at + n) * dim);
    CHECK(index.search(queries, 6).indices.to_vector() ==
          exact_index_tests::sorted(seen, queries.to_vector(), dim, 6, SearchMetric::squared_l2, 0,
                                    at + n)
              .second);
  }
}

TEMPLATE_LIST_TEST_CASE("ExactIndex: distances are those of the keys where squares cancel", "",
                        infty::tests::Types) {
  using T = typename TestType::T;
  using B = typename TestType::B;
  // Far from 0 the difference of the squares has few digits left; that of the keys has all.
  const T far = T(100);
  const std::vector<T> keys{far, far, far + T(0.25), far, far - 8, far, far, far + 2};
  const auto store = exact_index_tests::store_of(keys, 2, 8);
  const ExactIndex<T, B> index(store);
  const auto found = index.search(Tensor<T, B>::from({1, 2}, std::vector<T>{far, far}), 3);
  CHECK(found.indices.to_vector() == std::vector<Index>{0, 1, 3});
  CHECK(found.scores.to_vector() == std::vector<T>{T(0), T(-0.0625), T(-4)});
  CHECK(store.tokens(found.indices).to_vector() == std::vector<Index>{0, 7, 21});
}

TEMPLATE_LIST_TEST_CASE("ExactIndex: a datastore that claims huge blocks costs what is in it", "",
                        infty::tests::Types) {
  using T = typename TestType::T;
  using B = typename TestType::B;
  const infty::tests::TemporaryFolder folder;
  const Index dim = 3;
  const auto keys = exact_index_tests::drawn<T>(7 * dim, 5);
  const std::vector<Index> tokens(7, 1);
  Datastore<T>::build(folder.path(), dim, "", 7).append(keys.data(), tokens.data(), 7);
  auto manifest = infty::detail::DatastoreManifest::load(folder.path());
  manifest.block = infty::largest_size / dim;
  manifest.save(folder.path());
  const auto store = Datastore<T>::open(folder.path());
  REQUIRE(store.block() == infty::largest_size / dim);
  const auto asked = exact_index_tests::drawn<T>(2 * dim, 6);
  for (const SearchMetric metric : {SearchMetric::squared_l2, SearchMetric::inner_product}) {
    const ExactIndex<T, B> index(store, metric);
    CHECK(index.search(Tensor<T, B>::from({2, dim}, asked), 4).indices.to_vector() ==
          exact_index_tests::sorted(keys, asked, dim, 4, metric, 0, 7).second);
  }
}

// A typed test, for nvcc cannot compile the exact search of EigenBackend.
TEMPLATE_LIST_TEST_CASE("ExactIndex: what does not fit is refused", "", infty::tests::Types) {
  using T = typename TestType::T;
  using B = typename TestType::B;
  const auto store = exact_index_tests::store_of(exact_index_tests::drawn<T>(12, 1), 3, 8);
  const ExactIndex<T, B> index(store);
  const auto queries = Tensor<T, B>::zeros({2, 3});
  CHECK_THROWS_AS(index.search(queries, 0), infty::ValueError);
  CHECK_THROWS_AS(index.search(queries, infty::largest_size), infty::ValueError);
  const auto wide = Tensor<T, B>::zeros({2, 4}), flat = Tensor<T, B>::zeros({3});
  CHECK_THROWS_AS(index.search(wide, 1), infty::ShapeError);
  CHECK_THROWS_AS(index.search(flat, 1), infty::ShapeError);
  CHECK_THROWS_AS(index.search(queries, 1, 0, 5), infty::ShapeError);
  CHECK_THROWS_AS(index.search(queries, 1, -1, 2), infty::ShapeError);
  CHECK_THROWS_AS(index.search(queries, 1, 3, 2), infty::ShapeError);
}

TEMPLATE_LIST_TEST_CASE("ExactIndex: keys whose squares are no numbers are refused, not misplaced",
                        "", infty::tests::Types) {
  using T = typename TestType::T;
  using B = typename TestType::B;
  const T small = 1, large = std::sqrt(std::numeric_limits<T>::max()) * 2;
  auto store = exact_index_tests::store_of(std::vector<T>{small, 0, 0, 0, small, 0}, 3, 8);
  ExactIndex<T, B> index(store);
  ExactIndex<T, B> products(store, SearchMetric::inner_product);
  const auto query = Tensor<T, B>::from({1, 3}, {small, 0, 0});
  const auto found = index.search(query, 1).indices.to_vector();
  const std::vector<T> key{large, 0, 0};
  const Index token = 0;
  store.append(key.data(), &token, 1);
  CHECK_THROWS_AS(index.update(), infty::NonFiniteError);
  CHECK(index.search(query, 1).indices.to_vector() == found);
  products.update();  // which asks for no squares
  CHECK(products.search(query, 1).indices.to_vector() == std::vector<Index>{2});
}

TEMPLATE_LIST_TEST_CASE("ExactIndex: keys in bfloat16 are met as the numbers that they are", "",
                        infty::tests::Types) {
  using T = typename TestType::T;
  using B = typename TestType::B;
  infty::Random random(5);
  for (const Index dim : {1, 7, 40}) {
    const auto keys = infty::tests::uniform_tensor<T>({90, dim}, random).to_vector();
    Datastore<infty::BFloat16> narrow(dim, 16);
    Datastore<T> wide(dim, 16);
    const std::vector<Index> tokens(90, 1);
    narrow.append(keys.data(), tokens.data(), 90);
    std::vector<T> rounded;
    for (const T x : keys) rounded.push_back(static_cast<float>(infty::BFloat16(x)));
    wide.append(rounded.data(), tokens.data(), 90);
    for (const auto metric : {SearchMetric::squared_l2, SearchMetric::inner_product})
      for (const Index queries : {1, 9}) {
        const auto q = infty::tests::uniform_tensor<T, B>({queries, dim}, random);
        const ExactIndex<T, B, infty::BFloat16> halves(narrow, metric);
        const ExactIndex<T, B> whole(wide, metric);
        const auto found = halves.search(q, 5, 3, 80), expected = whole.search(q, 5, 3, 80);
        CAPTURE(dim, queries);
        CHECK(found.indices.to_vector() == expected.indices.to_vector());
        CHECK(found.scores.to_vector() == expected.scores.to_vector());
        const infty::KnnConfig inner{.similarity = infty::KnnSimilarity::inner_product};
        CHECK(infty::retrieved(narrow, q, found, inner).scores.to_vector() ==
              infty::retrieved(wide, q, expected, inner).scores.to_vector());
      }
  }
}
