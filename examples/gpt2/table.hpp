// SPDX-License-Identifier: MIT
#pragma once

#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "../support/comparison.hpp"
#include "../support/gpt2/memory.hpp"
#include "results.hpp"

namespace gpt2 {

/// Throws infty::ValueError that names the first setting of a model and a text in which two
/// fine-tunings differ: their scores do not compare.
inline void require_same_text(const std::filesystem::path& first, const nlohmann::json& of_first,
                              const std::filesystem::path& other, const nlohmann::json& of_other) {
  for (const char* const name :
       {"model", "data", "valid", "test", "documents", "articles", "exact"})
    infty::require(of_first.value(name, nlohmann::json()) == of_other.value(name, nlohmann::json()),
                   "gpt2", "a table is of one model and one text: ", first.string(), " has --",
                   name, " ", of_first.value(name, nlohmann::json()).dump(), ", ", other.string(),
                   " has ", of_other.value(name, nlohmann::json()).dump());
}

/// Throws infty::ValueError that names the first setting but for the seed in which two fine-tunings
/// with one memory differ: they are no seeds of each other. Where the hours say how many steps
/// there are, these may be others.
inline void require_same_settings(const std::filesystem::path& first,
                                  const nlohmann::json& of_first,
                                  const std::filesystem::path& other,
                                  const nlohmann::json& of_other) {
  const auto as_now = [](const std::filesystem::path& path, const nlohmann::json& settings) {
    return support::settings_from<Finetuning>(settings, path.string());
  };
  const Finetuning a = as_now(first, of_first);
  const auto here = support::to_json(a), there = support::to_json(as_now(other, of_other));
  for (const auto& [name, value] : here.items()) {
    const bool own = name == "seed" || (a.hours > 0 && name == "steps");
    infty::require(own || there.at(name) == value, "gpt2",
                   "the seeds of one memory have the same settings: ", first.string(), " has --",
                   name, ' ', value.dump(), ", ", other.string(), " has ", there.at(name).dump());
  }
}

/// The finished fine-tunings among a folder's folders, by their memories, each by its seeds.
/// Throws infty::ValueError where they do not compare.
inline std::map<std::string, std::map<std::uint64_t, Results>> finished_in(
    const std::filesystem::path& folder) {
  std::map<std::string, std::map<std::uint64_t, Results>> all;
  std::vector<std::filesystem::path> files;
  for (const auto& entry : std::filesystem::directory_iterator(folder))
    if (const auto file = entry.path() / "results.json"; std::filesystem::exists(file))
      files.push_back(file);
  std::sort(files.begin(), files.end());
  std::filesystem::path first;
  nlohmann::json of_first;
  std::map<std::string, std::pair<std::filesystem::path, nlohmann::json>> first_of;
  for (const auto& file : files) {
    const auto [results, settings] = read_results(file);
    if (results.job != "finetune") continue;
    if (first.empty()) {
      first = file;
      of_first = settings;
    }
    require_same_text(first, of_first, file, settings);
    const auto& of_memory = first_of.try_emplace(results.memory, file, settings).first->second;
    require_same_settings(of_memory.first, of_memory.second, file, settings);
    infty::require(all[results.memory].emplace(results.seed, results).second, "gpt2",
                   folder.string(), " has two runs with --memory ", results.memory, " --seed ",
                   results.seed, ": one of them is ", file.string());
  }
  infty::require(!all.empty(), "gpt2", folder.string(), " has no folder of a finished finetune");
  return all;
}

/// A table as the paper's Table 1: a row a memory, mean and standard deviation over the seeds; and
/// what the comparisons of each memory with none tell, on the test text.
inline void print_table(const std::filesystem::path& folder) {
  const auto all = finished_in(folder);
  std::printf(
      "| memory | parameters | seeds | valid, perplexity | test, perplexity | test, a word |\n"
      "|---|---|---|---|---|---|\n");
  for (const std::string& memory : support::gpt2::memory_names) {
    const auto at = all.find(memory);
    if (at == all.end()) continue;
    const auto of_seeds = [&](auto&& get) {
      std::vector<double> values;
      for (const auto& [seed, results] : at->second) values.push_back(get(results));
      return support::mean_and_spread(values);
    };
    std::printf("| %s | %td | %zu | %s | %s | %s |\n", memory.c_str(),
                at->second.begin()->second.parameters, at->second.size(),
                of_seeds([](const Results& r) { return r.valid.perplexity; }).c_str(),
                of_seeds([](const Results& r) { return r.test.perplexity; }).c_str(),
                of_seeds([](const Results& r) { return r.test.word_perplexity; }).c_str());
  }
  const auto none = all.find("none");
  if (none == all.end()) return;
  std::vector<support::Comparison> comparisons;
  bool missing = false;
  for (const auto& [memory, runs] : all) {
    if (memory == "none") continue;
    support::Comparison one{"test", memory, "none"};
    for (const auto& [seed, results] : runs)
      if (const auto same = none->second.find(seed); same != none->second.end()) {
        one.of_memory.push_back(results.test.perplexity);
        one.of_reference.push_back(same->second.test.perplexity);
      }
    missing = missing || one.of_memory.size() != none->second.size();
    comparisons.push_back(std::move(one));
  }
  std::printf("%s", missing ? support::no_verdicts : support::verdicts(comparisons, true).c_str());
}

}  // namespace gpt2
