// SPDX-License-Identifier: MIT
#include <chrono>
#include <cstddef>
#include <filesystem>
#include <span>
#include <string>
#include <thread>
#include <vector>

#include <infty/parallel/share_by_file.hpp>
#include <infty/parallel/thread_communicator.hpp>

#include "io/temporary_folder.hpp"
#include "support/catch.hpp"

using Catch::Matchers::Contains;
using infty::share_by_file;

namespace share_by_file_tests {

TEST_CASE("share_by_file: all ranks have the bytes of the first, whoever comes first") {
  const infty::tests::TemporaryFolder folder;
  for (const int late : {0, 2}) {
    const auto path = folder.path() / std::to_string(late);
    std::vector<std::vector<std::byte>> all(3);
    infty::on_threads(3, [&](infty::ThreadCommunicator& ranks) {
      if (ranks.rank() == late) std::this_thread::sleep_for(std::chrono::milliseconds(20));
      std::vector<std::byte> bytes(128, static_cast<std::byte>(7 + ranks.rank()));
      share_by_file(path, ranks.rank(), bytes, 60);
      all[static_cast<std::size_t>(ranks.rank())] = bytes;
    });
    for (const auto& one : all) CHECK(one == std::vector<std::byte>(128, std::byte{7}));
  }
}

TEST_CASE("share_by_file: what is old, short, or never comes") {
  const infty::tests::TemporaryFolder folder;
  const auto path = folder.path() / "id";
  std::vector<std::byte> bytes(8), more(9);
  CHECK_THROWS_AS(share_by_file(path, 1, bytes, .01), infty::CommunicationError);
  CHECK_THROWS_AS(share_by_file(path, -1, bytes, 1), infty::ValueError);
  CHECK_THROWS_AS(share_by_file(path, 0, bytes, 0), infty::ValueError);
  CHECK_THROWS_AS(share_by_file(folder.path() / "none" / "id", 0, bytes, 1), infty::IoError);
  CHECK_THROWS_AS(share_by_file(folder.path() / std::string(300, 'x'), 0, bytes, 1),
                  infty::IoError);
  std::filesystem::create_symlink("round", folder.path() / "round");
  CHECK_THROWS_AS(share_by_file(folder.path() / "round", 0, bytes, 1), infty::IoError);
  share_by_file(path, 0, bytes, 1);
  CHECK_THROWS_WITH(share_by_file(path, 0, bytes, 1), Contains("is there already"));
  CHECK_THROWS_WITH(share_by_file(path, 1, more, 1), Contains("has 8 bytes, not 9"));
}

}  // namespace share_by_file_tests
