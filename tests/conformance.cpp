// SPDX-License-Identifier: MIT
//
// conformance [--backend eigen|thrust-omp|thrust-cpp|cuda] FILE...
//
// Replays recorded cases through the public interface, in double, and prints one line a file with
// the largest relative error over all recorded values and gradients. Exit status: 0 if all are
// within 1e-9, 1 if one is not, 2 if a file could not be read (others are still replayed) or the
// backend is not there.
#include <algorithm>
#include <cmath>
#include <exception>
#include <filesystem>
#include <iomanip>
#include <iostream>
#include <string>
#include <string_view>

#include "conformance/replay.hpp"
#include "support/golden_text.hpp"

namespace {

using Replay = infty::tests::Comparison (*)(const std::filesystem::path&);

/// What replays on the backend of this name. @throws infty::Error that says why there is none
Replay replay_on(std::string_view backend) {
  if (backend == "eigen") return infty::tests::replay_on_eigen;
  if (backend == "thrust-omp" || backend == "thrust-cpp") {
#if defined(INFTY_WITH_THRUST)
    return backend == "thrust-omp" ? infty::tests::replay_on_thrust_omp
                                   : infty::tests::replay_on_thrust_cpp;
#else
    infty::raise<infty::Error>("conformance", backend,
                               " is not in this program: CMake found no Thrust headers, which come "
                               "with the CUDA Toolkit or Debian's libthrust-dev");
#endif
  }
  if (backend == "cuda") {
#if defined(INFTY_WITH_CUDA)
    infty::tests::require_gpu();
    return infty::tests::replay_on_cuda;
#else
    infty::raise<infty::Error>("conformance",
                               "cuda is not in this program: configure with -DINFTY_CUDA=ON");
#endif
  }
  infty::raise<infty::Error>("conformance", "there is no backend ", backend,
                             ": it must be eigen, thrust-omp, thrust-cpp or cuda");
}

}  // namespace

int main(int argc, char** argv) {
  std::string_view backend = "eigen";
  int first = 1;
  if (argc > 2 && std::string_view(argv[1]) == "--backend") {
    backend = argv[2];
    first = 3;
  }
  if (first >= argc || std::string_view(argv[first]).starts_with("--")) {
    std::cerr << "usage: conformance [--backend eigen|thrust-omp|thrust-cpp|cuda] FILE...\n";
    return 2;
  }
  Replay replay = nullptr;
  try {
    replay = replay_on(backend);
  } catch (const std::exception& error) {
    std::cerr << error.what() << std::endl;
    return 2;
  }
  int status = 0;
  for (int i = first; i < argc; ++i) {
    try {
      const std::filesystem::path path = argv[i];
      const auto result =
          path.extension() == ".json" ? infty::tests::replay_text(path) : replay(path);
      std::cout << argv[i] << ": largest relative error " << std::scientific << std::setprecision(2)
                << result.worst << " (" << result.worst_name << ", " << result.compared
                << " tensors)" << std::endl;
      if (!(result.worst <= 1e-9)) status = std::max(status, 1);
    } catch (const std::exception& error) {
      std::cerr << "cannot read " << argv[i] << ": " << error.what() << std::endl;
      status = 2;
    }
  }
  return status;
}
