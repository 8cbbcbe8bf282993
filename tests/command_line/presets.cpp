// SPDX-License-Identifier: MIT
#include <infty/io/settings.hpp>
#include <infty/model/settings.hpp>

#include "../../examples/support/language_model/model.hpp"
#include "../../examples/support/language_model/settings.hpp"
#include "support/catch.hpp"

TEST_CASE("language_model: a preset is whole in what a run keeps of its settings") {
  for (const auto& [name, settings] : language_model::presets()) {
    CAPTURE(name);
    const auto kept =
        support::settings_from<language_model::Settings>(support::to_json(settings), name);
    auto given = language_model::model_config(settings, 1000),
         again = language_model::model_config(kept, 1000);
    // Which a model takes from other settings: --compressed, and the memory's name.
    for (auto* const config : {&given, &again}) {
      config->long_term.basis = config->compressed;
      config->long_term.resampling = infty::Resampling::even;
    }
    CHECK(infty::settings_json(given.long_term) == infty::settings_json(again.long_term));
    CHECK(infty::settings_json(given.transformer) == infty::settings_json(again.transformer));
    CHECK(given.memory_length == again.memory_length);
    CHECK(given.compressed == again.compressed);
  }
}
