// SPDX-License-Identifier: MIT
// What the documentation prints is what the test suite compiles: behind every line
// `<!-- from PATH -->` in README.md and docs/*.md stands a block of code that PATH contains word
// for word, but for indentation, and no block of C++ goes without such a line.

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

}  // namespace

TEST_CASE("docs: every block of C++ stands in a file that is compiled") {
  std::set<fs::path> pages{root / "README.md"};
  for (const auto& entry : fs::directory_iterator(root / "docs"))
    if (entry.path().extension() == ".md") pages.insert(entry.path());
  REQUIRE(pages.size() > 1);
  const std::string opening = "<!-- from ", closing = " -->", fence = "```";
  int quoted = 0;
  for (const auto& page : pages) {
    const Lines lines = lines_of(page);
    for (std::size_t i = 0; i < lines.size(); ++i) {
      if (lines[i] != fence + "cpp") continue;
      INFO(page << ", line " << i + 1);
      REQUIRE(i > 0);
      const std::string& source = lines[i - 1];
      REQUIRE(source.starts_with(opening));
      REQUIRE(source.ends_with(closing));
      const fs::path from =
          source.substr(opening.size(), source.size() - opening.size() - closing.size());
      Lines block;
      for (++i; i < lines.size() && lines[i] != fence; ++i) block.push_back(lines[i]);
      REQUIRE(i < lines.size());
      REQUIRE_FALSE(block.empty());
      CHECK(contains(lines_of(root / from), without_indentation(block)));
      ++quoted;
    }
  }
  CHECK(quoted > 0);
}
