// SPDX-License-Identifier: MIT
#pragma once

#include <filesystem>
#include <string>

#include "support/golden_armt.hpp"
#include "support/golden_delta.hpp"
#include "support/golden_engram.hpp"
#include "support/golden_gibbs.hpp"
#include "support/golden_gpt2.hpp"
#include "support/golden_gpt2_ltm.hpp"
#include "support/golden_infini.hpp"
#include "support/golden_ltm.hpp"
#include "support/golden_memformer.hpp"
#include "support/golden_memorizing.hpp"
#include "support/golden_memsizer.hpp"
#include "support/golden_mqar.hpp"
#include "support/golden_product_key.hpp"
#include "support/golden_retrieval.hpp"
#include "support/golden_titans.hpp"
#include "support/golden_tokens.hpp"
#include "support/golden_transformer_xl.hpp"

namespace infty::tests {

/// Replays a case of any kind in scalar T on backend B, telling the kind from what is in the file.
/// @throws infty::Error if the file is not a case, not whole, or of a kind that is not known
template <class T, class B = EigenBackend>
Comparison replay(const std::filesystem::path& path) {
  GoldenCase file(path);
  const std::string kind = file.text("kind", ""), model = file.text("model", "");
  if (kind == "mqar") return replay_mqar(file);
  if (kind == "engram") return replay_engram<T, B>(file);
  if (kind == "titans") return replay_titans<T, B>(file);
  if (kind == "infini") return replay_infini<T, B>(file);
  if (kind == "armt") return replay_armt<T, B>(file);
  if (kind == "armt_gpt2") return replay_armt_gpt2<T, B>(file);
  if (kind == "knnlm" || kind == "spalm" || kind == "cache") return replay_retrieval<T, B>(file);
  if (kind == "product_key") return replay_product_key<T, B>(file);
  if (kind == "delta_op" || kind == "delta_layer") return replay_delta<T, B>(file);
  if (kind == "gpt2") return replay_gpt2<T, B>(file);
  if (kind.starts_with("gpt2_ltm")) return replay_gpt2_ltm<T, B>(file);
  if (kind == "ltm_gibbs") return replay_gibbs<T, B>(file);
  if (kind.starts_with("memformer_")) return replay_memformer<T, B>(file);
  if (kind.starts_with("memsizer_")) return replay_memsizer<T, B>(file);
  if (kind.starts_with("memorizing_")) return replay_memorizing<T, B>(file);
  if (is_tokens_case(file)) return replay_tokens<T, B>(file);
  if (model == "lamemo") return replay_transformer_xl<LaMemo<T, B>>(file);
  if (model == "transformer-xl" ||
      (model.empty() && file.has("param.layers.0.dec_attn.qkv_net.weight")))
    return replay_transformer_xl<ShortTermMemory<T, B>>(file);
  if (!model.empty()) file.fail("model ", model, ", which is not a kind known here");
  if (file.has("param.proj_key.weight") && file.has("step0.new")) return replay_ltm<T, B>(file);
  file.fail("neither a long-term memory nor a Transformer-XL");
}

}  // namespace infty::tests
