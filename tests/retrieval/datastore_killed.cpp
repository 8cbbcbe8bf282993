// SPDX-License-Identifier: MIT
#include <chrono>
#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <string>
#include <thread>

#include <sys/wait.h>
#include <unistd.h>

#include <infty/retrieval/datastore.hpp>

#include "io/temporary_folder.hpp"
#include "retrieval/datastore_case.hpp"
#include "support/catch.hpp"

using infty::Datastore;
using infty::Index;
using infty::Random;
using infty::tests::DrawnEntries;
using infty::tests::TemporaryFolder;

namespace datastore_killed {

constexpr Index dim = 16, block = 256, entries = 40 * block + 100;

/// Builds what is missing, in pieces of any size.
void build(const std::filesystem::path& folder) {
  auto store = Datastore<float>::build(folder, dim, "killed", block);
  for (Index piece = 1; store.size() < entries; piece = piece * 37 % 499)
    DrawnEntries<float>{dim}.append(store, std::min<Index>(piece, entries - store.size()));
  store.flush();
}

/// Starts a process that builds and kills it after that time; whether it was killed in its work.
bool killed_after(const std::filesystem::path& folder, std::chrono::microseconds time) {
  const ::pid_t child = ::fork();
  if (child == 0) {
    build(folder);
    ::_exit(0);
  }
  REQUIRE(child > 0);
  std::this_thread::sleep_for(time);
  ::kill(child, SIGKILL);
  int status = 0;
  REQUIRE(::waitpid(child, &status, 0) == child);
  if (WIFSIGNALED(status)) return WTERMSIG(status) == SIGKILL;
  REQUIRE(WEXITSTATUS(status) == 0);
  return false;
}

}  // namespace datastore_killed

// `./dev kill N` asks for N kills by INFTY_KILLS.
TEST_CASE("Datastore: killed at any moment it opens, and goes on to the same bytes") {
  using namespace datastore_killed;
  const char* const asked = std::getenv("INFTY_KILLS");
  const int kills = asked != nullptr ? std::atoi(asked) : 4;
  const TemporaryFolder whole;
  const auto begin = std::chrono::steady_clock::now();
  build(whole.path());
  auto longest = std::chrono::duration_cast<std::chrono::microseconds>(
      std::chrono::steady_clock::now() - begin);
  Random random(static_cast<std::uint64_t>(longest.count()));
  int killed = 0, compared = 0;
  for (bool last = false; !last;) {
    last = killed >= kills;
    const TemporaryFolder parts;
    Index before = 0;
    const int killed_before = killed;
    for (bool done = false; !done;) {
      if (killed < kills) {
        const auto time = std::chrono::microseconds(
            static_cast<std::int64_t>(random.uniform() * static_cast<double>(longest.count())));
        done = !killed_after(parts.path(), time);
        killed += done ? 0 : 1;
      } else {
        build(parts.path());
        done = true;
      }
      if (!std::filesystem::exists(parts / "manifest.json")) continue;  // killed before it was made
      const auto store = Datastore<float>::open(parts.path());
      CAPTURE(killed, store.size());
      REQUIRE((store.size() % block == 0 || store.size() == entries));
      REQUIRE(store.size() >= before);
      REQUIRE(store.finished() == store.size());
      before = store.size();
      store.verify();
      if (done) CHECK(store.size() == entries);
    }
    for (const char* name : {"keys", "tokens", "manifest.json"})
      REQUIRE(infty::tests::read_text(parts / name) == infty::tests::read_text(whole / name));
    ++compared;
    // Where no kill came in time: sooner, then.
    if (killed == killed_before) longest = longest * 3 / 4 + std::chrono::microseconds(1);
  }
  WARN("killed " << killed << " times, " << compared << " builds compared, no difference");
}
