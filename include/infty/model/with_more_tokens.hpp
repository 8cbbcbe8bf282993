// SPDX-License-Identifier: MIT
#pragma once

#include <map>
#include <string>

#include <infty/autograd/parameters.hpp>
#include <infty/core/checked.hpp>
#include <infty/core/random.hpp>
#include <infty/model/gpt2.hpp>

namespace infty {

/// Makes a GPT-2 that knows more tokens, behind those of another one: equal in all else, with
/// copies of all weights. The new rows of the embedding, and of a head of its own, are normal with
/// deviation .02, as GPT-2's are at first.
/// @param more    tokens, at least 0   @param random  draws the new rows
/// @throws infty::ValueError for fewer, or more than a vocabulary may have, and for a model
/// that was moved from
template <class Mixer>
Gpt2<Mixer> with_more_tokens(const Gpt2<Mixer>& model, Index more, Random random = Random(0)) {
  using V = typename Gpt2<Mixer>::V;
  require_at_least("with_more_tokens", "more", more, 0);
  detail::require_parameters("with_more_tokens", model);
  Gpt2Config config = model.config();
  require_sizes("with_more_tokens", {{"more", more}, {"model_dim", config.model_dim}});
  config.vocabulary += more;
  Gpt2<Mixer> larger(config, model.memory_config(), random);
  std::map<std::string, V> of_model;
  for_each_parameter(model,
                     [&](const std::string& name, const V& x) { of_model.emplace(name, x); });
  for_each_parameter(larger, [&](const std::string& name, V& to) {
    const V& from = of_model.at(name);
    V::BackendType::copy(to.value().data(), from.value().data(), from.size());
    to.set_requires_grad(from.requires_grad());
  });
  return larger;
}

}  // namespace infty
