// SPDX-License-Identifier: MIT
// Every rank of `mpirun -n 4` runs these; with `mpirun -n 1`, or alone, they hold as well.
#include <cstddef>
#include <cstring>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include <infty/autograd/elementwise.hpp>
#include <infty/autograd/linear.hpp>
#include <infty/autograd/reduce.hpp>
#include <infty/core/random.hpp>
#include <infty/mpi/communicator.hpp>
#include <infty/parallel/any_communicator.hpp>
#include <infty/parallel/messages.hpp>
#include <infty/parallel/shards.hpp>
#include <infty/train/shard_step.hpp>

#include "support/catch.hpp"

using Catch::Matchers::Contains;
using infty::AnyCommunicator;
using infty::Index;
using infty::MpiCommunicator;
using infty::Random;
using infty::SelfCommunicator;
using infty::Shards;

namespace mpi_communicator_tests {

static_assert(infty::Communicator<MpiCommunicator>);

// The ranks of the program; MPI is finalised when it ends.
MpiCommunicator world() {
  static MpiCommunicator ranks;
  return ranks;
}

void draw(Index shard, std::span<float> out) {
  Random random(5, static_cast<std::uint64_t>(shard));
  for (float& value : out) value = static_cast<float>(random.normal());
}

TEST_CASE("MpiCommunicator: what all take part in") {
  AnyCommunicator ranks(world());
  const int size = ranks.size(), rank = ranks.rank();
  CHECK(rank >= 0);
  CHECK(rank < size);
  CHECK(world().local_size() == size);
  std::vector<float> singles{1, static_cast<float>(rank)};
  ranks.all_reduce(std::span<float>(singles));
  CHECK(singles ==
        std::vector<float>{static_cast<float>(size), static_cast<float>(size * (size - 1) / 2)});
  std::vector<double> doubles(3, 2);
  ranks.all_reduce(std::span<double>(doubles));
  CHECK(doubles == std::vector<double>(3, 2. * size));
  for (int root = 0; root < size; ++root) {
    int said = rank == root ? 40 + root : -1;
    ranks.broadcast(std::as_writable_bytes(std::span(&said, 1)), root);
    CHECK(said == 40 + root);
  }
  ranks.broadcast({}, 0);
  ranks.barrier();
  const auto all = infty::gather(ranks, 3 * rank);
  for (int i = 0; i < size; ++i) CHECK(all[static_cast<std::size_t>(i)] == 3 * i);
  CHECK(infty::any_rank(ranks, rank == size - 1));
  CHECK_FALSE(infty::any_rank(ranks, false));
}

TEST_CASE("MpiCommunicator: asks for calls of several threads, for the user has some, too") {
  world();
  int level = MPI_THREAD_SINGLE;
  REQUIRE(MPI_Query_thread(&level) == MPI_SUCCESS);
  CHECK(level == MPI_THREAD_MULTIPLE);  // Open MPI and MPICH give what they are asked for
}

TEST_CASE("MpiCommunicator: long messages and those of no bytes") {
  MpiCommunicator ranks = world();
  if (ranks.size() == 1) return;
  const int next = (ranks.rank() + 1) % ranks.size();
  const int before = (ranks.rank() + ranks.size() - 1) % ranks.size();
  for (const std::size_t length : {std::size_t{0}, std::size_t{1}, std::size_t{3000001}}) {
    const std::vector<std::byte> out(length, static_cast<std::byte>(ranks.rank() + 1));
    std::vector<std::byte> in(length);
    ranks.exchange(next, out, before, in);
    CHECK(in == std::vector<std::byte>(length, static_cast<std::byte>(before + 1)));
  }
  if (ranks.rank() == 0) {
    const int value = 8;
    ranks.send(1, std::as_bytes(std::span(&value, 1)));
  } else if (ranks.rank() == 1) {
    int value = 0;
    ranks.receive(0, std::as_writable_bytes(std::span(&value, 1)));
    CHECK(value == 8);
  }
}

TEST_CASE("MpiCommunicator: sums over shards have the bits that one rank gets") {
  MpiCommunicator ranks = world();
  SelfCommunicator self;
  for (const Index count : {4, 7, 8, 13})
    for (const Index size : {0, 1, 5, 1000, 70001}) {
      if (count < ranks.size()) continue;
      CAPTURE(count, size);
      const auto one = Shards(self, count).sum<float>(size, draw);
      const auto all = Shards(ranks, count).sum<float>(size, draw);
      REQUIRE(one.size() == all.size());
      CHECK((size == 0 || std::memcmp(one.data(), all.data(), one.size() * sizeof(float)) == 0));
      const auto fast = Shards(ranks, count, infty::Reduction::fast).sum<float>(size, draw);
      for (std::size_t i = 0; i < one.size(); i += 97)
        CHECK(fast[i] == Approx(one[i]).epsilon(1e-4).margin(1e-4));
    }
}

struct Layer {
  infty::Variable<float> first, second;

