// SPDX-License-Identifier: MIT
// A rank a GPU, threads of this process: with one GPU a single rank, which exchanges nothing.
#include <algorithm>
#include <cstddef>
#include <filesystem>
#include <span>
#include <vector>

#include <infty/core/random.hpp>
#include <infty/nccl/communicator.hpp>
#include <infty/parallel/any_communicator.hpp>
#include <infty/parallel/messages.hpp>
#include <infty/parallel/shards.hpp>
#include <infty/parallel/thread_communicator.hpp>

#include "io/temporary_folder.hpp"
#include "support/catch.hpp"

using infty::AnyCommunicator;
using infty::Index;
using infty::NcclCommunicator;
using infty::Shards;
using infty::ThreadCommunicator;

namespace nccl_communicator_tests {

int ranks_here() { return (std::min)(4, infty::gpu::device_count()); }

void draw(Index shard, std::span<float> out) {
  infty::Random random(5, static_cast<std::uint64_t>(shard));
  for (float& value : out) value = static_cast<float>(random.normal());
}

TEST_CASE("NcclCommunicator: what all take part in") {
  std::vector<int> good(static_cast<std::size_t>(ranks_here()));
  infty::on_threads(ranks_here(), [&](ThreadCommunicator& threads) {
    NcclCommunicator own(threads, threads.rank());
    AnyCommunicator ranks(own);
    std::vector<float> values{1, static_cast<float>(ranks.rank())};
    ranks.all_reduce(std::span<float>(values));
    const int size = ranks.size();
    bool ok = values == std::vector<float>{static_cast<float>(size),
                                           static_cast<float>(size * (size - 1) / 2)};
    int said = ranks.rank() == size - 1 ? 40 : -1;
    ranks.broadcast(std::as_writable_bytes(std::span(&said, 1)), size - 1);
    const auto all = infty::gather(ranks, 3 * ranks.rank());
    for (int i = 0; i < size; ++i) ok = ok && all[static_cast<std::size_t>(i)] == 3 * i;
    ranks.barrier();
    good[static_cast<std::size_t>(threads.rank())] = ok && said == 40 ? 1 : 0;
  });
  CHECK(good == std::vector<int>(good.size(), 1));
}

TEST_CASE("NcclCommunicator: sums over shards have the bits that one rank gets") {
  infty::SelfCommunicator self;
  const infty::tests::TemporaryFolder folder;
  for (const Index size : {0, 1, 5, 70001}) {
    const auto one = Shards(self, 8).sum<float>(size, draw);
    const auto path = folder.path() / std::to_string(size);
    std::vector<std::vector<float>> sums(static_cast<std::size_t>(ranks_here()));
    infty::on_threads(ranks_here(), [&](ThreadCommunicator& threads) {
      NcclCommunicator ranks(path, threads.rank(), threads.size(), threads.rank());
      sums[static_cast<std::size_t>(threads.rank())] = Shards(ranks, 8).sum<float>(size, draw);
    });
    for (const auto& sum : sums) CHECK(sum == one);
  }
}

TEST_CASE("NcclCommunicator: refuses ranks that there are not, and is silent behind an abort") {
  infty::SelfCommunicator self;
  NcclCommunicator ranks(self, 0);
  CHECK_THROWS_AS(ranks.send(1, {}), infty::ValueError);
  CHECK_THROWS_AS(ranks.broadcast({}, 1), infty::ValueError);
  CHECK_THROWS_AS(NcclCommunicator("id", 2, 2, 0), infty::ValueError);
  ranks.abort("");
  CHECK_THROWS_AS(ranks.barrier(), infty::CommunicationError);
}

}  // namespace nccl_communicator_tests
