// SPDX-License-Identifier: MIT
// What a compiler's options are worth: a write and a read of a long-term memory and a linear layer,
// in one thread. Prints the milliseconds of each, medians of the thread's own time, which other
// programs do not lengthen. benchmarks/flags/compare compiles it with several options.

#include <algorithm>
#include <cstddef>
#include <ctime>
#include <iostream>
#include <vector>

#include <infty/memory/long_term_memory.hpp>
#include <infty/nn/linear.hpp>

namespace {

double thread_seconds() {
  timespec time{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
  return static_cast<double>(time.tv_sec) + 1e-9 * static_cast<double>(time.tv_nsec);
}

template <class Work>
double milliseconds(Work&& work) {
  work();
  std::vector<double> all(15);
  for (double& one : all) {
    const double start = thread_seconds();
    work();
    one = 1e3 * (thread_seconds() - start);
  }
  std::sort(all.begin(), all.end());
  return all[all.size() / 2];
}

}  // namespace

int main() {
  infty::LongTermMemory<float> memory(
      {.model_dim = 300, .heads = 6, .basis = 256, .widths = {.01, .05}, .samples = 256},
      infty::Random(1));
  auto state = memory.make_state(2);
  infty::Random random(2);
  infty::Tensor<float> segment({2, 256, 300}), rows({4096, 300});
  fill_normal(segment, 0, 1, random);
  fill_normal(rows, 0, 1, random);
  const infty::Linear<float> linear(300, 300, infty::Random(3));
  const infty::Variable<float> x(rows);
  std::cout << milliseconds([&] { memory.write(state, segment); }) << ' '
            << milliseconds([&] { memory.read(state, segment); }) << ' '
            << milliseconds([&] { linear.forward(x); }) << '\n';
}
