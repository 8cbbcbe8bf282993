// SPDX-License-Identifier: MIT
#pragma once

#include <cstdio>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include <infty/memory/long_term_memory.hpp>
#include <infty/memory/mixed_memory.hpp>
#include <infty/memory/retention.hpp>
#include <infty/memory/uniform_memory.hpp>

#include "memories.hpp"

// Signals among the memories that are asked what they keep: by the share that a write leaves to the
// past, and by parts with one each.

namespace retention {

/// The constants of a signal of so many functions; fewer, where the widths do not divide them.
template <class Config>
Config signal(const Settings& s, Index functions) {
  Config config;
  config.model_dim = s.coordinates;
  config.heads = config.head_dim = 1;
  const Index centres = functions / std::ssize(s.widths);
  config.basis = centres * std::ssize(s.widths);
  config.widths.clear();
  for (const double width : s.widths)
    config.widths.push_back(width / static_cast<double>(centres - 1));
  config.samples = 2 * functions;
  config.ridge = .5;
  config.gate = false;
  return config;
}

/// Where each vector stands, the newest first: in the middle of its room.
inline std::vector<double> places(Index vectors, const std::function<double(Index)>& room) {
  std::vector<double> all;
  double newer = 0;
  for (Index age = 0; age < vectors; ++age) {
    const double own = room(age);
    all.push_back(1 - newer - own / 2);
    newer += own;
  }
  return all;
}

/// What a signal is at the places of these ages, [ages, d].
template <class Psi>
Tensor<float> values_at(const Psi& psi, const Tensor<float>& coefficients,
                        const std::vector<double>& place, const std::vector<Index>& ages) {
  std::vector<float> t;
  for (const Index age : ages)
    t.push_back(static_cast<float>(place[static_cast<std::size_t>(age)]));
  const auto n = static_cast<Index>(t.size());
  return resample(psi, coefficients, Tensor<float>::from(Shape{n}, t))
      .reshape(Shape{n, coefficients.dim(2)});
}

inline Memory fixed(const Settings& s, double tau, const char* color) {
  using M = infty::LongTermMemory<float>;
  auto config = signal<M::Config>(s, s.numbers);
  config.tau = tau;
  char name[40];
  std::snprintf(name, sizeof name, "tau %.3g", tau);
  const auto room = [s, tau](Index age) {
    return infty::room(infty::FixedContraction{tau}, s.segment, s.vectors, age);
  };
  return {name, std::string("fixed τ = ") + (name + 4), color,
          [functions = config.basis, room](Index age) {
            return infty::kept_by_signal(static_cast<double>(functions), room(age));
          },
          [s, config, room](Index) {
            const auto memory = std::make_shared<M>(config);
            const auto state = std::make_shared<M::State>(memory->make_state(1));
            const auto place = places(s.vectors, room);
            return Reader{
                [=](const Vectors& x) { memory->write(*state, x); },
                [=] {
                  return state->coefficients.value().reshape(Shape{config.basis, s.coordinates});
                },
                [=](const std::vector<Index>& ages) {
                  return values_at(memory->basis(), state->coefficients.value(), place, ages);
                }};
          }};
}

using Uniform = infty::UniformMemory<float>;

/// What a memory that is written by blocks keeps of a vector behind a stream of so many, by its
/// age: of what waits a mean's share, of the rest the signal's, by the room that each has there.
inline std::function<double(Index)> kept_by_blocks(
    const Uniform::Config& c, const infty::ContractionRule& rule,
    const std::function<double(Index written, Index age)>& room, Index vectors) {
  const auto waiting = infty::pooled_writes(rule, c.block, c.resolved_least_share(), vectors);
  return [=, cells = static_cast<double>(c.basis)](Index age) {
    if (age < waiting.held) return 1 / static_cast<double>(waiting.rate);
    return infty::kept_by_signal(cells, room(vectors - waiting.held, age - waiting.held));
  };
}

/// All numbers of such a memory, [N + means that wait, d].
inline Tensor<float> numbers_of(const Uniform::Config& c, const Uniform::State& state) {
  const Index d = c.model_dim, m = state.rate_of(0);
  return joined(
      state.signal.coefficients.value().reshape(Shape{c.basis, d}),
      state.means.value().reshape(Shape{c.block, d}).slice(0, (state.held.front() + m - 1) / m));
}

inline Memory uniform(const Settings& s, double power, const char* color) {
  auto config = signal<Uniform::Config>(s, s.numbers - s.block);
  config.block = s.block;
  config.power = power;
  char name[40];
  std::snprintf(name, sizeof name, "power %.3g", power);
  const infty::PowerContraction rule{power};
  const auto room = [rule](Index written, Index age) { return infty::room(rule, written, age); };
  return {name, std::string("power p = ") + (name + 6), color,
          kept_by_blocks(config, rule, room, s.vectors), [=](Index) {
            const auto memory = std::make_shared<Uniform>(config);
            const auto state = std::make_shared<Uniform::State>(memory->make_state(1));
            const auto place = places(s.vectors, [=](Index age) { return room(s.vectors, age); });
            return Reader{[=](const Vectors& x) { memory->write(*state, x); },
                          [=] { return numbers_of(config, *state); },
                          [=](const std::vector<Index>& ages) {
                            return values_at(memory->signal.basis(),
                                             memory->seen(*state).coefficients.value(), place,
                                             ages);
                          }};
          }};
}

/// A part that keeps to a fixed tau and one for which all of the past is alike, of half of the
/// numbers each: the state of a mixture by heads and of one by a learned gate.
inline Memory fixed_and_uniform(const Settings& s, double tau, const char* color) {
  using M = infty::MixedMemory<Uniform>;
  auto one = signal<Uniform::Config>(s, s.numbers - s.block);
  one.block = s.block;
  const infty::FixedContraction fixed{tau};
  const infty::PowerContraction power;
  const auto config = infty::mixed_config(one, {fixed, power}, infty::MixedReading::gate);
  const auto first = config.resolved_part(0), second = config.resolved_part(1);
  const auto of_first = kept_by_blocks(
      first, fixed,
      [=](Index written, Index age) { return infty::room(fixed, first.block, written, age); },
      s.vectors);
  const auto of_second = kept_by_blocks(
      second, power, [=](Index written, Index age) { return infty::room(power, written, age); },
      s.vectors);
  char name[40], title[60];
  std::snprintf(name, sizeof name, "tau %.3g and power 1", tau);
  std::snprintf(title, sizeof title, "τ = %.3g and p = 1", tau);
  return {name, title, color,
          [=](Index age) {
            return infty::kept_by_parts({of_first(age), of_second(age)});
          },
          [=](Index) {
            const auto memory = std::make_shared<M>(config);
            const auto state = std::make_shared<M::State>(memory->make_state(1));
            return Reader{[=](const Vectors& x) { memory->write(*state, x); },
                          [=] {
                            return joined(numbers_of(first, state->parts[0]),
                                          numbers_of(second, state->parts[1]));
                          }};
          }};
}

}  // namespace retention
