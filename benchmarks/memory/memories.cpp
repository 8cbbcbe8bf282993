// SPDX-License-Identifier: MIT
// What a layer's attention costs with each of the memories: 8 rows of 512 vectors of width 300, 6
// heads of 50, behind 1,024 remembered vectors of all kinds; half of them compressed, four to one,
// or basis functions where a memory has such. Forward without a tape, and forward and backward.
// LaMemo is the first layer of two: the past that it renews is counted with it.

#include <infty/autograd/reduce.hpp>
#include <infty/memory/compressive_memory.hpp>
#include <infty/memory/lamemo.hpp>
#include <infty/memory/memory_pair.hpp>
#include <infty/memory/no_memory.hpp>

#include "../support/against.hpp"
#include "../support/tensors.hpp"

using namespace infty::bench;
using infty::Index;

namespace {

constexpr Index batch = 8, length = 512, vectors = 1024, half = vectors / 2;

template <class M>
struct Attending {
  using V = infty::Variable<float>;

  infty::AttentionSizes sizes;
  M memory;
  infty::RelativeAttention<float> attention{sizes.model_dim, sizes.heads, sizes.head_dim,
                                            infty::Random(2)};
  infty::BiasesOf<M> biases{sizes};
  V x{normal<float>({batch, length, sizes.model_dim}), true};
  infty::Tensor<float> encoding =
      infty::distance_encoding<float>(memory.reach() + length, sizes.model_dim);
  typename M::State state = memory.make_state(batch, 0);

  explicit Attending(const typename M::Config& config) : memory(config, sizes, infty::Random(1)) {
    for (Index seen = 0; seen < 2 * vectors + length; seen += length)
      memory.observe(state, segment());
  }

  infty::SegmentOf<M> segment() const { return {x, attention, nullptr, biases, encoding}; }
};

/// The constants of each.
template <class M>
typename M::Config config() {
  typename M::Config all;
  if constexpr (requires { all.long_term; }) {
    all.short_term.capacity = half;
    all.long_term->basis = half;
  } else if constexpr (requires { all.compressed_capacity; }) {
    all.capacity = all.compressed_capacity = half;
  } else if constexpr (requires { all.capacity; }) {
    all.capacity = vectors;
  }
  return all;
}

template <class M>
void forward(benchmark::State& run) {
  Attending<M> layer(config<M>());
  against_matrix_product<float>(run, layer.memory.flops(batch, length),
                                [&] { layer.memory.forward(layer.state, layer.segment()); });
}

template <class M>
void forward_and_backward(benchmark::State& run) {
  Attending<M> layer(config<M>());
  // Both factors of every product: an upper bound, since no gradient goes to what was remembered.
  against_matrix_product<float>(run, 3 * layer.memory.flops(batch, length), [&] {
    infty::Tape tape;
    tape.backward(infty::sum(layer.memory.forward(layer.state, layer.segment()).context));
  });
}

using None = infty::NoMemory<float>;
using ShortTerm = infty::ShortTermMemory<float>;
using Compressive = infty::CompressiveMemory<float>;
using LookAhead = infty::LaMemo<float>;
using Infty = infty::InftyMemory<float>;

}  // namespace

BENCHMARK(forward<None>)->UseManualTime();
BENCHMARK(forward<ShortTerm>)->UseManualTime();
BENCHMARK(forward<Compressive>)->UseManualTime();
BENCHMARK(forward<LookAhead>)->UseManualTime();
BENCHMARK(forward<Infty>)->UseManualTime();
BENCHMARK(forward_and_backward<None>)->UseManualTime();
BENCHMARK(forward_and_backward<ShortTerm>)->UseManualTime();
BENCHMARK(forward_and_backward<Compressive>)->UseManualTime();
BENCHMARK(forward_and_backward<LookAhead>)->UseManualTime();
BENCHMARK(forward_and_backward<Infty>)->UseManualTime();
