// SPDX-License-Identifier: MIT
#pragma once

#include <algorithm>
#include <cstddef>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include <infty/core/member_list.hpp>

namespace infty {

namespace detail {

/// The number of rows that all members of a list have, which are those of `state`; `name_of` is
/// only called for an error.
inline Index checked_rows(const char* op, const MemberList& members, const void* state,
                          std::string (*name_of)(const void*, std::size_t)) {
  Index rows = -1;
  for (std::size_t i = 0; i < members.size(); ++i) {
    const auto& [at, kind, length, name] = members[i];
    const Index here = kind->rows(at);
    if (i == 0) rows = here;
    if (here < 0)
      raise<ShapeError>(op, "the state's ", name_of(state, i),
                        " is a scalar: it must be [batch, ...]");
    if (here != rows)
      raise<ShapeError>(op, "the state's ", name_of(state, i), " has ", here, " rows, its ",
                        name_of(state, 0), " ", rows);
    if (!length) continue;
    const Shape& shape = *kind->shape(at);
    for (const Index n : *length)
      if (n < 0 || n > shape[1])
        raise<ShapeError>(op, "the state's ", name_of(state, i), " is ", shape,
                          ", and a row of it has ", n, " vectors");
  }
  return rows < 0 ? 0 : rows;
}

/// The number of rows that all members of a state have.
/// @throws infty::ShapeError that names `op` and a member that has another number, or a sequence
/// that is shorter than the counts beside it say
template <class State>
Index checked_rows(const char* op, const State& state, const MemberList& members) {
  return checked_rows(op, members, &state, [](const void* at, std::size_t index) {
    return MemberList::name_of(*static_cast<const State*>(at), index);
  });
}
template <class State>
Index checked_rows(const char* op, const State& state) {
  return checked_rows(op, state, MemberList(state));
}

struct CollectRowIds {
  PoolVector<RowCounts>& ids;

  template <class M>
  void operator()(const M& member) const {
    if constexpr (std::is_same_v<M, RowIds>) ids.push_back(member.id);
  }
};

struct PutRowIds {
  PoolVector<RowCounts>& ids;
  std::size_t next = 0;

