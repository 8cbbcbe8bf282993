// SPDX-License-Identifier: MIT
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include <infty/lifelong/accuracy_matrix.hpp>
#include <infty/lifelong/learner.hpp>

namespace infty {

/// A task of a stream. Whoever learns is not told which one an example is of.
struct LifelongTask {
  std::string name;                    ///< what it is called
  std::vector<Example> training = {};  ///< what is learned, once and in this order
  std::vector<Example> test = {};      ///< what is asked
};

/// The share of examples that are answered right, all labels of each. @throws infty::ValueError if
/// there are none, and what the method throws
template <class M, class L>
double accuracy_of(M& method, L& learner, std::span<const Example> examples) {
  require(!examples.empty(), "accuracy_of", "there are no examples");
  const Answers answers = method.answer(learner, examples);
  Index right = 0;
  for (std::size_t i = 0; i < examples.size(); ++i)
    right += answers.at(i) == examples[i].labels ? 1 : 0;
  return static_cast<double>(right) / static_cast<double>(examples.size());
}

/// Learns tasks one behind the other, in one pass, and asks about all of them before the first and
/// behind each: the protocol of [de Masson d'Autume et al. 2019]. For a method that wants it the
/// stream is shuffled first, by `seed`; its parts are still as long as the tasks.
/// @param batch  examples of a step; the last of a task may be fewer
/// @param behind  called as behind(t, matrix) when task t was learned and asked about
/// @throws infty::ValueError unless there are tasks, each with tests, and batch >= 1; what the
/// method throws
template <class M, class L, class Behind>
  requires LifelongMethod<M, L>
AccuracyMatrix learn_stream(M& method, L& learner, const std::vector<LifelongTask>& tasks,
                            Index batch, Index seed, Behind&& behind) {
  require_at_least("learn_stream", "batch", batch, 1);
  AccuracyMatrix matrix(std::ssize(tasks));
  std::vector<std::span<const Example>> parts;
  std::vector<Example> shuffled;
  for (const LifelongTask& task : tasks) {
    require(!task.test.empty(), "learn_stream", "task ", task.name, " has no tests");
    parts.emplace_back(task.training);
  }
  if constexpr (requires { M::shuffled; }) {
    for (const auto& part : parts) shuffled.insert(shuffled.end(), part.begin(), part.end());
    Random random(static_cast<std::uint64_t>(seed), 1);
    for (Index i = std::ssize(shuffled) - 1; i > 0; --i)
      std::swap(shuffled[static_cast<std::size_t>(i)],
                shuffled[static_cast<std::size_t>(random.below(i + 1))]);
    std::size_t at = 0;
    for (auto& part : parts)
      part = std::span<const Example>(shuffled).subspan(std::exchange(at, at + part.size()),
                                                        part.size());
  }
  const auto ask = [&] {
    std::vector<double> row;
    for (const LifelongTask& task : tasks) row.push_back(accuracy_of(method, learner, task.test));
    return row;
  };
  matrix.begin(ask());
  for (std::size_t t = 0; t < tasks.size(); ++t) {
    for (std::size_t at = 0, n; at < parts[t].size(); at += n) {
      n = (std::min)(static_cast<std::size_t>(batch), parts[t].size() - at);
      method.learn(learner, parts[t].subspan(at, n));
    }
    matrix.add(ask());
    behind(static_cast<Index>(t), std::as_const(matrix));
  }
  return matrix;
}

/// The same without a look at what comes behind each task.
template <class M, class L>
  requires LifelongMethod<M, L>
AccuracyMatrix learn_stream(M& method, L& learner, const std::vector<LifelongTask>& tasks,
                            Index batch, Index seed = 0) {
  return learn_stream(method, learner, tasks, batch, seed, [](Index, const AccuracyMatrix&) {});
}

}  // namespace infty
