// SPDX-License-Identifier: MIT
#include <infty/memory/delta_net.hpp>
#include <infty/memory/gated_delta_net.hpp>
#include <infty/memory/infini_attention.hpp>
#include <infty/memory/linear_attention.hpp>
#include <infty/memory/memorizing_attention.hpp>
#include <infty/memory/memsizer.hpp>
#include <infty/memory/titans.hpp>

#include "support/catch.hpp"
#include "support/states.hpp"
#include "support/tensors.hpp"

namespace rules_of_tokens {

using infty::TokenRules;
using V = infty::Variable<double>;

/// A mixer that knows of no rules but the plain ones refuses others in words, and only where there
/// are tokens.
template <class Mixer>
void require_plain(const char* name, const typename Mixer::Config& config) {
  CAPTURE(name);
  const Mixer mixer(config, {.model_dim = 4, .heads = 2, .head_dim = 3}, infty::Random(1));
  infty::Random random(2);
  const V x(infty::tests::uniform_tensor<double>({1, 5, 4}, random));
  auto state = mixer.make_state(1);
  infty::Pass<double> first;
  mixer.forward(state, x, first);
  const auto held = infty::tests::numbers_of(state);
  const auto run = [&](infty::Pass<double> pass) {
    auto branch = state;
    return mixer.forward(branch, x, pass).value().to_vector();
  };
  for (const bool behind : {false, true})
    for (const TokenRules& rules : {TokenRules{.both_ways = true}, TokenRules{.read_past = false},
                                    TokenRules{.held = true}}) {
      infty::Pass<double> pass{.before = behind ? 0 : 2, .behind = behind ? 2 : 0, .tokens = rules};
      CHECK_THROWS_WITH(mixer.forward(state, x, pass),
                        Catch::Contains(std::string("[") + name + "]") &&
                            Catch::Contains("memory tokens have rules of their own"));
      CHECK(infty::tests::numbers_of(state) == held);
      CHECK(run({.tokens = rules}) == run({}));
    }
  CHECK_NOTHROW(run({.before = 2, .behind = 1}));
}

}  // namespace rules_of_tokens

TEST_CASE("TokenRules: mixers that know of none refuse what they would not keep to") {
  using namespace rules_of_tokens;
  require_plain<infty::LinearAttention<double>>("LinearAttention", {});
  require_plain<infty::DeltaNet<double>>("GatedDeltaNet", {});
  require_plain<infty::GatedDeltaNet<double>>("GatedDeltaNet", {});
  require_plain<infty::InfiniAttention<double>>("InfiniAttention", {.segment = 4});
  require_plain<infty::MemorizingAttention<double>>("MemorizingAttention", {.capacity = 8, .k = 2});
  require_plain<infty::MemSizer<double>>("MemSizer", {.slots = 3});
  require_plain<infty::Titans<double>>("Titans", {});
}
