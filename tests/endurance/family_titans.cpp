// SPDX-License-Identifier: MIT
#include <infty/memory/memory_in_front.hpp>
#include <infty/memory/no_memory.hpp>
#include <infty/memory/short_term_memory.hpp>
#include <infty/memory/titans.hpp>
#include <infty/memory/with_memory.hpp>

#include "endurance/family.hpp"

namespace endurance {

void add_titans(Trials& trials) {
  using Attention = infty::ShortTermMemory<float>;
  using Stack = infty::Layers<infty::Block<Attention>>;
  using Memory = infty::TitansMemory<float>;
  // The steps of vectors that are learned at the same weights add up: together they must not be
  // longer than one step may be.
  const auto most = [](Index vectors) {
    return static_cast<double>(sizes.head_dim) / static_cast<double>(vectors);
  };
  const infty::TitansConfig chunks{.chunk = 16, .weights_every = 16, .max_rate = most(16)};
  add_mixer<infty::Titans<float>>(trials, "Titans", {}, 1e30);
  add_mixer<infty::Titans<float>>(trials, "Titans, chunks",
                                  {.chunk = 16, .weights_every = 64, .max_rate = most(64)}, 1,
                                  {Stream::gates});
  // Steps that add up to any length, each chunk's shortened.
  add_mixer<infty::Titans<float>>(trials, "Titans, bounded",
                                  {.chunk = 16, .weights_every = 64, .max_surprise = 1}, 1e30);
  infty::TitansConfig linear = chunks;
  linear.depth = 1;
  add_direct<Memory>(trials, "Titans memory, linear", linear, 1e30);
  add_body<infty::WithMemory<infty::NoMemory<float>, Memory>>(trials, "Titans beside attention",
                                                              {.memory = chunks});
  trials.push_back({"Titans in front", false, [=] {
                      return Layer(infty::MemoryInFront<Stack, Memory>(
                          stack_of(Attention({.capacity = 64}, sizes, Random(1))), chunks, 4,
                          sizes.model_dim, Random(3)));
                    }});
}

}  // namespace endurance
