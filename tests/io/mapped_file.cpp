// SPDX-License-Identifier: MIT
#include <filesystem>
#include <string>
#include <utility>

#include <sys/stat.h>

#include <infty/io/mapped_file.hpp>

#include "io/temporary_folder.hpp"
#include "support/catch.hpp"

using Catch::Matchers::Contains;
using infty::IoError;
using infty::MappedFile;
using infty::tests::TemporaryFolder;
using infty::tests::write_text;

TEST_CASE("MappedFile: all bytes of a file") {
  const TemporaryFolder folder;
  std::string bytes;
  for (int i = 0; i < 100'000; ++i) bytes += static_cast<char>(i * 7 % 256);
  write_text(folder / "a", bytes);
  MappedFile file(folder / "a");
  CHECK(file.text() == bytes);
  write_text(folder / "b", "other");
  std::filesystem::rename(folder / "b", folder / "a");
  CHECK(file.text() == bytes);
  MappedFile moved(std::move(file));
  CHECK(moved.text() == bytes);
  file = MappedFile(folder / "a");
  CHECK(file.text() == "other");
}

TEST_CASE("MappedFile: an empty file is empty") {
  const TemporaryFolder folder;
  write_text(folder / "a", "");
  CHECK(MappedFile(folder / "a").text().empty());
}

TEST_CASE("MappedFile: refuses what is not a file") {
  const TemporaryFolder folder;
  CHECK_THROWS_WITH(MappedFile(folder / "none"), Contains("none: No such file"));
  CHECK_THROWS_WITH(MappedFile(folder.path()), Contains("not a regular file"));
  REQUIRE(::mkfifo((folder / "pipe").c_str(), 0600) == 0);
  CHECK_THROWS_AS(MappedFile(folder / "pipe"), IoError);
  CHECK_THROWS_AS(MappedFile("/dev/zero"), IoError);
}
