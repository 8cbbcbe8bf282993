// SPDX-License-Identifier: MIT
// The folders of include/infty are floors: each includes only those below it.

#include <algorithm>
#include <array>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <regex>
#include <set>
#include <string>
#include <string_view>

#include "support/catch.hpp"

namespace {

namespace fs = std::filesystem;

// From the ground up.
constexpr std::array<std::string_view, 15> floors{
    "core",   "io",    "signal", "eigen",   "autograd",  "nn",       "parallel", "train",
    "memory", "model", "data",   "metrics", "retrieval", "lifelong", "testing"};

std::ptrdiff_t floor_of(std::string_view folder) {
  return std::find(floors.begin(), floors.end(), folder) - floors.begin();
}

/// What points up, and what stands on no floor, in the files below `root`.
std::string wrong_includes(const fs::path& root) {
  std::string wrong;
  const std::regex include("^#include <infty/([a-z_]+)/([^>]*)>");
  for (const auto& entry : fs::recursive_directory_iterator(root)) {
    const std::string name = entry.path().lexically_relative(root).generic_string();
    const auto slash = name.find('/');
    if (!entry.is_regular_file() || slash == std::string::npos) continue;
    const auto here = floor_of(name.substr(0, slash));
    if (here == std::ssize(floors)) wrong += name + " stands on no floor\n";
    std::ifstream file(entry.path());
    std::smatch match;
    for (std::string line; std::getline(file, line);)
      if (std::regex_search(line, match, include) && floor_of(match[1].str()) > here)
        wrong += name + " includes " + match[1].str() + '/' + match[2].str() + '\n';
  }
  return wrong;
}

/// The headers below `root` that have more lines than one idea takes, by their paths in `root`.
std::set<std::string> long_headers(const fs::path& root) {
  constexpr std::ptrdiff_t most = 320;
  std::set<std::string> found;
  for (const auto& entry : fs::recursive_directory_iterator(root)) {
    if (entry.path().extension() != ".hpp") continue;
    std::ifstream file(entry.path());
    using Characters = std::istreambuf_iterator<char>;
    if (std::count(Characters(file), Characters(), '\n') > most)
      found.insert(entry.path().lexically_relative(root).generic_string());
  }
  return found;
}

/// Which of the examples below `root` include files of another one; `support` is everybody's.
std::string shared_includes(const fs::path& root) {
  std::string wrong;
  const std::regex include("^#include \"((?:[.][.]/)+[^\"]*)\"");
  for (const auto& entry : fs::recursive_directory_iterator(root)) {
    const fs::path name = entry.path().lexically_relative(root);
    if (!entry.is_regular_file() || !name.has_parent_path()) continue;
    std::ifstream file(entry.path());
    std::smatch match;
    for (std::string line; std::getline(file, line);) {
      if (!std::regex_search(line, match, include)) continue;
      const fs::path other = (name.parent_path() / match[1].str()).lexically_normal();
      if (*other.begin() != *name.begin() && *other.begin() != "support")
        wrong += name.generic_string() + " includes " + other.generic_string() + '\n';
    }
  }
  return wrong;
}

}  // namespace

TEST_CASE("a folder includes only what stands below it") {
  const fs::path tests = INFTY_TEST_DATA;
  CHECK(wrong_includes(tests.parent_path() / "include/infty") == "");
}

TEST_CASE("an include that points up, and a folder that stands nowhere, are found") {
  const fs::path root = fs::temp_directory_path() / "infty_floors";
  fs::remove_all(root);
  fs::create_directories(root / "core");
  fs::create_directories(root / "attic");
  std::ofstream(root / "core/a.hpp")
      << "#include <infty/memory/b.hpp>\n#include <infty/core/c.hpp>\n";
  std::ofstream(root / "attic/d.hpp") << "#include <infty/core/a.hpp>\n";
  const std::string wrong = wrong_includes(root);
  CHECK(wrong.find("core/a.hpp includes memory/b.hpp") != std::string::npos);
  CHECK(wrong.find("core/c.hpp") == std::string::npos);
  CHECK(wrong.find("attic/d.hpp stands on no floor") != std::string::npos);
  fs::remove_all(root);
}

TEST_CASE("no header is longer than 320 lines") {
  const fs::path tests = INFTY_TEST_DATA;
  auto found = long_headers(tests.parent_path() / "include");
  found.erase("infty/infty.hpp");  // the list of all others
  CAPTURE(found.empty() ? "" : *found.begin());
  CHECK(found.empty());
  CHECK(long_headers(tests.parent_path() / "cuda").empty());
}

TEST_CASE("no example includes another's files") {
  const fs::path tests = INFTY_TEST_DATA;
  CHECK(shared_includes(tests.parent_path() / "examples") == "");

  const fs::path root = fs::temp_directory_path() / "infty_examples";
  fs::remove_all(root);
  fs::create_directories(root / "a/deep");
  std::ofstream(root / "a/main.cpp") << "#include \"../support/c.hpp\"\n#include \"d.hpp\"\n";
  std::ofstream(root / "a/deep/b.hpp") << "#include \"../d.hpp\"\n#include \"../../e/f.hpp\"\n";
  CHECK(shared_includes(root) == "a/deep/b.hpp includes e/f.hpp\n");
  fs::remove_all(root);
}
