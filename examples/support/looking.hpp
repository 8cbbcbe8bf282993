// SPDX-License-Identifier: MIT
#pragma once

#include <cmath>
#include <cstddef>
#include <iterator>
#include <sstream>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include <infty/core/state.hpp>
#include <infty/memory/ops/gate.hpp>
#include <infty/nn/pass.hpp>

#include "model.hpp"

// What the layers of a model show to a traced pass of one row, by value.

namespace support {

/// What a long-term memory is about to write of vectors that wait for it: where it samples its old
/// signal, and what passes the gate.
/// @param norm  norm(vectors), what comes to the memory of them
template <class Memory, class Past, class Norm>
LongTermView view_of_write(const Memory& memory, const Past& past, Norm&& norm) {
  LongTermView view;
  view.locations = memory.next_locations(past.memory).to_vector();
  infty::Variable<float> taken = norm(infty::Variable<float>(past.leaving.vectors));
  if (memory.config().gate) taken = infty::gate(taken, memory.gate_weight, memory.gate_bias);
  view.taken = taken.value().to_vector();
  return view;
}

/// Adds to the views of the layers what these have shown to a pass of one row.
inline void add_trace(std::vector<LongTermView>& views, const infty::Pass<float>& pass) {
  std::size_t densities = 0, retrieved = 0;
  const auto view_of = [&](std::size_t layer) -> LongTermView& {
    if (layer >= views.size()) views.resize(layer + 1);
    return views[layer];
  };
  for (const auto& entry : pass.trace) {
    const auto numbers = [&] { return entry.value.value().to_vector(); };
    if (entry.name == "retrieved_distances") {
      for (const float n : numbers()) view_of(retrieved).distances.push_back(static_cast<Index>(n));
      ++retrieved;
    }
    if (entry.name != "density") continue;
    LongTermView& view = view_of(densities++);
    if (entry.value.dim(0) == 1) {  // (1, heads, length, points)
      view.density = numbers();
      continue;
    }
    const auto both = numbers();  // (2, 1, heads, length), means and variances
    const auto middle = both.begin() + std::ssize(both) / 2;
    view.mu.assign(both.begin(), middle);
    for (auto at = middle; at != both.end(); ++at) view.sigma.push_back(std::sqrt(*at));
  }
}

/// Adds how much each layer's long-term memory has taken in, of a state of one row.
template <class State>
void add_counts(std::vector<LongTermView>& views, const State& state) {
  std::size_t written = 0, writes = 0;
  infty::for_each_member(state, [&]<class Member>(const std::string& name, const Member& member) {
    if constexpr (std::is_same_v<Member, infty::RowCounts>) {
      if (name.ends_with("past.memory.written") && written < views.size())
        views[written++].written = member.front();
      if (name.ends_with("past.memory.writes") && writes < views.size())
        views[writes++].writes = member.front();
    }
  });
}

/// All that layers have shown to a pass of one row which says what its dimensions are.
inline std::vector<Shown> shown_to(const infty::Pass<float>& pass) {
  std::vector<Shown> all;
  for (const auto& entry : pass.trace) {
    if (entry.axes.empty()) continue;
    Shown& one = all.emplace_back();
    one.name = entry.name;
    one.layer = entry.layer;
    std::istringstream axes{std::string(entry.axes)};
    infty::Index i = 0;
    for (std::string axis; axes >> axis; ++i) {
      if (axis == "row") continue;
      one.axes.push_back(axis);
      one.shape.push_back(entry.value.dim(i));
    }
    one.values = entry.value.value().to_vector();
  }
  return all;
}

}  // namespace support
