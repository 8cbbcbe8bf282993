// SPDX-License-Identifier: MIT
// What only a GPU has: streams, its memory's end, uploads, its matrix products' rounding.
#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <thread>
#include <vector>

#include <infty/autograd/elementwise.hpp>
#include <infty/autograd/linear.hpp>
#include <infty/autograd/matmul.hpp>
#include <infty/core/random.hpp>
#include <infty/core/verify.hpp>
#include <infty/memory/long_term_memory.hpp>
#include <infty/thrust/cuda.hpp>
#include <infty/thrust/graph.hpp>

#include "support/catch.hpp"
#include "support/tensors.hpp"
#include "threads/at_once.hpp"

using infty::DevicePool;
using infty::Index;
using infty::Random;
using infty::Shape;
using infty::Tensor;
using infty::gpu::StreamGuard;
using Gpu = infty::ThrustBackend<infty::Cuda>;

namespace {

/// A stream that does not wait for the default one, as PyTorch's do not.
class Stream {
 public:
  Stream() {
    infty::gpu::check(cudaStreamCreateWithFlags(&stream_, cudaStreamNonBlocking),
                      "cudaStreamCreate");
  }
  ~Stream() { cudaStreamDestroy(stream_); }
  Stream(const Stream&) = delete;
  Stream& operator=(const Stream&) = delete;
  operator cudaStream_t() const { return stream_; }

 private:
  cudaStream_t stream_ = nullptr;
};

/// Keeps a stream busy for some milliseconds, so that what comes behind is late.
struct Spin {
  static constexpr int threads = 32;
  std::int64_t cycles;
  float* out;
  INFTY_HOST_DEVICE std::size_t shared_bytes() const { return 0; }
  template <class Block>
  INFTY_HOST_DEVICE void operator()(Block& block) const {
    block.each(1, [&](int) {
#if defined(__CUDA_ARCH__)
      const long long start = clock64();
      while (clock64() - start < cycles) {
      }
#endif
      *out = 1;
    });
  }
};

void spin(float* out) { infty::detail::launch<infty::Cuda>(1, Spin{20'000'000, out}); }

/// Checks that no element of `tokens` is negative, when somebody waits.
void verify_positive(const Tensor<Index, Gpu>& tokens) {
  const Index* const token = tokens.data();
  infty::detail::verify<Gpu>(
      tokens.size(), [=] INFTY_HOST_DEVICE(Index i) { return token[i] < 0; },
      [tokens](Index at) { infty::raise<infty::ValueError>("verify_positive", "place ", at); });
}

std::vector<float> ramp(Index n) {
  std::vector<float> out(static_cast<std::size_t>(n));
  for (std::size_t i = 0; i < out.size(); ++i) out[i] = static_cast<float>(i % 1000);
  return out;
}

}  // namespace

TEST_CASE("StreamGuard: names the stream for as long as it lives; null is the default stream") {
  CHECK(infty::gpu::stream() == cudaStreamLegacy);
  const Stream one, two;
  {
    const StreamGuard first(one);
    CHECK(infty::gpu::stream() == one);
    {
      const StreamGuard second(two);
      CHECK(infty::gpu::stream() == two);
      const StreamGuard none(nullptr);
      CHECK(infty::gpu::stream() == cudaStreamLegacy);
    }
    CHECK(infty::gpu::stream() == one);
    std::thread([] { CHECK(infty::gpu::stream() == cudaStreamLegacy); }).join();
  }
  CHECK(infty::gpu::stream() == cudaStreamLegacy);
}

TEST_CASE("StreamGuard: a memory that is written on another stream than it was made on") {
  infty::LongTermMemory<float, infty::GaussianDensity, infty::GaussianBasis<float>, Gpu> memory(
      {.model_dim = 8, .heads = 2, .basis = 16, .widths = {.05, .1}}, Random(1));
  const auto numbers = [&](bool other) {
    const Stream stream;
    auto state = memory.make_state(2);
    Random random(3);
    const auto x = infty::tests::uniform_tensor<float, Gpu>({2, 5, 8}, random);
    infty::gpu::synchronize();
    std::vector<float> out;
    {
      const StreamGuard guard(other ? static_cast<cudaStream_t>(stream) : nullptr);
      for (int i = 0; i < 4; ++i) memory.write(state, x);
      out = memory.read(state, x).value().to_vector();
    }
    infty::gpu::check(cudaStreamSynchronize(stream), "cudaStreamSynchronize");
    return out;
  };
  CHECK(numbers(true) == numbers(false));
}

