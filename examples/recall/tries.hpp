// SPDX-License-Identifier: MIT
#pragma once

#include <algorithm>
#include <string>
#include <vector>

#include "settings.hpp"

// What is tried of each memory with the first seed, for the best to be taken: learning rates, and
// of the swept words, taus.

namespace recall {

inline bool is_swept(const std::string& word) {
  return std::find(swept.begin(), swept.end(), word) != swept.end();
}

/// What is tried.
struct Try {
  std::string memory;  ///< `infty-tau 0.9` of a swept word, of others the word
  double rate = 0;
};

/// The word of a memory that is tried.
inline std::string word_of(const std::string& memory) { return memory.substr(0, memory.find(' ')); }

/// The memory of a swept word that contracts to this tau. With the tau of the settings it is the
/// plain one, whose runs are its own.
inline std::string with_tau(const Settings& s, const std::string& word, double tau) {
  const std::string plain = word.substr(0, word.rfind('-'));
  const bool same = tau == s.long_term.tau && s.contraction.name == "fixed";
  return same ? plain : word + ' ' + nlohmann::json(tau).dump();
}

/// The memories of which a word has the best.
inline std::vector<std::string> memories_of(const Settings& s, const std::string& word) {
  if (!is_swept(word)) return {word};
  std::vector<std::string> all;
  for (const double tau : s.taus) all.push_back(with_tau(s, word, tau));
  return all;
}

/// The tau of a memory that is tried.
inline double tau_of(const Settings& s, const std::string& memory) {
  for (const double tau : s.taus)
    if (is_swept(word_of(memory)) && memory == with_tau(s, word_of(memory), tau)) return tau;
  return s.long_term.tau;
}

/// The learning rates that are tried for a task.
inline const std::vector<double>& rates_of(const Settings& s, const std::string& task) {
  return task == mqar_mix && !s.mqar_mix_rates.empty() ? s.mqar_mix_rates : s.rates;
}

/// All that is tried of a word for a task.
inline std::vector<Try> tries_of(const Settings& s, const std::string& task,
                                 const std::string& word) {
  std::vector<Try> all;
  for (const std::string& memory : memories_of(s, word))
    for (const double rate : rates_of(s, task)) all.push_back({memory, rate});
  return all;
}

}  // namespace recall
