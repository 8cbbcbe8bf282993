// SPDX-License-Identifier: MIT
// What the documentation prints is what the test suite compiles: behind every line
// `<!-- from PATH -->` in README.md and docs/*.md stands a block of code that PATH contains word
// for word, but for indentation, and no block of C++ goes without such a line. Behind
// `<!-- from PATH, printed -->` stands what PATH holds the output to, in a string R"(...)".

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <set>
#include <string>
#include <vector>

#include "support/catch.hpp"

namespace {

using Lines = std::vector<std::string>;
namespace fs = std::filesystem;

const fs::path root = fs::path(INFTY_TEST_DATA).parent_path();

Lines lines_of(const fs::path& path) {
  std::ifstream in(path);
  INFO("file " << path);
  REQUIRE(in.good());
  Lines lines;
  for (std::string line; std::getline(in, line);) lines.push_back(line);
  return lines;
}

std::size_t indentation(const Lines& lines) {
  std::size_t least = std::string::npos;
  for (const auto& line : lines) least = std::min(least, line.find_first_not_of(' '));
  return least == std::string::npos ? 0 : least;
}

Lines without_indentation(Lines lines) {
  const std::size_t n = indentation(lines);
  for (auto& line : lines) line.erase(0, std::min(n, line.size()));
  return lines;
}

bool contains(const Lines& file, const Lines& block) {
  for (std::size_t i = 0; i + block.size() <= file.size(); ++i) {
    const auto at = file.begin() + static_cast<std::ptrdiff_t>(i);
    const Lines piece(at, at + static_cast<std::ptrdiff_t>(block.size()));
    if (without_indentation(piece) == block) return true;
  }
  return false;
}

/// Whether a string R"(...)" of these lines, the last of which ends, stands in a file.
bool has_literal(const Lines& file, const Lines& block) {
  for (std::size_t i = 0; i + block.size() < file.size(); ++i)
    if (file[i].ends_with(block.front()) && file[i + block.size()].starts_with(")\"") &&
        std::equal(block.begin() + 1, block.end(),
                   file.begin() + static_cast<std::ptrdiff_t>(i) + 1))
      return true;
  return false;
}

}  // namespace

TEST_CASE("docs: every block of C++ stands in a file that is compiled") {
  std::set<fs::path> pages{root / "README.md"};
  for (const auto& entry : fs::directory_iterator(root / "docs"))
    if (entry.path().extension() == ".md") pages.insert(entry.path());
  REQUIRE(pages.size() > 1);
  const std::string opening = "<!-- from ", closing = " -->", output = ", printed -->",
                    fence = "```";
  int quoted = 0;
  for (const auto& page : pages) {
    const Lines lines = lines_of(page);
    for (std::size_t i = 0; i < lines.size(); ++i) {
      const std::string before = i > 0 ? lines[i - 1] : "";
      const bool printed = before.starts_with(opening) && before.ends_with(output);
      if (lines[i] != fence + "cpp" && !(printed && lines[i] == fence + "text")) continue;
      INFO(page << ", line " << i + 1);
      REQUIRE(before.starts_with(opening));
      const std::string& end = printed ? output : closing;
      REQUIRE(before.ends_with(end));
      const fs::path from =
          before.substr(opening.size(), before.size() - opening.size() - end.size());
      Lines block;
      for (++i; i < lines.size() && lines[i] != fence; ++i) block.push_back(lines[i]);
      REQUIRE(i < lines.size());
      REQUIRE_FALSE(block.empty());
      if (printed) block.front() = "R\"(" + block.front();
      const auto& there = lines_of(root / from);
      CHECK((printed ? has_literal(there, block) : contains(there, without_indentation(block))));
      ++quoted;
    }
  }
  CHECK(quoted > 0);
}
