// SPDX-License-Identifier: MIT
#pragma once

#include <cstddef>
#include <memory>
#include <span>
#include <string>
#include <type_traits>
#include <utility>

#include <infty/parallel/communicator.hpp>

namespace infty {

/// The one communicator whose type is chosen while the program runs: it holds any other, which is
/// `SelfCommunicator` where nothing is said. A copy is the same one.
class AnyCommunicator {
 public:
  /// Holds a `SelfCommunicator`.
  AnyCommunicator() : AnyCommunicator(SelfCommunicator()) {}

  /// Holds a communicator.
  template <Communicator C>
    requires(!std::is_same_v<C, AnyCommunicator>)
  explicit AnyCommunicator(C ranks) : held_(std::make_shared<Held<C>>(std::move(ranks))) {}

  // A move copies as well, so that no rank is left empty.
  AnyCommunicator(const AnyCommunicator&) = default;             ///< The same rank.
  AnyCommunicator& operator=(const AnyCommunicator&) = default;  ///< The same rank.

  /// As the one inside.
  int rank() const { return held_->rank(); }
  /// As the one inside.
  int size() const { return held_->size(); }
  /// As the one inside.
  void send(int to, std::span<const std::byte> bytes) { held_->send(to, bytes); }
  /// As the one inside.
  void receive(int from, std::span<std::byte> bytes) { held_->receive(from, bytes); }
  /// As the one inside.
  void exchange(int to, std::span<const std::byte> bytes, int from, std::span<std::byte> into) {
    held_->exchange(to, bytes, from, into);
  }
  /// As the one inside.
  void all_reduce(std::span<float> values) { held_->all_reduce(values); }
  /// As the one inside.
  void all_reduce(std::span<double> values) { held_->all_reduce(values); }
  /// As the one inside.
  void broadcast(std::span<std::byte> bytes, int root) { held_->broadcast(bytes, root); }
  /// As the one inside.
  void barrier() { held_->barrier(); }
  /// As the one inside.
  void abort(const std::string& why) { held_->abort(why); }
  /// As the one inside.
  bool any_thread() const { return held_->any_thread(); }

 private:
  struct Base {
    virtual ~Base() = default;
    virtual int rank() const = 0;
    virtual int size() const = 0;
    virtual void send(int to, std::span<const std::byte> bytes) = 0;
    virtual void receive(int from, std::span<std::byte> bytes) = 0;
    virtual void exchange(int to, std::span<const std::byte> bytes, int from,
                          std::span<std::byte> into) = 0;
    virtual void all_reduce(std::span<float> values) = 0;
    virtual void all_reduce(std::span<double> values) = 0;
    virtual void broadcast(std::span<std::byte> bytes, int root) = 0;
    virtual void barrier() = 0;
    virtual void abort(const std::string& why) = 0;
    virtual bool any_thread() const = 0;
  };

  template <class C>
  struct Held final : Base {
    explicit Held(C of) : ranks(std::move(of)) {}
    int rank() const override { return ranks.rank(); }
    int size() const override { return ranks.size(); }
    void send(int to, std::span<const std::byte> bytes) override { ranks.send(to, bytes); }
    void receive(int from, std::span<std::byte> bytes) override { ranks.receive(from, bytes); }
    void exchange(int to, std::span<const std::byte> bytes, int from,
                  std::span<std::byte> into) override {
      ranks.exchange(to, bytes, from, into);
    }
    void all_reduce(std::span<float> values) override { ranks.all_reduce(values); }
    void all_reduce(std::span<double> values) override { ranks.all_reduce(values); }
    void broadcast(std::span<std::byte> bytes, int root) override { ranks.broadcast(bytes, root); }
    void barrier() override { ranks.barrier(); }
    void abort(const std::string& why) override { ranks.abort(why); }
    bool any_thread() const override { return detail::any_thread(ranks); }

    C ranks;
  };

  std::shared_ptr<Base> held_;
};

}  // namespace infty
