// SPDX-License-Identifier: MIT
// A million vectors go through one long-term memory, a segment at a time, each segment written and
// then queried. Time a vector and memory stay what they were after the first thousand. Random
// vectors: this shows cost, not what is remembered.

#include <chrono>
#include <iomanip>
#include <iostream>

#include <CLI/CLI.hpp>

#include <infty/memory/long_term_memory.hpp>

using infty::Index, infty::Tensor;

int main(int argc, char** argv) {
  Index vectors = 1'000'000, segment = 250, dim = 64, heads = 4, basis = 128;
  int threads = infty::num_threads();
  CLI::App app{"Writes and reads a long stream through a long-term memory of constant size."};
  app.add_option("--vectors", vectors, "length of the stream")->check(CLI::PositiveNumber);
  app.add_option("--segment", segment, "vectors a write, and queries a read")
      ->check(CLI::PositiveNumber);
  app.add_option("--dim", dim, "numbers a vector, a multiple of --heads")
      ->check(CLI::PositiveNumber);
  app.add_option("--heads", heads, "attention heads")->check(CLI::PositiveNumber);
  app.add_option("--basis", basis, "basis functions N, even")->check(CLI::PositiveNumber);
  app.add_option("--threads", threads, "threads")->check(CLI::PositiveNumber);
  CLI11_PARSE(app, argc, argv);

  try {
    infty::set_num_threads(threads);
    infty::LongTermMemory<float> memory(
        {.model_dim = dim, .heads = heads, .basis = basis, .widths = {.01, .05}, .samples = 128},
        infty::Random(1));
    auto state = memory.make_state(1);
    infty::Random random(2);
    Tensor<float> x({1, segment, dim}), queries({1, segment, dim});
    fill_normal(x, 0, 1, random);
    fill_normal(queries, 0, 1, random);

    std::cout << "   vectors   vectors/s   bytes of state   bytes in use\n";
    auto since = std::chrono::steady_clock::now();
    Index read = 0, before = 0, next = 1000;
    while (read < vectors) {
      const Index length = std::min(segment, std::min(next, vectors) - read);
      const auto piece = x.reshape({segment, dim}).slice(0, length).reshape({1, length, dim});
      memory.write(state, piece);
      memory.read(state,
                  queries.reshape({segment, dim}).slice(0, length).reshape({1, length, dim}));
      read += length;
      if (read < next && read < vectors) continue;
      const std::chrono::duration<double> time = std::chrono::steady_clock::now() - since;
      std::cout << std::setw(10) << read << std::setw(12) << std::fixed << std::setprecision(0)
                << static_cast<double>(read - before) / time.count() << std::setw(17)
                << bytes_of(state) << std::setw(15)
                << infty::HostPool::instance().statistics().bytes_in_use << std::endl;
      before = read;
      next *= 10;
      since = std::chrono::steady_clock::now();
    }
    std::cout << "finite: " << (is_finite(state) ? "yes" : "no") << '\n';
  } catch (const infty::Error& error) {
    std::cerr << error.what() << '\n';
    return 1;
  }
}
