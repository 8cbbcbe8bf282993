// SPDX-License-Identifier: MIT
#define CATCH_CONFIG_RUNNER  // Catch2 v2 defines its own parts in this file; v3 ignores it
#include <cstddef>
#include <cstdlib>
#include <fstream>
#include <iostream>
#include <set>
#include <string>
#include <string_view>

#include <infty/eigen/version.hpp>
#if defined(INFTY_TEST_CUDA)
#include <infty/thrust/context.hpp>
#endif

#include "support/blocks_handed_out.hpp"
#include "support/catch.hpp"

namespace {

using infty::tests::blocks_handed_out;

/// Counts for each typed test what its backend did. One that allocated tensors, but none of them
/// there, has run on EigenBackend once more, whatever its name says.
struct TypedTests : Catch::TestEventListenerBase {
  using TestEventListenerBase::TestEventListenerBase;

  static inline std::size_t all = 0, on_backend = 0;
  static inline std::set<std::string> on_host_only;  ///< by name

  void testCaseStarting(const Catch::TestCaseInfo& test) override {
    TestEventListenerBase::testCaseStarting(test);
    if (!blocks_handed_out.by_backend) return;
    backend_ = blocks_handed_out.by_backend();
    host_ = blocks_handed_out.by_host();
  }
  void testCaseEnded(const Catch::TestCaseStats& test) override {
    const std::string& name = test.testInfo.name;
    if (blocks_handed_out.by_backend && name.find("Types - ") != std::string::npos) {
      ++all;
      if (blocks_handed_out.by_backend() > backend_)
        ++on_backend;
      else if (blocks_handed_out.by_host() > host_)
        on_host_only.insert(name);
    }
    TestEventListenerBase::testCaseEnded(test);
  }

 private:
  std::size_t backend_ = 0, host_ = 0;
};

/// Each test case as two lines of the file that INFTY_TEST_RECORD in the environment names, if it
/// does: "began", and "passed" or "failed" when it has ended, each with a tab and its name.
struct Record : Catch::TestEventListenerBase {
  using TestEventListenerBase::TestEventListenerBase;

  void testCaseStarting(const Catch::TestCaseInfo& test) override {
    TestEventListenerBase::testCaseStarting(test);
    write("began", test.name);
  }
  void testCaseEnded(const Catch::TestCaseStats& test) override {
    const std::string& name = test.testInfo.name;
    write(test.totals.assertions.allOk() && !TypedTests::on_host_only.contains(name) ? "passed"
                                                                                     : "failed",
          name);
    TestEventListenerBase::testCaseEnded(test);
  }

 private:
  static void write(const char* what, const std::string& name) {
    if (const char* const file = std::getenv("INFTY_TEST_RECORD"))
      std::ofstream(file, std::ios::app) << what << '\t' << name << '\n';
  }
};

}  // namespace

CATCH_REGISTER_LISTENER(TypedTests)
CATCH_REGISTER_LISTENER(Record)

int main(int argc, char** argv) {
  // A list of names is nothing but names.
  const bool lists = argc > 1 && std::string_view(argv[1]).starts_with("--list");
  if (!lists)
    std::cout << "infty " << infty::version << ", Catch2 " << CATCH_VERSION_MAJOR << '.'
              << CATCH_VERSION_MINOR << '.' << CATCH_VERSION_PATCH << ", Eigen "
              << infty::eigen_version << ", compiler " << __VERSION__ << ", seed "
              << infty::tests::seed << std::endl;
#if defined(INFTY_TEST_CUDA)
  // What ctest counts as skipped.
  if (const std::string reason = infty::gpu::why_unusable(); !lists && !reason.empty()) {
    std::cout << "skipped: " << reason << std::endl;
    return 77;
  }
  if (!lists) std::cout << infty::gpu::description() << std::endl;
#endif
  Catch::Session session;
  session.configData().rngSeed = static_cast<std::uint32_t>(infty::tests::seed);
  const int failed = session.run(argc, argv);
  for (const std::string& name : TypedTests::on_host_only)
    std::cout << "FAILED: never used its backend: " << name << std::endl;
  if (TypedTests::all > 0)
    std::cout << "typed tests that used their backend: " << TypedTests::on_backend << " of "
              << TypedTests::all << std::endl;
  return failed != 0 || TypedTests::on_host_only.empty() ? failed : 1;
}
