// SPDX-License-Identifier: MIT
#include <string>
#include <string_view>

#include <infty/retrieval/datastore.hpp>

#include "io/temporary_folder.hpp"
#include "support/catch.hpp"

using infty::Index;
using infty::detail::DatastoreManifest;

namespace datastore_manifest_tests {

std::string refusal(std::string_view text) {
  try {
    DatastoreManifest::parse(text, "here");
  } catch (const infty::IoError& error) {
    return error.what();
  }
  return "";
}

/// With another text in the place of one, whatever the checksum says.
std::string changed(std::string text, std::string_view from, std::string_view to) {
  return text.replace(text.find(from), from.size(), to);
}

const DatastoreManifest some{"F32", 3, 8, 20, 5, 6, "a \"test\"\n\xC3\xA9"};

}  // namespace datastore_manifest_tests

TEST_CASE("DatastoreManifest: what was written is read") {
  using namespace datastore_manifest_tests;
  CHECK(DatastoreManifest::parse(some.text(), "here") == some);
}

TEST_CASE("DatastoreManifest: foreign, changed and hostile ones are refused") {
  using namespace datastore_manifest_tests;
  const std::string text = some.text();
  for (std::size_t n = 0; n + 1 < text.size(); ++n) CHECK(!refusal(text.substr(0, n)).empty());
  CHECK_THAT(refusal("{}"), Catch::Contains("not the manifest of a datastore"));
  CHECK_THAT(refusal(changed(text, "infty datastore", "something")),
             Catch::Contains("not the manifest"));
  CHECK_THAT(refusal(changed(text, "\"version\": 1", "\"version\": 2")),
             Catch::Contains("version 2, this program reads version 1"));
  CHECK_THAT(refusal(changed(text, "20", "21")), Catch::Contains("changed or damaged"));
  CHECK_THAT(refusal(changed(text, "\"dim\": 3", "\"dim\": 0")), Catch::Contains("a size of 0"));
  CHECK_THAT(refusal(changed(text, "\"dim\": 3", "\"dim\": 3, \"dim\": 3")),
             Catch::Contains("there before"));
  CHECK_THAT(refusal(changed(text, "\"dim\": 3,", "")), Catch::Contains("missing"));
  CHECK_THAT(refusal(changed(text, "\"dim\"", "\"din\"")), Catch::Contains("no member"));
  CHECK_THAT(refusal(changed(text, "\"entries\": 20", "\"entries\": -1")), Catch::Contains("byte"));
  CHECK_THAT(refusal(changed(text, "\"entries\": 20", "\"entries\": 18446744073709551615")),
             Catch::Contains("it must be 0 to"));
  CHECK_THAT(refusal(changed(text, "\"keys\": \"0", "\"keys\": \"g")),
             Catch::Contains("16 hexadecimal digits"));

  // Sizes whose products are no number, with a checksum that fits.
  const Index huge = infty::largest_size;
  for (const auto& sizes : {DatastoreManifest{"F32", huge, 8, 20, 5, 6, ""},
                            DatastoreManifest{"F32", huge, huge, 0, 5, 6, ""},
                            DatastoreManifest{"F32", 3, 8, huge, 5, 6, ""},
                            DatastoreManifest{"F32", 3, huge, 1, 5, 6, ""}})
    CHECK_THAT(refusal(sizes.text()), Catch::Contains("more than any machine holds"));
}

TEST_CASE("DatastoreManifest: a claim of what no file holds allocates nothing") {
  using namespace datastore_manifest_tests;
  const infty::tests::TemporaryFolder folder;
  infty::tests::write_text(folder / "keys", "");
  infty::tests::write_text(folder / "tokens", "");
  for (const auto& claim : {DatastoreManifest{"F32", 1, 1, infty::largest_size, 5, 6, ""},
                            DatastoreManifest{"F32", infty::largest_size, 1, 1, 5, 6, ""}}) {
    infty::tests::write_text(folder / "manifest.json", claim.text());
    CHECK_THROWS_WITH(infty::Datastore<float>::open(folder.path()),
                      Catch::Contains("it was cut short"));
    CHECK_THROWS_WITH(infty::Datastore<float>::build(folder.path(), claim.dim, "", 1),
                      Catch::Contains("it was cut short"));
  }
  infty::tests::write_text(folder / "manifest.json", std::string((1 << 20) + 1, ' '));
  CHECK_THROWS_WITH(infty::Datastore<float>::open(folder.path()), Catch::Contains("has at most"));
}