TEST_CASE(
    "DevicePool: a block given back under another stream is not overwritten while it is read") {
  constexpr Index n = 1 << 18;
  const Stream other;
  const auto expected = ramp(n);
  Tensor<float, Gpu> copy(Shape{n}), flag(Shape{1});
  for (int round = 0; round < 5; ++round) {
    auto x = Tensor<float, Gpu>::from({n}, expected);
    infty::gpu::synchronize();
    {
      const StreamGuard guard(other);
      spin(flag.data());
      Gpu::copy(copy.data(), x.data(), n);
      x = Tensor<float, Gpu>();  // given back, and still to be read
    }
    // The same block, if the pool has no other of that size.
    Tensor<float, Gpu> next(Shape{n});
    Gpu::fill(next.data(), n, -1.0f);
    infty::gpu::check(cudaDeviceSynchronize(), "cudaDeviceSynchronize");
    CHECK(copy.to_vector() == expected);
  }
}

TEST_CASE("DevicePool: a stream's handle that comes again is not the stream that was") {
  for (int round = 0; round < 20; ++round) {
    const Stream stream;
    const StreamGuard guard(stream);
    const auto x = Tensor<float, Gpu>::from({1000}, ramp(1000));
    CHECK(x.to_vector() == ramp(1000));
  }
}

TEST_CASE("DevicePool: trim returns what is cached, running out of memory changes nothing") {
  auto& pool = DevicePool::instance();
  { const Tensor<float, Gpu> x(Shape{1 << 20}); }
  infty::gpu::synchronize();
  pool.trim();
  CHECK(pool.statistics().bytes_held == pool.statistics().bytes_in_use);

  const auto kept = Tensor<float, Gpu>::from({1000}, ramp(1000));
  std::size_t free = 0, total = 0;
  infty::gpu::check(cudaMemGetInfo(&free, &total), "cudaMemGetInfo");
  const auto before = pool.statistics();
  CHECK_THROWS_AS((Tensor<float, Gpu>(Shape{static_cast<Index>(total)})), infty::DeviceMemoryError);
  CHECK(pool.statistics().bytes_in_use == before.bytes_in_use);
  CHECK(pool.statistics().blocks == before.blocks);
  CHECK(kept.to_vector() == ramp(1000));
  const auto after = Tensor<float, Gpu>::from({1000}, ramp(1000));
  CHECK(after.to_vector() == ramp(1000));
}

TEST_CASE("from_host: small, largest staged, and over 4 MiB; the source may change at once") {
  constexpr auto most = static_cast<Index>(infty::gpu::detail::largest_staged / sizeof(float));
  Tensor<float, Gpu> flag(Shape{1});
  for (const Index n : {Index{1}, most - 1, most, most + 1, 3 * most}) {
    auto host = ramp(n);
    Tensor<float, Gpu> x(Shape{n});
    spin(flag.data());
    Gpu::from_host(x.data(), host.data(), n);
    std::fill(host.begin(), host.end(), -1.0f);
    CAPTURE(n);
    CHECK(x.to_vector() == ramp(n));
  }
}

TEST_CASE("verify: more than 256 checks are pending, and none is lost") {
  const auto good = Tensor<Index, Gpu>::from({3}, {0, 1, 2});
  const auto bad = Tensor<Index, Gpu>::from({3}, {0, -1, 2});
  for (int i = 0; i < 600; ++i) verify_positive(good);
  infty::gpu::synchronize();
  verify_positive(bad);
  CHECK_THROWS_WITH(
      [&] {
        for (int i = 0; i < 256; ++i) verify_positive(good);
        infty::gpu::synchronize();
      }(),
      "[verify_positive] place 1");
  infty::gpu::synchronize();
}

TEST_CASE("verify: what a thread has not waited for is thrown in another when it has ended") {
  const auto bad = Tensor<Index, Gpu>::from({3}, {0, 1, -2});
  infty::gpu::synchronize();
  std::thread([&] { verify_positive(bad); }).join();
  CHECK_THROWS_WITH(infty::gpu::synchronize(), "[verify_positive] place 2");
  infty::gpu::synchronize();
}

