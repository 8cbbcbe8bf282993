// SPDX-License-Identifier: MIT
#include <cstdint>
#include <filesystem>
#include <string>
#include <utility>
#include <vector>

#include <sys/stat.h>
#include <unistd.h>

#include <infty/core/bfloat16.hpp>
#include <infty/retrieval/datastore.hpp>

#include "io/temporary_folder.hpp"
#include "retrieval/datastore_case.hpp"
#include "support/catch.hpp"
#include "support/tensors.hpp"
#include "support/types.hpp"

using infty::Datastore;
using infty::Index;
using infty::Random;
using infty::Shape;
using infty::Tensor;
using infty::tests::DrawnEntries;
using infty::tests::TemporaryFolder;

namespace datastore_tests {

constexpr DrawnEntries<float> drawn{3};

/// A folder with a datastore of n entries.
Index made(const std::filesystem::path& folder, Index n, Index block = 8) {
  auto store = Datastore<float>::build(folder, drawn.dim, "a test", block);
  drawn.append(store, n - store.size());
  store.flush();
  return store.size();
}

/// The message of the error that opening a folder ends with.
std::string refusal(const std::filesystem::path& folder) {
  try {
    Datastore<float>::open(folder);
  } catch (const infty::IoError& error) {
    return error.what();
  }
  return "";
}

bool same_files(const TemporaryFolder& one, const TemporaryFolder& other) {
  for (const char* name : {"keys", "tokens", "manifest.json"})
    if (infty::tests::read_text(one / name) != infty::tests::read_text(other / name)) return false;
  return true;
}

/// A store in memory and one in a folder, both empty.
inline std::vector<Datastore<float>> two_kinds(const std::filesystem::path& folder) {
  std::vector<Datastore<float>> stores;
  stores.emplace_back(3, 8);
  stores.push_back(Datastore<float>::build(folder, 3, "", 8));
  return stores;
}

}  // namespace datastore_tests

TEST_CASE("Datastore: the fingerprint of the first keys is that of a folder that had no others") {
  using namespace datastore_tests;
  const TemporaryFolder folder;
  std::vector<std::uint64_t> seen;
  for (const Index n : {5, 16, 19}) {
    made(folder.path(), n);
    seen.push_back(Datastore<float>::open(folder.path()).keys_checksum());
  }
  const auto store = Datastore<float>::open(folder.path());
  Datastore<float> in_memory(drawn.dim, 4);
  drawn.append(in_memory, 19);
  for (const auto* const of : {&store, &std::as_const(in_memory)}) {
    CHECK(of->keys_checksum(5) == seen[0]);
    CHECK(of->keys_checksum(16) == seen[1]);
    CHECK(of->keys_checksum(19) == seen[2]);
    CHECK_THROWS_AS(of->keys_checksum(20), infty::ValueError);
    CHECK_THROWS_AS(of->keys_checksum(-1), infty::ValueError);
  }
}

TEST_CASE("Datastore: keys in bfloat16 are rounded once, in memory and in a folder") {
  using infty::BFloat16;
  using Store = Datastore<BFloat16>;
  const TemporaryFolder folder;
  Random random(3);
  const auto keys = infty::tests::uniform_tensor<double>({13, 5}, random);
  const auto numbers = keys.to_vector();
  std::vector<Index> tokens(13, 4);
  {
    Store in_memory(5, 4), on_disk = Store::build(folder / "store", 5, "halves", 4);
    for (Store* const store : {&in_memory, &on_disk}) {
      store->append(keys, tokens);
      store->flush();
      CHECK(store->size() == 13);
      for (Index i = 0; i < 65; ++i)
        CHECK(store->key(i / 5)[i % 5].bits() ==
              BFloat16(numbers[static_cast<std::size_t>(i)]).bits());
    }
    CHECK(in_memory.keys_checksum(13) == on_disk.keys_checksum(13));
    on_disk.verify();
    // Beyond the largest: nothing is taken in that would be infinite.
    const std::vector<float> large{1, 2, 3.4e38F, 4, 5};
    CHECK_THROWS_WITH(in_memory.append(large.data(), tokens.data(), 1),
                      Catch::Contains("key 0 has a number that is 3.4"));
    CHECK(in_memory.size() == 13);
  }
  CHECK(std::filesystem::file_size(folder / "store" / "keys") == 13 * 5 * 2);
  CHECK(infty::datastore_type(folder / "store") == infty::DType::BF16);
  const auto again = Store::open(folder / "store");
  again.verify();
  CHECK(again.key(12)[4].bits() == BFloat16(numbers[64]).bits());
  CHECK_THROWS_WITH(Datastore<float>::open(folder / "store"),
                    Catch::Contains("keys are 'BF16': they must be F32"));
  CHECK_THROWS_AS(infty::datastore_type(folder / "none"), infty::IoError);
}

