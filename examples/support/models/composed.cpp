// SPDX-License-Identifier: MIT
#include <infty/nn/with_places.hpp>
#include <infty/retrieval/spalm.hpp>

#include "model_of.hpp"
#include "parts.hpp"

std::unique_ptr<support::Model> support::make_composed(const ModelConfig& config) {
  infty::require(config.mixer == "attention" || config.memory == "none", "make_model", "--mixer ",
                 config.mixer,
                 " stands in the place of attention and its memory: it wants --memory "
                 "none, not ",
                 config.memory);
  Mixers mixers;
  for (const auto& choose : {attention_mixers, contracted_mixers, slot_mixers, linear_mixers})
    if (!mixers.make && (config.mixer == "attention") == (choose != linear_mixers))
      mixers = choose(config);
  infty::require(mixers.make != nullptr, "make_model", "--memory ", config.memory, ", --mixer ",
                 config.mixer, ", --feed ", config.feed, ", --tokens ", config.tokens,
                 is_infty(config.memory) ? ", --contraction " + config.contraction.name : "",
                 " do not go together");
  AnyModel::Parts parts{.mixer = std::move(mixers.make), .around = std::move(mixers.around)};
  add_feeds(config, parts);
  add_tokens(config, parts);
  if (config.positions != "none")
    add_around(parts, [](AnyPart stack, infty::Random) {
      return AnyPart(infty::WithPlaces<AnyPart>(std::move(stack)));
    });
  if (config.spalm) return std::make_unique<ModelOf<infty::Spalm<AnyModel>>>(config, parts);
  return std::make_unique<ModelOf<AnyModel>>(config, parts);
}
