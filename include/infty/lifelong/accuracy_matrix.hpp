// SPDX-License-Identifier: MIT
#pragma once

#include <algorithm>
#include <cstddef>
#include <iterator>
#include <vector>

#include <infty/core/config.hpp>
#include <infty/core/error.hpp>

namespace infty {

/// How much is known of each of n tasks behind each of them: what a stream of tasks is judged by
/// [Lopez-Paz and Ranzato 2017, §2].
class AccuracyMatrix {
 public:
  /// Makes a matrix without rows. @throws infty::ValueError unless tasks >= 1
  explicit AccuracyMatrix(Index tasks) : tasks_(tasks) {
    require_at_least("AccuracyMatrix", "tasks", tasks, 1);
  }

  /// Adds the accuracies of all tasks behind the next task of the stream, each in [0, 1].
  /// @throws infty::ShapeError unless there is one a task, or if there is a row for each task
  /// already; infty::ValueError for one that is none
  void add(const std::vector<double>& row) {
    require<ShapeError>(rows() < tasks_, "AccuracyMatrix::add", "row ", rows(), " of ", tasks_,
                        " tasks: there is one for each already");
    check("AccuracyMatrix::add", row);
    rows_.push_back(row);
  }

  /// Takes the accuracies of all tasks before the first one is learned, each in [0, 1].
  /// @throws infty::ShapeError unless there is one a task; infty::ValueError for one that is none
  void begin(const std::vector<double>& row) {
    check("AccuracyMatrix::begin", row);
    begin_ = row;
  }

  /// Number of tasks, n.
  Index tasks() const { return tasks_; }
  /// Tasks of the stream that were learned.
  Index rows() const { return std::ssize(rows_); }
  /// Accuracies of all tasks behind task i of the stream, from 0 on. @pre 0 <= i < rows()
  const std::vector<double>& row(Index i) const { return rows_[static_cast<std::size_t>(i)]; }

  /// The mean over tasks at the end. @throws infty::ValueError without rows
  double mean() const {
    double sum = 0;
    for (const double accuracy : last()) sum += accuracy;
    return sum / static_cast<double>(tasks_);
  }

  /// How much of a task is lost at the end of what was once known of it, the mean over all tasks
  /// but the last: max_t a(t, j) - a(n, j) [Chaudhry et al. 2018, §3]. 0 with one task. Below 0
  /// where later tasks have helped. @throws infty::ValueError without rows
  double forgetting() const {
    const std::vector<double>& end = last();
    double sum = 0;
    for (std::size_t j = 0; j + 1 < rows_.size(); ++j) {
      double best = 0;
      for (std::size_t t = 0; t + 1 < rows_.size(); ++t) best = (std::max)(best, rows_[t][j]);
      sum += best - end[j];
    }
    return rows_.size() > 1 ? sum / static_cast<double>(rows_.size() - 1) : 0;
  }

  /// Forward transfer: how much better a task is known before it comes than it was before the first
  /// one, the mean over all tasks but the first, of those that came: a(j - 1, j) - b(j), b the row
  /// of `begin` [Lopez-Paz and Ranzato 2017, §2]. 0 with one task. @throws infty::ValueError
  /// without rows, or with two or more if `begin` was not called
  double ahead() const {
    last();
    require(rows_.size() < 2 || !begin_.empty(), "AccuracyMatrix::ahead",
            "what was known before the first task was not given: call begin");
    double sum = 0;
    for (std::size_t j = 1; j < rows_.size(); ++j) sum += rows_[j - 1][j] - begin_[j];
    return rows_.size() > 1 ? sum / static_cast<double>(rows_.size() - 1) : 0;
  }

 private:
  void check(const char* op, const std::vector<double>& row) const {
    require<ShapeError>(std::ssize(row) == tasks_, op, "there are ", row.size(), " accuracies of ",
                        tasks_, " tasks");
    for (const double accuracy : row)
      require(accuracy >= 0 && accuracy <= 1, op, "an accuracy is ", accuracy);
  }
  const std::vector<double>& last() const {
    require(!rows_.empty(), "AccuracyMatrix", "no task was learned yet");
    return rows_.back();
  }

  Index tasks_;
  std::vector<double> begin_ = {};  ///< before the first task
  std::vector<std::vector<double>> rows_;
};

}  // namespace infty
