// SPDX-License-Identifier: MIT
#include <csignal>
#include <filesystem>
#include <string>
#include <vector>

#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <infty/io/file.hpp>

#include "io/temporary_folder.hpp"
#include "support/catch.hpp"

using Catch::Matchers::Contains;
using infty::IoError;
using infty::detail::InputFile;
using infty::detail::ReplacingFile;
using infty::tests::read_text;
using infty::tests::TemporaryFolder;
using infty::tests::write_text;

namespace {

std::size_t files_in(const TemporaryFolder& folder) {
  const std::filesystem::directory_iterator files(folder.path());
  return static_cast<std::size_t>(std::distance(begin(files), end(files)));
}

}  // namespace

TEST_CASE("InputFile: reads at any position") {
  const TemporaryFolder folder;
  write_text(folder / "a", "0123456789");
  const InputFile file(folder / "a");
  CHECK(file.size() == 10);
  std::string text(4, ' ');
  file.read_at(6, text.data(), 4);
  CHECK(text == "6789");
  file.read_at(10, text.data(), 0);
  CHECK_THROWS_WITH(file.read_at(7, text.data(), 4), Contains("ends at byte 10, 1 bytes early"));
}

TEST_CASE("InputFile: refuses what is not a file") {
  const TemporaryFolder folder;
  CHECK_THROWS_WITH(InputFile(folder / "none"), Contains("none: No such file"));
  CHECK_THROWS_WITH(InputFile(folder.path()), Contains("not a regular file"));
  REQUIRE(::mkfifo((folder / "pipe").c_str(), 0600) == 0);
  CHECK_THROWS_WITH(InputFile(folder / "pipe"), Contains("not a regular file"));
  CHECK_THROWS_AS(InputFile("/dev/zero"), IoError);
  CHECK_THROWS_AS(InputFile(""), IoError);
}

TEST_CASE("InputFile: a file that shrinks while it is read is an error") {
  const TemporaryFolder folder;
  write_text(folder / "a", "0123456789");
  const InputFile file(folder / "a");
  std::filesystem::resize_file(folder / "a", 3);
  std::string text(10, ' ');
  CHECK_THROWS_AS(file.read_at(0, text.data(), 10), IoError);
}

TEST_CASE("InputFile: stays the file that was opened") {
  const TemporaryFolder folder;
  write_text(folder / "a", "old");
  const InputFile file(folder / "a");
  ReplacingFile next(folder / "a");
  next.write("new!", 4);
  next.commit();
  std::string text(3, ' ');
  file.read_at(0, text.data(), 3);
  CHECK(text == "old");
  CHECK(read_text(folder / "a") == "new!");
}

TEST_CASE("ReplacingFile: appears whole or not at all") {
  const TemporaryFolder folder;
  write_text(folder / "a", "old");
  {
    ReplacingFile file(folder / "a");
    file.write("half", 4);
    CHECK(read_text(folder / "a") == "old");
    CHECK(files_in(folder) == 2);
  }
  CHECK(read_text(folder / "a") == "old");
  CHECK(files_in(folder) == 1);
  {
    ReplacingFile file(folder / "a");
    file.write("wh", 2);
    file.write("ole", 3);
    file.commit();
  }
  CHECK(read_text(folder / "a") == "whole");
  CHECK(files_in(folder) == 1);
}

TEST_CASE("ReplacingFile: two savers of one name do not mix") {
  const TemporaryFolder folder;
  ReplacingFile first(folder / "a"), second(folder / "a");
  first.write("first", 5);
  second.write("second", 6);
  first.commit();
  CHECK(read_text(folder / "a") == "first");
  second.commit();
  CHECK(read_text(folder / "a") == "second");
  CHECK(files_in(folder) == 1);
}

TEST_CASE("remove_unfinished: what a killed save has left, and nothing else") {
  const TemporaryFolder folder;
  const pid_t child = ::fork();
  if (child == 0) {
    ReplacingFile file(folder / "a");
    file.write("half", 4);
    ::kill(::getpid(), SIGKILL);
  }
  int status = 0;
  REQUIRE(::waitpid(child, &status, 0) == child);
  REQUIRE(WIFSIGNALED(status));
  REQUIRE(files_in(folder) == 1);
  const std::vector<std::string> others{"a",         "a.tmp",     "a.tmpl",     "a.tmp12",
                                        "a.tmp12-",  "a.tmp-1",   "a.tmp12-3x", "a.tmp12-3-4",
                                        "b.tmp12-3", "aa.tmp1-2", "notes.tmpl", "a.b.tmp1-2"};
  for (const std::string& name : others) write_text(folder / name, "mine");
  std::filesystem::create_directory(folder / "a.tmp1-2");  // which is no file of ours
  infty::detail::remove_unfinished(folder / "a");
  CHECK(files_in(folder) == others.size() + 1);
  for (const std::string& name : others) CHECK(read_text(folder / name) == "mine");
  CHECK_THROWS_AS(infty::detail::remove_unfinished(folder / "none/a"), IoError);
}

TEST_CASE("ReplacingFile: says why it cannot write, and leaves nothing behind") {
  const TemporaryFolder folder;
  CHECK_THROWS_WITH(ReplacingFile(folder / "none/a"), Contains("No such file"));
  std::filesystem::create_directory(folder / "taken");
  {
    ReplacingFile file(folder / "taken");
    CHECK_THROWS_WITH(file.commit(), Contains("taken"));
  }
  CHECK_THROWS_WITH(ReplacingFile("/dev/null"), Contains("no file to replace"));
  CHECK(std::filesystem::is_character_file("/dev/null"));
  CHECK(files_in(folder) == 1);
}
