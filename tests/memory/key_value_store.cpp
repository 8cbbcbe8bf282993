// SPDX-License-Identifier: MIT
#include <limits>
#include <numeric>
#include <vector>

#include <infty/core/bfloat16.hpp>
#include <infty/core/pool.hpp>
#include <infty/memory/key_value_store.hpp>

#include "support/catch.hpp"
#include "support/tensors.hpp"
#include "support/types.hpp"

using infty::BFloat16;
using infty::Index;
using infty::KeyValueStore;
using infty::RowCounts;
using infty::Shape;
using infty::Tensor;

static_assert(infty::RowStore<KeyValueStore<float>>);

namespace store_tests {

/// Entries of one head of one number: keys first, first + 1, ..., values ten times these.
template <class T, class B>
infty::RowSequences<T, B> entries(Index rows, Index first, Index count) {
  std::vector<T> numbers;
  for (Index row = 0; row < rows; ++row)
    for (Index i = first; i < first + count; ++i) {
      numbers.push_back(static_cast<T>(100 * row + i));
      numbers.push_back(10 * numbers.back());
    }
  return {Tensor<T, B>::from({rows, count, 2}, numbers),
          RowCounts(static_cast<std::size_t>(rows), count)};
}

/// The keys of a row, the oldest first.
template <class T, class B>
std::vector<Index> keys(const KeyValueStore<T, B>& store, Index row) {
  const auto saved = store.saved();
  const auto numbers = saved.vectors.to_vector();
  const Index longest = saved.vectors.dim(1);
  std::vector<Index> out;
  for (Index i = longest - saved.length[static_cast<std::size_t>(row)]; i < longest; ++i) {
    const auto at = static_cast<std::size_t>((row * longest + i) * 2);
    CHECK(numbers[at + 1] == 10 * numbers[at]);
    out.push_back(static_cast<Index>(numbers[at]));
  }
  return out;
}

std::vector<Index> from_to(Index first, Index end) {
  std::vector<Index> out(static_cast<std::size_t>(end - first));
  std::iota(out.begin(), out.end(), first);
  return out;
}

TEMPLATE_LIST_TEST_CASE("KeyValueStore: holds the last entries of each row, in blocks", "",
                        infty::tests::Types) {
  using T = typename TestType::T;
  using B = typename TestType::B;
  for (const Index block : {1, 3, 4, 100}) {
    KeyValueStore<T, B> store(2, 1, 1, block);
    CHECK(store.bytes() == 0);
    Index end = 0;
    for (const Index n : {2, 1, 9, 0, 4}) {
      store.append(entries<T, B>(2, end, n), 7);
      end += n;
      CAPTURE(block, end);
      CHECK(keys(store, 0) == from_to(std::max<Index>(0, end - 7), end));
      CHECK(keys(store, 1) == from_to(100 + std::max<Index>(0, end - 7), 100 + end));
    }
    CHECK(store.bytes() == 2 * 7 * 2 * sizeof(T));
    // Rows take in different numbers of entries, the last ones.
    auto uneven = entries<T, B>(2, end, 3);
    uneven.length = {0, 2};
    store.append(uneven, 7);
    CHECK(keys(store, 0) == from_to(end - 7, end));
    CHECK(keys(store, 1).back() == 100 + end + 2);
    CHECK(keys(store, 1)[4] == 100 + end - 1);
    const auto seen = store.latest(4);
    CHECK(seen.count == RowCounts{4, 4});
    KeyValueStore<T, B> other(0, 1, 1, block);
    other.restore(store.saved());
    CHECK(keys(other, 1) == keys(store, 1));
  }
}

TEMPLATE_LIST_TEST_CASE("KeyValueStore: copies branch, though they share what they have in common",
                        "", infty::tests::Types) {
  using T = typename TestType::T;
  using B = typename TestType::B;
  KeyValueStore<T, B> store(2, 1, 1, 4);
  store.append(entries<T, B>(2, 0, 6), 20);
  auto first = store, second = store;
  first.append(entries<T, B>(2, 6, 5), 20);
  second.append(entries<T, B>(2, 50, 1), 20);
  second.append(entries<T, B>(2, 51, 9), 20);
  CHECK(keys(store, 1) == from_to(100, 106));
  CHECK(keys(first, 0) == from_to(0, 11));
  auto expected = from_to(0, 6);
  for (const Index i : from_to(50, 60)) expected.push_back(i);
  CHECK(keys(second, 0) == expected);
  store.append(entries<T, B>(2, 70, 1), 20);
  CHECK(keys(store, 0).back() == 70);
  CHECK(keys(first, 0) == from_to(0, 11));
}

TEST_CASE("KeyValueStore: rows are reset, dropped, put and joined") {
  KeyValueStore<float> store(3, 1, 1, 4);
  store.append(entries<float, infty::EigenBackend>(3, 0, 6), 20);
  auto other = store;
  other.reset_row(1);
  CHECK(keys(other, 1).empty());
  CHECK(keys(other, 2) == from_to(200, 206));
  other.keep_rows(1, 3);
  CHECK(other.rows() == 2);
  store.put_rows(0, other);
  CHECK(keys(store, 0).empty());
  CHECK(keys(store, 1) == from_to(200, 206));
  store.append_rows(other);
  CHECK(store.rows() == 5);
  CHECK(keys(store, 4) == from_to(200, 206));
  CHECK_THROWS_WITH(store.put_rows(0, KeyValueStore<float>(1, 2, 1, 4)),
                    Catch::Contains("2 heads of 1"));
  CHECK_THROWS_AS(store.append_rows(KeyValueStore<float>(1, 1, 1, 5)), infty::ShapeError);
  CHECK(keys(store.to<infty::EigenBackend>(), 1) == from_to(200, 206));
}

TEST_CASE("KeyValueStore: neither a copy nor an append costs what is stored") {
  using B = infty::EigenBackend;
  constexpr Index heads = 2, dim = 16, width = 2 * heads * dim;
  KeyValueStore<float> store(1, heads, dim);
  const auto bytes = [] { return infty::HostPool::instance().statistics().bytes_in_use; };
  const infty::RowSequences<float, B> some{Tensor<float>::zeros({1, 40, width}), {40}};
  const auto empty = bytes();
  for (int i = 0; i < 1000; ++i) store.append(some, 20000);
  const auto full = bytes() - empty;
  const auto block = static_cast<std::size_t>(store.default_block * width) * sizeof(float);
  CHECK(full <= store.bytes() + 2 * block + 10000);
  for (int i = 0; i < 1000; ++i) store.append(some, 20000);
  CHECK(bytes() - empty <= full + block);
  auto copy = store;
  CHECK(bytes() - empty <= full + block);
  store.append(some, 20000);
  copy.append(some, 20000);  // copies a block
  CHECK(bytes() - empty <= full + 3 * block);
}

TEST_CASE("KeyValueStore: what does not fit is refused, and nothing has changed") {
  using B = infty::EigenBackend;
  KeyValueStore<float> store(2, 1, 1, 4);
  store.append(entries<float, B>(2, 0, 3), 20);
  auto wrong = entries<float, B>(2, 3, 2);
  CHECK_THROWS_AS(store.append(wrong, 0), infty::ValueError);
  wrong.length = {2, 3};
  CHECK_THROWS_AS(store.append(wrong, 20), infty::ShapeError);
  wrong.length = {2};
  CHECK_THROWS_AS(store.append(wrong, 20), infty::ShapeError);
  CHECK_THROWS_AS(store.append(entries<float, B>(3, 3, 2), 20), infty::ShapeError);
  CHECK_THROWS_AS(store.restore({Tensor<float>::zeros({2, 3, 2, 1, 2}), {3, 3}}),
                  infty::ShapeError);
  CHECK_THROWS_AS(store.restore({Tensor<float>::zeros({2, 3, 2, 1, 1}), {3, 4}}),
                  infty::ShapeError);
  CHECK(keys(store, 1) == from_to(100, 103));
  constexpr Index most = std::numeric_limits<Index>::max();
  for (const Index row : {Index{-1}, Index{2}, most}) {
    CHECK_THROWS_AS(store.count(row), infty::ShapeError);
    CHECK_THROWS_AS(store.reset_row(row), infty::ShapeError);
    CHECK_THROWS_AS(store.put_rows(row, store), infty::ShapeError);
    CHECK_THROWS_AS(store.keep_rows(0, row == 2 ? 3 : row), infty::ShapeError);
  }
  CHECK_THROWS_AS(store.put_rows(1, store), infty::ShapeError);
  CHECK_THROWS_AS(store.latest(-1), infty::ValueError);
  CHECK(keys(store, 1) == from_to(100, 103));
  CHECK_THROWS_AS(KeyValueStore<float>(most, 1, 1), infty::ValueError);
  CHECK_THROWS_AS(KeyValueStore<float>(2, 0, 1), infty::ValueError);
  CHECK_THROWS_AS(KeyValueStore<float>(2, Index{1} << 40, Index{1} << 40), infty::ValueError);
}

}  // namespace store_tests

