// SPDX-License-Identifier: MIT
// docs/coverage.md, held to the code.

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <map>
#include <regex>
#include <set>
#include <sstream>
#include <string>
#include <vector>

#include <infty/core/for_each.hpp>
#include <infty/core/verify.hpp>
#include <infty/eigen/backend.hpp>
#include <infty/memory/ops/expected_values.hpp>
#include <infty/nn/attention.hpp>
#include <infty/nn/cross_entropy.hpp>
#include <infty/nn/layer_norm.hpp>
#include <infty/signal/gaussian_density.hpp>
#include <infty/thrust/host.hpp>
#include <infty/train/adam.hpp>

#include "support/catch.hpp"

namespace {

namespace fs = std::filesystem;
const fs::path tests = INFTY_TEST_DATA, root = tests.parent_path();

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
  std::istringstream page(read(root / "docs/coverage.md"));
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

struct Anything {
  template <class... Ts>
  void operator()(Ts...) const {}
};

/// The kernels that a backend brings, by name.
template <class B>
std::map<std::string, bool> kernels_of() {
  return {
      {"FusedExpectation", requires {typename B::template FusedExpectation<infty::GaussianDensity>;
}
}  // namespace
, {"FusedAttention", requires {typename B::FusedAttention;
}
}
, {"FusedTokenLosses", requires {typename B::FusedTokenLosses;
}
}
, {"FusedLayerNorm", requires {typename B::FusedLayerNorm;
}
}
, {"FusedColumnSums", requires {typename B::FusedColumnSums;
}
}
, {"FusedAdam", requires {typename B::FusedAdam;
}
}
, {"for_each_element", requires {B::for_each_element(infty::Index{}, infty::Index{}, Anything{});
}
}
, {"scatter_add_rows", true},  // a primitive, which every backend brings
}
;
}

}  // namespace

TEST_CASE("coverage: a kernel is where the page says, and nowhere else") {
  const auto eigen = kernels_of<infty::EigenBackend>();
  const auto thrust = kernels_of<infty::ThrustBackend<infty::Omp>>();
  CHECK(thrust == kernels_of<infty::ThrustBackend<infty::Cpp>>());
  std::set<std::string> named;
  for (const Row& row : rows_of_the_page()) {
    CAPTURE(row.component, row.kernel);
    // A GPU's alone: its checks are looked at when the host waits for it anyway.
    if (row.kernel == "verify") continue;
    if (row.kernel.empty()) {
      if (row.component == "core/backend.hpp") continue;
      CHECK(row.eigen == "composed");
      CHECK(row.thrust == "composed");
      continue;
    }
    REQUIRE(eigen.count(row.kernel) == 1);
    named.insert(row.kernel);
    CHECK(row.eigen == (eigen.at(row.kernel) ? "by hand" : "composed"));
    CHECK(row.thrust == (thrust.at(row.kernel) ? "by hand" : "composed"));
  }
  CHECK(named.size() == eigen.size());
}

TEST_CASE("coverage: every kernel that a backend may bring is on the page") {
  std::set<std::string> named;
  for (const Row& row : rows_of_the_page()) named.insert(row.kernel);
  static const std::regex asked("typename B(?:ackend)?::(?:template )?(Fused\\w+)");
  for (const auto& entry : fs::recursive_directory_iterator(root / "include/infty")) {
    if (entry.path().extension() != ".hpp") continue;
    const std::string text = read(entry.path());
    for (std::sregex_iterator it(text.begin(), text.end(), asked), end; it != end; ++it) {
      CAPTURE(entry.path().string());
      CHECK(named.count((*it)[1]) == 1);
    }
  }
}

TEST_CASE("coverage: tests are there and typed") {
  for (const Row& row : rows_of_the_page()) {
    CAPTURE(row.component);
    CHECK(fs::exists(root / "include/infty" / row.component));
    CHECK_FALSE(row.tests.empty());
    for (const std::string& name : row.tests) {
      CAPTURE(name);
      const std::string text = read(tests / name);
      CHECK(text.find("TEMPLATE_LIST_TEST_CASE") != std::string::npos);
      CHECK(text.find("Types") != std::string::npos);
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
    for (const auto& entry : fs::directory_iterator(root / "include/infty" / folder)) {
      const std::string name = std::string(folder) + '/' + entry.path().filename().string();
      if (entry.path().filename() == "fwd.hpp" || no_component.count(name)) continue;
      CAPTURE(name);
      CHECK(on_the_page.count(name) == (std::regex_search(read(entry.path()), templated) ? 1 : 0));
    }
}