TEST_CASE("Graph: does again what was captured, on what its tensors hold then") {
  constexpr Index n = 64;
  const auto w = Tensor<float, Gpu>::from({n, n}, ramp(n * n));
  Tensor<float, Gpu> x = Tensor<float, Gpu>::zeros({n, n}), y;
  const auto work = [&] {
    // Whole numbers, which no order of sums rounds; some of the host's, and some memory for a
    // while.
    const auto added = Tensor<float, Gpu>::from({n, n}, std::vector<float>(n * n, 2));
    const infty::Variable<float, Gpu> a(x), b(w), c(added);
    y = (infty::matmul(a, b) + c).value();
  };
  infty::gpu::Graph graph;
  CHECK_THROWS_WITH(graph.replay(), "[Graph::replay] nothing has been captured");
  graph.capture(work);
  for (int round = 1; round <= 3; ++round) {
    const std::vector<float> numbers(n * n, static_cast<float>(round));
    Gpu::from_host(x.data(), numbers.data(), n * n);
    // Of others, which would be where the work's memory is if it were given away.
    const auto others = Tensor<float, Gpu>::from({n, n}, std::vector<float>(n * n, -1));
    graph.replay();
    const auto got = y.to_vector();
    CHECK(others.to_vector() == std::vector<float>(n * n, -1));
    const auto captured = y;
    work();
    CHECK(got == y.to_vector());
    y = captured;
  }
}

TEST_CASE("Graph: what waits is refused, and what was captured before is kept") {
  const auto x = Tensor<float, Gpu>::from({3}, {1, 2, 3});
  Tensor<float, Gpu> y(Shape{3});
  infty::gpu::Graph graph;
  graph.capture([&] { Gpu::copy(y.data(), x.data(), 3); });
  CHECK_THROWS_WITH(graph.capture([&] { (void)x.to_vector(); }),
                    "[to_host] not while a Graph is captured, whose work is done when it is "
                    "replayed");
  const Stream other;
  CHECK_THROWS_WITH(graph.capture([&] { const StreamGuard guard(other); }),
                    Catch::Contains("[StreamGuard] not while a Graph is captured"));
  CHECK_THROWS_WITH(graph.capture([] { infty::raise<infty::ValueError>("f", "stops"); }),
                    "[f] stops");
  CHECK(infty::gpu::stream() == cudaStreamLegacy);
  graph.replay();
  CHECK(y.to_vector() == std::vector<float>{1, 2, 3});
}

TEST_CASE("Graph: its memory is returned when it is gone") {
  auto& pool = DevicePool::instance();
  infty::gpu::synchronize();
  pool.trim();
  const auto before = pool.statistics();
  for (int round = 0; round < 3; ++round) {
    auto x = Tensor<float, Gpu>::from({1000}, ramp(1000));
    Tensor<float, Gpu> y;
    infty::gpu::Graph graph;
    graph.capture([&] { y = infty::scale(infty::Variable<float, Gpu>(x), 2.0f).value(); });
    graph.replay();
    CHECK(y.to_vector()[7] == 14);
    graph.replay();
  }
  pool.trim();
  CHECK(pool.statistics().bytes_in_use == before.bytes_in_use);
  CHECK(pool.statistics().bytes_held == before.bytes_held);
}

TEST_CASE("Graph: a read of a long-term memory") {
  infty::LongTermMemory<float, infty::GaussianDensity, infty::GaussianBasis<float>, Gpu> memory(
      {.model_dim = 8, .heads = 2, .basis = 16, .widths = {.05, .1}}, Random(1));
  auto state = memory.make_state(2);
  Random random(3);
  const auto x = infty::tests::uniform_tensor<float, Gpu>({2, 5, 8}, random);
  memory.write(state, x);
  const auto expected = memory.read(state, x).value().to_vector();
  Tensor<float, Gpu> y;
  infty::gpu::Graph graph;
  graph.capture([&] { y = memory.read(state, x).value(); });
  graph.replay();
  CHECK(infty::tests::error(y.to_vector(), expected) < 1e-5);
}

