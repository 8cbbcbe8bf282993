// SPDX-License-Identifier: MIT
#define CATCH_CONFIG_RUNNER  // Catch2 v2 defines its own parts in this file; v3 ignores it
#include <iostream>
#include <string>

#include <Eigen/Core>

#include <infty/version.hpp>
#if defined(INFTY_TEST_CUDA)
#include <infty/thrust/context.hpp>
#endif

#include "support/catch.hpp"

int main(int argc, char** argv) {
  std::cout << "infty " << infty::version << ", Catch2 " << CATCH_VERSION_MAJOR << '.'
            << CATCH_VERSION_MINOR << '.' << CATCH_VERSION_PATCH << ", Eigen "
            << EIGEN_WORLD_VERSION << '.' << EIGEN_MAJOR_VERSION << '.' << EIGEN_MINOR_VERSION
            << ", compiler " << __VERSION__ << ", seed " << infty::tests::seed << std::endl;
#if defined(INFTY_TEST_CUDA)
  // What ctest counts as skipped.
  if (const std::string reason = infty::gpu::why_unusable(); !reason.empty()) {
    std::cout << "skipped: " << reason << std::endl;
    return 77;
  }
  std::cout << infty::gpu::description() << std::endl;
#endif
  Catch::Session session;
  session.configData().rngSeed = static_cast<std::uint32_t>(infty::tests::seed);
  return session.run(argc, argv);
}
