// SPDX-License-Identifier: MIT
#pragma once

#include <algorithm>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "../support/language_model/model.hpp"
#include "cells.hpp"

namespace memory_study {

using infty::TokenId;
using support::LongTermView;

/// Keeps as much of the documents as is scored in seconds.
inline void shorten(std::vector<std::string_view>& documents) {
  constexpr std::size_t most = 100000;
  std::size_t bytes = 0;
  for (std::size_t i = 0; i < documents.size(); ++i) {
    auto& text = documents[i];
    if (bytes + text.size() > most) {
      const double share = static_cast<double>(most - bytes) / static_cast<double>(text.size());
      text = text.substr(0, language_model::detail::cut_near(text, share));
      documents.resize(i + 1);
    }
    bytes += text.size();
  }
}

/// A segment as a model read it.
struct SegmentRead {
  Index first = 0;                   ///< its first input
  std::vector<LongTermView> layers;  ///< densities as `shares_before` keeps them
  std::vector<Cells> cells;          ///< of each layer's memory while the segment was read
  std::vector<float> losses;         ///< of what comes behind each input
  /// The same where nothing is remembered but what the short-term memory holds.
  std::vector<float> losses_without;
};

/// What a document is read as: the token in front of each of its own.
inline std::vector<Index> inputs_of(TokenId start, std::span<const TokenId> document) {
  std::vector<Index> inputs{static_cast<Index>(start)};
  for (const TokenId id : document) inputs.push_back(static_cast<Index>(id));
  inputs.pop_back();
  return inputs;
}

/// A document as a model read it from a fresh state. Input i is the token before `tokens[i]`.
struct Reading {
  std::vector<Index> inputs, tokens;
  std::vector<SegmentRead> segments;

  /// The segment in which an input was read.
  const SegmentRead& segment_of(Index input) const {
    auto at = segments.begin();
    while (at + 1 != segments.end() && (at + 1)->first <= input) ++at;
    return *at;
  }
};

/// Reads a document by a model with a long-term memory; `s` are its settings. `done(tokens)` is
/// called behind each segment, with how many it had.
template <class Done>
Reading read_document(const support::Model& model, const language_model::Settings& s, TokenId start,
                      std::span<const TokenId> document, Done&& done) {
  Reading out;
  out.inputs = inputs_of(start, document);
  for (const TokenId id : document) out.tokens.push_back(static_cast<Index>(id));
  const bool sticky = s.memory == "infty-sticky";
  const Index recent = s.memory_length - language_model::compressed_length(s);
  auto state = model.make_state(1);
  std::vector<Cells> cells(static_cast<std::size_t>(s.model.layers));
  const auto length = std::ssize(out.inputs);
  for (Index first = 0; first < length; first += s.segment) {
    const Index count = std::min<Index>(s.segment, length - first);
    infty::TextBatch batch{
        .batch = 1, .length = count, .inputs = {}, .targets = {}, .predicted = count, .reset = {}};
    batch.inputs.assign(out.inputs.begin() + first, out.inputs.begin() + first + count);
    batch.targets.assign(out.tokens.begin() + first, out.tokens.begin() + first + count);
    auto branch = state;
    SegmentRead segment;
    segment.first = first;
    segment.losses = model.losses(branch, batch);
    auto fresh = model.make_state(1);
    if (const Index before = std::min(recent, first); before > 0)
      model.observe(fresh, 1, {out.inputs.begin() + first - before, out.inputs.begin() + first},
                    s.segment);
    segment.losses_without = model.losses(fresh, batch);
    segment.layers = model.look(state, batch.inputs);
    for (std::size_t i = 0; i < segment.layers.size(); ++i) {
      LongTermView& view = segment.layers[i];
      view.density = shares_before(view.density, static_cast<std::size_t>(s.long_term.points));
      if (view.written > cells[i].size())
        cells[i].write(view.written - cells[i].size(), s.long_term.tau,
                       sticky ? Warp(view.locations, s.long_term.bins) : Warp());
    }
    segment.cells = cells;
    out.segments.push_back(std::move(segment));
    done(count);
  }
  return out;
}

/// How many queries of heads a segment's view has.
inline Index queries_of(const LongTermView& view) {
  return view.density.empty() ? std::ssize(view.mu)
                              : std::ssize(view.density) / static_cast<Index>(kept_places);
}

/// Where the query of a head looks, in a view that must outlive it.
inline Below below_of(const LongTermView& view, Index query) {
  const auto at = static_cast<std::size_t>(query);
  if (!view.density.empty())
    return Below(std::span(view.density).subspan(at * kept_places, kept_places));
  return {static_cast<double>(view.mu[at]), static_cast<double>(view.sigma[at])};
}

/// Attention by one query of a layer to each word in its memory, the mean over heads.
inline std::vector<double> word_attention(const SegmentRead& segment, std::size_t layer,
                                          Index query) {
  const LongTermView& view = segment.layers[layer];
  const Cells& cells = segment.cells[layer];
  const auto length = std::ssize(segment.losses);
  const Index heads = queries_of(view) / length;
  std::vector<double> out(static_cast<std::size_t>(cells.size()));
  for (Index head = 0; head < heads; ++head) {
    const Below below = below_of(view, head * length + query);
    for (Index word = 0; word < cells.size(); ++word)
      out[static_cast<std::size_t>(word)] += cells.mass(word, below) / static_cast<double>(heads);
  }
  return out;
}

/// The first, the middle and the last of so many layers.
inline std::vector<std::size_t> three_layers(Index layers) {
  std::vector<std::size_t> out;
  for (const Index layer : {Index{0}, layers / 2, layers - 1})
    if (out.empty() || out.back() != static_cast<std::size_t>(layer))
      out.push_back(static_cast<std::size_t>(layer));
  return out;
}

}  // namespace memory_study
