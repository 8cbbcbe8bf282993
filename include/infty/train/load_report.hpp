// SPDX-License-Identifier: MIT
#pragma once

#include <string>
#include <vector>

namespace infty {

/// How parameters are loaded from a file.
struct LoadOptions {
  /// Whether file and layer must have the same names, as PyTorch's load_state_dict(strict=True).
  /// Without it, parameters that the file lacks keep their values, and tensors that the layer lacks
  /// are passed over. A tensor of another shape is an error either way.
  bool strict = true;
};

/// What a load that is not strict has passed over, by the names in the file, prefix and all.
struct LoadReport {
  std::vector<std::string> missing;     ///< parameters that the file lacks, in the layer's order
  std::vector<std::string> unexpected;  ///< tensors that nobody asked for, sorted

  /// Returns whether everything matched.
  bool complete() const { return missing.empty() && unexpected.empty(); }
};

}  // namespace infty
