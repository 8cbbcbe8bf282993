// SPDX-License-Identifier: MIT
#pragma once

#include <algorithm>
#include <cstddef>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include <infty/core/finite.hpp>
#include <infty/core/pool.hpp>
#include <infty/core/state_members.hpp>

namespace infty {

namespace detail {

/// A copy that is right-aligned in dimension 1 of extent `length`, of sequences.
template <class T, class B>
Tensor<T, B> aligned(const Tensor<T, B>& x, Index length) {
  if (x.dim(1) == length) return x;
  const Index rows = x.dim(0);
  auto y = Tensor<T, B>::zeros(x.shape().with(1, length));
  const Index inner = x.shape().size(2, x.rank()), from = x.dim(1) * inner, to = length * inner;
  const Index width = (std::min)(from, to);
  T* const out = y.data();
  for (Index row = 0; row < rows; ++row)
    B::copy(out + (row + 1) * to - width, x.data() + (row + 1) * from - width, width);
  return y;
}

/// Rows of a member, -1 of a tensor that has none.
template <class Member>
Index rows_of(const Member& member) {
  if constexpr (is_tensor<Member>)
    return tensor_of(member).rank() > 0 ? tensor_of(member).dim(0) : -1;
  else if constexpr (RowStore<Member>)
    return member.rows();
  else
    return static_cast<Index>(counts_of(member).size());
}

/// The number of rows that all members of a state have.
/// @throws infty::ShapeError that names `op` and a member that has another number, or a sequence
/// that is shorter than the counts beside it say
template <class State>
Index checked_rows(const char* op, const State& state) {
  Index rows = -1;
  std::size_t index = 0;
  walk_members(
      state,
      [&](const HashedName&, auto& member, const RowCounts* counts) {
        using M = std::remove_reference_t<decltype(member)>;
        const Index here = rows_of(member);
        if (index == 0) rows = here;
        if (here != rows || here < 0)
          raise<ShapeError>(op, "the state's ", member_name(state, index), " has ", here,
                            " rows, its ", member_name(state, 0), " ", rows);
        if constexpr (is_tensor<M>)
          if (counts)
            for (const Index n : *counts)
              if (n < 0 || n > tensor_of(member).dim(1))
                raise<ShapeError>(op, "the state's ", member_name(state, index), " is ",
                                  tensor_of(member).shape(), ", and a row of it has ", n,
                                  " vectors");
        ++index;
      },
      HashedName{});
  return rows < 0 ? 0 : rows;
}

/// Throws unless tensors of two states differ in their rows only, and sequences in their lengths.
template <class State>
void require_joinable(const char* op, const State& state, std::size_t index, const Shape& a,
                      const Shape& b, bool sequence) {
  bool fits = a.rank() == b.rank();
  for (Index i = sequence ? 2 : 1; fits && i < a.rank(); ++i) fits = a[i] == b[i];
  if (!fits) raise<ShapeError>(op, member_name(state, index), " is ", a, " and ", b);
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
  detail::each_member(state, [&](auto& member) {
    using M = std::remove_reference_t<decltype(member)>;
    if constexpr (detail::is_tensor<M>) {
      bytes += detail::tensor_of(member).bytes();
    } else if constexpr (RowStore<std::remove_const_t<M>>) {
      bytes += member.bytes();
    } else {
      bytes += detail::counts_of(member).size() * sizeof(Index);
    }
  });
  return bytes;
}

/// Returns whether no tensor of a state, nor of what a store in it saves, holds NaN or infinity.
template <Visitable State>
bool is_finite(const State& state) {
  bool finite = true;
  const auto look = [&](const detail::HashedName&, auto& member, const RowCounts*) {
    if constexpr (detail::is_tensor<std::remove_reference_t<decltype(member)>>) {
      const auto& tensor = detail::tensor_of(member);
      if constexpr (std::is_floating_point_v<
                        typename std::remove_cvref_t<decltype(tensor)>::Scalar>)
        finite = finite && detail::all_finite(tensor);
    }
  };
  detail::walk_saved(state, look, detail::HashedName{});
  return finite;
}

/// Makes one row fresh; the other rows, and copies of the state, keep what they have. Gradients
/// still flow to what the other rows' variables were computed from.
/// @throws infty::ShapeError if there is no such row, or members have different numbers of rows
template <Visitable State>
void reset_row(State& state, Index row) {
  const Index batch = detail::checked_rows("reset_row", state);
  require<ShapeError>(row >= 0 && row < batch, "reset_row", "row is ", row, ": it must be one of ",
                      batch, " rows, from 0");
  detail::each_member(state, [&](auto& member) {
    using M = std::remove_reference_t<decltype(member)>;
    if constexpr (requires { member = std::as_const(member).without_row(row); }) {
      member = std::as_const(member).without_row(row);
    } else if constexpr (detail::is_tensor<M>) {
      auto copy = detail::tensor_of(member).clone();
      copy.slice(row, row + 1).fill(0);
      member = M(copy);
    } else if constexpr (std::is_same_v<M, RowCounts>) {
      member[static_cast<std::size_t>(row)] = 0;
    } else if constexpr (RowStore<M>) {
      member.reset_row(row);
    }
  });
}

/// Copies rows [begin, end) into a state of their own.
/// @throws infty::ShapeError if they are not there, or members have different numbers of rows
template <Visitable State>
State take_rows(const State& state, Index begin, Index end) {
  const Index batch = detail::checked_rows("take_rows", state);
  require<ShapeError>(0 <= begin && begin <= end && end <= batch, "take_rows", "[", begin, ", ",
                      end, "): there are ", batch, " rows");
  State out = state;
  detail::each_member(out, [&](auto& member) {
    using M = std::remove_reference_t<decltype(member)>;
    if constexpr (detail::is_tensor<M>) {
      member = M(detail::tensor_of(member).slice(begin, end).clone());
    } else if constexpr (RowStore<M>) {
      member.keep_rows(begin, end);
    } else {
      RowCounts& counts = detail::counts_of(member);
      counts = RowCounts(counts.begin() + begin, counts.begin() + end);
    }
  });
  return out;
}

/// Joins the rows of all parts, one behind the other: what `take_rows` has taken apart. Parts are a
/// range of at least one state of the same memory; sequences may be of different lengths.
/// @throws infty::ShapeError if the parts do not fit
template <class Parts>
  requires requires(const Parts& parts) {
    parts.end();
    requires Visitable<std::remove_cvref_t<decltype(*parts.begin())>>;
  }
auto join_rows(const Parts& parts) {
  using State = std::remove_cvref_t<decltype(*parts.begin())>;
  using detail::HashedName;
  require<ShapeError>(parts.begin() != parts.end(), "join_rows", "there are no parts");
  struct Member {
    const void* at;
    HashedName name;
  };
  std::vector<Member, PoolAllocator<Member>> members;  // of all parts, each in the order of `visit`
  std::size_t each = 0, index = 0;
  for (const State& part : parts) {
    detail::checked_rows("join_rows", part);
    const std::size_t begin = members.size();
    detail::walk_members(
        part,
        [&](const HashedName& name, auto& member, const RowCounts*) {
          members.push_back({&member, name});
        },
        HashedName{});
    if (begin == 0) each = members.size();
    bool same = members.size() - begin == each;
    for (std::size_t i = 0; same && i < each; ++i)
      same = members[begin + i].name == members[i].name;
    require<ShapeError>(same, "join_rows", "the parts have different members");
  }
  State out = *parts.begin();
  detail::walk_members(
      out,
      [&](const HashedName&, auto& member, const RowCounts* sequence) {
        using M = std::remove_reference_t<decltype(member)>;
        const auto for_each_part = [&](auto&& f) {
          for (std::size_t at = index; at < members.size(); at += each)
            f(*static_cast<const M*>(members[at].at));
        };
        if constexpr (detail::is_tensor<M>) {
          const Shape first = detail::tensor_of(member).shape();
          Index rows = 0, length = 0;
          for_each_part([&](const M& part) {
            const Shape& shape = detail::tensor_of(part).shape();
            detail::require_joinable("join_rows", *parts.begin(), index, first, shape, sequence);
            rows += shape[0];
            if (sequence) length = (std::max)(length, shape[1]);
          });
          const Shape shape = first.with(0, rows);
          std::remove_cvref_t<decltype(detail::tensor_of(member))> joined(
              sequence ? shape.with(1, length) : shape);
          Index at = 0;
          for_each_part([&](const M& part) {
            const auto& x = detail::tensor_of(part);
            joined.slice(at, at + x.dim(0)).copy_from(sequence ? detail::aligned(x, length) : x);
            at += x.dim(0);
          });
          member = M(joined);
        } else if constexpr (RowStore<M>) {
          bool first = true;
          for_each_part([&](const M& part) {
            if (!std::exchange(first, false)) member.append_rows(part);
          });
        } else {
          RowCounts joined;
          for_each_part([&](const M& part) {
            const RowCounts& counts = detail::counts_of(part);
            joined.insert(joined.end(), counts.begin(), counts.end());
          });
          detail::counts_of(member) = std::move(joined);
        }
        ++index;
      },
      HashedName{});
  return out;
}

/// Replaces the rows from `at` on by all rows of another state of the same memory; sequences may be
/// of different lengths. @throws infty::ShapeError if they do not fit; then nothing has changed
template <Visitable State>
void put_rows(State& state, Index at, const State& rows) {
  const Index batch = detail::checked_rows("put_rows", state),
              count = detail::checked_rows("put_rows", rows);
  require<ShapeError>(at >= 0 && at + count <= batch, "put_rows", count, " rows at ", at,
                      ": there are ", batch);
  using detail::DottedName;
  State out = state;
  std::vector<const void*> sources;
  std::vector<std::string> names;
  const auto note = [&](const DottedName& name, auto& member, const RowCounts*) {
    sources.push_back(&member);
    names.push_back(name.text);
  };
  detail::walk_members(rows, note, DottedName{});
  std::size_t next = 0;
  detail::walk_members(
      out,
      [&](const DottedName& name, auto& member, const RowCounts* sequence) {
        using M = std::remove_reference_t<decltype(member)>;
        require<ShapeError>(next < sources.size() && names[next] == name.text, "put_rows",
                            "the states differ at ", name.text);
        const M& from = *static_cast<const M*>(sources[next]);
        if constexpr (detail::is_tensor<M>) {
          const auto &a = detail::tensor_of(member), &b = detail::tensor_of(from);
          detail::require_joinable("put_rows", state, next, a.shape(), b.shape(), sequence);
          const Index length = sequence ? (std::max)(a.dim(1), b.dim(1)) : 0;
          auto joined = (sequence ? detail::aligned(a, length) : a).clone();
          joined.slice(at, at + count).copy_from(sequence ? detail::aligned(b, length) : b);
          member = M(joined);
        } else if constexpr (RowStore<M>) {
          member.put_rows(at, from);
        } else {
          const RowCounts& counts = detail::counts_of(from);
          std::copy(counts.begin(), counts.end(), detail::counts_of(member).begin() + at);
        }
        ++next;
      },
      DottedName{});
  require<ShapeError>(next == sources.size(), "put_rows", "the rows have ", names.back(),
                      ", the state has not");
  state = std::move(out);
}

}  // namespace infty
