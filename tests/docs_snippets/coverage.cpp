// SPDX-License-Identifier: MIT
// docs/coverage.md, held to the code.

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <regex>
#include <set>
#include <sstream>
#include <string>
#include <vector>

#include "support/catch.hpp"

namespace {

namespace fs = std::filesystem;
const fs::path folder_of_tests = INFTY_TEST_DATA, repository = folder_of_tests.parent_path();

std::string read(const fs::path& path) {
  std::ifstream file(path);
  std::ostringstream text;
  text << file.rdbuf();
  return text.str();
}

/// What stands between backquotes.
std::vector<std::string> in_quotes(const std::string& cell) {
  std::vector<std::string> out;
  static const std::regex quote("`([^`]*)`");
  for (std::sregex_iterator it(cell.begin(), cell.end(), quote), end; it != end; ++it)
    out.push_back((*it)[1]);
  return out;
}

struct Row {
  std::string component, kernel, eigen, thrust;
  std::vector<std::string> tests;
};

std::vector<Row> rows_of_the_page() {
  std::vector<Row> rows;
  std::istringstream page(read(repository / "docs/coverage.md"));
  for (std::string line; std::getline(page, line);) {
    if (line.rfind("| `", 0) != 0) continue;
    std::vector<std::string> cells;
    std::istringstream in(line.substr(1));
    for (std::string cell; std::getline(in, cell, '|');) {
      cell.erase(0, cell.find_first_not_of(' '));
      cell.erase(cell.find_last_not_of(' ') + 1);
      cells.push_back(cell);
    }
    REQUIRE(cells.size() == 5);
    const auto kernel = in_quotes(cells[1]);
    rows.push_back({in_quotes(cells[0]).at(0), kernel.empty() ? "" : kernel.at(0), cells[2],
                    cells[3], in_quotes(cells[4])});
  }
  return rows;
}

/// What a pattern's parentheses stand for, wherever it is found in a text.
std::set<std::string> found(const std::string& text, const char* pattern) {
  std::set<std::string> out;
  const std::regex regex(pattern);
  for (std::sregex_iterator it(text.begin(), text.end(), regex), end; it != end; ++it)
    out.insert((*it)[1]);
  return out;
}

/// The kernels that compositions ask for: a kernel's own test holds it to one of them.
std::set<std::string> asked_for() {
  std::set<std::string> out;
  for (const auto& entry : fs::recursive_directory_iterator(repository / "include/infty"))
    if (entry.path().extension() == ".hpp")
      out.merge(found(read(entry.path()), "using Kernel = typename \\w+::(?:template )?(\\w+)"));
  return out;
}

/// The kernels and functions that a backend brings.
std::set<std::string> brought_by(const char* backend) {
  const std::string text = read(repository / backend);
  auto out = found(text, "using (Fused\\w+) =");
  out.merge(found(text, "static void (\\w+)\\("));
  return out;
}

}  // namespace

TEST_CASE("coverage: a kernel is where the page says, and nowhere else") {
  const auto eigen = brought_by("include/infty/eigen/backend.hpp"),
             thrust = brought_by("cuda/infty/thrust/backend.hpp");
  std::set<std::string> named;
  for (const Row& row : rows_of_the_page()) {
    CAPTURE(row.component, row.kernel);
    // A GPU's alone: its checks are looked at when the host waits for it anyway.
    if (row.kernel == "verify" || row.component == "core/backend.hpp") continue;
    CHECK(row.eigen == (eigen.count(row.kernel) ? "by hand" : "composed"));
    CHECK(row.thrust == (thrust.count(row.kernel) ? "by hand" : "composed"));
    if (!row.kernel.empty()) CHECK(eigen.count(row.kernel) + thrust.count(row.kernel) > 0);
    named.insert(row.kernel);
  }
  const auto asked = asked_for();
  CHECK(asked.size() >= 6);
  for (const std::string& kernel : asked) {
    CAPTURE(kernel);
    CHECK(named.count(kernel) == 1);
  }
  for (const auto& brought : {eigen, thrust})
    for (const std::string& kernel : brought)
      if (kernel.rfind("Fused", 0) == 0) {
        CAPTURE(kernel);
        CHECK(asked.count(kernel) == 1);
      }
}

TEST_CASE("coverage: tests are there and typed") {
  for (const Row& row : rows_of_the_page()) {
    CAPTURE(row.component);
    CHECK(fs::exists(repository / "include/infty" / row.component));
    CHECK_FALSE(row.tests.empty());
    for (const std::string& name : row.tests) {
      CAPTURE(name);
      // Then it is run on every backend, which counts how many of its cases use that backend.
      CHECK(found(read(folder_of_tests / name), "TEMPLATE_LIST_TEST_CASE\\([^;{]*(Types)\\)")
                .size() == 1);
    }
  }
}

TEST_CASE("coverage: no component is missing") {
  std::set<std::string> on_the_page;
  for (const Row& row : rows_of_the_page()) on_the_page.insert(row.component);
  // What is templated on a backend and computes; the rest declares, names parameters or moves
  // elements through `to_host` and `from_host`.
  const std::set<std::string> no_component = {
      "core/finite.hpp", "testing/gradient_check.hpp", "autograd/parameters.hpp", "nn/to.hpp",
      "memory/to.hpp",   "train/named_parameters.hpp", "train/checkpoint.hpp"};
  static const std::regex templated("class (B|Backend|Backend_)\\b");
  for (const char* folder : {"core", "signal", "autograd", "nn", "memory", "train"})
    for (const auto& entry : fs::directory_iterator(repository / "include/infty" / folder)) {
      const std::string name = std::string(folder) + '/' + entry.path().filename().string();
      if (entry.path().filename() == "fwd.hpp" || no_component.count(name)) continue;
      CAPTURE(name);
      CHECK(on_the_page.count(name) == (std::regex_search(read(entry.path()), templated) ? 1 : 0));
    }
}
