// SPDX-License-Identifier: MIT
#pragma once

#include <type_traits>
#include <vector>

#include <benchmark/benchmark.h>

#include <infty/eigen/products.hpp>

#include "limits.hpp"

namespace infty::bench {

/// Times `body`, whose call does `work`, in slices of some milliseconds, and the limit between any
/// two of them: a slice's share is that of the limit before and after it. What is reported are
/// medians over the slices: the time of a call, its rate, the limit's, and the share.
template <class Limit, class Body>
void against(benchmark::State& run, double work, Limit& limit, Body&& body) {
  constexpr double body_slice = .01, limit_slice = .005;
  std::vector<double> times, limits, shares;
  if (run.max_iterations == 1) body();  // the first time that it runs: caches and pools fill
  double before = rate_of(limit, limit_slice), seconds = 0, calls = 0;
  auto left = run.max_iterations;
  for (auto _ : run) {
    const auto start = Clock::now();
    body();
    const double elapsed = seconds_since(start);
    run.SetIterationTime(elapsed);
    seconds += elapsed;
    ++calls;
    if (--left > 0 && seconds < body_slice) continue;
    const double after = rate_of(limit, limit_slice), between = (before + after) / 2;
    times.push_back(seconds / calls);
    limits.push_back(between);
    shares.push_back(work * calls / seconds / between);
    before = after;
    seconds = calls = 0;
  }
  run.counters["time"] = median(times);
  run.counters[Limit::unit] = work / median(times) * 1e-9;
  run.counters["limit"] = median(limits) * 1e-9;
  run.counters["share"] = median(shares);
}

/// A body of so many FLOPs against the fastest matrix product there is.
template <class T, class Body>
void against_matrix_product(benchmark::State& run, double flops, Body&& body) {
  static MatrixProduct<T> limit;
  against(run, flops, limit, body);
}

/// A body of so many FLOPs, with factors as they are.
template <class Body>
struct InFull {
  static constexpr const char* unit = "GFLOP/s";
  double flops;
  Body& body;

  double work() const { return flops; }
  void operator()() {
    const ProductsScope scope(Products::full);
    body();
  }
};

/// A body of so many FLOPs with factors in bfloat16 against itself with factors as they are: its
/// share is how often it is done in the time that the other takes. Only where an instruction
/// multiplies them.
template <class Body>
void rounded_against_full(benchmark::State& run, double flops, Body&& body) {
  if (!infty::detail::has_dot_instruction()) return run.SkipWithError("no such instruction here");
  InFull<std::remove_reference_t<Body>> full{flops, body};
  full();
  against(run, flops, full, [&] {
    const ProductsScope scope(Products::bfloat16);
    body();
  });
}

/// A body that has to read and write so many bytes, of arrays that are `footprint` bytes large,
/// against a copy of arrays as large, which lie in the same caches.
template <class Body>
void against_copy(benchmark::State& run, double bytes, double footprint, Body&& body) {
  Copy limit(footprint);
  against(run, bytes, limit, body);
}

/// The same where each byte is read or written once.
template <class Body>
void against_copy(benchmark::State& run, double bytes, Body&& body) {
  against_copy(run, bytes, bytes, body);
}

/// A body that has to read so many bytes, of arrays that are `footprint` bytes large, and writes
/// next to nothing, against a sum of arrays as large.
template <class Body>
void against_reading(benchmark::State& run, double bytes, double footprint, Body&& body) {
  Read limit(footprint);
  against(run, bytes, limit, body);
}

}  // namespace infty::bench