TEMPLATE_LIST_TEST_CASE("Datastore: what was appended in pieces is there, wherever it stands", "",
                        infty::tests::Types) {
  using T = typename TestType::T;
  using B = typename TestType::B;
  const DrawnEntries<T> drawn{5};
  const TemporaryFolder folder;
  std::vector<Datastore<T>> stores;
  stores.emplace_back(5, 8);
  stores.push_back(Datastore<T>::build(folder.path(), 5, "", 8));
  for (auto& store : stores) {
    const T* first = nullptr;
    for (const Index n : {1, 0, 20, 3, 16}) {
      drawn.append(store, n);
      if (first == nullptr) first = store.key(0);
    }
    CHECK(store.size() == 40);
    CHECK(store.dim() == 5);
    CHECK(store.block() == 8);
    CHECK(store.key(0) == first);  // which an index may point to
    CHECK(drawn.are_in(store));
    const auto more = Tensor<T, B>::from({2, 5}, std::vector<T>(10, T(3)));
    store.append(more, {4, 2147483647});
    CHECK(store.key(41)[4] == T(3));
    const auto asked = Tensor<Index, B>::from({2, 2}, std::vector<Index>{41, 0, -1, 40});
    CHECK(store.tokens(asked, -7).to_vector() == std::vector<Index>{2147483647, 0, -7, 4});
  }
  CHECK(stores[0].finished() == 42);
  CHECK(stores[1].finished() == 40);
}

TEST_CASE("Datastore: a folder opens with what was finished, and for any number of readers") {
  using namespace datastore_tests;
  const TemporaryFolder folder;
  {
    auto writer = Datastore<float>::build(folder / "store", 3, "a test", 8);
    CHECK(Datastore<float>::open(folder / "store").size() == 0);
    drawn.append(writer, 21);
    const auto reader = Datastore<float>::open(folder / "store");
    CHECK(reader.size() == 16);
    CHECK(reader.about() == "a test");
    CHECK(writer.finished() == 16);
    drawn.append(writer, 11);
    CHECK(reader.size() == 16);
    CHECK(drawn.are_in(reader));
    const auto other = Datastore<float>::open(folder / "store");
    CHECK(other.size() == 32);
    CHECK(drawn.are_in(other));
    drawn.append(writer, 3);
    CHECK_THROWS_AS(writer.verify(), infty::ValueError);
  }
  CHECK(Datastore<float>::open(folder / "store").size() == 32);  // the last 3 were not flushed
  auto writer = Datastore<float>::build(folder / "store", 3, "a test", 8);
  CHECK(writer.size() == 32);
  drawn.append(writer, 3);
  writer.flush();
  const auto reader = Datastore<float>::open(folder / "store");
  CHECK(reader.size() == 35);
  CHECK(drawn.are_in(reader));
  reader.verify();
}

TEST_CASE("Datastore: a build that stops and goes on makes the bytes of one that does not") {
  using namespace datastore_tests;
  const TemporaryFolder whole, parts;
  made(whole.path(), 61);
  for (const Index n : {5, 5, 8, 30, 61}) CHECK(made(parts.path(), n) == n);
  CHECK(same_files(whole, parts));
  // What a killed one leaves behind its last finished block is cut off.
  for (const char* name : {"keys", "tokens"})
    infty::tests::write_text(parts / name, infty::tests::read_text(parts / name) + "garbage");
  infty::tests::write_text(parts / "manifest.json.tmp12-0", "{");
  CHECK(Datastore<float>::open(parts.path()).size() == 61);
  made(parts.path(), 61);
  CHECK(same_files(whole, parts));
  CHECK(!std::filesystem::exists(parts / "manifest.json.tmp12-0"));
}

TEST_CASE("Datastore: one process writes at a time") {
  const TemporaryFolder folder;
  auto writer = Datastore<float>::build(folder.path(), 3);
  CHECK_THROWS_WITH(Datastore<float>::build(folder.path(), 3),
                    Catch::Contains("another process is writing there"));
  auto moved = std::move(writer);
  CHECK_NOTHROW(writer.flush());  // of nothing
  CHECK_THROWS_AS(Datastore<float>::build(folder.path(), 3), infty::IoError);
}

TEST_CASE("Datastore: one that was moved from takes nothing in, which its folder would not have") {
  using namespace datastore_tests;
  const TemporaryFolder folder;
  auto stores = two_kinds(folder.path());
  for (auto& store : stores) {
    drawn.append(store, 5);
    auto moved = std::move(store);
    CHECK_THROWS_WITH(drawn.append(store, 9), Catch::Contains("it was moved from"));
    CHECK(store.size() == 0);
    drawn.append(moved, 9);
    CHECK(moved.size() == 14);
    store = std::move(moved);
    drawn.append(store, 10);
    CHECK(store.size() == 24);
  }
}

