// SPDX-License-Identifier: MIT
#include <string>
#include <vector>

#include <infty/train/checkpoint_version.hpp>

#include "io/temporary_folder.hpp"
#include "support/catch.hpp"

using Catch::Matchers::Contains;
using infty::IoError;
using infty::SafetensorsFile;
using infty::SafetensorsWriter;
using infty::tests::TemporaryFolder;

TEST_CASE("require_checkpoint: this version and the first pass; none passes where none is needed") {
  const TemporaryFolder folder;
  SafetensorsWriter writer;
  writer.save(folder / "plain");
  infty::mark_checkpoint(writer);
  infty::mark_checkpoint(writer);  // several parts of a file may
  writer.save(folder / "marked");
  const SafetensorsFile plain(folder / "plain"), marked(folder / "marked");
  CHECK(marked.metadata("infty.checkpoint") == infty::checkpoint_version);
  infty::require_checkpoint(marked);
  infty::require_checkpoint(marked, false);
  infty::require_checkpoint(plain, false);
  CHECK_THROWS_AS(infty::require_checkpoint(plain), IoError);
  CHECK_THROWS_WITH(infty::require_checkpoint(plain),
                    Contains("plain is a checkpoint of no version, version '1' or '2' is needed: "
                             "make it anew, or read it with the infty that wrote it"));
  SafetensorsWriter first;
  first.metadata("infty.checkpoint", "1");
  first.save(folder / "first");
  infty::require_checkpoint(SafetensorsFile(folder / "first"));
  CHECK(infty::version_of(SafetensorsFile(folder / "first")) == infty::first_checkpoint_version);
  CHECK(infty::version_of(marked) == infty::checkpoint_version);
  CHECK(infty::version_of(plain).empty());
}

TEST_CASE(
    "require_checkpoint: another version never passes, and nothing of it reaches a terminal") {
  const TemporaryFolder folder;
  for (const std::string version : {"0", "3", "", "1 ", "\x1B[2J"}) {
    SafetensorsWriter writer;
    writer.metadata("infty.checkpoint", version);
    writer.save(folder / "a");
    const SafetensorsFile file(folder / "a");
    for (const bool needed : {true, false})
      CHECK_THROWS_WITH(infty::require_checkpoint(file, needed),
                        Contains("is a checkpoint of version '") && !Contains("\x1B"));
  }
}
