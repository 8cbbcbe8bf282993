// SPDX-License-Identifier: MIT
#pragma once

#include <concepts>
#include <cstddef>
#include <type_traits>

#include <infty/core/config.hpp>
#include <infty/core/visit.hpp>

namespace infty {

/// A member of a memory's state that keeps its rows in a way of its own, such as an index of keys:
///  - `rows()` says how many there are, `bytes()` what they take;
///  - `reset_row(i)` makes a row fresh, `keep_rows(begin, end)` drops all others,
///    `put_rows(at, other)` replaces those from `at` on by all of another's, and
///    `append_rows(other)` takes all of another's behind its own. A row, a range and a place are
///    checked before; another store that does not fit is refused by an exception, and then nothing
///    has changed;
///  - `saved()` tells all that it holds as a state of tensors and counts with as many rows, and
///    `restore(saved)` takes such a state in exchange, or throws and stays as it was.
/// A copy is independent of what was copied. One that is to be moved to another backend has
/// `to<Other>()` besides, as a tensor has.
template <class S>
concept RowStore = std::copyable<S> && requires(S& store, const S& other, Index row) {
  { other.rows() } -> std::same_as<Index>;
  { other.bytes() } -> std::same_as<std::size_t>;
  store.reset_row(row);
  store.keep_rows(row, row);
  store.put_rows(row, other);
  store.append_rows(other);
  requires Visitable<std::remove_cvref_t<decltype(other.saved())>>;
  store.restore(other.saved());
};

}  // namespace infty
