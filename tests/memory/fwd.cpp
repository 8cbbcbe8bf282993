// SPDX-License-Identifier: MIT
// What users name is declared where its default arguments are, so that a header of theirs can name
// it without including it: all of this stands in front of any other header of the library.
#include <infty/memory/fwd.hpp>
#include <infty/model/fwd.hpp>
#include <infty/nn/fwd.hpp>

namespace forward_declared {

struct Named {
  infty::ShortTermMemory<float>* short_term;
  infty::NoMemory<float>* none;
  infty::CompressiveMemory<float>* compressive;
  infty::LongTermMemory<float>* long_term;
  infty::MixedMemory<infty::LongTermMemory<float>>* mixed;
  infty::LaMemo<float>* lamemo;
  infty::MemorizingAttention<float>* memorizing;
  infty::ProductKeyMemory<float>* product_keys;
  infty::InfiniAttention<float>* infini;
  infty::MemSizer<float>* memsizer;
  infty::MemSizerLayer<float>* memsizer_layer;
  infty::AssociativeMemory<float>* associative;
  infty::AssociativeLayer<infty::CausalAttention<float>>* associative_layer;
  infty::SlotWriter<float>* slot_writer;
  infty::GruSlotWriter<float>* gru_slot_writer;
  infty::JointSlots<float>* joint_slots;
  infty::LinearAttention<float>* linear;
  infty::DeltaNet<float>* delta_net;
  infty::GatedDeltaNet<float>* gated_delta_net;
  infty::Titans<float>* titans;
  infty::TitansMemory<float>* titans_memory;
  infty::UniformMemory<float>* uniform;
  infty::MemoryInFront<infty::CausalAttention<float>, infty::TitansMemory<float>>* in_front;
  infty::Engram<float>* engram;
  infty::WithEngram<infty::CausalAttention<float>>* with_engram;
  infty::MemoryTokens<infty::SelfAttention<float>>* tokens;
  infty::RecurrentTokens<infty::AnyLayer<float>>* recurrent;
  infty::TokensBehind<infty::AnyLayer<float>>* behind;
  infty::RenewedPast<infty::AnyLayer<float>>* renewed;
  infty::AnyTransformerLM<float>* any;
  infty::MemoryEncoderLayer<float>* encoder;
  infty::Pass<float>* pass;
};

}  // namespace forward_declared

#include <infty/memory/infini_attention.hpp>
#include <infty/memory/product_key_memory.hpp>

#include "support/catch.hpp"

TEST_CASE("fwd: what is declared is what is defined") {
  using infty::Index;
  forward_declared::Named named{};
  infty::ProductKeyMemory<float> keys({.sub_keys = 4, .k = 2, .key_dim = 4}, Index{4},
                                      infty::Random(1));
  named.product_keys = &keys;
  infty::InfiniAttention<float> infini({.segment = 2}, {.model_dim = 4, .heads = 2, .head_dim = 2});
  named.infini = &infini;
  CHECK(named.product_keys->config().slots() == 16);
  CHECK(named.infini->config().segment == 2);
}
