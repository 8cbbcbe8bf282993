// SPDX-License-Identifier: MIT
// A program that is compiled with -fno-exceptions -fno-rtti: it writes, reads, copies and trains,
// and a failed check of it is seen to print its message and to abort.
#include <array>
#include <csignal>
#include <cstddef>
#include <iostream>
#include <string>

#include <sys/wait.h>
#include <unistd.h>

#include <infty/infty.hpp>

#if defined(__cpp_exceptions)
#error "this is to be compiled without exceptions"
#endif
#if defined(__cpp_rtti)
#error "this is to be compiled without the types of objects"
#endif

namespace {

using infty::Index;
using infty::Random;
using infty::Shape;
using infty::Tensor;

int failures = 0;

void check(bool ok, const std::string& what) {
  if (ok) return;
  std::cout << "failed: " << what << '\n';
  ++failures;
}

infty::LongTermMemory<float> make_memory() {
  return infty::LongTermMemory<float>(
      {.model_dim = 4, .heads = 2, .basis = 8, .widths = {.05, .2}, .samples = 6}, Random(1));
}

void writes_and_reads() {
  const auto memory = make_memory();
  auto state = memory.make_state(2);
  memory.write(state, Tensor<float>::full(Shape{2, 5, 4}, 1));
  const auto read = memory.read(state, Tensor<float>::full(Shape{2, 3, 4}, 1));
  check(read.shape() == Shape{2, 3, 4}, "the shape of what is read");
  double size = 0;
  for (const float x : read.value().to_vector()) size += x * x;
  check(size > 0, "what is read");
}

void trains() {
  infty::TransformerLM<infty::InftyMemory<float>> model(
      {.vocabulary = 5, .model_dim = 4, .layers = 2, .heads = 2, .feed_forward = 6},
      {.attention = {.capacity = 4},
       .memory = infty::LongTermConfig{.basis = 8, .widths = {.05, .2}, .samples = 6}},
      Random(1));
  infty::Adam<float> adam(model, {.learning_rate = .01});
  const auto tokens = Tensor<Index>::from(Shape{2, 4}, {1, 0, 4, 2, 3, 3, 1, 0});
  auto state = model.make_state(2);
  model.observe(state, tokens);
  double first = 0, last = 0;
  for (int i = 0; i < 5; ++i) {
    auto branch = state;
    last = train_step(adam, {.learning_rate = .01, .max_norm = 1}, [&] {
             return infty::mean(model.losses(model.forward(branch, tokens), tokens));
           }).loss;
    if (i == 0) first = last;
  }
  check(last < first, "the loss falls");
}

/// What a process of its own prints on stderr while it runs f; whether it was aborted.
template <class F>
std::string words_of_abort(const F& f) {
  std::array<int, 2> ends{};
  check(pipe(ends.data()) == 0, "a pipe");
  std::cout.flush();
  const pid_t child = fork();
  if (child == 0) {
    dup2(ends[1], STDERR_FILENO);
    f();
    _exit(0);
  }
  close(ends[1]);
  std::string words;
  std::array<char, 256> part{};
  for (ssize_t n = 0; (n = read(ends[0], part.data(), part.size())) > 0;)
    words.append(part.data(), static_cast<std::size_t>(n));
  close(ends[0]);
  int status = 0;
  waitpid(child, &status, 0);
  check(WIFSIGNALED(status) && WTERMSIG(status) == SIGABRT, "it aborts");
  return words;
}

void says_what_is_wrong() {
  const auto shape = words_of_abort([] { Tensor<float>::zeros(Shape{3, 4}).reshape(Shape{5}); });
  check(shape.find("[reshape] [3, 4] to [5]: the number of elements must stay") != shape.npos,
        "the message of a shape: " + shape);
  const auto file = words_of_abort([] { infty::SafetensorsFile("/nowhere/file"); });
  check(file.find("/nowhere/file") != file.npos, "the message of a file: " + file);
  const auto large = words_of_abort([] { Tensor<float>(Shape{Index{1} << 61}); });
  check(large.find("out of memory") != large.npos, "the message of no memory: " + large);
}

void copies() {
  const infty::Linear<float> layer(3, 2, Random(1));
  infty::Linear<float> copy(3, 2, Random(2));
  infty::copy_parameters(layer, copy);
  check(copy.weight.value().to_vector() == layer.weight.value().to_vector(), "the copy's weights");
  const auto words = words_of_abort([&] {
    infty::Linear<double> other(3, 2, Random(2));
    infty::copy_parameters(layer, other);
  });
  check(words.find("of another scalar") != words.npos, "the message of a scalar: " + words);
}

}  // namespace

int main() {
  copies();
  says_what_is_wrong();  // before there are threads, which a fork would lose
  writes_and_reads();
  trains();
  return failures == 0 ? 0 : 1;
}
