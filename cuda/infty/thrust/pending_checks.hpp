// SPDX-License-Identifier: MIT
#pragma once

#include <cstddef>
#include <functional>
#include <mutex>
#include <optional>
#include <utility>
#include <vector>

#include <infty/core/config.hpp>

namespace infty::detail {

/// Checks that a device makes while the host goes on. Each leaves the index of something bad, or
/// -1, in a slot of host memory, which is looked at when a host waits for the device anyway. Every
/// thread adds to a `PendingChecks` of its own. A thread that ends waits for those that it has not
/// looked at, and what they found is thrown in the next thread that looks, whichever it is.
///
/// What CUDA does for it, a test does by itself:
///
///     Driver::Place, ordered   where work goes
///     place()                  that of the calling thread
///     slots(n)                 memory for n slots, which every device can write
///     finish(place)            the host waits for all work of the place's device
template <class Driver>
class PendingChecks {
 public:
  using Report = std::function<void(Index)>;  ///< throws what a finding is
  static constexpr std::size_t most = 256;    ///< checks between two looks

  /// What threads share: slots that nobody uses, and what was found after the last look of threads
  /// that have ended.
  class Shared {
   public:
    /// Makes it without slots.
    explicit Shared(Driver driver = {}) : driver_(std::move(driver)) {}

    /// Blocks of slots that there are, in use or not.
    std::size_t blocks() const {
      const std::lock_guard lock(mutex_);
      return blocks_;
    }

   private:
    friend class PendingChecks;

    Driver driver_;
    mutable std::mutex mutex_;
    std::vector<Index*> free_;
    std::vector<std::pair<Report, Index>> left_;
    std::size_t blocks_ = 0;
  };

  /// Makes a thread's, without checks.
  explicit PendingChecks(Shared& shared) : shared_(shared) {}

  /// Waits for what has not been looked at, and leaves what it found to others.
  ~PendingChecks() {
    if (!slots_) return;
    try {
      if (!reports_.empty()) shared_.driver_.finish(*place_);
      const std::lock_guard lock(shared_.mutex_);
      for (std::size_t i = 0; i < reports_.size(); ++i)
        if (slots_[i] >= 0) shared_.left_.emplace_back(std::move(reports_[i]), slots_[i]);
      shared_.free_.push_back(slots_);
    } catch (...) {
      // The device is gone, or refuses: nobody can say any more what it found.
    }
  }
  PendingChecks(const PendingChecks&) = delete;
  PendingChecks& operator=(const PendingChecks&) = delete;

  /// The slot for a check at the current place, whose work copies its finding there. Checks of
  /// another place, or too many, are waited for first, and what they found is thrown.
  Index* add(Report report) {
    const auto here = shared_.driver_.place();
    if (!reports_.empty() && (reports_.size() == most || !at(here))) {
      shared_.driver_.finish(*place_);
      take_and_report();
    }
    if (!slots_) slots_ = take_slots();
    place_ = here;
    reports_.push_back(std::move(report));
    Index* const slot = slots_ + reports_.size() - 1;
    *slot = -1;
    return slot;
  }

  /// Reports the first finding of the current place, which is done, and forgets all. Where there is
  /// none, what threads left that have ended is reported, one at a look.
  void look() {
    if (!reports_.empty() && at(shared_.driver_.place())) take_and_report();
    if (const auto left = take_left()) left->first(left->second);
  }

 private:
  bool at(const typename Driver::Place& here) const {
    return !(here < *place_) && !(*place_ < here);
  }

  Index* take_slots() {
    const std::lock_guard lock(shared_.mutex_);
    if (!shared_.free_.empty()) {
      Index* const slots = shared_.free_.back();
      shared_.free_.pop_back();
      return slots;
    }
    shared_.free_.reserve(shared_.blocks_ + 1);  // for its return, which should not fail
    Index* const slots = shared_.driver_.slots(most);
    ++shared_.blocks_;
    return slots;
  }

  void take_and_report() {
    const std::vector<Report> reports = std::exchange(reports_, {});
    for (std::size_t i = 0; i < reports.size(); ++i)
      if (slots_[i] >= 0) reports[i](slots_[i]);
  }

  std::optional<std::pair<Report, Index>> take_left() {
    const std::lock_guard lock(shared_.mutex_);
    if (shared_.left_.empty()) return std::nullopt;
    std::optional<std::pair<Report, Index>> out(std::move(shared_.left_.back()));
    shared_.left_.pop_back();
    return out;
  }

  Shared& shared_;
  Index* slots_ = nullptr;
  std::vector<Report> reports_;
  std::optional<typename Driver::Place> place_;
};

}  // namespace infty::detail
