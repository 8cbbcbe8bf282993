// SPDX-License-Identifier: MIT
#pragma once

#include <cstdint>
#include <map>
#include <set>
#include <span>
#include <vector>

#include <infty/data/multi_query_recall.hpp>

#include "support/golden_case.hpp"

namespace infty::tests {

/// The labels of a row of multi-query associative recall, found from its inputs and from where it
/// asks; what breaks a rule of the task is told by `fail(what)`.
template <class Fail>
std::vector<std::int64_t> labels_of(const MultiQueryRecallConfig& config,
                                    std::span<const std::int64_t> inputs,
                                    std::span<const std::int64_t> given, Fail&& fail) {
  const auto pairs = static_cast<std::size_t>(config.pairs);
  std::map<std::int64_t, std::int64_t> value_of;
  std::set<std::int64_t> values;
  for (std::size_t i = 0; i < 2 * pairs; i += 2) {
    const std::int64_t key = inputs[i], value = inputs[i + 1];
    if (key < 1 || key >= config.vocabulary / 2) fail("a key is out of range");
    if (value < config.vocabulary / 2 || value >= config.vocabulary) fail("so is a value");
    if (!value_of.emplace(key, value).second) fail("a key comes twice");
    if (!values.insert(value).second) fail("a value comes twice");
  }
  std::vector<std::int64_t> labels(inputs.size(), MultiQueryRecallTask::ignored);
  std::set<std::int64_t> asked;
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    if (given[i] == MultiQueryRecallTask::ignored) {
      if (i < 2 * pairs) continue;
      if (inputs[i] < 0 || inputs[i] >= config.vocabulary) fail("a token is out of range");
      if (!config.random_non_queries && inputs[i] != 0) fail("a filler is not 0");
      continue;
    }
    if (i < 2 * pairs || i % 2 != 0) fail("a question stands where none may");
    if (!value_of.contains(inputs[i])) fail("a question is no key");
    if (!asked.insert(inputs[i]).second) fail("a key is asked for twice");
    labels[i] = value_of[inputs[i]];
  }
  if (asked.size() != pairs) fail("a key is not asked for");
  return labels;
}

/// Holds a generator's examples to the rules of the task, and its labels to those that follow.
inline Comparison replay_mqar(GoldenCase& file) {
  const MultiQueryRecallConfig config{.vocabulary = file.count("vocabulary"),
                                      .length = file.count("length"),
                                      .pairs = file.count("pairs"),
                                      .power = file.number("power_a"),
                                      .random_non_queries = file.flag("random_non_queries", false)};
  config.validate();
  const auto read = [&](const char* name) {
    const auto tokens = file.read_tokens(name);
    return std::vector<std::int64_t>(tokens.begin(), tokens.end());
  };
  const Shape& given = file.shape("inputs");
  file.require_shape("inputs", Shape{given.rank() > 0 ? given[0] : 0, config.length});
  file.require_agrees("examples", given[0]);
  file.require_shape("labels", given);
  const auto inputs = read("inputs"), labels = read("labels");
  const auto length = static_cast<std::size_t>(config.length);
  Recorded followed{file.shape("labels"), {}};
  for (std::size_t row = 0; row < inputs.size(); row += length) {
    const auto right = labels_of(config, std::span(inputs).subspan(row, length),
                                 std::span(labels).subspan(row, length),
                                 [&](const char* what) { file.fail(what); });
    followed.values.insert(followed.values.end(), right.begin(), right.end());
  }
  Comparison comparison;
  comparison.see(file, "labels", followed, {file.shape("labels"), {labels.begin(), labels.end()}});
  file.require_all_seen();
  return comparison;
}

}  // namespace infty::tests
