// SPDX-License-Identifier: MIT
// What a layer's attention costs with each of the memories, or what stands in its place: 8 rows of
// 512 vectors of width 300, 6 heads of 50, behind 1,024 remembered vectors of all kinds; half of
// them compressed, four to one, or basis functions where a memory has such; slots and widths of
// features as in the papers. Forward without a tape, and forward and backward. LaMemo is the first
// layer of two: the past that it renews is counted with it.

#include <algorithm>

#include <infty/autograd/reduce.hpp>
#include <infty/autograd/shape.hpp>
#include <infty/memory/compressive_memory.hpp>
#include <infty/memory/delta_net.hpp>
#include <infty/memory/infini_attention.hpp>
#include <infty/memory/infty_memory.hpp>
#include <infty/memory/lamemo.hpp>
#include <infty/memory/memorizing_attention.hpp>
#include <infty/memory/memsizer_layer.hpp>
#include <infty/memory/no_memory.hpp>
#include <infty/model/presets/linear_attention.hpp>

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
  V x{normal<float>({batch, length, sizes.model_dim}), true};
  V past{normal<float>({batch, vectors, sizes.model_dim})};  // a LaMemo sees it in front
  typename M::State state = memory.make_state(batch, 0);

  explicit Attending(const typename M::Config& config) : memory(config, sizes, infty::Random(1)) {
    for (Index seen = 0; seen < 2 * vectors + length; seen += length) forward(false);
  }

  V forward(bool answer = true) {
    infty::Pass<float> pass{.answer = answer};
    if constexpr (requires { state.unseen; }) {
      pass.before = *std::max_element(state.held.begin(), state.held.end());
      return memory.forward(state, concat(narrow(past, vectors - pass.before, vectors), x), {},
                            pass);
    } else if constexpr (requires { memory.forward(state, x, pass); }) {
      return memory.forward(state, x, pass);
    } else {
      return memory.forward(state, x, {}, pass);
    }
  }
};

/// The constants of each.
template <class M>
typename M::Config config() {
  typename M::Config all;
  if constexpr (requires { all.memory; }) {
    all.attention.capacity = half;
    all.memory->basis = half;
  } else if constexpr (requires { all.compressed_capacity; }) {
    all.capacity = all.compressed_capacity = half;
  } else if constexpr (requires { all.capacity; }) {
    all.capacity = vectors;
  }
  return all;
}

template <class M>
void forward_of(benchmark::State& run, const typename M::Config& constants) {
  Attending<M> layer(constants);
  against_matrix_product<float>(run, layer.memory.flops(batch, length), [&] { layer.forward(); });
}

template <class M>
void forward_and_backward_of(benchmark::State& run, const typename M::Config& constants) {
  Attending<M> layer(constants);
  // Both factors of every product: an upper bound, since no gradient goes to what was remembered.
  against_matrix_product<float>(run, 3 * layer.memory.flops(batch, length), [&] {
    infty::Tape tape;
    tape.backward(infty::sum(layer.forward()));
  });
}

template <class M>
void forward(benchmark::State& run) {
  forward_of<M>(run, config<M>());
}

template <class M>
void forward_and_backward(benchmark::State& run) {
  forward_and_backward_of<M>(run, config<M>());
}

using None = infty::NoMemory<float>;
using ShortTerm = infty::ShortTermMemory<float>;
using Compressive = infty::CompressiveMemory<float>;
using LookAhead = infty::LaMemo<float>;
using Infty = infty::InftyMemory<float>;
using Memorizing = infty::MemorizingAttention<float>;
using Infini = infty::InfiniAttention<float>;
using Linear = infty::LinearAttention<float>;
using Delta = infty::DeltaNet<float>;
using GatedDelta = infty::GatedDeltaNet<float>;
using Slots = infty::MemSizer<float>;

void forward_rfa(benchmark::State& run) { forward_of<Linear>(run, infty::presets::rfa()); }
void forward_and_backward_rfa(benchmark::State& run) {
  forward_and_backward_of<Linear>(run, infty::presets::rfa());
}
void forward_t2r(benchmark::State& run) { forward_of<Linear>(run, infty::presets::t2r()); }
void forward_and_backward_t2r(benchmark::State& run) {
  forward_and_backward_of<Linear>(run, infty::presets::t2r());
}

}  // namespace

#define INFTY_MEMORY_BENCHMARK(Memory)         \
  BENCHMARK(forward<Memory>)->UseManualTime(); \
  BENCHMARK(forward_and_backward<Memory>)->UseManualTime()
INFTY_MEMORY_BENCHMARK(None);
INFTY_MEMORY_BENCHMARK(ShortTerm);
INFTY_MEMORY_BENCHMARK(Compressive);
INFTY_MEMORY_BENCHMARK(LookAhead);
INFTY_MEMORY_BENCHMARK(Infty);
INFTY_MEMORY_BENCHMARK(Memorizing);
INFTY_MEMORY_BENCHMARK(Infini);
INFTY_MEMORY_BENCHMARK(Linear);
INFTY_MEMORY_BENCHMARK(Delta);
INFTY_MEMORY_BENCHMARK(GatedDelta);
INFTY_MEMORY_BENCHMARK(Slots);
#undef INFTY_MEMORY_BENCHMARK
BENCHMARK(forward_rfa)->UseManualTime();
BENCHMARK(forward_and_backward_rfa)->UseManualTime();
BENCHMARK(forward_t2r)->UseManualTime();
BENCHMARK(forward_and_backward_t2r)->UseManualTime();
