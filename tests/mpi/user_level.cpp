// SPDX-License-Identifier: MIT
// user_level funneled|serialized: ranks whose program initialises MPI itself, for no more than
// that: one MpiCommunicator works, trains in buckets, and leaves MPI to the program.
#include <cstddef>
#include <cstdio>
#include <span>
#include <string>
#include <vector>

#include <infty/autograd/elementwise.hpp>
#include <infty/autograd/reduce.hpp>
#include <infty/mpi/communicator.hpp>
#include <infty/parallel/any_communicator.hpp>
#include <infty/parallel/shards.hpp>
#include <infty/train/adam.hpp>
#include <infty/train/shard_step.hpp>

namespace {

using infty::Index;
using infty::Variable;

struct Weights {
  Variable<float> all;

  template <class Visitor>
  void visit(Visitor&& see) {
    see("all", all);
  }
};

// What two steps in four shards make of five numbers, each sent by itself.
template <class C>
std::vector<float> trained(C& ranks) {
  Weights weights{Variable<float>(infty::Tensor<float>::full({5}, .5F), true)};
  infty::Adam<float> adam(weights);
  const infty::Shards shards(ranks, 4, infty::Reduction::tree, sizeof(float));
  for (int step = 0; step < 2; ++step)
    infty::train_step(adam, {}, shards, [&](Index shard) {
      const auto off = infty::scale(weights.all, static_cast<float>(shard + 1));
      return infty::sum(off * off);
    });
  return weights.all.value().to_vector();
}

bool works(bool serialized) {
  infty::MpiCommunicator mpi;
  infty::AnyCommunicator ranks(mpi), alone;
  const int next = (mpi.rank() + 1) % mpi.size();
  const int before = (mpi.rank() + mpi.size() - 1) % mpi.size();
  int out = mpi.rank(), in = -1;
  mpi.exchange(next, std::as_bytes(std::span(&out, 1)), before,
               std::as_writable_bytes(std::span(&in, 1)));
  double sum = mpi.rank();
  mpi.all_reduce(std::span<double>(&sum, 1));
  return mpi.any_thread() == serialized && in == before &&
         sum == mpi.size() * (mpi.size() - 1) / 2. && trained(ranks) == trained(alone);
}

}  // namespace

int main(int argc, char** argv) {
  const bool serialized = argc == 2 && std::string(argv[1]) == "serialized";
  const int wanted = serialized ? MPI_THREAD_SERIALIZED : MPI_THREAD_FUNNELED;
  int level = MPI_THREAD_SINGLE, ended = 1, rank = -1;
  MPI_Init_thread(&argc, &argv, wanted, &level);
  const bool well = works(serialized);
  MPI_Finalized(&ended);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Barrier(MPI_COMM_WORLD);
  MPI_Finalize();
  std::printf("rank %d: MPI gives level %d for %d, %s\n", rank, level, wanted,
              well ? "and all is well" : "and something is not well");
  return well && ended == 0 && level == wanted ? 0 : 1;
}
