// SPDX-License-Identifier: MIT
#include <cstddef>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <map>
#include <sstream>
#include <string>
#include <utility>

#include <infty/model/settings.hpp>

#include "support/catch.hpp"

namespace {

namespace fs = std::filesystem;

/// Becomes whatever a field is.
struct AnyField {
  std::size_t index;
  template <class Field>
  operator Field() const;
};

template <class C, std::size_t... I>
constexpr bool made_of(std::index_sequence<I...>) {
  return requires { C{AnyField{I}...}; };
}

/// How many fields an aggregate has.
template <class C, std::size_t Count = 40>
constexpr std::size_t fields_of() {
  if constexpr (made_of<C>(std::make_index_sequence<Count>{}))
    return Count;
  else
    return fields_of<C, Count - 1>();
}

template <class C>
std::size_t settings_of() {
  C config;
  std::size_t count = 0;
  describe(config, [&](const char*, const auto&, const char*) { ++count; });
  return count;
}

/// Whether every setting is a field of its own with a name of its own and a word on it.
template <class C>
bool distinct() {
  C config;
  std::map<std::string, const void*> names;
  std::map<const void*, std::string> fields;
  bool good = true;
  describe(config, [&](const char* name, const auto& field, const char* help) {
    good = good && names.emplace(name, &field).second && fields.emplace(&field, name).second;
    good = good && !std::string(help).empty();
  });
  return good;
}

template <class C>
std::string section(const char* name, const char* header) {
  return std::string("\n## ") + name + "\n\n`infty/" + header + "`\n\n" +
         infty::settings_table(C{});
}

std::string page() {
  return "# Configurations\n\n"
         "Every setting of every configuration, and its default. This page is made of the lists "
         "in\n"
         "`infty/model/settings.hpp`, from which come the programs' options and the settings in\n"
         "checkpoints, too. What the experiments of the papers set is in "
         "[settings.md](settings.md); "
         "what a\nsetting may be, and what it does, stands beside it in the header.\n" +
         section<infty::TransformerConfig>("TransformerConfig", "model/transformer_config.hpp") +
         section<infty::LongTermConfig>("LongTermConfig", "memory/long_term_config.hpp") +
         section<infty::ShortTermConfig>("ShortTermConfig", "memory/short_term_memory.hpp") +
         section<infty::CompressiveConfig>("CompressiveConfig", "memory/compressive_memory.hpp") +
         section<infty::LaMemoConfig>("LaMemoConfig", "memory/lamemo_config.hpp") +
         section<infty::TrainerConfig>("TrainerConfig", "train/trainer_config.hpp") +
         section<infty::Sampling>("Sampling", "nn/sampling.hpp");
}

}  // namespace

TEMPLATE_TEST_CASE("settings: every field of a configuration is described, once", "",
                   infty::TransformerConfig, infty::LongTermConfig, infty::ShortTermConfig,
                   infty::CompressiveConfig, infty::LaMemoConfig, infty::AdamConfig,
                   infty::TrainerConfig, infty::Sampling) {
  CHECK(settings_of<TestType>() == fields_of<TestType>());
  CHECK(distinct<TestType>());
}

TEST_CASE("settings: what is there of a memory and a long-term memory") {
  infty::InftyConfig config;
  config.memory->tau = .25;
  CHECK(infty::settings_json(config).find("\"tau\":0.25") != std::string::npos);
  config.memory.reset();
  CHECK(infty::settings_json(config) ==
        R"({"attention":{"capacity":1024,"stride":0},"memory":null})");
}

TEST_CASE("settings: the names of values are theirs") {
  CHECK(infty::name_of(infty::DensityParameters::moments) == "moments");
  CHECK(infty::name_of(infty::Resampling::sticky_quantiles) == "sticky_quantiles");
  CHECK(infty::name_of(infty::Compression::most_used) == "most_used");
  CHECK(infty::name_of(infty::ReconstructionLoss::auto_encoding) == "auto_encoding");
  CHECK(infty::name_of(infty::LaMemoPositions::transformer_xl) == "transformer_xl");
  CHECK(infty::name_of(infty::RateSchedule::constant) == "constant");
  CHECK(infty::name_of(infty::RateSchedule::linear) == "linear");
}

// INFTY_WRITE_DOCS=1 writes the page instead.
TEST_CASE("settings: docs/configuration.md is made of these lists") {
  const fs::path path = fs::path(INFTY_TEST_DATA).parent_path() / "docs/configuration.md";
  if (std::getenv("INFTY_WRITE_DOCS")) std::ofstream(path) << page();
  std::ostringstream there;
  there << std::ifstream(path).rdbuf();
  CHECK(there.str() == page());
}
