// SPDX-License-Identifier: MIT
#pragma once

#include <algorithm>
#include <list>
#include <memory>
#include <mutex>
#include <string>
#include <type_traits>
#include <utility>
#include <variant>
#include <vector>

#include <infty/autograd/variable.hpp>
#include <infty/core/state.hpp>

namespace infty {

template <class T, class Backend = EigenBackend>
class AnyState;

/// A `RowStore` inside an `AnyState`, whatever its type: a handle, which does to that store what is
/// done to it.
template <class T, class Backend>
class AnyRowStore {
 public:
  /// Makes one that stands for a store, which must stay where it is.
  template <RowStore S>
  static AnyRowStore of(S& store) {
    AnyRowStore any;
    any.at_ = &store;
    any.does_ = &functions<S>;
    return any;
  }

  /// Whether both stand for the same store.
  friend bool operator==(const AnyRowStore&, const AnyRowStore&) = default;

  // What the store does, and throws.

  /// Counts its rows.
  Index rows() const { return does_->rows(at_); }
  /// Counts the bytes of all of them.
  std::size_t bytes() const { return does_->bytes(at_); }
  /// Makes a row fresh.
  void reset_row(Index row) { does_->reset_row(at_, row); }
  /// Drops all rows but [begin, end).
  void keep_rows(Index begin, Index end) { does_->keep_rows(at_, begin, end); }
  /// Puts another's rows in the place of its own from `at` on.
  /// @throws infty::ShapeError unless the other is of the same type
  void put_rows(Index at, const AnyRowStore& other) { does_->put_rows(at_, at, other.like(*this)); }
  /// Takes all rows of another behind its own.
  /// @throws infty::ShapeError unless the other is of the same type
  void append_rows(const AnyRowStore& other) { does_->append_rows(at_, other.like(*this)); }
  /// Tells all that it holds as a state of tensors and counts.
  AnyState<T, Backend> saved() const { return does_->saved(at_); }
  /// Takes such a state in exchange for its own.
  void restore(const AnyState<T, Backend>& saved) { does_->restore(at_, saved); }

 private:
  AnyRowStore() = default;

  struct Functions {
    Index (*rows)(const void*);
    std::size_t (*bytes)(const void*);
    void (*reset_row)(void*, Index);
    void (*keep_rows)(void*, Index, Index);
    void (*put_rows)(void*, Index, const void*);
    void (*append_rows)(void*, const void*);
    AnyState<T, Backend> (*saved)(const void*);
    void (*restore)(void*, const AnyState<T, Backend>&);
  };

  template <class S>
  static S& in(void* at) {
    return *static_cast<S*>(at);
  }
  template <class S>
  static const S& in(const void* at) {
    return *static_cast<const S*>(at);
  }

  template <class S>
  static constexpr Functions functions{
      [](const void* at) { return in<S>(at).rows(); },
      [](const void* at) { return in<S>(at).bytes(); },
      [](void* at, Index row) { in<S>(at).reset_row(row); },
      [](void* at, Index begin, Index end) { in<S>(at).keep_rows(begin, end); },
      [](void* at, Index row, const void* other) { in<S>(at).put_rows(row, in<S>(other)); },
      [](void* at, const void* other) { in<S>(at).append_rows(in<S>(other)); },
      [](const void* at) { return AnyState<T, Backend>(in<S>(at).saved()); },
      [](void* at, const AnyState<T, Backend>& saved) {
        using Saved = std::remove_cvref_t<decltype(in<S>(at).saved())>;
        const auto* const own = saved.template get<Saved>();
        require<ShapeError>(own, "AnyRowStore::restore", "what was saved is another store's");
        in<S>(at).restore(*own);
      }};

  const void* like(const AnyRowStore& other) const {
    require<ShapeError>(does_ == other.does_, "AnyRowStore", "the stores are of different types");
    return at_;
  }

