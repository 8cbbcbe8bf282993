// SPDX-License-Identifier: MIT
#pragma once

#include <algorithm>
#include <cstring>
#include <string>
#include <vector>

#include <benchmark/benchmark.h>

#include <infty/autograd/linear.hpp>
#include <infty/core/tensor.hpp>
#include <infty/eigen/backend.hpp>
#include <infty/eigen/include.hpp>
#include <infty/eigen/map.hpp>
#include <infty/eigen/register_tile.hpp>
#include <infty/eigen/rounded_tile.hpp>
#include <infty/eigen/tile_registers.hpp>

#include "clock.hpp"

/// What the machine can do with the threads that infty uses. A limit is a piece of work to be
/// called and timed beside every benchmark anew: a machine that others use too changes its speed
/// from second to second.
namespace infty::bench {

/// Work a second of a limit, whose call does `limit.work()`: over so many seconds, at least a call.
template <class Limit>
double rate_of(Limit& limit, double seconds) {
  const auto start = Clock::now();
  double calls = 0, elapsed = 0;
  for (; elapsed < seconds; elapsed = seconds_since(start), ++calls) limit();
  return calls * limit.work() / elapsed;
}

/// f(i) in thread i of those that infty uses, the same core every time.
template <class F>
void on_each_thread(const F& f) {
#if defined(_OPENMP)
#pragma omp parallel num_threads(num_threads())
  f(static_cast<std::size_t>(omp_get_thread_num()));
#else
  f(std::size_t{0});
#endif
}

/// Fused multiply-adds whose operands never leave the registers: what the cores' arithmetic can do,
/// no matter how good anybody's matrix product is.
template <class T>
struct MultiplyAdds {
  using Packet = typename Eigen::internal::packet_traits<T>::type;
  static constexpr int chains = 12;  // more than the steps of an addition, times two a cycle
  static constexpr int rounds = 20000;
  static constexpr const char* unit = "GFLOP/s";

  double work() const {
    constexpr int lanes = Eigen::internal::packet_traits<T>::size;
    return 2.0 * lanes * chains * rounds * num_threads();
  }
  void operator()() {
    on_each_thread([](std::size_t) {
      Packet factor = Eigen::internal::pset1<Packet>(T(0.5)), sum[chains];
      benchmark::DoNotOptimize(factor);
      for (Packet& chain : sum) chain = factor;
      for (int i = 0; i < rounds; ++i)
        for (Packet& chain : sum) chain = Eigen::internal::pmadd(chain, factor, factor);
      for (Packet& chain : sum) benchmark::DoNotOptimize(chain);
    });
  }
};

#if defined(INFTY_DOT_INSTRUCTION)
/// The same of pairs in bfloat16, whose products are summed in float; only where
/// `has_dot_instruction`.
struct DotProducts {
  static constexpr int chains = 16, rounds = 20000;
  static constexpr const char* unit = "GFLOP/s";

  double work() const { return 4.0 * 16 * chains * rounds * num_threads(); }
  void operator()() {
    on_each_thread([](std::size_t) { chains_of_one(); });
  }

 private:
  // Inlined, GCC would keep the sums in memory.
  [[gnu::noinline]] static void chains_of_one() {
    using Vector = infty::detail::Simd<float>::Vector;
    Vector factor{}, sum[chains] = {};
    for (int i = 0; i < rounds; ++i) {
      INFTY_UNROLL(16)
      for (int j = 0; j < chains; ++j)
        asm volatile("vdpbf16ps %1, %1, %0" : "+v"(sum[j]) : "v"(factor));
    }
    INFTY_UNROLL(16)
    for (int j = 0; j < chains; ++j) asm volatile("" : : "v"(sum[j]));
  }
};
#endif

#if defined(INFTY_TILE_REGISTERS)
/// The same of tiles; only where `has_tile_registers`.
struct TileProducts {
  static constexpr int rounds = 20000;
  static constexpr const char* unit = "GFLOP/s";

  double work() const { return 4.0 * 2 * 16 * 16 * 32 * rounds * num_threads(); }
  void operator()() {
    on_each_thread([](std::size_t) {
      using R = infty::detail::TileRegisters;
      const R registers;  // of zeros
      for (int i = 0; i < rounds; ++i) {
        R::add_product<0, 0>();
        R::add_product<0, 1>();
        R::add_product<1, 0>();
        R::add_product<1, 1>();
      }
    });
  }
};
#endif

/// The fastest matrix product there is here, ours or Eigen's as a user would write it, of square
/// matrices of several sizes; which one, is found out at first.
template <class T>
class MatrixProduct {
 public:
  static constexpr const char* unit = "GFLOP/s";

  MatrixProduct() {
    for (const Index n : {256, 512, 1024})
      for (const bool ours : {true, false}) {
        Candidate next(n, ours);
        for (int i = 0; i < 3; ++i) {
          const double rate = rate_of(next, .02);
          if (rate <= best_rate_) continue;
          best_rate_ = rate;
          best_ = next;
        }
      }
  }

  /// One product, and its FLOPs.
  void operator()() { best_(); }
  double work() const { return best_.work(); }
  /// Whose it is, of what size.
  std::string name() const {
    return (best_.ours ? "infty's, of " : "Eigen's, of ") + std::to_string(best_.n) + " squared";
  }

