// SPDX-License-Identifier: MIT
// docs/operations.md, held to the code: its operations are in their headers with the kernels it
// says, and none that autograd/ and nn/ record is missing.

#include <filesystem>
#include <fstream>
#include <initializer_list>
#include <map>
#include <regex>
#include <set>
#include <sstream>
#include <string>
#include <vector>

#include "support/catch.hpp"

namespace {

namespace fs = std::filesystem;
const fs::path headers_of_operations = fs::path(INFTY_TEST_DATA).parent_path() / "include/infty";

struct OperationRow {
  std::vector<std::string> names;
  std::string header;
  std::vector<std::string> kernels;
};

/// What stands between backquotes.
std::vector<std::string> quoted_in(const std::string& cell) {
  std::vector<std::string> out;
  static const std::regex quote("`([^`]*)`");
  for (std::sregex_iterator it(cell.begin(), cell.end(), quote), end; it != end; ++it)
    out.push_back((*it)[1]);
  return out;
}

std::vector<OperationRow> rows_of_operations() {
  std::vector<OperationRow> rows;
  std::ifstream page(headers_of_operations.parent_path().parent_path() / "docs/operations.md");
  for (std::string line; std::getline(page, line);) {
    if (line.rfind("| `", 0) != 0) continue;
    std::vector<std::string> cells;
    std::istringstream in(line.substr(1));
    for (std::string cell; std::getline(in, cell, '|');) cells.push_back(cell);
    CAPTURE(line);
    REQUIRE(cells.size() == 5);
    REQUIRE(quoted_in(cells[3]).size() == 1);
    rows.push_back({quoted_in(cells[0]), quoted_in(cells[3])[0], quoted_in(cells[4])});
  }
  return rows;
}

/// A function at the edge of a header: its name, what stands between it and its closing brace, and
/// whether it is a helper.
struct Function {
  std::string name, body;
  bool helper;
};

std::vector<Function> functions_in(const fs::path& header) {
  std::vector<Function> out;
  static const std::regex signature(
      "^(?!template|struct|class|using|namespace|enum|extern|static_assert)[A-Za-z].*?"
      "(operator[^\\s(]+|\\b\\w+)\\(");
  std::ifstream file(header);
  bool helper = false, open = false;
  std::smatch match;
  for (std::string line; std::getline(file, line);) {
    if (line.rfind("namespace detail", 0) == 0 || line.rfind("namespace infty::detail", 0) == 0)
      helper = true;
    if (line.rfind("}  // namespace", 0) == 0) helper = false;
    if (std::regex_search(line, match, signature)) {
      out.push_back({match[1], "", helper});
      open = true;
    } else if (line.rfind("}", 0) == 0) {
      open = false;
    } else if (open) {
      out.back().body += line + '\n';
    }
  }
  return out;
}

bool calls(const Function& function, const std::set<std::string>& names) {
  static const std::regex call("(\\w+)(<[^()]*>)?\\(");
  for (std::sregex_iterator it(function.body.begin(), function.body.end(), call), end; it != end;
       ++it)
    if (names.count((*it)[1])) return true;
  return false;
}

/// The headers below some of the folders, with their names.
std::map<std::string, fs::path> headers_below(std::initializer_list<const char*> folders) {
  std::map<std::string, fs::path> out;
  for (const char* folder : folders)
    for (const auto& entry : fs::directory_iterator(headers_of_operations / folder))
      out[std::string(folder) + '/' + entry.path().filename().string()] = entry.path();
  return out;
}

}  // namespace

TEST_CASE("docs/operations.md: every operation is in its header") {
  const auto rows = rows_of_operations();
  CHECK(rows.size() > 40);
  for (const OperationRow& row : rows) {
    REQUIRE_FALSE(row.names.empty());
    CAPTURE(row.header);
    REQUIRE(fs::exists(headers_of_operations / row.header));
    std::set<std::string> there;
    for (const Function& function : functions_in(headers_of_operations / row.header))
      if (!function.helper) there.insert(function.name);
    for (const std::string& name : row.names) {
      CAPTURE(name);
      CHECK(there.count(name) == 1);
    }
  }
}

TEST_CASE("docs/operations.md: no operation of autograd/ and nn/ is missing") {
  std::set<std::string> named;
  for (const OperationRow& row : rows_of_operations())
    for (const std::string& name : row.names) named.insert(row.header + ' ' + name);
  const auto headers = headers_below({"autograd", "nn"});
  std::set<std::string> recorders{"record"};
  int operations = 0;
  // Helpers first: a function that calls one of those that record is an operation, too.
  for (const auto& [name, path] : headers)
    for (const Function& function : functions_in(path))
      if (function.helper && calls(function, recorders)) recorders.insert(function.name);
  CHECK(recorders.count("map_keeping_output") == 1);
  for (const auto& [name, path] : headers)
    for (const Function& function : functions_in(path))
      if (!function.helper && calls(function, recorders)) {
        CAPTURE(name, function.name);
        CHECK(named.count(name + ' ' + function.name) == 1);
        ++operations;
      }
  CHECK(operations > 30);
}

TEST_CASE("docs/operations.md: kernels are where a header asks for them") {
  std::map<std::string, std::set<std::string>> named, asked;
  for (const OperationRow& row : rows_of_operations())
    for (const std::string& kernel : row.kernels)
      if (kernel.rfind("Fused", 0) == 0) named[row.header].insert(kernel);
  static const std::regex ask("typename Own::(?:template )?(Fused\\w+)");
  for (const auto& [name, path] : headers_below({"autograd", "nn", "memory/ops"})) {
    std::ifstream file(path);
    for (std::string line; std::getline(file, line);)
      for (std::sregex_iterator it(line.begin(), line.end(), ask), end; it != end; ++it)
        asked[name].insert((*it)[1]);
  }
  // Which `linear` asks for where a weight is stored so, and for what it keeps.
  CHECK(asked.erase("autograd/stored_product.hpp") == 1);
  CHECK(asked.erase("autograd/kept_factor.hpp") == 1);
  CHECK(asked.size() >= 5);
  CHECK(named == asked);
}
