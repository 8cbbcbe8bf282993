// SPDX-License-Identifier: MIT
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include <infty/memory/compressive_memory.hpp>
#include <infty/memory/long_term_memory.hpp>
#include <infty/memory/ops/delta_rule.hpp>
#include <infty/memory/retention.hpp>
#include <infty/memory/short_term_memory.hpp>
#include <infty/memory/uniform_memory.hpp>

// The memories that are asked what they keep, and what formulas say of each.

namespace retention {

using infty::Index;
using infty::Random;
using infty::Shape;
using infty::Tensor;
using infty::Variable;
using Backend = infty::EigenBackend;
using Vectors = Variable<float, Backend>;

struct Settings {
  Index vectors = 4000, segment = 16, numbers = 64, block = 16, coordinates = 2048, ages = 48;
  std::vector<Index> seeds{1, 2, 3, 4};
  std::vector<double> widths{.8};  // in distances between centres
};

/// One memory that reads one stream, a row.
struct Reader {
  std::function<void(const Vectors&)> write;  ///< the next [1, L, d]
  std::function<Tensor<float>()> numbers;     ///< of the state, [F, d]
  /// What is read where vectors of these ages stand, [ages, d].
  std::function<Tensor<float>(const std::vector<Index>&)> at_place = {};
};

struct Memory {
  std::string name, title, color;
  std::function<double(Index)> formula;  ///< what is kept at this age
  std::function<Reader(Index seed)> begin;
  std::function<double(Index)> at_place = {};  ///< the same of a read at the vector's own place
};

inline infty::Pass<float> without_answer() { return {.answer = false}; }

/// [F, d] of the vectors that a queue holds.
inline Tensor<float> held(const infty::RowSequences<float, Backend>& queue) {
  const Index width = queue.vectors.dim(1), d = queue.vectors.dim(2), n = queue.length.front();
  return queue.vectors.reshape(Shape{width, d}).slice(width - n, width);
}

/// Both, one behind the other.
inline Tensor<float> joined(const Tensor<float>& a, const Tensor<float>& b) {
  Tensor<float> both(Shape{a.dim(0) + b.dim(0), a.dim(1)});
  both.slice(0, a.dim(0)).copy_from(a);
  both.slice(a.dim(0), both.dim(0)).copy_from(b);
  return both;
}

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

inline Memory uniform(const Settings& s, double power, const char* color) {
  using M = infty::UniformMemory<float>;
  auto config = signal<M::Config>(s, s.numbers - s.block);
  const Index functions = config.basis;
  config.block = s.block;
  config.power = power;
  char name[40];
  std::snprintf(name, sizeof name, "power %.3g", power);
  const infty::PowerContraction rule{power};
  const auto room = [s, rule](Index age) { return infty::room(rule, s.vectors, age); };
  const auto waiting =
      infty::pooled_writes(rule, s.block, config.resolved_least_share(), s.vectors);
  return {name, std::string("power p = ") + (name + 6), color,
          [=](Index age) {
            if (age < waiting.held) return 1 / static_cast<double>(waiting.rate);
            return infty::kept_by_signal(
                static_cast<double>(functions),
                infty::room(rule, s.vectors - waiting.held, age - waiting.held));
          },
          [=](Index) {
            const auto memory = std::make_shared<M>(config);
            const auto state = std::make_shared<M::State>(memory->make_state(1));
            const auto place = places(s.vectors, room);
            return Reader{
                [=](const Vectors& x) { memory->write(*state, x); },
                [=] {
                  const Index m = waiting.rate;
                  return joined(
                      state->signal.coefficients.value().reshape(Shape{functions, s.coordinates}),
                      state->means.value()
                          .reshape(Shape{s.block, s.coordinates})
                          .slice(0, (waiting.held + m - 1) / m));
                },
                [=](const std::vector<Index>& ages) {
                  return values_at(memory->signal.basis(),
                                   memory->seen(*state).coefficients.value(), place, ages);
                }};
          }};
}

inline infty::AttentionSizes attention_of(const Settings& s) {
  return {.model_dim = s.coordinates, .heads = 1, .head_dim = 1};
}

inline Memory queue(const Settings& s) {
  using M = infty::ShortTermMemory<float>;
  return {"xl", "Transformer-XL", "#000000",
          [s](Index age) { return infty::kept_by_queue(s.numbers, age); },
          [s](Index) {
            const auto memory =
                std::make_shared<M>(infty::ShortTermConfig{.capacity = s.numbers}, attention_of(s));
            const auto state = std::make_shared<M::State>(memory->make_state(1));
            return Reader{[=](const Vectors& x) {
                            auto pass = without_answer();
                            memory->forward(*state, x, {}, pass);
                          },
                          [=] { return held(state->recent); }};
          }};
}

inline Memory compressive(const Settings& s) {
  using M = infty::CompressiveMemory<float>;
  constexpr Index rate = 4;
  const Index half = s.numbers / 2;
  return {"compressive", "Compressive Transformer", "#7f7f7f",
          [=](Index age) { return infty::kept_by_compression(half, half, rate, age); },
          [=](Index) {
            const auto memory = std::make_shared<M>(
                infty::CompressiveConfig{.capacity = half,
                                         .compressed_capacity = half,
                                         .rate = rate,
                                         .compression = infty::Compression::mean},
                attention_of(s));
            const auto state = std::make_shared<M::State>(memory->make_state(1));
            return Reader{[=](const Vectors& x) {
                            auto pass = without_answer();
                            memory->forward(*state, x, {}, pass);
                          },
                          [=] { return joined(held(state->memory), held(state->compressed)); }};
          }};
}

/// Keys that are independent and uniform on the sphere, [1, L, 1, K] from place `first` on.
inline Tensor<float> random_keys(Index K, Index seed, Index first, Index L) {
  std::vector<float> keys;
  for (Index i = first; i < first + L; ++i) {
    Random random =
        Random(static_cast<std::uint64_t>(seed), static_cast<std::uint64_t>(i)).split(1);
    std::vector<double> key(static_cast<std::size_t>(K));
    double square = 0;
    for (double& k : key) {
      k = random.normal();
      square += k * k;
    }
    for (const double k : key) keys.push_back(static_cast<float>(k / std::sqrt(square)));
  }
  return Tensor<float>::from(Shape{1, L, 1, K}, keys);
}

inline Memory delta_rule(const Settings& s) {
  const Index K = s.numbers, d = s.coordinates;
  return {"delta",
          "delta rule",
          "#9467bd",
          [K](Index age) { return infty::kept_by_delta_rule(K, 1, age); },
          [=](Index seed) {
            const auto state = std::make_shared<Vectors>(Tensor<float>::zeros(Shape{1, 1, K, d}));
            const auto read = std::make_shared<Index>(0);
            return Reader{
                [=](const Vectors& x) {
                  const Index L = x.dim(1);
                  const auto keys = random_keys(K, seed, *read, L);
                  Tensor<float> beta(Shape{1, L, 1});
                  beta.fill(1);
                  *read += L;
                  *state = infty::delta_rule<float, Backend>(
                               {.query = keys,
                                .key = keys,
                                .value = x.value().reshape(Shape{1, L, 1, d}),
                                .beta = beta},
                               *state)
                               .state;
                },
                [=] {
                  return state->value().reshape(Shape{K, d});
                },
                [=](const std::vector<Index>& ages) {
                  const auto n = static_cast<Index>(ages.size());
                  Tensor<float> keys(Shape{n, K}), values(Shape{n, d});
                  for (Index i = 0; i < n; ++i)
                    keys.slice(i, i + 1).copy_from(
                        random_keys(K, seed, *read - 1 - ages[static_cast<std::size_t>(i)], 1)
                            .reshape(Shape{1, K}));
                  Backend::matmul(infty::Matmul{.m = n,
                                                .n = d,
                                                .k = K,
                                                .a = {.leading = K},
                                                .b = {.leading = d},
                                                .c = {.leading = d}},
                                  1.f, keys.data(), state->value().data(), 0.f, values.data());
                  return values;
                }};
          },
          [K](Index age) { return infty::read_by_delta_rule(K, 1, age); }};
}

}  // namespace retention
