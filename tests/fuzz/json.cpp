// SPDX-License-Identifier: MIT
#include <algorithm>
#include <string>
#include <string_view>
#include <vector>

#include <nlohmann/json.hpp>

#include <infty/core/utf8.hpp>
#include <infty/io/json.hpp>

#include "fuzz/fuzz.hpp"

// Any bytes as JSON: our reader and nlohmann's take and refuse the same, and read the same. Ours
// knows objects, arrays, strings and unsigned integers only.

namespace infty::fuzz {

namespace {

using Json = nlohmann::json;
using detail::JsonReader;

struct TooDeep {};  // for the recursion of this target; the reader itself has none

Json take(JsonReader& json, int depth) {
  if (depth == 0) throw TooDeep{};
  switch (json.peek()) {
    case JsonReader::Kind::string:
      return json.string();
    case JsonReader::Kind::integer:
      return json.integer();
    case JsonReader::Kind::array: {
      Json out = Json::array();
      json.array([&] { out.push_back(take(json, depth - 1)); });
      return out;
    }
    case JsonReader::Kind::object:
      break;
  }
  Json out = Json::object();
  json.object([&](const std::string& key) { out[key] = take(json, depth - 1); });
  return out;
}

}  // namespace

void run(std::string_view bytes) {
  Json ours;
  bool ok = false;
  try {
    ok = accepted([&] {
      JsonReader json(bytes, "fuzz");
      ours = take(json, 200);
      json.finish();
    });
  } catch (TooDeep) {
    return;
  }
  bool in_subset = true;  // seen while parsing: a repeated key hides values from the result
  const auto see = [&](int, Json::parse_event_t event, const Json& value) {
    if (event == Json::parse_event_t::value)
      in_subset = in_subset && (value.is_string() || value.is_number_unsigned());
    return true;
  };
  // To nlohmann a zero byte is an end, and it leaves a byte order mark out; ours refuses both.
  if (bytes.find('\0') != bytes.npos || bytes.starts_with("\xEF\xBB\xBF"))
    return check(!ok, "a zero byte and a byte order mark are refused");
  const Json theirs = Json::parse(bytes, see, false);
  check(ok == (in_subset && !theirs.is_discarded()), "both take it or refuse it");
  if (!ok) return;
  check(ours == theirs, "both read the same");
  if (ours.is_string()) {
    const auto text = ours.get<std::string>();
    check(Json::parse(detail::to_json(text)) == ours, "to_json is read back");
    const std::string shown = detail::printable(text);
    const auto begins = [](char c) { return (static_cast<unsigned char>(c) & 0xC0U) != 0x80U; };
    check(std::count_if(shown.begin(), shown.end(), begins) <= 85, "what is printed is short");
    check(detail::utf8_prefix(shown) == shown.size(), "what is printed is UTF-8");
  }
}

std::vector<std::string> seeds() {
  return {R"( {"a": [0, 12, {}], "b": {"c": "d"}, "a": 18446744073709551615} )",
          R"("\u0041\u00e9\u20ac\ud83d\ude00\/\b\f\n\r\t\"\\)"
          "\xC3\xA9\xE2\x82\xAC\xF0\x9F\x98\x80\"",
          "[true, false, null, -1, 1.5e3]",
          "18446744073709551616",
          R"("\ud800")",
          "\"\xED\xA0\x80\""};
}

}  // namespace infty::fuzz
