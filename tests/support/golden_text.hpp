// SPDX-License-Identifier: MIT
#pragma once

#include <cmath>
#include <cstddef>
#include <filesystem>
#include <fstream>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <nlohmann/json.hpp>

#include <infty/data/dialogue.hpp>
#include <infty/metrics/dialogue_score.hpp>
#include <infty/metrics/meteor.hpp>
#include <infty/metrics/rouge.hpp>
#include <infty/metrics/unigram_f1.hpp>
#include <infty/nn/sampling.hpp>

#include "support/golden_case.hpp"

namespace infty::tests {

using Json = nlohmann::json;

/// Recorded metrics of pairs of texts, and means of all.
inline void replay_metrics(const Json& file, Comparison& out) {
  double f1 = 0, rouge1 = 0, rouge_longest = 0, meteor_score = 0;
  double recall1 = 0, recall_longest = 0;
  const auto& pairs = file.at("pairs");
  for (std::size_t i = 0; i < pairs.size(); ++i) {
    const Json& pair = pairs[i];
    const std::string name = "pair " + std::to_string(i) + ' ';
    const auto hypothesis = pair.at("hypothesis").get<std::string>();
    const auto reference = pair.at("reference").get<std::string>();
    const auto see = [&](const std::string& what, double ours, const Json& theirs) {
      out.see_number(name + what, ours, theirs.get<double>());
    };
    const auto same = [&](const std::string& what, const Json& ours) {
      out.see_number(name + what, ours == pair.at(what) ? 1 : 0, 1);
    };
    const auto words = [](std::string_view text) {
      std::string joined;
      for (const std::u32string& word : detail::answer_words(text))
        joined += (joined.empty() ? "" : " ") + detail::utf8(word);
      return joined;
    };
    same("normalized_hypothesis", words(hypothesis));
    same("normalized_reference", words(reference));
    same("rouge_tokens_hypothesis", rouge_words(hypothesis));
    same("rouge_tokens_reference", rouge_words(reference));
    see("f1", unigram_f1(hypothesis, reference), pair.at("f1"));
    const auto overlap = [&](const std::string& what, const Overlap& ours) {
      see(what + " precision", ours.precision, pair.at(what).at("precision"));
      see(what + " recall", ours.recall, pair.at(what).at("recall"));
      see(what + " f", ours.f(), pair.at(what).at("f"));
      see("program " + what, ours.recall, pair.at("program_" + what));
    };
    const Overlap one = rouge_n(hypothesis, reference, 1), longest = rouge_l(hypothesis, reference);
    overlap("rouge1", one);
    overlap("rougeL", longest);
    const Meteor ours = meteor(hypothesis, reference);
    see("meteor", ours.score, pair.at("meteor"));
    same("meteor_matches", ours.matches);
    same("meteor_chunks", ours.chunks);
    const double share = 1 / static_cast<double>(pairs.size());
    f1 += share * unigram_f1(hypothesis, reference);
    rouge1 += share * one.f();
    rouge_longest += share * longest.f();
    recall1 += share * one.recall;
    recall_longest += share * longest.recall;
    meteor_score += share * ours.score;
  }
  const Json& corpus = file.at("corpus");
  const auto see = [&](const char* what, double ours) {
    out.see_number(std::string("corpus ") + what, ours, corpus.at(what).get<double>());
  };
  see("f1", f1);
  see("rouge1_f", rouge1);
  see("rougeL_f", rouge_longest);
  see("program_rouge1", recall1);
  see("program_rougeL", recall_longest);
  see("meteor", meteor_score);
}

/// A recorded layout of dialogues: files, sequences, pieces, what may be drawn, perplexity. The
/// program's flags say by the call what resetting a state at a dialogue's start says once; contexts
/// by `--min_history 2` hold their own answers (a fault of it), and are not compared.
inline void replay_dialogues(const Json& file, Comparison& out) {
  std::string name;
  const auto same = [&](const std::string& what, const Json& ours, const Json& theirs) {
    out.see_number(name + what, ours == theirs ? 1 : 0, 1);
  };
  const auto words = [](const std::string& text) {
    std::string joined;
    for (const std::u32string& word :
         detail::split(detail::code_points(text), detail::splits_words))
      joined += (joined.empty() ? "" : " ") + detail::utf8(word);
    return joined;
  };
  for (const Json& one : file.at("files")) {
    Json ours = Json::array();
    for (const Dialogue& dialogue : read_dialogues(one.at("text").get<std::string>(), false)) {
      ours.push_back({words(dialogue.document)});
      for (const std::string& turn : dialogue.turns) ours.back().push_back(words(turn));
    }
    same("file", ours, one.at("dialogues"));
  }
  const Json& ids = file.at("special_ids");
  const DialogueMarks marks{.document = ids.at("<doc>"),
                            .end = ids.at("<eos>"),
                            .first = ids.at("<speaker2>"),
                            .second = ids.at("<speaker1>")};
  const Index most = file.at("max_len"), answer = file.at("max_utterance");
  using Tokens = std::vector<TokenId>;
  const auto pieces_of = [](const Tokens& tokens, const std::vector<Piece>& pieces) {
    Json all = Json::array();
    for (const Piece& piece : pieces)
      all.push_back(
          Tokens(tokens.begin() + piece.begin, tokens.begin() + piece.begin + piece.length));
    return all;
  };
  const auto cut = [&](const DialogueTokens& made, Index last) {
    return cut_from_end(std::ssize(made.tokens), most, last);
  };
  std::size_t number = 0;
  for (const Json& one : file.at("dialogues")) {
    name = "dialogue " + std::to_string(number++) + ' ';
    const auto turns = one.at("utterances").get<std::vector<Tokens>>();
    const auto document = one.at("document").get<Tokens>();
    const auto labels = [](const DialogueTokens& made, bool all) {
      Tokens out_labels = made.tokens;
      for (std::size_t i = 0; i < out_labels.size() && !all; ++i)
        if (!made.said[i]) out_labels[i] = -100;
      return out_labels;
    };
    const auto compare = [&](const char* what, const DialogueTokens& made, bool all) {
      const Json& theirs = one.at(what);
      same(std::string(what) + ".input", made.tokens, theirs.at("input"));
      same(std::string(what) + ".token_type", made.types, theirs.at("token_type"));
      same(std::string(what) + ".label", labels(made, all), theirs.at("label"));
      same(std::string(what) + ".chunks", pieces_of(made.tokens, cut(made, 0)),
           theirs.at("chunks"));
    };
    DialogueTokens whole = document_tokens(document, marks), without;
    for (std::size_t i = 0; i < turns.size(); ++i) {
      whole.add(turns[i], i, marks);
      without.add(turns[i], i, marks);
    }
    compare("train", whole, true);
    compare("valid", whole, false);
    compare("valid_nodoc", without, false);
    Json lengths = Json::array(), recorded = Json::array(), targets = Json::array();
    const Tokens label = labels(whole, false);
    for (const Piece& piece : cut(whole, 0)) {
      if (piece.length < 2) continue;  // there is nothing to predict
      lengths.push_back(piece.length);
      for (Index i = 1; i < piece.length; ++i)
        targets.push_back(label[static_cast<std::size_t>(piece.begin + i)]);
    }
    for (const Json& call : one.at("valid_calls")) recorded.push_back(call.at("length"));
    same("valid_calls", lengths, recorded);
    same("valid_targets", targets, one.at("valid_targets"));
    DialogueTokens context = document_tokens(document, marks);
    for (std::size_t i = 0; i + 1 < turns.size(); ++i) {
      context.add(turns[i], i, marks);
      const Json& theirs = one.at("generation_min_history_0").at(i);
      same("context", context.tokens, theirs.at("context"));
      same("context's types", context.types, theirs.at("token_type"));
      same("context's chunks", pieces_of(context.tokens, cut(context, most - answer - 1)),
           theirs.at("chunks"));
      same("reference", turns[i + 1], theirs.at("reference"));
    }
  }
  number = 0;
  for (const Json& one : file.at("filter")) {
    name = "filter " + std::to_string(number++) + ' ';
    const auto logits = one.at("logits").get<std::vector<double>>();
    const double top_p = one.at("top_p");
    const WeighedClasses may =
        weighed_classes(std::span<const double>(logits), {.temperature = one.at("temperature"),
                                                          .top_k = one.at("top_k"),
                                                          .top_p = top_p > 0 ? top_p : 1});
    std::vector<double> shares(logits.size());
    double sum = 0;
    for (const double weight : may.weights) sum += weight;
    for (std::size_t i = 0; i < may.classes.size(); ++i)
      shares[static_cast<std::size_t>(may.classes[i])] = may.weights[i] / sum;
    for (std::size_t i = 0; i < shares.size(); ++i)
      out.see_number(name + std::to_string(i), shares[i],
                     one.at("probability").at(i).get<double>());
  }
  const Json& perplexity = file.at("perplexity");
  DialogueScore score;
  for (const Json& one : perplexity.at("dialogues"))
    score.add(one.at("nll_sum"), one.at("predicted"), one.at("positions"));
  name = "perplexity ";
  out.see_number(name + "program", score.weighed_perplexity(),
                 perplexity.at("program").get<double>());
  out.see_number(name + "per token", score.perplexity(), perplexity.at("per_token").get<double>());
}

/// Replays recorded texts of any kind.
/// @throws infty::Error if the file is not a case, not whole, or of a kind that is not known
inline Comparison replay_text(const std::filesystem::path& path) {
  std::ifstream in(path);
  Comparison out;
  try {
    const Json file = Json::parse(in);
    const auto kind = file.at("kind").get<std::string>();
    if (kind == "metrics_dialogue") {
      replay_metrics(file, out);
    } else if (kind == "dialogue_layout") {
      replay_dialogues(file, out);
    } else if (kind == "porter_stems") {
      for (const auto& [word, stem] : file.at("stems").items())
        out.see_number(word, Json(porter_stem(word)) == stem ? 1 : 0, 1);
    } else {
      raise<IoError>("case", path.string(), ": of kind ", kind, ", which is not known here");
    }
  } catch (const nlohmann::json::exception& error) {
    raise<IoError>("case", path.string(), ": ", error.what());
  }
  return out;
}

}  // namespace infty::tests
