// SPDX-License-Identifier: MIT
#pragma once

#include <cstddef>
#include <type_traits>
#include <vector>

#include <benchmark/benchmark.h>

#include <infty/eigen/products.hpp>

#include "limits.hpp"

namespace infty::bench {

/// Calls `body` in slices of some milliseconds, and behind each of these `see(seconds, calls)`.
template <class Body, class See>
void in_slices(benchmark::State& run, Body&& body, See&& see) {
  constexpr double slice = .01;
  const auto timed = [&] {
    const auto start = Clock::now();
    body();
    return seconds_since(start);
  };
  double seconds = 0, calls = 0, last = 0;
  std::size_t slices = 0;
  const auto finish = [&] {
    see(seconds, calls);
    ++slices;
    seconds = calls = 0;
  };
  auto left = run.max_iterations;
  for (auto _ : run) {
    last = timed();
    run.SetIterationTime(last);
    seconds += last;
    ++calls;
    if (--left == 0 || seconds >= slice) finish();
  }
  // The library is content with one call that is long, and one alone says little.
  const std::size_t wanted = last < slice ? 0 : last < 1 ? 5 : 3;
  while (slices < wanted) {
    seconds = timed();
    calls = 1;
    finish();
  }
}

/// Times `body`, whose call does `work`, in slices, and the limit between any two of them. What is
/// reported are medians over the slices: the time of a call, and the rate that it has then; the
/// limit; and the share. A slice's share is of the limit before and after it. So the median share
/// holds the same seconds against each other, and is the quotient of rate and limit only on a
/// machine that keeps its speed.
template <class Limit, class Body>
void against(benchmark::State& run, double work, Limit& limit, Body&& body) {
  constexpr double limit_slice = .005;
  std::vector<double> times, limits, shares;
  body();  // in every run, for each has made its arrays anew: caches and pools fill
  double before = rate_of(limit, limit_slice);
  in_slices(run, body, [&](double seconds, double calls) {
    const double after = rate_of(limit, limit_slice), between = (before + after) / 2;
    times.push_back(seconds / calls);
    limits.push_back(between);
    shares.push_back(work * calls / seconds / between);
    before = after;
  });
  run.counters["time"] = median(times);
  run.counters[Limit::unit] = work / median(times) * 1e-9;
  run.counters["limit"] = median(limits) * 1e-9;
  run.counters["share"] = median(shares);
}

/// Times `body` where there is no limit to hold it against. Returns the median over slices.
template <class Body>
double alone(benchmark::State& run, Body&& body) {
  std::vector<double> times;
  body();  // as above
  in_slices(run, body, [&](double seconds, double calls) { times.push_back(seconds / calls); });
  return run.counters["time"] = median(times);
}

/// The fastest matrix product, which a program searches once for each type.
template <class T>
MatrixProduct<T>& fastest_product() {
  static MatrixProduct<T> found;
  return found;
}

/// A body of so many FLOPs against the fastest matrix product there is.
template <class T, class Body>
void against_matrix_product(benchmark::State& run, double flops, Body&& body) {
  against(run, flops, fastest_product<T>(), body);
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
/// share is how often it is done in the time that the other takes.
template <class Body>
void rounded_against_full(benchmark::State& run, double flops, Body&& body) {
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
