// SPDX-License-Identifier: MIT
#include <array>
#include <limits>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <infty/core/config.hpp>
#include <infty/io/settings.hpp>

#include "support/catch.hpp"

namespace {

enum class Colour { red, dark_blue };

constexpr std::array<std::string_view, 2> names_of(Colour) { return {"red", "dark_blue"}; }

struct Inner {
  double tau = .5;
  std::vector<double> widths{.01, 2};
};

template <class See>
void describe(Inner& c, See&& see) {
  see("tau", c.tau, "a share");
  see("widths", c.widths, "of functions");
}

struct Outer {
  infty::Index size = -3;
  bool gate = true;
  Colour colour = Colour::dark_blue;
  std::string text = "a \"word\"";
  Inner inner;
  std::optional<Inner> none, some = Inner{.tau = 1e-30, .widths = {}};
};

template <class See>
void describe(Outer& c, See&& see) {
  see("size", c.size, "of it");
  see("gate", c.gate, "or not");
  see("colour", c.colour, "of it");
  see("text", c.text, "any");
  see("inner", c.inner, "its part");
  see("none", c.none, "no part");
  see("some", c.some, "a part");
}

std::string message_of(std::string_view there, std::string_view asked) {
  try {
    infty::require_same_settings(there, asked, "run.safetensors");
  } catch (const infty::IoError& error) {
    return error.what();
  }
  return "";
}

}  // namespace

TEST_CASE("settings_json: what is described, in its order") {
  CHECK(infty::settings_json(Outer{}) ==
        R"({"size":-3,"gate":true,"colour":"dark_blue","text":"a \"word\"",)"
        R"("inner":{"tau":0.5,"widths":[0.01,2]},"none":null,"some":{"tau":1e-30,"widths":[]}})");
  // As short as it can be read back.
  CHECK(infty::settings_json(0.1 + 0.2) == "0.30000000000000004");
  CHECK(infty::settings_json(std::numeric_limits<std::uint64_t>::max()) == "18446744073709551615");
  static_assert(!infty::Described<std::string> && !infty::Described<double>);
}

TEST_CASE("each_setting_of: names of inner settings, of what is there") {
  Outer config;
  std::string names;
  infty::each_setting_of(config, [&](const std::string& name, auto&, const std::string& help) {
    names += name + '=' + help + ';';
  });
  CHECK(names ==
        "size=of it;gate=or not;colour=of it;text=any;inner.tau=a share;"
        "inner.widths=of functions;some.tau=a share;some.widths=of functions;");
}

TEST_CASE("settings_table: a row for each") {
  CHECK(infty::settings_table(Inner{}) ==
        "| setting | default | |\n|---|---|---|\n| `tau` | 0.5 | a share |\n"
        "| `widths` | [0.01,2] | of functions |\n");
  CHECK(infty::settings_table(Outer{}).find(
            "| `colour` | dark_blue | of it: `red`, `dark_blue` |\n") != std::string::npos);
}

TEST_CASE("name_of, value_of: there and back, and nothing else") {
  CHECK(infty::name_of(Colour::red) == "red");
  CHECK(infty::value_of<Colour>("dark_blue") == Colour::dark_blue);
  CHECK_THROWS_WITH(infty::value_of<Colour>("blue\n"),
                    "[value_of] there is no 'blue?': there are red, dark_blue");
  CHECK_THROWS_AS(infty::name_of(static_cast<Colour>(7)), infty::ValueError);
}

TEST_CASE("require_same_settings: the first difference, by name") {
  const std::string same = infty::settings_json(Outer{});
  CHECK(message_of(same, same) == "");
  CHECK(message_of(R"( {"b" : [1, {"c":null}], "a":1} )", R"({"a":1,"b":[1, {"c":null}]})") == "");
  Outer other;
  other.inner.tau = .25;
  const std::string message = message_of(same, infty::settings_json(other));
  CHECK(message.find("[settings] run.safetensors has inner '{\"tau\":0.5") == 0);
  CHECK(message.find("0.25") != std::string::npos);
  CHECK(message_of("{}", R"({"steps":3})") ==
        "[settings] run.safetensors lacks the setting 'steps'");
  CHECK(message_of(R"({"steps":3,"x":1})", R"({"steps":3})") ==
        "[settings] run.safetensors has the unknown setting 'x'");
  // What is newer than the file, by what it was before it could be set.
  const auto older = [](const char* asked) {
    return [asked] {
      infty::require_same_settings(R"({"steps":3})", asked, "run.safetensors",
                                   R"({"products":"float32","y":1})");
    };
  };
  CHECK_NOTHROW(older(R"({"steps":3,"products":"float32"})")());
  CHECK_THROWS_WITH(older(R"({"steps":3,"products":"bfloat16"})")(),
                    "[settings] run.safetensors has products '\"float32\"', and \"bfloat16\" is "
                    "asked for");
  CHECK_THROWS_AS(older(R"({"steps":3,"z":1})")(), infty::IoError);
  CHECK(message_of("[]", "{}").find("[json] run.safetensors: settings: byte 0") == 0);
  CHECK(message_of(R"({"a":1} 2)", "{}").find("something follows") != std::string::npos);
}
