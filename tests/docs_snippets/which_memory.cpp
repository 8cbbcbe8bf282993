// SPDX-License-Identifier: MIT
#include <iostream>
#include <sstream>
#include <string>
#include <vector>

#include <infty/memory/compressive_memory.hpp>
#include <infty/memory/infty_memory.hpp>
#include <infty/memory/lamemo.hpp>
#include <infty/memory/no_memory.hpp>
#include <infty/memory/short_term_memory.hpp>
#include <infty/model/transformer_lm.hpp>

#include "support/catch.hpp"

namespace {

/// The bytes of a row's state behind 1,024 tokens, which have been read by 64.
template <class Model>
void print_bytes(const char* name, const Model& model) {
  auto state = model.make_state(1);
  const auto segment = infty::Tensor<infty::Index>::zeros({1, 64});
  for (int i = 0; i < 8; ++i) model.observe(state, segment);
  const auto half_way = bytes_of(state);
  for (int i = 0; i < 8; ++i) model.observe(state, segment);
  CHECK(bytes_of(state) == half_way);
  std::cout << name << ' ' << bytes_of(state) << '\n';
}

}  // namespace

TEST_CASE("docs: each memory, the configuration that makes it, and its bytes") {
  std::ostringstream printed;
  auto* const before = std::cout.rdbuf(printed.rdbuf());

  const infty::TransformerConfig sizes{
      .vocabulary = 100, .model_dim = 64, .layers = 2, .heads = 4, .feed_forward = 128};
  const infty::LongTermConfig signal{.basis = 64, .widths = {.02, .1}, .samples = 128};
  infty::LongTermConfig sticky = signal;
  sticky.resampling = infty::Resampling::sticky;

  const infty::TransformerLM<infty::NoMemory<float>> none(sizes);
  const infty::TransformerLM<infty::ShortTermMemory<float>> xl(sizes, {.capacity = 128});
  const infty::TransformerLM<infty::CompressiveMemory<float>> compressive(
      sizes, {.capacity = 64, .compressed_capacity = 64, .rate = 4});
  const infty::TransformerLM<infty::LaMemo<float>> lamemo(sizes, {.capacity = 128});
  const infty::TransformerLM<infty::InftyMemory<float>> former(
      sizes, {.attention = {.capacity = 64, .stride = 1}, .memory = signal});
  const infty::TransformerLM<infty::InftyMemory<float>> sticky_former(
      sizes, {.attention = {.capacity = 64, .stride = 1}, .memory = sticky});

  print_bytes("NoMemory", none);
  print_bytes("ShortTermMemory", xl);
  print_bytes("CompressiveMemory", compressive);
  print_bytes("LaMemo", lamemo);
  print_bytes("InftyMemory", former);
  print_bytes("InftyMemory, sticky", sticky_former);

  std::cout.rdbuf(before);
  CHECK(printed.str() == R"(NoMemory 16
ShortTermMemory 65552
CompressiveMemory 67104
LaMemo 102440
InftyMemory 98928
InftyMemory, sticky 99952
)");
}
