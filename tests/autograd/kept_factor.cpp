// SPDX-License-Identifier: MIT
#include <cstddef>
#include <cstdint>
#include <thread>
#include <vector>

#include <infty/autograd/activations.hpp>
#include <infty/autograd/elementwise.hpp>
#include <infty/autograd/linear.hpp>
#include <infty/autograd/linear_of_concat.hpp>
#include <infty/autograd/reduce.hpp>
#include <infty/eigen/products.hpp>
#include <infty/nn/feed_forward.hpp>
#include <infty/nn/layer_norm.hpp>

#include "support/catch.hpp"
#include "support/tensors.hpp"

namespace kept_factor_tests {

using infty::Index;
using infty::Products;
using infty::ProductsScope;
using infty::Random;
using infty::Shape;
using infty::Tape;
using infty::Tensor;
using infty::Variable;
using infty::tests::uniform_variable;
using Values = std::vector<float>;

std::size_t bytes_in_use() { return infty::HostPool::instance().statistics().bytes_in_use; }

struct Gradients {
  Values input, first, second, bias;
  bool operator==(const Gradients&) const = default;
};

/// Gradients of two maps of one vector, which is an operation's output. Held by someone else, it is
/// kept in full.
Gradients of_two_maps(Index rows, Index in, Index out, bool held, bool written = false) {
  Random random(infty::tests::seed);
  const auto x = uniform_variable<float>({rows, in}, random),
             first = uniform_variable<float>({out, in}, random),
             second = uniform_variable<float>({out, in}, random),
             bias = uniform_variable<float>({out}, random),
             weigh = uniform_variable<float>({rows, out}, random);
  Tape tape;
  Tensor<float> other;
  Variable<float> loss;
  {
    auto y = infty::scale(x, 0.37f);
    if (held) other = y.value();
    const auto a = infty::linear(y, first, bias);
    loss = infty::sum(a * a * weigh) + infty::sum(infty::linear(y, second) * weigh);
    if (written) y.value().fill(1e30f);
  }
  tape.backward(loss);
  return {x.grad().to_vector(), first.grad().to_vector(), second.grad().to_vector(),
          bias.grad().to_vector()};
}

TEST_CASE("KeptFactor: an input that is kept rounded leaves the bits of one that is kept in full") {
  const ProductsScope scope(Products::bfloat16);
  for (const Index rows : {1, 2, 7, 64, 333, 700})
    for (const Index in : {1, 5, 64, 97})
      for (const Index out : {1, 33, 128}) {
        CAPTURE(rows, in, out);
        CHECK(of_two_maps(rows, in, out, false) == of_two_maps(rows, in, out, true));
      }
}

TEST_CASE("KeptFactor: rounded, it is a copy that nobody else writes") {
  {
    const ProductsScope scope(Products::bfloat16);
    CHECK(of_two_maps(50, 30, 20, false, true) == of_two_maps(50, 30, 20, false, false));
  }
  const ProductsScope full(Products::full);
  CHECK_THROWS_AS(of_two_maps(50, 30, 20, false, true), infty::ValueError);
}

TEST_CASE("KeptFactor: of linear_relu and linear_of_concat the bits are the same as well") {
  const ProductsScope scope(Products::bfloat16);
  const auto gradients = [](bool held) {
    Random random(infty::tests::seed), unused(0);
    const auto x = uniform_variable<float>({3, 41, 24}, random),
               past = uniform_variable<float>({3, 9, 24}, random),
               inner = uniform_variable<float>({50, 24}, random),
               key = uniform_variable<float>({18, 24}, random), none = Variable<float>();
    Tape tape;
    std::vector<Tensor<float>> others;
    Variable<float> loss;
    {
      const auto y = infty::scale(x, 0.37f), z = infty::scale(past, 3.f);
      if (held) others = {y.value(), z.value()};
      const auto keys = infty::linear_of_concat(z, y, key),
                 h = infty::linear_relu(y, inner, none, 0, unused);
      loss = infty::sum(keys * keys) + infty::sum(h * h);
    }
    tape.backward(loss);
    std::vector<Values> all;
    for (const auto& v : {x, past, inner, key}) all.push_back(v.grad().to_vector());
    return all;
  };
  CHECK(gradients(false) == gradients(true));
}

TEST_CASE("KeptFactor: an input is kept once, in half of its memory, for all maps of it") {
  const Index rows = 512, in = 256;
  const auto bytes = static_cast<double>(rows * in) * sizeof(float);
  Random random(infty::tests::seed);
  const auto x = uniform_variable<float>({rows, in}, random),
             w = uniform_variable<float>({1, in}, random);
  const auto kept = [&](int maps) {
    const std::size_t before = bytes_in_use();
    Tape tape;
    {
      const auto y = infty::scale(x, 2.f);
      for (int i = 0; i < maps; ++i) infty::linear(y, w);
    }
    return static_cast<double>(bytes_in_use() - before) / bytes;
  };
  {
    const ProductsScope full(Products::full);
    CHECK(kept(1) >= 1);
    CHECK(kept(3) < 1.1);
  }
  const ProductsScope scope(Products::bfloat16);
  CHECK(kept(1) >= 0.5);
  CHECK(kept(3) < 0.6);
}

TEST_CASE("KeptFactor: what others keep, and what no operation made, is not copied") {
  const ProductsScope scope(Products::bfloat16);
  const Index rows = 512, in = 256;
  const auto bytes = static_cast<double>(rows * in) * sizeof(float);
  Random random(infty::tests::seed);
  const auto x = uniform_variable<float>({rows, in}, random),
             w = uniform_variable<float>({1, in}, random);
  const Variable<float> constant(x.value());
  {
    const std::size_t before = bytes_in_use();
    Tape tape;
    infty::linear(x, w);
    infty::linear(constant, w);
    CHECK(static_cast<double>(bytes_in_use() - before) < 0.1 * bytes);
  }
  const std::size_t before = bytes_in_use();
  Tape tape;
  infty::linear(infty::tanh(x), w);  // whose own way back reads its output
  CHECK(static_cast<double>(bytes_in_use() - before) < 1.1 * bytes);
}

TEST_CASE("KeptFactor: a frozen map keeps nothing of its input") {
  const Index rows = 512, in = 256;
  const auto bytes = static_cast<double>(rows * in) * sizeof(float);
  Random random(infty::tests::seed);
  const auto x = uniform_variable<float>({rows, in}, random);
  auto w = uniform_variable<float>({1, in}, random);
  w.set_requires_grad(false);
  for (const Products how : {Products::full, Products::bfloat16}) {
    const ProductsScope scope(how);
    const std::size_t before = bytes_in_use();
    Tape tape;
    const auto loss = infty::sum(infty::linear(infty::scale(x, 2.f), w));
    CHECK(static_cast<double>(bytes_in_use() - before) < 0.1 * bytes);
    tape.backward(loss);
    CHECK(x.has_grad());
  }
}

TEST_CASE(
    "KeptFactor: what another tape has made is not rounded, and may be read by many threads") {
  const ProductsScope scope(Products::bfloat16);
  const Index rows = 512, in = 256;
  const auto bytes = static_cast<double>(rows * in) * sizeof(float);
  Random random(infty::tests::seed);
  const auto x = uniform_variable<float>({rows, in}, random);
  Variable<float> y;
  {
    Tape tape;
    y = infty::scale(x, 2.f);
  }
  y.set_requires_grad(false);
  std::vector<Variable<float>> weights;
  for (std::uint64_t i = 0; i < 4; ++i) {
    Random of_weight(7);
    weights.push_back(uniform_variable<float>({3, in}, of_weight));
  }
  const std::size_t before = bytes_in_use();
  {
    Tape tape;
    infty::linear(y, weights[0]);
    CHECK(static_cast<double>(bytes_in_use() - before) < 0.1 * bytes);
  }
  std::vector<std::thread> threads;
  for (const auto& weight : weights)
    threads.emplace_back([&y, weight] {
      Tape tape;
      tape.backward(infty::sum(infty::linear(y, weight)));
    });
  for (auto& thread : threads) thread.join();
  for (const auto& weight : weights)
    CHECK(weight.grad().to_vector() == weights[0].grad().to_vector());
}

TEST_CASE("KeptFactor: a rounded factor lives no longer than the tape's maps") {
  const ProductsScope scope(Products::bfloat16);
  const Index rows = 512, in = 256;
  const auto bytes = static_cast<double>(rows * in) * sizeof(float);
  Random random(infty::tests::seed);
  const auto x = uniform_variable<float>({rows, in}, random),
             w = uniform_variable<float>({3, in}, random);
  const std::size_t before = bytes_in_use();
  auto y = Variable<float>();
  {
    Tape tape;
    y = infty::scale(x, 2.f);
    tape.backward(infty::sum(infty::linear(y, w)));
  }
  const auto held = [&] { return static_cast<double>(bytes_in_use() - before) / bytes; };
  CHECK(held() < 3.1);  // y, and the gradients of x and of y
  y.store_in_bfloat16();
  CHECK(held() < 1.6);
}

TEST_CASE("KeptFactor: of a value that was written since, another is rounded") {
  const ProductsScope scope(Products::bfloat16);
  Random random(infty::tests::seed);
  const auto x = uniform_variable<float>({6, 4}, random),
             w = uniform_variable<float>({3, 4}, random);
  const auto gradient = [&](bool writes) {
    w.grad().fill(0);
    Tape tape;
    auto y = infty::scale(x, 2.f);
    if (writes) {
      infty::linear(y, w);  // rounds what stands there now
      y.value().fill(0.5f);
    } else {
      y.value().fill(0.5f);
    }
    tape.backward(infty::sum(infty::linear(y, w)));
    return w.grad().to_vector();
  };
  CHECK(gradient(true) == gradient(false));
}

}  // namespace kept_factor_tests
