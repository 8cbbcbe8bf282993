// SPDX-License-Identifier: MIT
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include <infty/core/aligned.hpp>
#include <infty/core/finite.hpp>
#include <infty/core/pool.hpp>
#include <infty/core/state_members.hpp>

namespace infty::detail {

/// Members of the same name in several states of one memory, in the order in which their rows are
/// to stand.
using MemberParts = PoolVector<const void*>;

/// What the functions on states do to a member of one type. A state has many members and few types
/// of them: what stands here is compiled for each type once, and not for every state again.
struct MemberKind {
  Index (*rows)(const void*);          ///< -1 of a tensor that has none
  const Shape* (*shape)(const void*);  ///< null of what is no tensor
  std::size_t (*bytes)(const void*);
  bool (*finite)(const void*);
  void (*reset_row)(void*, Index);
  void (*keep_rows)(void*, Index, Index);
  void (*join)(void*, const MemberParts&, bool sequence);
  void (*put_rows)(void*, Index, const void*, bool sequence);
};

template <class M>
struct MemberKindOf {
  static M& in(void* at) { return *static_cast<M*>(at); }
  static const M& in(const void* at) { return *static_cast<const M*>(at); }

  static Index rows(const void* at) {
    if constexpr (is_tensor<M>)
      return tensor_of(in(at)).rank() > 0 ? tensor_of(in(at)).dim(0) : -1;
    else if constexpr (RowStore<M>)
      return in(at).rows();
    else
      return static_cast<Index>(counts_of(in(at)).size());
  }

  static const Shape* shape(const void* at) {
    if constexpr (is_tensor<M>)
      return &tensor_of(in(at)).shape();
    else
      return nullptr;
  }

  static std::size_t bytes(const void* at) {
    if constexpr (is_tensor<M>)
      return tensor_of(in(at)).bytes();
    else if constexpr (RowStore<M>)
      return in(at).bytes();
    else
      return counts_of(in(at)).size() * sizeof(Index);
  }

  static bool finite(const void* at);

  static void reset_row(void* at, Index row) {
    M& member = in(at);
    if constexpr (requires { member = std::as_const(member).without_row(row); }) {
      member = std::as_const(member).without_row(row);
    } else if constexpr (is_tensor<M>) {
      auto copy = tensor_of(member).clone();
      copy.slice(row, row + 1).fill(0);
      member = M(copy);
    } else if constexpr (std::is_same_v<M, RowCounts>) {
      member[static_cast<std::size_t>(row)] = 0;
    } else if constexpr (RowStore<M>) {
      member.reset_row(row);
    }
  }

  static void keep_rows(void* at, Index begin, Index end) {
    M& member = in(at);
    if constexpr (is_tensor<M>) {
      member = M(tensor_of(member).slice(begin, end).clone());
    } else if constexpr (RowStore<M>) {
      member.keep_rows(begin, end);
    } else {
      RowCounts& counts = counts_of(member);
      counts = RowCounts(counts.begin() + begin, counts.begin() + end);
    }
  }

  static void join(void* out, const MemberParts& parts, bool sequence) {
    M& member = in(out);
    if constexpr (is_tensor<M>) {
      Index rows = 0, length = 0;
      for (const void* part : parts) {
        rows += tensor_of(in(part)).dim(0);
        if (sequence) length = (std::max)(length, tensor_of(in(part)).dim(1));
      }
      const Shape all = tensor_of(member).shape().with(0, rows);
      std::remove_cvref_t<decltype(tensor_of(member))> joined(sequence ? all.with(1, length) : all);
      Index row = 0;
      for (const void* part : parts) {
        const auto& x = tensor_of(in(part));
        joined.slice(row, row + x.dim(0)).copy_from(sequence ? aligned(x, length) : x);
        row += x.dim(0);
      }
      member = M(joined);
    } else if constexpr (RowStore<M>) {
      for (std::size_t i = 1; i < parts.size(); ++i) member.append_rows(in(parts[i]));
    } else {
      RowCounts joined;
      for (const void* part : parts) {
        const RowCounts& counts = counts_of(in(part));
        joined.insert(joined.end(), counts.begin(), counts.end());
      }
      counts_of(member) = std::move(joined);
    }
  }

  static void put_rows(void* to, Index row, const void* from, bool sequence) {
    M& member = in(to);
    if constexpr (is_tensor<M>) {
      const auto &a = tensor_of(member), &b = tensor_of(in(from));
      const Index length = sequence ? (std::max)(a.dim(1), b.dim(1)) : -1;
      if constexpr (requires { member = std::as_const(member).with_rows(row, in(from), length); })
        member = std::as_const(member).with_rows(row, in(from), length);
      else
        member = M(with_rows(a, row, b, length));
    } else if constexpr (RowStore<M>) {
      member.put_rows(row, in(from));
    } else {
      const RowCounts& counts = counts_of(in(from));
      std::copy(counts.begin(), counts.end(), counts_of(member).begin() + row);
    }
  }
};

template <class M>
inline constexpr MemberKind member_kind{MemberKindOf<M>::rows,      MemberKindOf<M>::shape,
                                        MemberKindOf<M>::bytes,     MemberKindOf<M>::finite,
                                        MemberKindOf<M>::reset_row, MemberKindOf<M>::keep_rows,
                                        MemberKindOf<M>::join,      MemberKindOf<M>::put_rows};

/// The members of a state, in the order of its `visit`, without their types. It stands for them
/// where they are: not for longer than the state, nor behind a change of what it is made of. What
/// it takes is from the pool.
class MemberList {
 public:
  struct Entry {
    void* at;
    const MemberKind* kind;
    const RowCounts* length;  ///< the counts beside a tensor of sequences, else null
    std::uint64_t name;
  };

  template <class State>
  explicit MemberList(State& state) {
    walk_members(const_cast<std::remove_const_t<State>&>(state), *this, MemberPath());
  }

  /// Returns the name of a state's member number `index`.
  template <class State>
  static std::string name_of(State& state, std::size_t index) {
    return MemberList(state, index).wanted_name_;
  }

  auto begin() const { return entries_.begin(); }
  auto end() const { return entries_.end(); }
  std::size_t size() const { return entries_.size(); }
  const Entry& operator[](std::size_t i) const { return entries_[i]; }

  /// What a walk calls.
  template <class M>
  void operator()(const MemberPath& name, M& member, const RowCounts* length) {
    if (entries_.size() == wanted_) wanted_name_ = name.text();
    entries_.push_back({&member, &member_kind<M>, length, name.hash()});
  }

 private:
  template <class State>
  MemberList(State& state, std::size_t wanted) : wanted_(wanted) {
    walk_members(const_cast<std::remove_const_t<State>&>(state), *this, MemberPath());
  }

  PoolVector<Entry> entries_;
  std::size_t wanted_ = static_cast<std::size_t>(-1);
  std::string wanted_name_;
};

template <class M>
bool MemberKindOf<M>::finite(const void* at) {
  if constexpr (is_tensor<M>) {
    const auto& tensor = tensor_of(in(at));
    if constexpr (std::is_floating_point_v<typename std::remove_cvref_t<decltype(tensor)>::Scalar>)
      return all_finite(tensor);
  } else if constexpr (RowStore<M>) {
    const auto saved = in(at).saved();
    const MemberList members(saved);
    return std::all_of(members.begin(), members.end(),
                       [](const auto& member) { return member.kind->finite(member.at); });
  }
  return true;
}

}  // namespace infty::detail
