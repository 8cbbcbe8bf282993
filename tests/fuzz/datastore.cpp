// SPDX-License-Identifier: MIT
#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include <infty/retrieval/datastore.hpp>
#include <infty/retrieval/exact_index.hpp>

#include "fuzz/fuzz.hpp"
#include "io/temporary_folder.hpp"

// Any bytes as a datastore's manifest, with sizes of any kind and a checksum that fits, beside
// files of some bytes: it is refused, or all that it counts can be read, and a build that goes on
// keeps it.

namespace infty::fuzz {

namespace {

using detail::DatastoreManifest;

/// Opens the folder, reads all, and goes on.
void try_folder(const tests::TemporaryFolder& folder, std::size_t key_bytes,
                std::size_t token_bytes) {
  accepted([&] {
    const auto store = Datastore<float>::open(folder.path());
    check(store.size() <= static_cast<Index>(token_bytes / 4), "tokens are in their file");
    check(store.size() == 0 || store.dim() <= static_cast<Index>(key_bytes / 4) / store.size(),
          "keys are in their file");
    accepted([&] { store.verify(); });
    volatile double sum = 0;  // a look at all of it
    for (Index i = 0; i < store.size(); ++i) {
      sum = sum + static_cast<double>(store.token(i));
      for (Index d = 0; d < store.dim(); ++d) sum = sum + static_cast<double>(store.key(i)[d]);
    }
    if (store.dim() > 1000) return;
    const ExactIndex<float> index(store);  // blocks of any size that it claims
    const auto found = index.search(Tensor<float>::zeros({1, store.dim()}), 2);
    check(found.indices.data()[0] < store.size(), "what is found is there");
    if (store.block() > 1000) return;
    auto writer = Datastore<float>::build(folder.path(), store.dim(), std::string(store.about()),
                                          store.block());
    check(writer.size() == store.size(), "a build goes on behind what is finished");
    const std::vector<float> key(static_cast<std::size_t>(store.dim()), 1.0F);
    const Index token = 3;
    writer.append(key.data(), &token, 1);
    writer.flush();
    check(Datastore<float>::open(folder.path()).size() == store.size() + 1,
          "what was appended and flushed is there");
  });
}

}  // namespace

void run(std::string_view bytes) {
  Input input(bytes);
  const std::string keys(input.below(std::size_t{200}) * 4, 'k'),
      tokens(input.below(std::size_t{200}) * 4, '\0');
  const tests::TemporaryFolder folder;
  tests::write_text(folder / "keys", keys);
  tests::write_text(folder / "tokens", tokens);
  if (input.flag()) {
    tests::write_text(folder / DatastoreManifest::file_name, input.rest());
  } else {
    DatastoreManifest manifest;
    manifest.type = input.flag() ? "F32" : "F64";
    // Small sizes, which pass more often, or any.
    const bool small = input.flag();
    const auto size = [&] { return small ? input.below(Index{256}) : input.raw<Index>(); };
    manifest.dim = size();
    manifest.block = size();
    manifest.entries = size();
    manifest.about = "about";
    tests::write_text(folder / DatastoreManifest::file_name, manifest.text());
  }
  try_folder(folder, keys.size(), tokens.size());
}

std::vector<std::string> seeds() {
  DatastoreManifest manifest;
  manifest.type = "F32";
  manifest.dim = 3;
  manifest.block = 8;
  manifest.entries = 20;
  manifest.about = "a text";
  const auto sized = [](char keys, char tokens) { return std::string{keys, tokens}; };
  return {
      sized(60, 20) + '\1' + manifest.text(),
      sized(59, 20) + '\1' + manifest.text(),
      sized(60, 20) + std::string{'\0', '\1', '\1', '\3', '\x08', '\x14'},
      sized(60, 20) + std::string{'\0', '\1', '\0'} +
          bytes_of(Index{1} << 40, Index{1} << 40, Index{1} << 40),
      sized(60, 20) + std::string{'\0', '\1', '\0'} + bytes_of(Index{3}, Index{1} << 40, Index{20}),
      sized(0, 0) + std::string{'\0', '\1', '\1', '\3', '\x08', '\0'}};
}

}  // namespace infty::fuzz
