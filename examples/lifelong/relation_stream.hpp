// SPDX-License-Identifier: MIT
#pragma once

#include <algorithm>
#include <cstddef>
#include <iterator>
#include <map>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <infty/data/k_means.hpp>
#include <infty/data/relation_mention.hpp>
#include <infty/data/relation_names.hpp>
#include <infty/data/text_vectors.hpp>

#include "stream.hpp"

namespace lifelong {

/// A relation with the sentences that tell of it.
struct Relation {
  std::string name;                               ///< words that are read
  std::string description = {};                   ///< more words, by which it is clustered alone
  std::vector<std::vector<Index>> training = {};  ///< sentences to learn, as words
  std::vector<std::vector<Index>> test = {};      ///< others to ask about
};

/// Relations and the words of their sentences and names. The first word is token 2: token 0 stands
/// in front of every text, token 1 in front of every candidate.
struct Relations {
  std::vector<Relation> all = {};
  std::vector<std::vector<Index>> names = {};  ///< of each, as words
  Index vocabulary = 2;
  std::string texts = {};  ///< the fingerprint of files that are given
};

/// Relations with known answers. One is called by two words of its field and one of its kind, such
/// as `field2a field2b kind1`; there are as many fields as tasks, and as many kinds as classes of a
/// task. A sentence has other words that tell the field, and the kind, which are those of the made
/// texts: who knows which words go with which names can tell which relation a sentence is of, and
/// nobody else.
inline Relations made_relations(const Settings& s, std::uint64_t seed) {
  Relations out;
  const Index field_begin = 2, kind_begin = field_begin + s.tasks * s.topic_words;
  const Index filler_begin = kind_begin + s.classes * s.class_words;
  const Index name_begin = filler_begin + s.fillers;  // two words a field, and one a kind
  out.vocabulary = name_begin + 2 * s.tasks + s.classes;
  infty::Random random(seed, 14);
  const auto sentences = [&](Index field, Index kind, Index n) {
    std::vector<std::vector<Index>> all;
    for (Index i = 0; i < n; ++i) {
      auto& sentence = all.emplace_back();
      for (Index word = 0; word < s.length; ++word) {
        const double which = random.uniform();
        sentence.push_back(which < s.topic_share
                               ? field_begin + field * s.topic_words + random.below(s.topic_words)
                           : which < s.topic_share + s.class_share
                               ? kind_begin + kind * s.class_words + random.below(s.class_words)
                               : filler_begin + random.below(s.fillers));
      }
    }
    return all;
  };
  for (Index field = 0; field < s.tasks; ++field)
    for (Index kind = 0; kind < s.classes; ++kind) {
      const std::string f = "field" + std::to_string(field + 1);
      out.all.push_back({.name = f + "a " + f + "b kind" + std::to_string(kind + 1),
                         .training = sentences(field, kind, (s.training - 1) / s.classes + 1),
                         .test = sentences(field, kind, (s.test - 1) / s.classes + 1)});
      out.names.push_back(
          {name_begin + 2 * field, name_begin + 2 * field + 1, name_begin + 2 * s.tasks + kind});
    }
  return out;
}

/// Those of FewRel's file, with the names of `--relation-names`, or those of the file itself where
/// none are given. Of each relation the first four fifths of the sentences are to be learned and
/// the others to be asked about; words that are not among the `max_vocabulary` most frequent of the
/// former and of the names are one token.
/// @throws infty::IoError for files that are none, or for a relation that has no name;
/// infty::ValueError for one of less than five sentences
inline Relations read_relations(const Settings& s) {
  const auto mentions = infty::read_relation_mentions(s.relations);
  support::Fingerprint fingerprint;
  fingerprint.add_text(infty::MappedFile(s.relations).text());
  std::map<std::string, infty::RelationName> called;
  if (!s.relation_names.empty()) {
    called = infty::read_relation_names(s.relation_names);
    fingerprint.add_text(infty::MappedFile(s.relation_names).text());
  }
  Relations out{.texts = support::as_hex(fingerprint.bits())};
  infty::TokenCounts counts;
  const auto each_word = [](std::string_view text, auto&& see) {
    infty::for_each_token(text, infty::TextUnit::word, [&](std::string_view word) {
      if (word != infty::end_of_line) see(word);
    });
  };
  std::vector<std::pair<std::size_t, std::size_t>> of;  // mentions [begin, end) of each relation
  for (std::size_t begin = 0, end = 0; begin < mentions.size(); begin = end) {
    const std::string& relation = mentions[begin].relation;
    while (end < mentions.size() && mentions[end].relation == relation) ++end;
    infty::require(end - begin >= 5, "lifelong", s.relations, ": the relation ", relation, " has ",
                   end - begin, " sentences: five are needed");
    const auto known = called.find(relation);
    infty::require<infty::IoError>(s.relation_names.empty() || known != called.end(), "lifelong",
                                   s.relation_names, ": the relation ", relation, " has no name");
    out.all.push_back(known == called.end() ? Relation{.name = relation}
                                            : Relation{.name = known->second.name,
                                                       .description = known->second.description});
    of.emplace_back(begin, end);
    each_word(out.all.back().name, [&](std::string_view word) { counts.add(word); });
    for (std::size_t i = begin; i < begin + (end - begin) / 5 * 4; ++i)
      for (const std::string& word : mentions[i].tokens) counts.add(word);
  }
  const infty::Vocabulary vocabulary(counts, {.max_size = s.max_vocabulary});
  const Index unknown = vocabulary.find(infty::unknown_word).value();
  const auto token = [&](std::string_view word) {
    return 2 + vocabulary.find(word).value_or(unknown);
  };
  out.vocabulary = 2 + vocabulary.size();
  for (std::size_t r = 0; r < of.size(); ++r) {
    const auto [begin, end] = of[r];
    for (std::size_t i = begin; i < end; ++i) {
      auto& to = i < begin + (end - begin) / 5 * 4 ? out.all[r].training : out.all[r].test;
      auto& sentence = to.emplace_back();
      for (const std::string& word : mentions[i].tokens)
        if (std::ssize(sentence) < s.length) sentence.push_back(token(word));
    }
    auto& name = out.names.emplace_back();
    each_word(out.all[r].name, [&](std::string_view word) { name.push_back(token(word)); });
  }
  return out;
}

/// Which of some relations a sentence tells of: behind each sentence stand the name of its own and
/// of `candidates` others, drawn from all relations, in a drawn order, as in [Holla et al. 2020,
/// §4.2]. A task is what a cluster of relations has, by k-means of the words of their names and
/// descriptions (`infty::text_vectors`), where the paper has GloVe's vectors of the names. Of each
/// task `training` sentences are drawn by the seed, and `test`, or all that there are.
/// @throws as `read_relations`; infty::ValueError for more tasks or candidates than relations
inline Stream relation_stream(const Settings& s, std::uint64_t seed) {
  Relations relations = s.relations.empty() ? made_relations(s, seed) : read_relations(s);
  const auto n = std::ssize(relations.all);
  infty::require(s.tasks <= n && s.candidates < n, "lifelong", "there are ", n,
                 " relations: --tasks ", s.tasks, " must be that at most, and --candidates ",
                 s.candidates, " less");
  std::vector<std::string> words;
  for (const Relation& relation : relations.all)
    words.push_back(relation.name + ' ' + relation.description);
  const auto clusters = infty::k_means(infty::text_vectors(words), s.tasks, infty::Random(15));
  Stream out{.vocabulary = relations.vocabulary,
             .classes = 1 + s.candidates,
             .texts = relations.texts,
             .first_word = 2};
  Index longest_name = 0;
  for (const auto& name : relations.names) longest_name = std::max(longest_name, std::ssize(name));
  out.longest = 2 + s.length + longest_name;
  infty::Random random(seed, 16);
  const auto example_of = [&](Index relation, const std::vector<Index>& sentence) {
    std::vector<Index> others;
    for (Index r = 0; r < n; ++r)
      if (r != relation) others.push_back(r);
    shuffle(others, random);
    others.resize(static_cast<std::size_t>(s.candidates));
    const Index place = random.below(1 + s.candidates);
    others.insert(others.begin() + place, relation);
    infty::Example example{.tokens = {0}, .labels = {place}};
    example.tokens.insert(example.tokens.end(), sentence.begin(), sentence.end());
    for (const Index r : others) {
      const auto& name = relations.names[static_cast<std::size_t>(r)];
      example.tokens.push_back(1);
      example.tokens.insert(example.tokens.end(), name.begin(), name.end());
    }
    return example;
  };
  for (Index t = 0; t < s.tasks; ++t) {
    infty::LifelongTask task{.name = ""};
    for (std::size_t r = 0; r < relations.all.size(); ++r) {
      if (clusters.of[r] != t) continue;
      Relation& relation = relations.all[r];
      task.name += (task.name.empty() ? "" : ", ") + relation.name;
      for (const auto& sentence : relation.training)
        task.training.push_back(example_of(static_cast<Index>(r), sentence));
      for (const auto& sentence : relation.test)
        task.test.push_back(example_of(static_cast<Index>(r), sentence));
      std::move(relation.training.begin(), relation.training.end(),
                std::back_inserter(out.reading));
    }
    const auto draw = [&](std::vector<infty::Example>& all, Index wanted) {
      shuffle(all, random);
      all.resize(std::min(all.size(), static_cast<std::size_t>(wanted)));
    };
    draw(task.training, s.training);
    draw(task.test, s.test);
    out.tasks.push_back(std::move(task));
  }
  return out;
}

}  // namespace lifelong
