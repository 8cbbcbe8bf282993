// SPDX-License-Identifier: MIT
#include <cstdint>
#include <filesystem>
#include <string>
#include <utility>
#include <vector>

#include <infty/faiss/index.hpp>
#include <infty/retrieval/exact_index.hpp>
#include <infty/retrieval/recall.hpp>

#include "io/temporary_folder.hpp"
#include "retrieval/datastore_case.hpp"
#include "support/catch.hpp"
#include "support/tensors.hpp"

using infty::Datastore;
using infty::ExactIndex;
using infty::FaissIndex;
using infty::Index;
using infty::IndexConfig;
using infty::IndexKind;
using infty::neighbour_recall;
using infty::SearchMetric;
using infty::Tensor;
using infty::tests::DrawnEntries;
using infty::tests::TemporaryFolder;

namespace faiss_index_tests {

static_assert(infty::RetrievalIndex<FaissIndex, float, infty::EigenBackend>);
static_assert(infty::RetrievalIndex<FaissIndex, double, infty::EigenBackend>);

constexpr Index dim = 8;
constexpr DrawnEntries<float> drawn{dim};

Datastore<float> store_of(Index n) {
  Datastore<float> store(dim, 256);
  drawn.append(store, n);
  return store;
}

Tensor<float> queries(Index n) {
  Tensor<float> out(infty::Shape{n, dim});
  for (Index i = 0; i < n * dim; ++i) out.data()[i] = drawn.key(1000000 + i / dim, i % dim);
  return out;
}

template <class T, class B>
bool same(const infty::Neighbours<T, B>& a, const infty::Neighbours<T, B>& b) {
  return a.indices.to_vector() == b.indices.to_vector() &&
         a.scores.to_vector() == b.scores.to_vector();
}

const std::vector<IndexKind> kinds{IndexKind::flat, IndexKind::ivf, IndexKind::ivfpq};

}  // namespace faiss_index_tests

TEST_CASE("FaissIndex: flat, and every list of IVF, find what the exact search finds") {
  using namespace faiss_index_tests;
  const auto store = store_of(1500);
  for (const SearchMetric metric : {SearchMetric::squared_l2, SearchMetric::inner_product})
    for (const IndexKind kind : {IndexKind::flat, IndexKind::ivf}) {
      CAPTURE(name_of(kind), name_of(metric));
      const auto asked = queries(30);
      const FaissIndex index(store, {.kind = kind, .metric = metric, .lists = 20, .probes = 20});
      CHECK(index.size() == 1500);
      const auto exact = ExactIndex<float>(store, metric).search(asked, 10);
      const auto found = index.search(asked, 10);
      CHECK(found.indices.to_vector() == exact.indices.to_vector());
      CHECK(neighbour_recall(found, exact) == 1);
      for (Index i = 0; i < 300; ++i)
        CHECK(found.scores.data()[i] == Approx(exact.scores.data()[i]).epsilon(1e-5));
      // In double the keys are the same, and so is what is found.
      const auto doubles = index.search(asked.cast<double>(), 10);
      CHECK(doubles.indices.to_vector() == exact.indices.to_vector());
    }
}

TEST_CASE("FaissIndex: more probes find more, and recomputed scores are those of the keys") {
  using namespace faiss_index_tests;
  const auto store = store_of(3000);
  const auto asked = queries(50);
  const auto exact = ExactIndex<float>(store).search(asked, 10);
  FaissIndex index(store, {.kind = IndexKind::ivfpq, .lists = 30, .probes = 1, .code = 8});
  double before = 0;
  for (const Index probes : {1, 4, 30}) {
    index.set_probes(probes);
    const double recall = neighbour_recall(index.search(asked, 10), exact);
    CHECK(recall >= before);
    before = recall;
  }
  CHECK(before > 0.8);
  const auto found = index.search(asked, 10);
  for (Index i = 0; i < 500; ++i) {
    const float* const key = store.key(found.indices.data()[i]);
    double sum = 0;
    for (Index d = 0; d < dim; ++d) {
      const double apart = double(asked.data()[i / 10 * dim + d]) - double(key[d]);
      sum -= apart * apart;
    }
    REQUIRE(found.scores.data()[i] == Approx(sum).epsilon(1e-5));
    if (i % 10 > 0) REQUIRE(found.scores.data()[i] <= found.scores.data()[i - 1]);
  }
  index.set_recompute(false);
  CHECK(index.search(asked, 10).scores.to_vector() != found.scores.to_vector());
}

