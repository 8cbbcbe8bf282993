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
  const Index d = config.transformer.model_dim, n = config.sub_keys;
  const auto is_there = [where = config.lookups.blocks(config.transformer.layers)](Index layer) {
    return std::find(where.begin(), where.end(), layer) != where.end();
  };
  if (config.feed == "none")
    parts.feed = [](Index, const infty::Random&) { return AnyPart(Nothing()); };
  if (has_product_keys(config.feed)) {
    const Index slots = config.lookups.slots;
    infty::ProductKeyConfig feed{.sub_keys = n,
                                 .heads = config.lookups.heads,
                                 .k = slots > 0 ? slots : std::min<Index>(32, n),
                                 .key_dim = 2 * std::max<Index>(1, d / 4),
                                 .query_batch_norm = config.lookups.norm};
    if (config.feed == "memory-plus") {
      feed.query_batch_norm = false;
      feed.key_bound = 1 / std::sqrt(static_cast<double>(feed.key_dim));
      feed.output = infty::ProductKeyOutput::silu_gated;
    }
    // The layers of memory-plus have one table, those of product-keys one each.
    using Lookup = infty::ProductKeyMemory<float>;
    const bool shared = config.feed == "memory-plus";
    parts.feed = [=, first = std::optional<Lookup>()](Index i, infty::Random random) mutable {
      if (!is_there(i)) return AnyPart();
      if (shared && first) return AnyPart(first->sibling(random));
      first.emplace(feed, d, random);
      return AnyPart(*first);
    };
  }
  if (config.feed == "engram") {
    infty::EngramConfig engram{.pad = 0, .heads = 2, .width = d, .table_sizes = {n * n, n * n}};
    engram.lookup.resize(static_cast<std::size_t>(config.transformer.vocabulary));
    std::iota(engram.lookup.begin(), engram.lookup.end(), Index{0});
    parts.block = [=](Index i, AnyPart block, infty::Random random) mutable {
      if (!is_there(i)) return block;
      engram.layer = i;
      return AnyPart(infty::WithEngram<AnyPart>(std::move(block), engram, d, random));
    };
  }
}
