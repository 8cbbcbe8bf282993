// SPDX-License-Identifier: MIT
#include <numeric>
#include <vector>

#include <infty/core/random.hpp>
#include <infty/core/tensor.hpp>
#include <infty/eigen/backend.hpp>

#include "support/catch.hpp"
#include "support/tensors.hpp"
#include "support/threads.hpp"

using infty::EigenBackend;
using infty::Index;
using infty::Random;
using infty::Shape;
using infty::Tensor;
using infty::tests::uniform_tensor;
using infty::tests::with_threads;

static_assert(infty::Backend<EigenBackend>);

namespace {

// f(threads) gives the same bits with one, two and five threads.
template <class F>
void check_threads(F f) {
  const auto one = with_threads(1, f);
  CHECK(with_threads(2, f) == one);
  CHECK(with_threads(5, f) == one);
}

}  // namespace

TEST_CASE("EigenBackend: copy of ranges that overlap, either way, with any number of threads") {
  const Index n = 100'003;
  for (const Index shift : {Index{1}, Index{8192}, n - 1, n}) {
    for (const bool forward : {true, false}) {
      check_threads([&] {
        std::vector<float> x(static_cast<std::size_t>(n + shift));
        std::iota(x.begin(), x.end(), 1.f);
        const Index to = forward ? shift : 0, from = forward ? 0 : shift;
        const std::vector<float> expected(x.begin() + from, x.begin() + from + n);
        EigenBackend::copy(x.data() + to, x.data() + from, n);
        CHECK(std::vector<float>(x.begin() + to, x.begin() + to + n) == expected);
        return x;
      });
    }
  }
}

TEMPLATE_TEST_CASE("EigenBackend: reduce gives the same bits with any number of threads", "", float,
                   double) {
  using T = TestType;
  Random random(infty::tests::seed);
  for (const Index n : {100, 8193, 100'003, 3'000'017}) {
    const auto x = uniform_tensor<T>(Shape{n}, random);
    const T* const from = x.data();
    check_threads([&] {
      return EigenBackend::reduce(
          n, T(0), [](T a, T b) { return a + b; }, [=](Index i) { return from[i]; });
    });
  }
}

TEMPLATE_TEST_CASE("EigenBackend: scatter_add_rows gives the same bits with any number of threads",
                   "", float, double) {
  using T = TestType;
  Random random(infty::tests::seed);
  const Index n = 3000, width = 130, count = 11;
  const auto x = uniform_tensor<T>(Shape{n, width}, random);
  Tensor<Index> rows(Shape{n});
  for (Index i = 0; i < n; ++i) rows.data()[i] = random.below(count);
  check_threads([&] {
    auto sums = Tensor<T>::zeros({count, width});
    EigenBackend::scatter_add_rows(n, width, x.data(), rows.data(), count, sums.data());
    return sums.to_vector();
  });
}

TEST_CASE("EigenBackend: random fills give the same bits with any number of threads") {
  check_threads([] {
    Random random(infty::tests::seed);
    return uniform_tensor<float>(Shape{300, 333}, random).to_vector();
  });
}

TEST_CASE(
    "EigenBackend: task_rows has as many tasks as threads, or a multiple, and enough tokens") {
  const auto tasks = [](int threads, Index batch, Index length) {
    return with_threads(threads, [&] {
      const Index rows = EigenBackend::task_rows(batch, length);
      CHECK(rows >= 1);
      CHECK(rows <= batch);
      return (batch + rows - 1) / rows;
    });
  };
  CHECK(tasks(1, 16, 16) == 1);  // 256 tokens at a time
  CHECK(tasks(2, 16, 16) == 2);  // one for each thread
  CHECK(tasks(2, 12, 64) == 2);  // 384 tokens at a time
  CHECK(tasks(2, 64, 64) == 8);  // no more than 512 of them
  CHECK(tasks(3, 12, 64) == 3);
  CHECK(tasks(64, 16, 16) == 16);  // more threads than rows
  CHECK(tasks(1, 8, 1024) == 8);   // a row of a long segment by itself
  CHECK(tasks(2, 8, 100000) == 8);
  for (Index batch = 1; batch < 40; ++batch)
    for (const int threads : {1, 2, 5, 16})
      for (const Index length : {1, 7, 64, 511, 512, 513})
        CHECK(tasks(threads, batch, length) >= 1);
}

TEST_CASE("EigenBackend: memory comes from the pool and goes back to it") {
  const auto in_use = [] { return infty::HostPool::instance().statistics().bytes_in_use; };
  const std::size_t before = in_use();
  {
    const Tensor<double> x(Shape{1000});
    CHECK(in_use() >= before + x.bytes());
  }
  CHECK(in_use() == before);
}