TEST_CASE("FaissIndex: what is appended later is found after an update, told block by block") {
  using namespace faiss_index_tests;
  auto store = store_of(600);
  std::vector<std::pair<Index, Index>> told;
  const auto tell = [&](Index done, Index all) { told.emplace_back(done, all); };
  FaissIndex index(store, {.kind = IndexKind::ivf, .lists = 4, .probes = 4}, tell);
  CHECK(told == std::vector<std::pair<Index, Index>>{{0, 600}, {256, 600}, {512, 600}, {600, 600}});
  drawn.append(store, 200);
  CHECK(index.size() == 600);
  CHECK_THROWS_WITH(index.search(queries(9), 5),
                    Catch::Contains("has 600 keys, and its datastore has grown to 800"));
  index.update(tell);
  CHECK(index.size() == 800);
  CHECK(told.back() == std::pair<Index, Index>{800, 800});
  const auto asked = queries(9);
  CHECK(
      same(index.search(asked, 5), FaissIndex(store, {.kind = IndexKind::flat}).search(asked, 5)));
}

TEST_CASE("FaissIndex: fewer keys than are asked for leave places empty") {
  using namespace faiss_index_tests;
  for (const Index n : {0, 3}) {
    const auto store = store_of(n);
    const auto found = FaissIndex(store, {.kind = IndexKind::flat}).search(queries(2), 5);
    for (Index i = 0; i < 10; ++i) {
      CHECK((found.indices.data()[i] < 0) == (i % 5 >= n));
      CHECK((found.scores.data()[i] == -infty::math::infinity<float>) == (i % 5 >= n));
    }
  }
}

TEST_CASE("FaissIndex: a saved index is the same, and only for its own datastore") {
  using namespace faiss_index_tests;
  const TemporaryFolder folder;
  auto store = Datastore<float>::build(folder / "store", dim, "", 256);
  drawn.append(store, 2048);
  const auto asked = queries(20);
  for (const IndexKind kind : kinds) {
    CAPTURE(name_of(kind));
    const auto path = folder / "index";
    FaissIndex index(store, {.kind = kind, .lists = 16, .probes = 3, .recompute = false});
    index.save(path);
    const auto loaded = FaissIndex::load(path, store);
    CHECK(loaded.size() == 2048);
    CHECK(loaded.config().kind == kind);
    CHECK(loaded.config().lists == (kind == IndexKind::flat ? 0 : 16));
    CHECK(loaded.config().probes == 3);
    CHECK(loaded.config().code == (kind == IndexKind::ivfpq ? 2 : 0));
    CHECK(!loaded.config().recompute);
    CHECK(same(loaded.search(asked, 7), index.search(asked, 7)));
    CHECK(index.bytes() == loaded.bytes());

    const std::string good = infty::tests::read_text(path);
    for (std::size_t at = 0; at < good.size(); at += good.size() / 37) {
      std::string bad = good;
      bad[at] ^= 4;
      infty::tests::write_text(path, bad);
      CHECK_THROWS_AS(FaissIndex::load(path, store), infty::IoError);
      infty::tests::write_text(path, good.substr(0, at));
      CHECK_THROWS_AS(FaissIndex::load(path, store), infty::IoError);
    }
    infty::tests::write_text(path, good);
    const Datastore<float> narrow(dim - 1);
    CHECK_THROWS_WITH(FaissIndex::load(path, narrow),
                      Catch::Contains("keys have 8 numbers, those of the datastore 7"));
    CHECK_THROWS_WITH(FaissIndex::load(path, store_of(10)),
                      Catch::Contains("it has 2048 keys, the datastore 10"));
    auto other =
        Datastore<float>::build(folder / ("other" + std::string(name_of(kind))), dim, "", 256);
    std::vector<float> zeros(2048 * dim);
    other.append(zeros.data(), std::vector<Index>(2048).data(), 2048);
    CHECK_THROWS_WITH(FaissIndex::load(path, other), Catch::Contains("of another datastore"));
  }
  CHECK_THROWS_AS(FaissIndex::load(folder / "none", store), infty::IoError);
}

TEST_CASE("FaissIndex: whatever byte of a file is changed, and wherever it ends, it is refused") {
  using namespace faiss_index_tests;
  const TemporaryFolder folder;
  const auto path = folder / "index";
  const auto store = store_of(256);
  for (const IndexKind kind : kinds) {
    CAPTURE(name_of(kind));
    FaissIndex(store, {.kind = kind, .lists = 1}).save(path);
    std::string bytes = infty::tests::read_text(path);
    const auto refused = [&](const std::string& file) {
      infty::tests::write_text(path, file);
      try {
        FaissIndex::load(path, store);
      } catch (const infty::IoError&) {
        return true;
      }
      return false;
    };
    std::vector<std::size_t> taken_in;
    for (std::size_t at = 0; at < bytes.size(); ++at) {
      const char was = bytes[at];
      bytes[at] = static_cast<char>(was ^ (1 << at % 8));
      if (!refused(bytes)) taken_in.push_back(at);
      bytes[at] = was;
      if (at % 8 == 0 && !refused(bytes.substr(0, at))) taken_in.push_back(at);
    }
    CHECK(taken_in == std::vector<std::size_t>{});
    CHECK(!refused(bytes));
  }
}

