// SPDX-License-Identifier: MIT
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdio>
#include <string>
#include <utility>
#include <vector>

#include "../support/dialogue/sequences.hpp"
#include "page.hpp"
#include "space.hpp"

// What a dialogue model looks at while something is said: in the document, and in what was said
// before.

namespace memory_study {

/// A dialogue as a passage, and whose each input is.
struct DialoguePassage {
  Passage passage;
  std::vector<Index> turn;  ///< which turn an input belongs to, with its mark; -1: the document
  std::vector<bool> said;   ///< whether the target of an input was said, and is no mark in front
  Index turns = 0;
};

/// The passage of a dialogue, cut from its end into chunks of so many tokens as in training.
inline DialoguePassage dialogue_passage(const dialogue::Encoded& from, Index chunk,
                                        const infty::DialogueMarks& marks) {
  const auto sequence = dialogue::sequence_of(from, from.turns.size(), {}, marks);
  const auto begin_of_turns = from.document.size() + 2;  // with both marks
  DialoguePassage out;
  out.turns = std::ssize(from.turns);
  Index turn = -1;
  std::size_t next = begin_of_turns;
  for (std::size_t i = 0; i + 1 < sequence.tokens.size(); ++i) {
    if (i == next) next += 1 + from.turns[static_cast<std::size_t>(++turn)].size();
    out.turn.push_back(turn);
    out.said.push_back(sequence.said[i + 1]);
    out.passage.inputs.push_back(static_cast<Index>(sequence.tokens[i]));
    out.passage.types.push_back(static_cast<Index>(sequence.types[i]));
    out.passage.targets.push_back(static_cast<Index>(sequence.tokens[i + 1]));
  }
  out.passage.segments = infty::cut_from_end(std::ssize(sequence.tokens), chunk);
  // One of one token is passed over, as in training; the last token is nobody's input.
  if (out.passage.segments.front().length < 2)
    out.passage.segments.erase(out.passage.segments.begin());
  --out.passage.segments.back().length;
  return out;
}

/// Where a layer's queries look while something is said, in shares of their attention, beside the
/// shares of the memory that what they look at has.
struct Looked {
  double document = 0, turns = 0, outside = 0;
  double document_space = 0, turns_space = 0;
  double queries = 0;
};

/// Of each layer, over all that was said behind a first write.
inline std::vector<Looked> looked_at(const std::vector<Reading>& readings,
                                     const std::vector<DialoguePassage>& dialogues) {
  std::vector<Looked> out(readings.front().blocks.size());
  for (std::size_t d = 0; d < readings.size(); ++d)
    for (const SegmentRead& segment : readings[d].segments) {
      const Index held = segment.held(), size = segment.cells.front().size();
      if (size == 0) continue;
      const auto& of_turn = dialogues[d].turn;
      const auto end = std::find_if(of_turn.begin(), of_turn.end(), [](Index t) { return t >= 0; });
      const Index document = std::clamp<Index>((end - of_turn.begin()) - held, 0, size);
      for (std::size_t layer = 0; layer < out.size(); ++layer) {
        const Cells& cells = segment.cells[layer];
        const LongTermView& view = segment.layers[layer];
        const double border = document > 0 ? cells.end(document - 1) : 0;
        const auto length = std::ssize(segment.losses);
        for (Index i = 0; i < queries_of(view); ++i) {
          if (!dialogues[d].said[static_cast<std::size_t>(segment.first + i % length)]) continue;
          const Below below = below_of(view, i);
          Looked& looked = out[layer];
          looked.document += below(border) - below(0);
          looked.turns += below(1) - below(border);
          looked.outside += below(0) + 1 - below(1);
          looked.document_space += border;
          looked.turns_space += 1 - border;
          looked.queries += 1;
        }
      }
    }
  return out;
}

inline std::string looked_csv(const std::vector<Looked>& all,
                              const std::vector<std::size_t>& blocks) {
  std::string out = "layer,document,document_space,turns,turns_space,outside\n";
  for (std::size_t i = 0; i < all.size(); ++i) {
    const Looked& x = all[i];
    out += std::to_string(blocks[i] + 1);
    for (const double share : {x.document, x.document_space, x.turns, x.turns_space, x.outside})
      out += ',' + number(share / x.queries);
    out += '\n';
  }
  return out;
}

/// A bar a layer, attention to the document and above it to turns, with a line at the share of the
/// memory that the document has.
inline std::string looked_figure(const std::vector<std::size_t>& blocks) {
  const auto [least, most] = std::minmax_element(blocks.begin(), blocks.end());
  return "set terminal pngcairo size 900,420 font 'sans,11'\nset output 'looked.png'\n"
         "set datafile separator ','\nset border 3\nset tics nomirror out\nset grid y lc "
         "'#e7e5e4'\nset title 'What each layer looks at while something is said'\n"
         "set xlabel 'layer'\nset ylabel 'share of attention'\nset yrange [0:1]\nset xtics 1\n"
         "set boxwidth .7\nset style fill solid .8 noborder\nset key outside right top Left "
         "reverse\nset xrange [" +
         number(static_cast<double>(*least) + .4) + ':' + number(static_cast<double>(*most) + 1.6) +
         "]\nplot 'looked.csv' skip 1 using 1:($2+$4) with boxes lc '#0891b2' title 'what was "
         "said', '' skip 1 using 1:2 with boxes lc '#c2410c' title 'the document', \\\n  '' skip "
         "1 using ($1-.35):3:(.7):(0) with vectors nohead lw 2.5 lc '#1c1917' title 'the "
         "space of the document'\n";
}

/// What was looked at while a turn was said: of each input, the mean share of attention over its
/// words, heads and layers, and those places that have most of it.
struct Answer {
  Index turn = 0;
  std::vector<double> attention;
  std::vector<Index> excerpts;  ///< first inputs of them
};

/// Of each turn that was said with something in the memory. @param words  of an excerpt
inline std::vector<Answer> answers_of(const Reading& reading, const DialoguePassage& from,
                                      Index words, std::size_t excerpts = 3) {
  std::vector<Answer> out;
  const auto length = std::ssize(from.passage.inputs);
  for (Index turn = 0; turn < from.turns; ++turn) {
    Answer answer{.turn = turn,
                  .attention = std::vector<double>(static_cast<std::size_t>(length)),
                  .excerpts = {}};
    double count = 0;
    for (const SegmentRead& segment : reading.segments) {
      const Index held = segment.held();
      for (Index i = 0; i < std::ssize(segment.losses) && segment.cells.front().size() > 0; ++i) {
        const auto at = static_cast<std::size_t>(segment.first + i);
        if (from.turn[at] != turn || !from.said[at]) continue;
        for (std::size_t layer = 0; layer < segment.layers.size(); ++layer) {
          const auto attention = word_attention(segment, layer, i);
          for (std::size_t j = 0; j < attention.size(); ++j)
            answer.attention[static_cast<std::size_t>(held) + j] += attention[j];
          ++count;
        }
      }
    }
    if (count == 0) continue;
    for (double& x : answer.attention) x /= count;
    std::vector<Phrase> all;
    double sum = 0;
    for (Index i = 0; i < length; ++i) {
      sum += answer.attention[static_cast<std::size_t>(i)];
      if (i >= words) sum -= answer.attention[static_cast<std::size_t>(i - words)];
      if (i + 1 >= words)
        all.push_back({.first = i + 1 - words, .plain = 0, .sticky = sum, .text = {}});
    }
    for (const Phrase& phrase : phrases_at_peaks(std::move(all), excerpts))
      answer.excerpts.push_back(phrase.first);
    out.push_back(std::move(answer));
  }
  return out;
}

}  // namespace memory_study
