// SPDX-License-Identifier: MIT
#pragma once

#include <algorithm>
#include <cstddef>
#include <span>
#include <string_view>
#include <utility>
#include <vector>

#include <infty/core/error.hpp>
#include <infty/core/visit.hpp>
#include <infty/parallel/communicator.hpp>
#include <infty/train/adam.hpp>

namespace infty::detail {

/// Throws infty::ValueError unless an optimiser has all moments, or shares them with these ranks.
template <class T, class B, Communicator C>
void require_shared_with(const Adam<T, B>& adam, const C& ranks) {
  require(adam.owners().empty() || adam.shared_as(ranks.rank(), ranks.size()), "train_step",
          "the moments are shared out over other ranks than rank ", ranks.rank(), " of ",
          ranks.size());
}

/// Gives all ranks the parameters that each has updated, whose moments it has.
template <class T, class B, Communicator C>
void share_updates(const Adam<T, B>& adam, C& ranks) {
  if (adam.owners().empty() || ranks.size() == 1) return;
  const auto& parameters = adam.parameters();
  const auto each_of = [&](int owner, auto&& see) {
    std::size_t at = 0;
    for (std::size_t i = 0; i < parameters.size(); ++i)
      if (adam.owners()[i] == owner && parameters[i].variable.has_grad()) {
        see(parameters[i].variable, at);
        at += static_cast<std::size_t>(parameters[i].variable.size());
      }
    return at;
  };
  const auto size_of = [&](int owner) {
    return each_of(owner, [](const Variable<T, B>&, std::size_t) {});
  };
  const int size = ranks.size(), rank = ranks.rank();
  std::vector<T> own(size_of(rank)), other;
  each_of(rank, [&](const Variable<T, B>& variable, std::size_t at) {
    B::to_host(own.data() + at, variable.value().data(), variable.size());
  });
  for (int i = 1; i < size; ++i) {
    const int to = (rank + i) % size, from = (rank + size - i) % size;
    other.resize(size_of(from));
    ranks.exchange(to, std::as_bytes(std::span(std::as_const(own))), from,
                   std::as_writable_bytes(std::span(other)));
    each_of(from, [&](Variable<T, B> variable, std::size_t at) {
      B::from_host(variable.value().data(), other.data() + at, variable.size());
    });
  }
}

/// The moments that an optimiser has, without its own count of steps, for a checkpoint.
template <class Optimizer>
struct MomentsOf {
  const Optimizer& optimizer;

  template <class Visitor>
  void visit(Visitor&& see) const {
    visit_members(optimizer, [&](std::string_view name, const auto& member) {
      if (name != "steps") see(name, member);
    });
  }
};

}  // namespace infty::detail
