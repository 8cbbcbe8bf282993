// SPDX-License-Identifier: MIT
#pragma once

#include <algorithm>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "../support/cells.hpp"
#include "../support/language_model/model.hpp"
#include "passage.hpp"

namespace memory_study {

using support::Below;
using support::Cells;
using support::kept_places;
using support::LongTermView;
using support::shares_before;
using support::Warp;

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
  Index until = 0;                   ///< behind the last input that has come to the memories
  std::vector<float> losses;         ///< of what comes behind each input
  /// The same where nothing is remembered but what the short-term memory holds.
  std::vector<float> losses_without;

  /// The first input that the memories hold: the one of the first cell.
  Index held() const { return until - cells.front().size(); }
};

/// A passage as a model read it from a fresh state.
struct Reading {
  Passage passage;
  std::vector<std::size_t> blocks;  ///< whose memories the views are of, from 0
  std::vector<SegmentRead> segments;

  /// The segment in which an input was read.
  const SegmentRead& segment_of(Index input) const {
    auto at = segments.begin();
    while (at + 1 != segments.end() && (at + 1)->first <= input) ++at;
    return *at;
  }
};

/// How a long-term memory moves what it has been told, and what stands in front of it.
struct MemoryKind {
  double tau = 0;
  bool sticky = false;
  Index bins = 1;       ///< of sticky samples
  Index points = 2;     ///< of a density of any shape
  Index threshold = 0;  ///< written vectors behind which a write clears what was; 0: never
  Index recent = 0;     ///< vectors of the short-term memory
};

/// Whether a model takes token types beside tokens; those that do have no short-term memory.
template <class Model>
inline constexpr bool takes_types =
    requires(const Model& model, typename Model::State& state, const std::vector<Index>& x) {
      model.look(state, x, x);
    };

/// Calls a model with a segment of a passage, and with its token types if it is one that has any.
/// @param call  call(tokens, types...)
template <class Model, class Call>
auto with_types(const Model&, const Passage& passage, const Piece& segment, Call&& call) {
  const auto tokens = Passage::part(passage.inputs, segment);
  if constexpr (takes_types<Model>)
    return call(tokens, Passage::part(passage.types, segment));
  else
    return call(tokens);
}

/// Reads a passage by a model with long-term memories, of these blocks. `done(tokens)` is called
/// behind each segment, with how many it had.
template <class Model, class Done>
Reading read_passage(const Model& model, const std::vector<std::size_t>& blocks,
                     const MemoryKind& kind, const Passage& passage, Done&& done) {
  Reading out{.passage = passage, .blocks = blocks, .segments = {}};
  auto state = model.make_state(1);
  std::vector<Cells> cells(blocks.size());
  Index until = passage.segments.front().begin;
  for (const Piece& piece : passage.segments) {
    const auto losses = [&](auto& from) {
      return with_types(model, passage, piece, [&](const auto&, const auto&... types) {
        return model.losses(from, passage.batch(piece), types...);
      });
    };
    SegmentRead segment;
    segment.first = piece.begin;
    auto branch = state, fresh = model.make_state(1);
    segment.losses = losses(branch);
    if constexpr (!takes_types<Model>)
      if (const Index before = std::min(kind.recent, piece.begin); before > 0)
        model.observe(fresh, 1, Passage::part(passage.inputs, {piece.begin - before, before}),
                      passage.segments.front().length);
    segment.losses_without = losses(fresh);
    segment.layers = with_types(model, passage, piece,
                                [&](const auto&... of) { return model.look(state, of...); });
    Index written = 0;
    for (std::size_t i = 0; i < segment.layers.size(); ++i) {
      LongTermView& view = segment.layers[i];
      view.density = shares_before(view.density, static_cast<std::size_t>(kind.points));
      const bool writes = !view.taken.empty();
      if (kind.threshold > 0 && writes && cells[i].size() >= kind.threshold) cells[i] = Cells();
      written = view.written - cells[i].size();
      if (written > 0)
        cells[i].write(written, kind.tau, kind.sticky ? Warp(view.locations, kind.bins) : Warp());
    }
    segment.cells = cells;
    segment.until = until += written;
    out.segments.push_back(std::move(segment));
    done(piece.length);
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
