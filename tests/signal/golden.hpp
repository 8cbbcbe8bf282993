// SPDX-License-Identifier: MIT
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <limits>
#include <sstream>
#include <string>
#include <vector>

#include <infty/core/config.hpp>
#include <infty/io/safetensors_file.hpp>
#include <infty/signal/gaussian_basis.hpp>

namespace infty::tests {

/// The recorded cases of the long-term memory.
inline const std::vector<std::string> ltm_cases{"even",    "half",   "linear",   "medium",
                                                "moments", "sticky", "sparsemax"};

/// One of them.
struct LtmCase {
  explicit LtmCase(const std::string& name)
      : file(std::string(INFTY_TEST_DATA) + "/golden/ltm_" + name + ".safetensors") {}

  double number(const std::string& key) const { return std::stod(file.metadata(key)); }
  Index count(const std::string& key) const { return std::stol(file.metadata(key)); }

  template <class T>
  GaussianBasis<T> basis() const {
    std::string text = file.metadata("sigmas");  // "[0.01, 0.05]"
    for (char& c : text)
      if (c == '[' || c == ']' || c == ',') c = ' ';
    std::istringstream in(text);
    std::vector<double> widths;
    for (double width; in >> width;) widths.push_back(width);
    return GaussianBasis<T>(count("basis"), widths);
  }

  SafetensorsFile file;
};

/// Largest difference, relative to the largest number expected.
template <class T>
double relative_error(const std::vector<T>& got, const std::vector<double>& expected) {
  if (got.size() != expected.size()) return std::numeric_limits<double>::infinity();
  double worst = 0, scale = 0;
  for (std::size_t i = 0; i < got.size(); ++i) {
    worst = std::max(worst, std::abs(static_cast<double>(got[i]) - expected[i]));
    scale = std::max(scale, std::abs(expected[i]));
  }
  return worst / scale;
}

}  // namespace infty::tests