 private:
  struct Candidate {
    Candidate() = default;
    Candidate(Index size, bool by_infty)
        : n(size),
          ours(by_infty),
          a(Tensor<T, EigenBackend>::full({n, n}, T(1))),
          b(a.clone()),
          c(a.clone()) {}

    double work() const { return 2.0 * static_cast<double>(n * n * n); }
    void operator()() {
      if (ours)
        infty::detail::product<EigenBackend>(n, n, n, false, false, a.data(), b.data(), T(0),
                                             c.data());
      else
        matrix(c).noalias() = matrix(a) * matrix(b);
      benchmark::ClobberMemory();
    }

    Index n = 0;
    bool ours = true;
    Tensor<T, EigenBackend> a, b, c;
  };

  Candidate best_;
  double best_rate_ = 0;
};

/// A copy that reads and writes so many bytes in all, each thread its own part of one array into
/// another: of few bytes it stays in the caches, as a kernel of that size does. By memcpy, which
/// may write past the caches, or by a loop, which does not: what is faster for so many bytes.
class Copy {
 public:
  static constexpr const char* unit = "GB/s";

  explicit Copy(double bytes)
      : size_(std::max<std::size_t>(16, static_cast<std::size_t>(bytes / 8))),
        piece_(std::min(size_, std::size_t{1} << 23)),
        from_(size_, 1),
        to_(size_, 2) {
    double best = 0;
    for (const bool by_loop : {true, false, true, false}) {
      by_loop_ = by_loop;
      const double rate = rate_of(*this, .004);
      if (rate > best) loop_is_best_ = by_loop;
      best = std::max(best, rate);
    }
    by_loop_ = loop_is_best_;
  }

  /// Bytes that are more than the largest cache holds, and so come from memory.
  static double beyond_caches() {
    double cache = 0;
    for (const auto& level : benchmark::CPUInfo::Get().caches)
      cache = std::max(cache, static_cast<double>(level.size));
    return std::max(256.0 * (1 << 20), 2 * cache);
  }

  /// Bytes of a call. A large array is copied piece by piece, so that a call is short.
  double work() const { return 2 * sizeof(float) * static_cast<double>(piece_); }
  void operator()() {
    if (next_ + piece_ > size_) next_ = 0;
    const float* const from = from_.data() + next_;
    float* const to = to_.data() + next_;
    next_ += piece_;
    if (piece_ < (std::size_t{1} << 15)) {  // sooner done than another thread is told
      copy(from, to, piece_);
    } else {
      const auto threads = static_cast<std::size_t>(num_threads());
      on_each_thread([&](std::size_t i) {
        const std::size_t begin = piece_ * i / threads, end = piece_ * (i + 1) / threads;
        copy(from + begin, to + begin, end - begin);
      });
    }
    benchmark::ClobberMemory();
  }

 private:
  using Array = Eigen::ArrayXf;

  void copy(const float* from, float* to, std::size_t n) const {
    if (by_loop_)
      Eigen::Map<Array>(to, static_cast<Index>(n)) =
          Eigen::Map<const Array>(from, static_cast<Index>(n));
    else
      std::memcpy(to, from, n * sizeof(float));
  }

  std::size_t size_, piece_, next_ = 0;
  std::vector<float> from_, to_;
  bool by_loop_ = true, loop_is_best_ = true;
};

/// Reads so many bytes and adds them up, each thread its own part: what nothing can beat that needs
/// each byte once. As parts of one array, for which those that follow are asked for early enough.
class Read {
 public:
  static constexpr const char* unit = "GB/s";

  explicit Read(double bytes)
      : size_((std::max<std::size_t>(16, static_cast<std::size_t>(bytes / sizeof(float))) + line -
               1) /
              line * line),
        numbers_(size_ + ahead, 1) {}

  /// Bytes of a call.
  double work() const { return sizeof(float) * static_cast<double>(size_); }
  void operator()() const {
    const std::size_t lines = size_ / line;
    if (size_ < (std::size_t{1} << 16)) return sum(0, lines);  // sooner done than another is told
    const auto threads = static_cast<std::size_t>(num_threads());
    on_each_thread([&](std::size_t i) { sum(lines * i / threads, lines * (i + 1) / threads); });
  }

 private:
  static constexpr std::size_t line = 128, ahead = 1024;  // in floats
  using S = infty::detail::Simd<float>;

  void sum(std::size_t begin, std::size_t end) const {
    constexpr int sums = static_cast<int>(line) / S::width;
    S::Vector total[sums] = {};
    for (const float* at = numbers_.data() + begin * line; begin < end; ++begin, at += line) {
      for (std::size_t i = 0; i < line; i += 16) __builtin_prefetch(at + ahead + i);
      INFTY_UNROLL(32)
      for (int i = 0; i < sums; ++i) total[i] += S::load(at + i * S::width);
    }
    for (S::Vector& part : total) benchmark::DoNotOptimize(part);
  }

  std::size_t size_;
  std::vector<float> numbers_;
};

}  // namespace infty::bench
