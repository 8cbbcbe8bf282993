// SPDX-License-Identifier: MIT
#include <algorithm>
#include <cmath>
#include <memory>
#include <numeric>
#include <optional>

#include <infty/memory/product_key_memory.hpp>
#include <infty/memory/with_engram.hpp>

#include "parts.hpp"

namespace {

/// A feed that adds nothing, for blocks that only mix.
struct Nothing {
  using Scalar = float;
  using BackendType = infty::EigenBackend;
  using V = infty::Variable<float>;

  V forward(const V& x, infty::Pass<float>&) const {
    return V(infty::Tensor<float>::zeros(x.shape()));
  }
  template <class Visitor>
  void visit(Visitor&&) {}
};

}  // namespace

void support::add_feeds(const ModelConfig& config, AnyModel::Parts& parts) {
  // Where their authors have them: above the lower half of the layers.
  const Index d = config.transformer.model_dim, where = config.transformer.layers / 2;
  const Index n = config.sub_keys;
  if (config.feed == "none")
    parts.feed = [](Index, const infty::Random&) { return AnyPart(Nothing()); };
  if (has_product_keys(config.feed)) {
    infty::ProductKeyConfig feed{
        .sub_keys = n, .k = std::min<Index>(32, n), .key_dim = 2 * std::max<Index>(1, d / 4)};
    if (config.feed == "memory-plus") {
      feed.query_batch_norm = false;
      feed.key_bound = 1 / std::sqrt(static_cast<double>(feed.key_dim));
      feed.output = infty::ProductKeyOutput::silu_gated;
    }
    parts.feed = [=](Index i, infty::Random random) {
      return i == where ? AnyPart(infty::ProductKeyMemory<float>(feed, d, random)) : AnyPart();
    };
  }
  if (config.feed == "engram") {
    infty::EngramConfig engram{
        .pad = 0, .heads = 2, .width = d, .table_sizes = {n * n, n * n}, .layer = where};
    engram.lookup.resize(static_cast<std::size_t>(config.transformer.vocabulary));
    std::iota(engram.lookup.begin(), engram.lookup.end(), Index{0});
    parts.block = [=](Index i, AnyPart block, infty::Random random) {
      if (i != where) return block;
      return AnyPart(infty::WithEngram<AnyPart>(std::move(block), engram, d, random));
    };
  }
}