TEMPLATE_LIST_TEST_CASE(
    "KeyValueStore: bfloat16 takes half of a float's bytes, and is rounded once", "",
    infty::tests::Types) {
  using T = typename TestType::T;
  using B = typename TestType::B;
  using Store = KeyValueStore<T, B, BFloat16>;
  infty::Random random(infty::tests::seed);
  const auto added = [&](Index rows, Index count) {
    return infty::RowSequences<T, B>{infty::tests::uniform_tensor<T, B>({rows, count, 12}, random),
                                     RowCounts(static_cast<std::size_t>(rows), count)};
  };
  const auto rounded = [](const std::vector<T>& x) {
    std::vector<T> out;
    for (const T one : x) out.push_back(static_cast<T>(static_cast<float>(BFloat16(one))));
    return out;
  };
  Store store(2, 2, 3, 4);
  const auto all = added(2, 9);
  store.append(all, 20);
  CHECK(store.bytes() == 2 * 9 * 12 * sizeof(BFloat16));
  const auto saved = store.saved();
  CHECK(saved.vectors.to_vector() == rounded(all.vectors.to_vector()));

  // What was saved comes back to the last bit, here and on the host; rows go their own ways.
  Store again(0, 2, 3, 4);
  again.restore(saved);
  CHECK(again.saved().vectors.to_vector() == saved.vectors.to_vector());
  CHECK(store.template to<infty::EigenBackend>().saved().vectors.to_vector() ==
        saved.vectors.to_vector());
  auto branch = store;
  branch.append(added(2, 3), 20);
  store.append(added(2, 2), 20);
  CHECK(branch.count(0) == 12);
  CHECK(store.count(0) == 11);
  again.put_rows(1, [&] {
    Store one = branch;
    one.keep_rows(0, 1);
    return one;
  }());
  CHECK(again.count(0) == 9);
  CHECK(again.count(1) == 12);
}
