// SPDX-License-Identifier: MIT
//
// conformance FILE...
//
// Replays recorded cases through the public interface, in double, and prints one line a file with
// the largest relative error over all recorded values and gradients. Exit status: 0 if all are
// within 1e-6, 1 if one is not, 2 if a file could not be read (others are still replayed).
#include <algorithm>
#include <cmath>
#include <exception>
#include <iomanip>
#include <iostream>

#include "support/golden_replay.hpp"

int main(int argc, char** argv) {
  if (argc < 2) {
    std::cerr << "usage: conformance FILE...\n";
    return 2;
  }
  int status = 0;
  for (int i = 1; i < argc; ++i) {
    try {
      const auto result = infty::tests::replay<double>(argv[i]);
      std::cout << argv[i] << ": largest relative error " << std::scientific << std::setprecision(2)
                << result.worst << " (" << result.worst_name << ", " << result.compared
                << " tensors)" << std::endl;
      if (!(result.worst <= 1e-6)) status = std::max(status, 1);
    } catch (const std::exception& error) {
      std::cerr << "cannot read " << argv[i] << ": " << error.what() << std::endl;
      status = 2;
    }
  }
  return status;
}
