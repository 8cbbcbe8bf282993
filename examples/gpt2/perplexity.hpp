// SPDX-License-Identifier: MIT
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <filesystem>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "../support/csv.hpp"
#include "../support/decimal.hpp"
#include "../support/files.hpp"
#include "../support/interrupt.hpp"
#include "../support/kept_weights.hpp"
#include "../support/lock.hpp"
#include "results.hpp"

// Perplexity by a window that slides over a text, as people report it of GPT-2: every token but the
// first is predicted once, from the tokens of the window in front of it; the first of a window that
// does not overlap the one before has none there, and is not predicted. A window longer than the
// model's places, or its memory's segments, is read segment by segment behind a fresh memory, so
// that the same figure says what a memory adds to a context.

namespace gpt2 {

struct PerplexityOptions {
  std::filesystem::path model, out;
  std::string weights = "float32";
  std::vector<std::string> text;
  Index stride = 0, batch = 8, most = 0;
  std::vector<Index> contexts;
};

/// A part of a document: it is read from `begin` to `end`, and its tokens from `scored` on count.
struct Window {
  Index begin = 0, scored = 0, end = 0;
};

/// The windows of all documents: of `length` tokens, the first of a document from its beginning on,
/// each `stride` behind the one before. With a stride as long as they are, the first token of each
/// counts in none.
inline std::vector<Window> windows_of(const infty::TokenStream& stream, Index length,
                                      Index stride) {
  std::vector<Window> all;
  for (std::size_t i = 0; i < stream.documents.size(); ++i) {
    const Index first = stream.documents[i];
    const Index last =
        i + 1 < stream.documents.size() ? stream.documents[i + 1] : std::ssize(stream.tokens);
    for (Index begin = first, scored = first + 1; scored < last; begin += stride) {
      const Index end = std::min(begin + length, last);
      if (end > scored) all.push_back({begin, std::max(scored, begin + 1), end});
      scored = std::max(scored, end);
    }
  }
  return all;
}

/// Adds what windows of one length lose, which are read side by side.
/// @param first  the number of the first one: what a memory draws goes by it
inline void add_windows(const Model& model, const infty::TokenStream& stream,
                        std::span<const Window> windows, Index first, infty::TextScore& score) {
  const auto rows = static_cast<Index>(windows.size());
  // Without a memory a segment sees nothing in front of itself: it is as long as can be.
  const bool remembers = model.memory().memory != "none";
  const Index inputs = windows[0].end - windows[0].begin - 1,
              segment = remembers ? model.memory().segment : model.config().places;
  Model::State state = model.make_state(rows, first);
  // The last segment is whole, and the first has what is left.
  for (Index at = 0; at < inputs;) {
    const Index left = inputs - at, length = left % segment > 0 ? left % segment : segment;
    infty::TextBatch batch{
        .batch = rows, .length = length, .inputs = {}, .targets = {}, .reset = {}};
    for (const Window& window : windows)
      for (Index i = window.begin + at; i < window.begin + at + length; ++i) {
        const bool counts = i + 1 >= window.scored;
        batch.inputs.push_back(stream.tokens[static_cast<std::size_t>(i)]);
        batch.targets.push_back(counts ? stream.tokens[static_cast<std::size_t>(i + 1)]
                                       : infty::ignore_index);
        batch.predicted += counts ? 1 : 0;
      }
    if (batch.predicted > 0)
      score.add(batch, model.losses(state, batch));
    else
      model.observe(state, rows, batch.inputs);
    at += length;
  }
}

/// The score of a text by windows of `context` tokens.
inline infty::TextScore windowed_score(const Model& model, const infty::TokenStream& stream,
                                       Index context, Index stride,
                                       const PerplexityOptions& options) {
  const auto windows = windows_of(stream, context, stride);
  infty::require(!windows.empty(), "gpt2", "the text is too short: it has no token to predict");
  support::ProgressLine line("context " + std::to_string(context), std::ssize(windows), 0,
                             "window");
  infty::TextScore score;
  for (std::size_t begin = 0; begin < windows.size();) {
    const auto length = [&](std::size_t i) { return windows[i].end - windows[i].begin; };
    std::size_t end = begin + 1;
    while (end < windows.size() && end - begin < static_cast<std::size_t>(options.batch) &&
           length(end) == length(begin))
      ++end;
    add_windows(model, stream, std::span(windows).subspan(begin, end - begin),
                static_cast<Index>(begin), score);
    begin = end;
    line.update(static_cast<Index>(end));
    support::stop_if_interrupted(
        [] { return std::string("stopped evaluating; nothing is kept of it"); });
  }
  return score;
}

/// The windows that are asked for, tokens and stride each: all are checked before one is read.
/// Throws infty::ValueError for one that cannot be.
inline std::vector<std::pair<Index, Index>> asked_windows(const PerplexityOptions& options,
                                                          const Model& model) {
  const Index places = model.config().places;
  std::vector<std::pair<Index, Index>> all;
  for (const Index context : options.contexts.empty() ? std::vector{places} : options.contexts) {
    infty::require(context >= 2, "gpt2", "--contexts has ", context, ": each must be at least 2");
    infty::require(model.memory().memory != "none" || context <= places, "gpt2", "--contexts has ",
                   context, ": without a memory the model sees ", places, " tokens");
    const Index stride = options.stride > 0 ? options.stride : (context + 1) / 2;
    infty::require(stride <= context, "gpt2", "--stride is ", stride,
                   ": it must be at most the context, ", context);
    all.emplace_back(context, stride);
  }
  return all;
}

/// Scores a text by windows of one or several lengths; a table, and a figure if there is a folder
/// for it.
inline void perplexity(const PerplexityOptions& options) {
  const auto model = support::gpt2::open_model(options.model);
  support::keep_weights(model->named_parameters(), options.weights);
  const auto windows = asked_windows(options, *model);
  // Before anything is computed: what cannot be written is not worth it.
  std::optional<support::Lock> lock;
  if (!options.out.empty()) lock.emplace(support::Lock::folder(options.out));
  const auto encoding = infty::BytePairEncoding::from_folder(options.model);
  support::gpt2::require_tokens(encoding, model->config().vocabulary, options.model);
  Texts texts;
  const Part part = make_part(encoding, {}, 0, open_documents(options.text, texts));
  describe("text", part);
  // The same tokens for all windows.
  infty::TokenStream stream = part.stream;
  if (options.most > 0 && options.most < std::ssize(stream.tokens)) {
    stream.tokens.resize(static_cast<std::size_t>(options.most));
    std::erase_if(stream.documents, [&](Index first) { return first >= options.most; });
  }
  const support::InterruptGuard interrupt;
  support::Csv csv("context,stride,tokens,nats_per_token,perplexity");
  std::printf(
      "| context | stride | tokens | perplexity | a word | bits per byte |\n"
      "|---|---|---|---|---|---|\n");
  for (const auto& [context, stride] : windows) {
    const auto score = windowed_score(*model, stream, context, stride, options);
    // Per word and byte where all of the text was read, but for the first token.
    const bool whole =
        score.tokens + std::ssize(part.stream.documents) >= std::ssize(part.stream.tokens);
    const infty::TextScore words{.nats = score.nats, .tokens = part.words};
    std::printf("| %td | %td | %td | %s |", context, stride, score.tokens,
                support::decimal(score.perplexity(), 3).c_str());
    if (whole)
      std::printf(" %s | %.4f |\n", support::decimal(words.perplexity(), 3).c_str(),
                  score.bits_per(part.bytes));
    else
      std::printf(" | |\n");
    std::fflush(stdout);
    csv.row(context, stride, score.tokens, score.per_token(), score.perplexity());
  }
  if (!lock) return;
  lock->remove_unfinished({"context.csv", "context.gp"});
  support::write_file(options.out / "context.csv", csv.text());
  support::write_file(
      options.out / "context.gp",
      "set terminal pngcairo size 640,420 font 'sans,11'\n"
      "set output 'context.png'\nset datafile separator ','\nset border 3\n"
      "set tics nomirror out\nset grid y lc '#dddddd'\nunset key\n"
      "set logscale x 2\nset xlabel 'tokens of the window'\n"
      "set ylabel 'perplexity'\n"
      "plot 'context.csv' using 1:5 skip 1 with linespoints pt 7 lw 2 lc '#c2410c'\n");
  support::draw_figure(options.out, "context");
}

}  // namespace gpt2