TEST_CASE("Datastore: entries that do not fit change nothing") {
  using namespace datastore_tests;
  const TemporaryFolder folder;
  auto stores = two_kinds(folder.path());
  for (auto& store : stores) {
    drawn.append(store, 5);
    const std::vector<float> keys(6), odd{0, 0, 0, 0, infty::math::infinity<float>, 0};
    for (const Index token : {Index{-1}, Index{1} << 31}) {
      const std::vector<Index> tokens{1, token};
      CHECK_THROWS_AS(store.append(keys.data(), tokens.data(), 2), infty::ValueError);
    }
    const std::vector<Index> tokens{1, 2};
    CHECK_THROWS_AS(store.append(odd.data(), tokens.data(), 2), infty::NonFiniteError);
    CHECK_THROWS_AS(store.append(Tensor<float>::zeros({2, 4}), tokens), infty::ShapeError);
    CHECK_THROWS_AS(store.append(Tensor<float>::zeros({1, 3}), tokens), infty::ShapeError);
    CHECK_THROWS_AS(store.tokens(Tensor<Index>::full({1}, 5)), infty::ShapeError);
    CHECK(store.size() == 5);
    CHECK(drawn.are_in(store));
  }
  CHECK_THROWS_AS(Datastore<float>(0), infty::ValueError);
  CHECK_THROWS_AS(Datastore<float>(1, 0), infty::ValueError);
  CHECK_THROWS_AS(Datastore<float>(Index{1} << 40, Index{1} << 40), infty::ValueError);
  CHECK_THROWS_AS(Datastore<float>::build(folder / "new", 3, "\xFF"), infty::ValueError);
  CHECK(!std::filesystem::exists(folder / "new"));
}

TEST_CASE("Datastore: another datastore, a foreign one and a damaged one are refused by name") {
  using namespace datastore_tests;
  const TemporaryFolder folder;
  CHECK_THAT(refusal(folder.path()), Catch::Contains("holds no datastore"));
  CHECK_THAT(refusal(folder / "none"), Catch::Contains("holds no datastore"));
  made(folder.path(), 20);
  using Store = Datastore<float>;
  CHECK_THROWS_WITH(Store::build(folder.path(), 4, "a test", 8),
                    Catch::Contains("keys have 3 numbers: these have 4"));
  CHECK_THROWS_WITH(Store::build(folder.path(), 3, "another", 8), Catch::Contains("'a test'"));
  CHECK_THROWS_WITH(Store::build(folder.path(), 3, "a test", 9), Catch::Contains("a block is 8"));
  CHECK_THROWS_WITH(Datastore<double>::open(folder.path()), Catch::Contains("they must be F64"));
  CHECK_THROWS_AS(Datastore<double>::build(folder.path(), 3, "a test", 8), infty::IoError);
  auto reader = Store::open(folder.path());
  CHECK_THROWS_AS(drawn.append(reader, 1), infty::ValueError);
  CHECK(drawn.are_in(reader));

  // Bytes that are others are found by reading all of them.
  for (const char* name : {"keys", "tokens"}) {
    const std::string good = infty::tests::read_text(folder / name);
    std::string bad = good;
    bad[bad.size() / 2] ^= 1;
    infty::tests::write_text(folder / name, bad);
    CHECK_THROWS_WITH(Store::open(folder.path()).verify(),
                      Catch::Contains("the " + std::string(name) + " are not"));
    infty::tests::write_text(folder / name, good.substr(0, good.size() - 1));
    CHECK_THAT(refusal(folder.path()), Catch::Contains("it was cut short"));
    CHECK_THROWS_AS(made(folder.path(), 20), infty::IoError);
    CHECK(infty::tests::read_text(folder / name).size() == good.size() - 1);
    std::filesystem::remove(folder / name);
    CHECK(!refusal(folder.path()).empty());
    REQUIRE(::mkfifo((folder / name).c_str(), 0600) == 0);
    CHECK_THAT(refusal(folder.path()), Catch::Contains("not a regular file"));
    infty::tests::write_text(folder / name, good);
    CHECK(refusal(folder.path()).empty());
  }

  // Files that somebody else has made are left alone.
  const TemporaryFolder other;
  infty::tests::write_text(other / "tokens", "mine");
  CHECK_THROWS_WITH(made(other.path(), 1), Catch::Contains("they are left alone"));
  CHECK(infty::tests::read_text(other / "tokens") == "mine");
  CHECK_THROWS_WITH(made(other / "tokens", 1), Catch::Contains("is no folder"));
  CHECK_THROWS_AS(made(other / std::string(300, 'x'), 1), infty::IoError);
  std::filesystem::create_symlink("round", other / "round");
  CHECK_THROWS_AS(made(other / "round", 1), infty::IoError);
  std::filesystem::remove(folder / "keys");
  std::filesystem::create_symlink("keys", folder / "keys");
  CHECK_THROWS_WITH(made(folder.path(), 20), Catch::Contains("has no keys"));
}
