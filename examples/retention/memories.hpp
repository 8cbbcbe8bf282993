// SPDX-License-Identifier: MIT
#pragma once

#include <cmath>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include <infty/memory/compressive_memory.hpp>
#include <infty/memory/ops/delta_rule.hpp>
#include <infty/memory/retention.hpp>
#include <infty/memory/short_term_memory.hpp>

// The memories that are asked what they keep, and what formulas say of each; signals are in
// signals.hpp.

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