  void* at_ = nullptr;
  const Functions* does_ = nullptr;
};

/// What an `AnyLayer` remembers: the state of the layer inside. Copies are independent of each
/// other. It names the members of that state as they name themselves, so that rows are reset,
/// moved, saved and loaded as those of any state.
template <class T, class Backend>
class AnyState {
  using V = Variable<T, Backend>;
  /// Of the other precision, such as sums in double beside vectors in float.
  using OtherTensor = Tensor<std::conditional_t<std::is_same_v<T, double>, float, double>, Backend>;
  struct Group;
  /// All that a state may be made of.
  using Member = std::variant<Tensor<T, Backend>*, OtherTensor*, Tensor<Index, Backend>*, V*,
                              RowSequences<T, Backend>*, RowCounts*, RowIds*,
                              AnyRowStore<T, Backend>*, Group*>;
  struct Named {
    std::string name;
    Member member;
  };
  /// The members of a state or of one inside of it, as they stand there: a walk looks for counts
  /// named "length" beside what they are of.
  struct Group {
    std::vector<Named> members = {};
    std::list<Group> inner = {};  ///< those that are groups themselves

    template <class Visitor>
    void visit(Visitor&& see) {
      for (auto& [name, member] : members)
        std::visit([&, &part = name](auto* at) { see(part, *at); }, member);
    }
  };
  /// Those that `visit` has named. Whoever walks a state keeps their addresses, as he keeps those
  /// of its members.
  using Stores = std::list<AnyRowStore<T, Backend>>;

 public:
  AnyState() = default;

  /// Holds a state of a layer.
  template <class State>
    requires(!std::is_same_v<State, AnyState> && Visitable<State>)
  explicit AnyState(State state) : held_(std::make_unique<Held<State>>(std::move(state))) {}

  /// Copies the state inside.
  AnyState(const AnyState& other) : held_(other.held_ ? other.held_->copy() : nullptr) {}
  AnyState(AnyState&&) noexcept = default;  ///< Leaves the other one empty.
  /// Becomes the other one.
  AnyState& operator=(AnyState other) noexcept {
    held_ = std::move(other.held_);
    return *this;
  }
  ~AnyState() = default;

  /// The state inside, if it is of this type; null otherwise.
  template <class State>
  State* get() {
    auto* const held = dynamic_cast<Held<State>*>(held_.get());
    return held ? &held->state : nullptr;
  }
  /// The same, read-only.
  template <class State>
  const State* get() const {
    return const_cast<AnyState*>(this)->template get<State>();
  }

  template <class Visitor>
  void visit(Visitor&& see) {
    if (!held_) return;
    Group all;
    held_->list(all);
    all.visit(see);
  }

 private:
  struct Base {
    virtual ~Base() = default;
    virtual std::unique_ptr<Base> copy() const = 0;
    virtual void list(Group& all) = 0;
  };

  template <class State>
  struct Held final : Base {
    State state;
    explicit Held(State inside) : state(std::move(inside)) {}
    std::unique_ptr<Base> copy() const override { return std::make_unique<Held>(state); }
    void list(Group& all) override {
      const std::lock_guard lock(mutex_);  // several threads may look at one state
      add_members(state, all, stores_);
    }

   private:
    std::mutex mutex_;
    Stores stores_;
  };

  template <class M>
  static void add_members(M& of, Group& to, Stores& stores) {
    of.visit(
        [&](std::string_view part, auto& inner) { add(inner, std::string(part), to, stores); });
  }

  template <class M>
  static void add(M& member, const std::string& name, Group& to, Stores& stores) {
    const auto nested = [&]() -> Group& {
      Group& group = to.inner.emplace_back();
      to.members.push_back({name, &group});
      return group;
    };
    if constexpr (!std::is_same_v<M, Group> && std::is_constructible_v<Member, M*>) {
      to.members.push_back({name, &member});
    } else if constexpr (RowStore<M>) {
      const auto store = AnyRowStore<T, Backend>::of(member);
      auto at = std::find(stores.begin(), stores.end(), store);
      if (at == stores.end()) at = stores.insert(at, store);
      to.members.push_back({name, &*at});
    } else if constexpr (Visitable<M>) {
      add_members(member, nested(), stores);
    } else if constexpr (detail::is_optional<M>) {
      if (member) add(*member, name, to, stores);
    } else {
      Group& entries = nested();
      for (std::size_t i = 0; i < member.size(); ++i)
        add(member[i], std::to_string(i), entries, stores);
    }
  }

  std::unique_ptr<Base> held_;
};

}  // namespace infty