TEST_CASE("set_allow_tf32, _bf16: round factors of this thread's products in float, no others") {
  Random random(infty::tests::seed);
  const auto a = infty::tests::uniform_variable<float, Gpu>({256, 256}, random);
  const auto b = infty::tests::uniform_variable<float, Gpu>({256, 256}, random);
  const auto product = [&] { return infty::matmul(a, b).value().to_vector(); };
  CHECK_FALSE(infty::gpu::allow_tf32());
  CHECK_FALSE(infty::gpu::allow_bf16());
  const auto full = product();
  const auto off = [&](const std::vector<float>& rounded) {
    double most = 0;
    for (std::size_t i = 0; i < full.size(); ++i)
      most =
          std::max(most, std::abs(static_cast<double>(rounded[i]) - static_cast<double>(full[i])));
    return most;
  };
  infty::gpu::set_allow_tf32(true);
  const double in_tf32 = off(product());
  infty::gpu::set_allow_bf16(true);
  const double in_bf16 = off(product());
  std::thread([] {
    CHECK_FALSE(infty::gpu::allow_tf32());
    CHECK_FALSE(infty::gpu::allow_bf16());
  }).join();
  infty::gpu::set_allow_tf32(false);
  infty::gpu::set_allow_bf16(false);
  CHECK(product() == full);
  // Of 256 products below 1 each factor is off by 2^-11 of itself at most, or by 2^-8.
  CHECK(in_tf32 > 0);
  CHECK(in_tf32 < 256 * 2 * 0x1p-11);
  CHECK(in_bf16 > 0);  // how much of what it may round it rounds is cuBLAS's choice
  CHECK(in_bf16 < 256 * 2 * 0x1p-8);
}

TEST_CASE("set_bias_epilogue: adds the bias of this thread's maps in float") {
  Random random(infty::tests::seed);
  for (const auto& [rows, out, in] :
       {std::array<Index, 3>{1, 1, 1}, {7, 5, 3}, {64, 17, 33}, {256, 128, 300}, {0, 4, 3}}) {
    const auto x = infty::tests::uniform_variable<float, Gpu>({rows, in}, random);
    const auto weight = infty::tests::uniform_variable<float, Gpu>({out, in}, random);
    const auto bias = infty::tests::uniform_variable<float, Gpu>({out}, random);
    const auto y = [&] { return infty::linear(x, weight, bias).value().to_vector(); };
    CAPTURE(rows, out, in);
    const auto expected = y();
    infty::gpu::set_bias_epilogue(true);
    std::thread([] { CHECK_FALSE(infty::gpu::bias_epilogue()); }).join();
    for (int again = 0; again < 2; ++again) CHECK(infty::tests::error(y(), expected) < 1e-5);
    infty::gpu::set_bias_epilogue(false);
  }
}

TEST_CASE("threads: each on a stream of its own computes what one computes alone") {
  const auto compute = [](std::uint64_t seed) {
    Random random(seed);
    const auto x = infty::tests::uniform_variable<float, Gpu>({64, 64}, random);
    auto y = infty::matmul(x, x);
    for (int i = 0; i < 20; ++i) y = infty::matmul(infty::scale(y, .05f), x);
    return y.value().to_vector();
  };
  std::vector<std::vector<float>> alone, together(infty::tests::crowd);
  for (int i = 0; i < infty::tests::crowd; ++i)
    alone.push_back(compute(static_cast<std::uint64_t>(i)));
  infty::tests::at_once(infty::tests::crowd, [&](int i) {
    const Stream stream;
    const StreamGuard guard(stream);
    for (int round = 0; round < 10; ++round)
      together[static_cast<std::size_t>(i)] = compute(static_cast<std::uint64_t>(i));
  });
  CHECK(together == alone);
}

TEST_CASE("threads: those that end leave no pinned memory and no slots behind") {
  const auto work = [] {
    const auto tokens = Tensor<Index, Gpu>::from({100}, std::vector<Index>(100, 1));
    verify_positive(tokens);
    infty::gpu::synchronize();
  };
  std::thread(work).join();
  const auto pinned = infty::gpu::detail::pinned_blocks().blocks();
  const auto slots = infty::gpu::detail::shared_checks().blocks();
  for (int i = 0; i < 20; ++i) std::thread(work).join();
  CHECK(infty::gpu::detail::pinned_blocks().blocks() == pinned);
  CHECK(infty::gpu::detail::shared_checks().blocks() == slots);
}
