// SPDX-License-Identifier: MIT
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdio>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include <nlohmann/json.hpp>

#include <infty/core/utf8.hpp>

#include "../support/html.hpp"
#include "store_source.hpp"

namespace language_model {

/// A neighbour of a place in a text.
struct ShownNeighbour {
  double weight = 0;
  StoreSource::Context context;
};

/// A word of a text, how it was predicted, and by what.
struct ShownWord {
  std::string text;
  double model = 0, neighbours = 0, mixed = 0;  ///< its probabilities
  std::vector<ShownNeighbour> nearest;
};

namespace detail {

inline constexpr std::string_view page_style =
    "body { font: 16px/1.75 Georgia, serif; color: #1c1917; margin: 2em; display: grid;\n"
    "  grid-template-columns: minmax(20em, 1fr) minmax(20em, 1fr); gap: 2em }\n"
    "h1 { font-size: 1.4em }\nheader { grid-column: 1 / -1; font: 14px/1.5 sans-serif; color: "
    "#57534e }\nheader h1 { color: #1c1917 }\n"
    "main span { padding: .12em .05em; border-radius: .2em; cursor: pointer }\n"
    "main span:hover, main span:focus { outline: 1px solid #1d4ed8 }\n"
    "main span.shown { outline: 2px solid #1d4ed8 }\n"
    "aside { position: sticky; top: 1em; align-self: start; max-height: 95vh; overflow-y: auto;\n"
    "  font: 14px/1.5 sans-serif }\n"
    "aside table { border-collapse: collapse; width: 100% }\n"
    "aside td { border-top: 1px solid #e7e5e4; padding: .4em; vertical-align: top }\n"
    "aside td:first-child { white-space: nowrap; text-align: right }\n"
    "aside b { color: #c2410c }\naside small { color: #57534e; overflow-wrap: anywhere }\n"
    "@media (max-width: 50em) { body { display: block } aside { position: static } }\n";

// Whatever comes from a text or from a file's name becomes a text node.
inline constexpr std::string_view page_script =
    R"js(const data = JSON.parse(document.getElementById('data').textContent);
const panel = document.getElementById('neighbours');
const words = document.querySelectorAll('main span');
let pinned = -1;
function element(name, text, parent) {
  const made = document.createElement(name);
  made.textContent = text;
  parent.append(made);
  return made;
}
function show(i) {
  const word = data.words[i];
  words.forEach((span, j) => span.classList.toggle('shown', i === j));
  panel.replaceChildren();
  element('h2', word.text.trim() || '(space)', panel);
  element('p', 'probability ' + word.mixed.toPrecision(3) + ': the model gives '
    + word.model.toPrecision(3) + ', the neighbours ' + word.neighbours.toPrecision(3), panel);
  const table = element('table', '', panel);
  for (const one of word.nearest) {
    const row = element('tr', '', table);
    element('td', (100 * one.weight).toFixed(1) + ' %', row);
    const cell = element('td', '', row);
    element('span', one.before + ' ', cell);
    element('b', one.token.trim() || JSON.stringify(one.token), cell);
    element('span', ' ' + one.after, cell);
    element('br', '', cell);
    element('small', data.files[one.file] + ', byte ' + one.offset, cell);
  }
}
function pin(i) {
  pinned = i;
  if (i >= 0) show(i);
}
function fromAddress() {
  const i = Number((location.hash.match(/^#w(\d+)$/) || [])[1]);
  pin(i < words.length ? i : -1);
}
words.forEach((span, i) => {
  span.addEventListener('mouseenter', () => { if (pinned < 0) show(i); });
  span.addEventListener('focus', () => { if (pinned < 0) show(i); });
  span.addEventListener('click', () => pin(pinned === i ? -1 : i));
  span.addEventListener('keydown', (event) => { if (event.key === 'Enter') span.click(); });
});
window.addEventListener('hashchange', fromAddress);
fromAddress();
)js";

/// Whether these bytes are the beginning of a UTF-8 sequence that goes on.
inline bool begins_character(std::string_view bytes) {
  const auto byte = [&](std::size_t i) { return static_cast<unsigned char>(bytes[i]); };
  if (bytes.empty() || byte(0) < 0xc2 || byte(0) > 0xf4) return false;
  const std::size_t length = byte(0) < 0xe0 ? 2 : byte(0) < 0xf0 ? 3 : 4;
  for (std::size_t i = 1; i < bytes.size(); ++i)
    if (byte(i) >> 6 != 2) return false;
  return bytes.size() < length;
}

}  // namespace detail

/// A page of its own, without any other file, that shows a text: behind each word are the
/// neighbours by which it was predicted, with what stands around each, its weight, file and place.
/// A word that they made likelier is green, one that they made less likely orange. A character
/// whose bytes are of several words stands in the last of them.
/// @param said   lines about the model and the datastore
inline std::string neighbours_page(const std::vector<ShownWord>& words,
                                   const std::vector<std::string>& said) {
  nlohmann::json data = {{"words", nlohmann::json::array()}, {"files", nlohmann::json::array()}};
  std::map<std::string, std::size_t> files;
  std::string text, bytes;  // of a character that the next word ends
  for (std::size_t i = 0; i < words.size(); ++i) {
    const ShownWord& word = words[i];
    auto nearest = nlohmann::json::array();
    for (const ShownNeighbour& one : word.nearest) {
      const auto [at, fresh] = files.emplace(one.context.place.file, files.size());
      if (fresh) data["files"].push_back(one.context.place.file);
      nearest.push_back({{"weight", one.weight},
                         {"before", one.context.place.before},
                         {"token", one.context.token},
                         {"after", one.context.place.after},
                         {"file", at->second},
                         {"offset", one.context.place.offset}});
    }
    data["words"].push_back({{"text", word.text},
                             {"model", word.model},
                             {"neighbours", word.neighbours},
                             {"mixed", word.mixed},
                             {"nearest", std::move(nearest)}});
    const double gain = word.mixed - word.model;
    char style[120];
    std::snprintf(style, sizeof style,
                  "<span tabindex=\"0\" id=\"w%zu\" style=\"background:rgba(%s,%.2f)\">", i,
                  gain > 0 ? "22,163,74" : "234,88,12", std::min(.8, 2 * std::abs(gain)));
    bytes += word.text;
    std::size_t shown = infty::detail::utf8_prefix(bytes);
    if (i + 1 == words.size() || !detail::begins_character(bytes.substr(shown)))
      shown = bytes.size();
    text += style + support::html_escaped(bytes.substr(0, shown)) + "</span>";
    bytes.erase(0, shown);
  }
  std::string out =
      "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n<meta "
      "name=\"viewport\" content=\"width=device-width\">\n<title>What was looked up</title>\n"
      "<style>\n" +
      std::string(detail::page_style) + "</style>\n</head>\n<body>\n<header>\n" +
      "<h1>What was looked up for each word</h1>\n";
  for (const std::string& line : said) out += "<p>" + support::html_escaped(line) + "</p>\n";
  return out +
         "<p>Point at a word for its neighbours; a click keeps them. Green: they made the word "
         "likelier; orange: less likely.</p>\n</header>\n<main>" +
         text + "</main>\n<aside id=\"neighbours\"></aside>\n" +
         "<script type=\"application/json\" id=\"data\">" + support::json_in_html(data) +
         "</script>\n<script>\n" + std::string(detail::page_script) +
         "</script>\n</body>\n</html>\n";
}

}  // namespace language_model