  template <class M>
  void operator()(M& member) {
    if constexpr (std::is_same_v<M, RowIds>)
      if (next < ids.size()) member.id = ids[next++];
  }
};

/// Has the rows of a fresh state draw from the streams that those of another of its memory have;
/// where that is empty, from their own.
template <class State>
void keep_row_ids(const State& from, State& fresh) {
  PoolVector<RowCounts> ids;
  each_member(from, CollectRowIds{ids});
  each_member(fresh, PutRowIds{ids});
}

/// Whether tensors of two states differ in their rows only, and sequences in their lengths.
inline bool are_joinable(const Shape& a, const Shape& b, bool sequence) {
  bool fits = a.rank() == b.rank();
  for (Index i = sequence ? 2 : 1; fits && i < a.rank(); ++i) fits = a[i] == b[i];
  return fits;
}

}  // namespace detail

/// Returns the number of rows of a state.
/// @throws infty::ShapeError that names a member with another number
template <Visitable State>
Index batch_of(const State& state) {
  return detail::checked_rows("batch_of", state);
}

/// Counts the bytes that a state holds for what it remembers: those of all members that its `visit`
/// names. What a memory keeps beside them to spare work, such as keys and values without a
/// gradient, is not among them (docs/recall.md).
template <Visitable State>
std::size_t bytes_of(const State& state) {
  std::size_t bytes = 0;
  for (const auto& member : detail::MemberList(state)) bytes += member.kind->bytes(member.at);
  return bytes;
}

/// Returns whether no tensor of a state, nor of what a store in it saves, holds NaN or infinity.
template <Visitable State>
bool is_finite(const State& state) {
  const detail::MemberList members(state);
  return std::all_of(members.begin(), members.end(),
                     [](const auto& member) { return member.kind->finite(member.at); });
}

/// Makes one row fresh; the other rows, and copies of the state, keep what they have. Gradients
/// still flow to what the other rows' variables were computed from.
/// @throws infty::ShapeError if there is no such row, or members have different numbers of rows
template <Visitable State>
void reset_row(State& state, Index row) {
  const detail::MemberList members(state);
  const Index batch = detail::checked_rows("reset_row", state, members);
  require<ShapeError>(row >= 0 && row < batch, "reset_row", "row is ", row, ": it must be one of ",
                      batch, " rows, from 0");
  for (const auto& member : members) member.kind->reset_row(member.at, row);
}

/// Copies rows [begin, end) into a state of their own.
/// @throws infty::ShapeError if they are not there, or members have different numbers of rows
template <Visitable State>
State take_rows(const State& state, Index begin, Index end) {
  const Index batch = detail::checked_rows("take_rows", state);
  require<ShapeError>(0 <= begin && begin <= end && end <= batch, "take_rows", "[", begin, ", ",
                      end, "): there are ", batch, " rows");
  State out = state;
  for (const auto& member : detail::MemberList(out)) member.kind->keep_rows(member.at, begin, end);
  return out;
}

/// Joins the rows of all parts, one behind the other: what `take_rows` has taken apart. Parts are a
/// range that holds at least one state of the same memory; sequences may be of different lengths.
/// @throws infty::ShapeError if the parts do not fit
template <class Parts>
  requires requires(const Parts& parts) {
    parts.end();
    requires std::is_lvalue_reference_v<decltype(*parts.begin())>;  // which stay where they are
    requires Visitable<std::remove_cvref_t<decltype(*parts.begin())>>;
  }
auto join_rows(const Parts& parts) {
  using State = std::remove_cvref_t<decltype(*parts.begin())>;
  using detail::MemberList;
  require<ShapeError>(parts.begin() != parts.end(), "join_rows", "there are no parts");
  PoolVector<MemberList> lists;
  for (const State& part : parts) {
    lists.emplace_back(part);
    detail::checked_rows("join_rows", part, lists.back());
    const bool same = std::equal(
        lists.front().begin(), lists.front().end(), lists.back().begin(), lists.back().end(),
        [](const auto& a, const auto& b) { return a.name == b.name && a.kind == b.kind; });
    require<ShapeError>(same, "join_rows", "the parts have different members");
  }
  State out = *parts.begin();
  const MemberList members(out);
  for (std::size_t i = 0; i < members.size(); ++i) {
    const auto& [at, kind, length, name] = members[i];
    detail::MemberParts of_parts;
    for (const MemberList& list : lists) {
      of_parts.push_back(list[i].at);
      if (const Shape* const first = kind->shape(at)) {
        const Shape& shape = *kind->shape(list[i].at);
        if (!detail::are_joinable(*first, shape, length))
          raise<ShapeError>("join_rows", MemberList::name_of(out, i), " is ", *first, " and ",
                            shape);
      }
    }
    kind->join(at, of_parts, length != nullptr);
  }
  return out;
}

/// Replaces the rows from `at` on by all rows of another state of the same memory; sequences may be
/// of different lengths. Gradients still flow to what the other rows' variables were computed from,
/// and those of the new ones. @throws infty::ShapeError if they do not fit; then nothing has
/// changed
template <Visitable State>
void put_rows(State& state, Index at, const State& rows) {
  using detail::MemberList;
  State out = state;
  const MemberList to(out), from(rows);
  const Index batch = detail::checked_rows("put_rows", out, to),
              count = detail::checked_rows("put_rows", rows, from);
  require<ShapeError>(at >= 0 && count <= batch && at <= batch - count, "put_rows", count,
                      " rows at ", at, ": there are ", batch);
  for (std::size_t i = 0; i < to.size(); ++i) {
    const auto& [place, kind, length, name] = to[i];
    if (i >= from.size() || from[i].name != name || from[i].kind != kind)
      raise<ShapeError>("put_rows", "the states differ at ", MemberList::name_of(out, i));
    if (const Shape* const a = kind->shape(place)) {
      const Shape& b = *kind->shape(from[i].at);
      if (!detail::are_joinable(*a, b, length))
        raise<ShapeError>("put_rows", MemberList::name_of(out, i), " is ", *a, " and ", b);
    }
    kind->put_rows(place, at, from[i].at, length != nullptr);
  }
  if (from.size() > to.size())
    raise<ShapeError>("put_rows", "the rows have ", MemberList::name_of(rows, from.size() - 1),
                      ", the state has not");
  state = std::move(out);
}

}  // namespace infty