  template <class Visitor>
  void visit(Visitor&& see) {
    see("first", first);
    see("second", second);
  }
};

// What some steps on shards make of a layer.
template <class C>
std::vector<float> trained(C& ranks, Index bucket_bytes, bool zero) {
  std::vector<float> numbers(1200);
  draw(0, numbers);
  const auto all = infty::Tensor<float>::from({30, 40}, numbers);
  Layer layer{infty::Variable<float>(all.clone(), true),
              infty::Variable<float>(infty::Tensor<float>::full({40, 40}, .125F), true)};
  infty::Adam<float> adam(layer);
  if (zero) adam.share_out(ranks.rank(), ranks.size());
  const Shards shards(ranks, 6, infty::Reduction::tree, bucket_bytes);
  for (int i = 0; i < 4; ++i)
    infty::train_step(adam, {.max_norm = 1}, shards, [&](Index shard) {
      const infty::Variable<float> x(all.slice(shard, shard + 2).clone());
      const auto y = infty::linear(infty::linear(x, layer.second), layer.first);
      return infty::sum(y * y);
    });
  auto values = layer.first.value().to_vector();
  const auto more = layer.second.value().to_vector();
  values.insert(values.end(), more.begin(), more.end());
  return values;
}

TEST_CASE(
    "MpiCommunicator: steps whose gradients a second thread sends have the bits of one rank") {
  MpiCommunicator ranks = world();
  CHECK(ranks.any_thread());
  CHECK(AnyCommunicator(ranks).any_thread());
  SelfCommunicator self;
  const auto alone = trained(self, 0, false);
  for (const Index bucket_bytes : {0, 40, 1000, 4004, 1 << 20})
    for (const bool zero : {false, true}) {
      CAPTURE(bucket_bytes, zero);
      CHECK(trained(ranks, bucket_bytes, zero) == alone);
    }
}

TEST_CASE("MpiCommunicator: works in a communicator of the user's") {
  const int rank = world().rank(), size = world().size();
  MPI_Comm halves = MPI_COMM_NULL;
  REQUIRE(MPI_Comm_split(MPI_COMM_WORLD, rank % 2, -rank, &halves) == MPI_SUCCESS);
  {
    MpiCommunicator ranks(halves);
    CHECK(ranks.size() == (size + 1 - rank % 2) / 2);
    const auto all = infty::gather(ranks, rank);  // falling
    for (std::size_t i = 0; i + 1 < all.size(); ++i) CHECK(all[i] == all[i + 1] + 2);
  }
  // What the user has is as it was.
  int there = -1;
  CHECK(MPI_Comm_size(halves, &there) == MPI_SUCCESS);
  CHECK(there == (size + 1 - rank % 2) / 2);
  MPI_Comm_free(&halves);
}

TEST_CASE("MpiCommunicator: ranks of which some are never given up are refused, all of them") {
  const int rank = world().rank(), size = world().size();
  const auto with_silence = [&](int never) {
    return MpiCommunicator({.silence = rank == never ? 0. : 7.});
  };
  if (size > 1) {
    CHECK_THROWS_WITH(with_silence(0),
                      Contains(rank == 0 ? "silence is 0, and on another rank above 0"
                                         : "silence is 7, and on another rank 0"));
    CHECK_THROWS_AS(with_silence(size - 1), infty::ValueError);
  }
  MpiCommunicator agreed = with_silence(rank);  // 0 on all
  CHECK(infty::any_rank(agreed, rank == size - 1));
  const MpiCommunicator moved = std::move(agreed);
  CHECK(agreed.size() == moved.size());
}

TEST_CASE("MpiCommunicator: refuses ranks that there are not, and settings that cannot be") {
  MpiCommunicator ranks = world();
  CHECK_THROWS_AS(ranks.send(ranks.size(), {}), infty::ValueError);
  CHECK_THROWS_AS(ranks.receive(ranks.rank(), {}), infty::ValueError);
  CHECK_THROWS_AS(ranks.broadcast({}, -1), infty::ValueError);
  CHECK_THROWS_AS(MpiCommunicator({.silence = -1}), infty::ValueError);
}

}  // namespace mpi_communicator_tests
