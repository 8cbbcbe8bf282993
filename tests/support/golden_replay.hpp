// SPDX-License-Identifier: MIT
#pragma once

#include <filesystem>
#include <string>

#include "support/golden_delta.hpp"
#include "support/golden_ltm.hpp"
#include "support/golden_transformer_xl.hpp"

namespace infty::tests {

/// Replays a case of any kind in scalar T on backend B, telling the kind from what is in the file.
/// @throws infty::Error if the file is not a case, not whole, or of a kind that is not known
template <class T, class B = EigenBackend>
Comparison replay(const std::filesystem::path& path) {
  GoldenCase file(path);
  const std::string kind = file.text("kind", "");
  if (kind == "delta_op" || kind == "delta_layer") return replay_delta<T, B>(file);
  const std::string model = file.text("model", "");
  if (model == "lamemo") return replay_transformer_xl<LaMemo<T, B>>(file);
  if (model == "transformer-xl" ||
      (model.empty() && file.has("param.layers.0.dec_attn.qkv_net.weight")))
    return replay_transformer_xl<ShortTermMemory<T, B>>(file);
  if (!model.empty()) file.fail("model ", model, ", which is not a kind known here");
  if (file.has("param.proj_key.weight") && file.has("step0.new")) return replay_ltm<T, B>(file);
  file.fail("neither a long-term memory nor a Transformer-XL");
}

}  // namespace infty::tests
