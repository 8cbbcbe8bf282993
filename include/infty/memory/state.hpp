// SPDX-License-Identifier: MIT
#pragma once

#include <algorithm>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

#include <infty/autograd/variable.hpp>
#include <infty/core/finite.hpp>
#include <infty/core/pool.hpp>
#include <infty/nn/parameters.hpp>

namespace infty {

/// One number a row.
using RowCounts = std::vector<Index, PoolAllocator<Index>>;

/// What a row is called by the random numbers drawn for it; resetting a row keeps it.
struct RowIds {
  RowCounts id;
};

/// A sequence a row, each of its own length, aligned to the right.
template <class T, class Backend = EigenBackend>
struct RowSequences {
  Tensor<T, Backend> vectors;  ///< [batch, L, d], zeros in front of a shorter row
  RowCounts length;            ///< [batch], each <= L

  template <class Visitor>
  void visit(Visitor&& see) {
    see("vectors", vectors);
    see("length", length);
  }
};

// A memory's state is a struct with a batch of independent rows. Like a layer, it names its members
// once: tensors [batch, ...], RowCounts, RowIds, smaller states, and vectors or optionals of these.
// A row whose tensors and counts are all zero is a fresh row. Tensors that hold sequences, [batch,
// L, ...], are aligned to the right, with zeros in front. From `visit` come all of the functions
// below.

namespace detail {

template <class M>
inline constexpr bool is_tensor = false;
template <class T, class B>
inline constexpr bool is_tensor<Tensor<T, B>> = true;
template <class T, class B>
inline constexpr bool is_tensor<Variable<T, B>> = true;

template <class T, class B>
const Tensor<T, B>& tensor_of(const Tensor<T, B>& tensor) {
  return tensor;
}
template <class T, class B>
const Tensor<T, B>& tensor_of(const Variable<T, B>& variable) {
  return variable.value();
}

/// A copy that is right-aligned in dimension 1 of extent `length`, of rows [begin, end).
template <class T, class B>
Tensor<T, B> aligned(const Tensor<T, B>& x, Index begin, Index end, Index length) {
  if (x.rank() < 2 || x.dim(1) == length) return x.slice(begin, end).clone();
  auto y = Tensor<T, B>::zeros(x.shape().with(0, end - begin).with(1, length));
  const Index inner = x.shape().size(2, x.rank()), from = x.dim(1) * inner, to = length * inner;
  const Index width = std::min(from, to);
  for (Index row = begin; row < end; ++row)
    B::copy(y.data() + (row - begin + 1) * to - width, x.data() + (row + 1) * from - width, width);
  return y;
}

}  // namespace detail

namespace detail {

/// `for_each_member` without names, which allocates nothing.
template <class Member, class F>
void each_member(Member& member, F&& f) {
  using M = std::remove_const_t<Member>;
  if constexpr (is_tensor<M> || std::is_same_v<M, RowCounts> || std::is_same_v<M, RowIds>) {
    f(member);
  } else if constexpr (Layer<Member>) {  // which names its members as a layer does
    member.visit([&](std::string_view, auto& inner) { each_member(inner, f); });
  } else if constexpr (is_optional<M>) {
    if (member) each_member(*member, f);
  } else {
    for (auto& inner : member) each_member(inner, f);
  }
}

}  // namespace detail

/// Calls f(name, member) for every tensor, RowCounts and RowIds of a state, nested names joined by
/// dots, entries of a vector numbered.
template <class Member, class F>
void for_each_member(Member& member, F&& f, const std::string& name = "") {
  using M = std::remove_const_t<Member>;
  if constexpr (detail::is_tensor<M> || std::is_same_v<M, RowCounts> || std::is_same_v<M, RowIds>) {
    f(name, member);
  } else if constexpr (Layer<Member>) {  // which names its members as a layer does
    member.visit([&](std::string_view part, auto& inner) {
      for_each_member(inner, f, name.empty() ? std::string(part) : name + '.' + std::string(part));
    });
  } else if constexpr (detail::is_optional<M>) {
    if (member) for_each_member(*member, f, name);
  } else {
    for (std::size_t i = 0; i < member.size(); ++i)
      for_each_member(member[i], f, name + '.' + std::to_string(i));
  }
}

/// Number of rows of a state.
template <class State>
Index batch_of(const State& state) {
  Index rows = -1;
  detail::each_member(const_cast<State&>(state), [&](auto& member) {
    if constexpr (requires { member.dim(0); }) {
      if (rows < 0) rows = member.dim(0);
    }
  });
  return rows < 0 ? 0 : rows;
}

/// Bytes that a state holds for what it remembers.
template <class State>
std::size_t bytes_of(const State& state) {
  std::size_t bytes = 0;
  detail::each_member(const_cast<State&>(state), [&](auto& member) {
    using M = std::remove_reference_t<decltype(member)>;
    if constexpr (detail::is_tensor<M>) {
      bytes += detail::tensor_of(member).bytes();
    } else if constexpr (std::is_same_v<M, RowIds>) {
      bytes += member.id.size() * sizeof(Index);
    } else {
      bytes += member.size() * sizeof(Index);
    }
  });
  return bytes;
}

/// Whether no tensor of a state holds NaN or infinity.
template <class State>
bool is_finite(const State& state) {
  bool finite = true;
  detail::each_member(const_cast<State&>(state), [&](auto& member) {
    if constexpr (detail::is_tensor<std::remove_reference_t<decltype(member)>>)
      finite = finite && detail::all_finite(detail::tensor_of(member));
  });
  return finite;
}

/// Makes one row fresh; the other rows, and copies of the state, keep what they have.
/// @throws infty::ShapeError if there is no such row
template <class State>
void reset_row(State& state, Index row) {
  const Index batch = batch_of(state);
  require<ShapeError>(row >= 0 && row < batch, "reset_row", "row is ", row, ": there are ", batch);
  detail::each_member(state, [&](auto& member) {
    using M = std::remove_reference_t<decltype(member)>;
    if constexpr (detail::is_tensor<M>) {
      auto copy = detail::tensor_of(member).clone();
      copy.slice(row, row + 1).fill(0);
      member = M(copy);
    } else if constexpr (std::is_same_v<M, RowCounts>) {
      member[static_cast<std::size_t>(row)] = 0;
    }
  });
}

/// A state of copies of rows [begin, end). @throws infty::ShapeError if they are not there
template <class State>
State take_rows(const State& state, Index begin, Index end) {
  const Index batch = batch_of(state);
  require<ShapeError>(0 <= begin && begin <= end && end <= batch, "take_rows", "[", begin, ", ",
                      end, "): there are ", batch, " rows");
  const auto cut = [=](RowCounts& counts) {
    counts = RowCounts(counts.begin() + begin, counts.begin() + end);
  };
  State out = state;
  detail::each_member(out, [&](auto& member) {
    using M = std::remove_reference_t<decltype(member)>;
    if constexpr (detail::is_tensor<M>) {
      member = M(detail::tensor_of(member).slice(begin, end).clone());
    } else if constexpr (std::is_same_v<M, RowIds>) {
      cut(member.id);
    } else {
      cut(member);
    }
  });
  return out;
}

/// A state of the rows of all parts, one behind the other: what `take_rows` has taken apart. Parts
/// are a range of at least one state of the same memory.
/// @throws infty::ShapeError if the parts do not fit
template <class Parts>
auto join_rows(const Parts& parts) {
  using State = std::remove_cvref_t<decltype(*parts.begin())>;
  require<ShapeError>(parts.begin() != parts.end(), "join_rows", "there are no parts");
  std::vector<void*, PoolAllocator<void*>> members;  // of all parts, each in the order of `visit`
  for (const State& part : parts)
    detail::each_member(const_cast<State&>(part),
                        [&](auto& member) { members.push_back(&member); });
  State out = *parts.begin();
  std::size_t each = 0, index = 0;
  detail::each_member(out, [&](auto&) { ++each; });
  require<ShapeError>(members.size() == each * static_cast<std::size_t>(parts.size()), "join_rows",
                      "the parts have different members");
  detail::each_member(out, [&](auto& member) {
    using M = std::remove_reference_t<decltype(member)>;
    const auto for_each_part = [&](auto&& f) {
      for (std::size_t at = index; at < members.size(); at += each)
        f(*static_cast<const M*>(members[at]));
    };
    if constexpr (detail::is_tensor<M>) {
      Index rows = 0, length = 0;
      for_each_part([&](const M& part) {
        const auto& x = detail::tensor_of(part);
        rows += x.dim(0);
        if (x.rank() >= 2) length = std::max(length, x.dim(1));
      });
      auto shape = detail::tensor_of(member).shape().with(0, rows);
      if (shape.rank() >= 2) shape = shape.with(1, length);
      std::remove_cvref_t<decltype(detail::tensor_of(member))> joined(shape);
      Index at = 0;
      for_each_part([&](const M& part) {
        const auto x =
            detail::aligned(detail::tensor_of(part), 0, detail::tensor_of(part).dim(0), length);
        joined.slice(at, at + x.dim(0)).copy_from(x);
        at += x.dim(0);
      });
      member = M(joined);
    } else {
      const auto counts_of = [](auto& x) -> auto& {
        if constexpr (std::is_same_v<M, RowIds>)
          return x.id;
        else
          return x;
      };
      auto& joined = counts_of(member);
      joined.clear();
      for_each_part([&](const M& part) {
        joined.insert(joined.end(), counts_of(part).begin(), counts_of(part).end());
      });
    }
    ++index;
  });
  return out;
}

/// Replaces the rows from `at` on by all rows of another state of the same memory.
/// @throws infty::ShapeError if they do not fit; then nothing has changed
template <class State>
void put_rows(State& state, Index at, const State& rows) {
  const Index batch = batch_of(state), count = batch_of(rows);
  require<ShapeError>(at >= 0 && at + count <= batch, "put_rows", count, " rows at ", at,
                      ": there are ", batch);
  State out = state, in = rows;
  std::vector<void*> sources;
  std::vector<std::string> names;
  for_each_member(in, [&](const std::string& name, auto& member) {
    sources.push_back(&member);
    names.push_back(name);
  });
  std::size_t next = 0;
  const auto put = [=](RowCounts& to, const RowCounts& from) {
    std::copy(from.begin(), from.end(), to.begin() + at);
  };
  for_each_member(out, [&](const std::string& name, auto& member) {
    using M = std::remove_reference_t<decltype(member)>;
    require<ShapeError>(next < sources.size() && names[next] == name, "put_rows",
                        "the states differ at ", name);
    const M& from = *static_cast<const M*>(sources[next++]);
    if constexpr (detail::is_tensor<M>) {
      const auto &a = detail::tensor_of(member), &b = detail::tensor_of(from);
      const bool sequence = a.rank() >= 2 && b.rank() == a.rank();
      const Index length = sequence ? std::max(a.dim(1), b.dim(1)) : 0;
      require<ShapeError>(
          a.rank() == b.rank() &&
              (sequence ? a.shape().with(0, 0).with(1, 0) == b.shape().with(0, 0).with(1, 0)
                        : a.shape().with(0, 0) == b.shape().with(0, 0)),
          "put_rows", name, " is ", a.shape(), " and ", b.shape());
      auto joined = detail::aligned(a, 0, batch, length);
      if (count > 0) joined.slice(at, at + count).copy_from(detail::aligned(b, 0, count, length));
      member = M(joined);
    } else if constexpr (std::is_same_v<M, RowIds>) {
      put(member.id, from.id);
    } else {
      put(member, from);
    }
  });
  require<ShapeError>(next == sources.size(), "put_rows", "the rows have ", names.back(),
                      ", the state has not");
  state = std::move(out);
}

}  // namespace infty
