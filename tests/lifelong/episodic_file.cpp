// SPDX-License-Identifier: MIT
#include <chrono>
#include <csignal>
#include <cstddef>
#include <string>
#include <thread>
#include <vector>

#include <sys/wait.h>
#include <unistd.h>

#include "io/temporary_folder.hpp"
#include "lifelong/episodic_case.hpp"
#include "support/catch.hpp"

using infty::EpisodicMemory;
using infty::tests::TemporaryFolder;

TEST_CASE("EpisodicMemory: a damaged or foreign file is refused, and nothing changes") {
  using namespace infty::tests::episodes;
  const TemporaryFolder folder;
  const auto path = folder / "memory.safetensors";
  Memory memory(2, {.capacity = 9}), other(2, {.capacity = 9});
  offer(memory, 0, 12);
  memory.save(path);
  offer(other, 50, 4);
  const auto before = held(other);
  const std::string bytes = infty::tests::read_text(path);
  for (std::size_t i = 0; i < bytes.size(); i += i < 8 ? 1 : 7) {
    std::string damaged = bytes;
    damaged[i] = static_cast<char>(damaged[i] ^ 1);
    infty::tests::write_text(path, damaged);
    try {
      other.load(path);  // a changed space of the header may be none
      CHECK(held(other) == held(memory));
      other = Memory(2, {.capacity = 9});
      offer(other, 50, 4);
    } catch (const infty::Error&) {
      CHECK(held(other) == before);
    }
    infty::tests::write_text(path, bytes.substr(0, i));
    CHECK_THROWS_AS(other.load(path), infty::IoError);
  }
  infty::tests::write_text(path, bytes);
  CHECK_THROWS_AS(Memory(3, {.capacity = 9}).load(path), infty::IoError);
  CHECK_THROWS_AS(Memory(2, {.capacity = 8}).load(path), infty::ValueError);
  CHECK_THROWS_AS(EpisodicMemory<double>(2, {.capacity = 9}).load(path), infty::IoError);
  CHECK_THROWS_AS(other.load(folder / "none"), infty::IoError);
  CHECK(held(other) == before);
  other.load(path);
  CHECK(held(other) == held(memory));
}

TEST_CASE("EpisodicMemory: a file that contradicts itself is refused, whatever its checksum") {
  using namespace infty::tests::episodes;
  using File = infty::detail::EpisodicFile<float>;
  const TemporaryFolder folder;
  const auto path = folder / "memory.safetensors";
  const infty::EpisodicConfig config{.capacity = 4};
  const auto loads = [&](auto&& change) {
    File file{.dim = 2, .offered = 9, .chosen = 3};
    for (infty::Index i = 0; i < 3; ++i) file.add(i, key<float>(i).data(), stream(i, 1).front());
    change(file);
    file.save(path, infty::settings_json(config));
    Memory memory(2, config);
    offer(memory, 50, 2);
    try {
      memory.load(path);
      return true;
    } catch (const infty::IoError&) {
      CHECK(held(memory) == std::vector<infty::Index>{50, 51});
      return false;
    }
  };
  CHECK(loads([](File&) {}));
  CHECK_FALSE(loads([](File& file) { file.chosen = 2; }));  // fewer than are held
  CHECK_FALSE(loads([](File& file) { file.chosen = 4; }));  // more, and there is room
  CHECK_FALSE(loads([](File& file) { file.offered = 2; }));
  CHECK_FALSE(loads([](File& file) { file.offered = -9; }));
  CHECK_FALSE(loads([](File& file) { file.offered = (infty::Index{1} << 53) + 1; }));
  CHECK_FALSE(loads([](File& file) { file.examples[1].tokens.clear(); }));
  CHECK_FALSE(loads([](File& file) { file.keys[3] = infty::math::not_a_number<float>; }));
  CHECK_FALSE(loads([](File& file) { file.keys[3] = infty::math::infinity<float>; }));
  CHECK_FALSE(loads([](File& file) { file.places[1] = 0; }));
  CHECK_FALSE(loads([](File& file) { file.places[1] = 3; }));
}

TEST_CASE("EpisodicMemory: killed while it saves, it is one that was saved") {
  using namespace infty::tests::episodes;
  const TemporaryFolder folder;
  const auto path = folder / "memory.safetensors";
  Memory(2).save(path);
  for (int kill = 0; kill < 8; ++kill) {
    Memory before(2);
    before.load(path);
    const ::pid_t child = ::fork();
    if (child == 0) {
      Memory memory(2);
      memory.load(path);
      for (;;) {
        offer(memory, memory.offered(), 25);
        memory.save(path);
      }
    }
    REQUIRE(child > 0);
    std::this_thread::sleep_for(std::chrono::milliseconds(3 + 7 * kill));
    ::kill(child, SIGKILL);
    int status = 0;
    REQUIRE(::waitpid(child, &status, 0) == child);
    Memory found(2), whole(2);
    found.load(path);
    CHECK(found.offered() >= before.offered());
    CHECK(found.offered() % 25 == 0);
    offer(whole, 0, found.offered());
    CHECK(held(found) == held(whole));
  }
}