TEST_CASE("FaissIndex: one that was saved before its datastore grew is known, and goes on") {
  using namespace faiss_index_tests;
  const TemporaryFolder folder;
  const auto path = folder / "index";
  auto store = Datastore<float>::build(folder / "store", dim, "", 256);
  drawn.append(store, 512);
  const FaissIndex before(store, {.kind = IndexKind::ivf, .lists = 4, .probes = 4});
  before.save(path);
  drawn.append(store, 700);
  for (const bool flushed : {false, true}) {
    if (flushed) store.flush();
    auto index = FaissIndex::load(path, store);
    CHECK(index.size() == 512);
    CHECK_THROWS_WITH(index.search(queries(3), 5), Catch::Contains("512 keys"));
    index.update();
    CHECK(same(index.search(queries(3), 5),
               FaissIndex(store, {.kind = IndexKind::flat}).search(queries(3), 5)));
  }
  // One that has grown, too, and has as many keys, but began with others.
  auto other = Datastore<float>::build(folder / "other", dim, "", 256);
  const std::vector<float> zeros(1212 * dim);
  other.append(zeros.data(), std::vector<Index>(1212).data(), 1212);
  CHECK_THROWS_WITH(FaissIndex::load(path, other), Catch::Contains("of another datastore, of 512"));
}

TEST_CASE(
    "FaissIndex: one of entries that are not flushed, or in memory, is its datastore's alone") {
  using namespace faiss_index_tests;
  const TemporaryFolder folder;
  const auto path = folder / "index";
  auto written = Datastore<float>::build(folder / "store", dim, "", 256);
  drawn.append(written, 300);
  const auto held = store_of(300);
  Datastore<float> other(dim, 256);
  const std::vector<float> zeros(300 * dim);
  other.append(zeros.data(), std::vector<Index>(300).data(), 300);
  for (const Datastore<float>* const store : {&std::as_const(written), &held}) {
    FaissIndex(*store, {.kind = IndexKind::flat}).save(path);
    CHECK_THROWS_WITH(FaissIndex::load(path, other), Catch::Contains("of another datastore"));
    CHECK(FaissIndex::load(path, *store).size() == 300);
  }
  written.flush();
  CHECK(FaissIndex::load(path, written).size() == 300);
}

TEST_CASE("FaissIndex: what does not fit is refused") {
  using namespace faiss_index_tests;
  const auto store = store_of(300);
  const auto refused = [&](const IndexConfig& config) {
    CHECK_THROWS_AS(FaissIndex(store, config), infty::ValueError);
  };
  refused({.kind = IndexKind::exact});
  refused({.kind = IndexKind::ivf, .lists = -1});
  refused({.kind = IndexKind::ivf, .probes = 0});
  refused({.kind = IndexKind::ivfpq, .code = 3});
  CHECK_THROWS_WITH(FaissIndex(store_of(255), {.kind = IndexKind::ivfpq}),
                    Catch::Contains("learns from at least 256 keys: the datastore has 255"));
  CHECK_THROWS_AS(FaissIndex(store_of(0), {.kind = IndexKind::ivf}), infty::ValueError);
  FaissIndex index(store, {.kind = IndexKind::flat});
  CHECK_THROWS_AS(index.search(Tensor<float>::zeros({2, dim + 1}), 1), infty::ShapeError);
  CHECK_THROWS_AS(index.search(queries(1), 0), infty::ValueError);
  CHECK_THROWS_AS(index.set_probes(0), infty::ValueError);
}

TEST_CASE("FaissIndex: in an empty datastore it finds nothing, however many queries") {
  using namespace faiss_index_tests;
  const auto store = store_of(0);
  const FaissIndex index(store, {.kind = IndexKind::flat});
  for (const Index n : {1, 30})
    for (const Index k : {1, 5}) {
      const auto found = index.search(queries(n), k);
      CHECK(found.indices.to_vector() == std::vector<Index>(static_cast<std::size_t>(n * k), -1));
      for (const float score : found.scores.to_vector())
        CHECK(score == -infty::math::infinity<float>);
    }
}

TEST_CASE("FaissIndex: one that was moved from is refused") {
  using namespace faiss_index_tests;
  const TemporaryFolder folder;
  const auto store = store_of(300);
  FaissIndex index(store, {.kind = IndexKind::flat});
  const FaissIndex other = std::move(index);
  CHECK(other.size() == 300);
  using Catch::Matchers::Contains;
  CHECK_THROWS_WITH(index.size(), Contains("FaissIndex") && Contains("it was moved from"));
  CHECK_THROWS_WITH(index.search(queries(1), 1), Contains("it was moved from"));
  CHECK_THROWS_WITH(index.update(), Contains("it was moved from"));
  CHECK_THROWS_WITH(index.bytes(), Contains("it was moved from"));
  CHECK_THROWS_WITH(index.save(folder / "index"), Contains("it was moved from"));
  CHECK_FALSE(std::filesystem::exists(folder / "index"));
  index.set_probes(2);
  index = FaissIndex(store, {.kind = IndexKind::flat});
  CHECK(index.size() == 300);
}
