// SPDX-License-Identifier: MIT
// Every call that docs/coming_from_pytorch.md sets beside one of PyTorch's, and its training loop.

#include <cmath>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <sstream>
#include <string>
#include <vector>

#include <infty/infty.hpp>

#include "io/temporary_folder.hpp"
#include "support/catch.hpp"

namespace {

namespace fs = std::filesystem;
using namespace infty;

struct Net {
  Linear<float> in{2, 8, Random(1)};
  LayerNorm<float> norm{8};
  Linear<float> out{8, 2, Random(2)};

  template <class Visitor>
  void visit(Visitor&& see) {
    see("in", in);
    see("norm", norm);
    see("out", out);
  }

  Variable<float> forward(const Variable<float>& x) const {
    return out.forward(relu(norm.forward(in.forward(x))));
  }
};

/// Four points and which of them have coordinates of one sign.
const auto points = Tensor<float>::from({4, 2}, {1, 1, 1, -1, -1, 1, -1, -1});
const auto classes = Tensor<Index>::from({4}, {1, 0, 0, 1});

}  // namespace

TEST_CASE("docs: what PyTorch's calls on tensors are here") {
  std::vector<float> mine(6);
  Random random(1);
  auto x = Tensor<float>::zeros({2, 3});
  CHECK(Tensor<float>::full({2, 3}, 7).to_vector() == std::vector<float>(6, 7));
  CHECK(Tensor<float>::from({2, 2}, {1, 2, 3, 4}).dim(0) == 2);
  const auto borrowed = Tensor<float>::wrap(mine.data(), {2, 3});
  CHECK(borrowed.data() == mine.data());
  fill_normal(x, 0, 1, random);
  CHECK(x.to_vector()[0] != 0);
  fill_uniform(x, 0, 1, random);
  CHECK(random.below(7) < 7);
  CHECK(x.shape() == Shape{2, 3});
  CHECK(x.dim(0) == 2);
  CHECK(x.dim(-1) == 3);
  CHECK(x.size() == 6);
  CHECK(x.rank() == 2);
  CHECK(x.reshape({3, 2}).data() == x.data());
  CHECK(x.slice(1, 2).data() == x.data() + 3);
  auto y = x;
  CHECK(same(x, y));
  CHECK_FALSE(same(x, x.clone()));
  x.fill(2);
  CHECK(y.to_vector() == std::vector<float>(6, 2));
  CHECK(x.cast<double>().to_vector()[5] == 2);
  CHECK(x.cast<BFloat16>().to_vector()[5] == 2.F);
  {
    const ProductsScope rounded(Products::bfloat16);
    CHECK(products() == Products::bfloat16);
  }
  CHECK(matrix(x).sum() == 12);
  CHECK(argmax(x).to_vector() == std::vector<Index>{0, 0});
}

TEST_CASE("docs: what PyTorch's item() is here") {
  const auto x = Tensor<float>::full({1, 1}, 3);
  CHECK(x.item() == 3);
}

TEST_CASE("docs: what PyTorch's operations are here") {
  const Variable<float> x(Tensor<float>::from({2, 3}, {1, 2, 3, 4, 5, 6}), true);
  const Variable<float> a = x, b = x;
  const auto i = Tensor<Index>::from({2, 1}, {0, 2});
  Random random(1);
  CHECK((a + b).value().to_vector()[5] == 12);
  CHECK((a * b).value().to_vector()[5] == 36);
  CHECK((a - b).value().to_vector()[5] == 0);
  CHECK((2 * a + 1).value().to_vector()[5] == 13);
  CHECK(matmul(a, transpose(b, 0, 1)).shape() == Shape{2, 2});
  CHECK(reshape(x, {6}).shape() == Shape{6});
  CHECK(concat(a, b).shape() == Shape{2, 6});
  CHECK(narrow(x, 1, 3).value().to_vector() == std::vector<float>{2, 3, 5, 6});
  CHECK(gather(x, i).value().to_vector() == std::vector<float>{1, 6});
  CHECK(top_k(x, 2).values.value().to_vector() == std::vector<float>{3, 2, 6, 5});
  CHECK(softmax(x).shape() == x.shape());
  CHECK(log_probabilities(x.value()).to_vector()[0] ==
        Approx(std::log(softmax(x).value().to_vector()[0])));
  CHECK(sum(x).value().item() == 21);
  CHECK(mean(x).value().item() == Approx(3.5));
  CHECK(gelu(x).shape() == x.shape());
  CHECK(dropout(x, .1, random).shape() == x.shape());
  const auto& y = x;
  const auto t = Tensor<Index>::from({2}, {0, 2});
  CHECK(cross_entropy(y, t).size() == 1);
  const Variable<float> q(Tensor<float>::zeros({1, 4, 6})), k(Tensor<float>::zeros({1, 4, 6})),
      v(Tensor<float>::full({1, 4, 6}, 2));
  CHECK(
      scaled_dot_product_attention(q, k, v, {.heads = 2, .causal = true}).value().to_vector()[23] ==
      Approx(2));
}

struct Two {
  Variable<float> a{Tensor<float>::full({1}, 1), true}, b{Tensor<float>::full({1}, 1), true};

  template <class Visitor>
  void visit(Visitor&& see) {
    see("a", a);
    see("b", b);
  }
};

void two_rates(Two& two) {
  Adam<float> adam(two, {.learning_rate = 0});
  adam.fix_rate("b", 1e-3);
  adam.zero_grad();
  Tape tape;
  tape.backward(sum(two.a + two.b));
  adam.step();
}

TEST_CASE("docs: what PyTorch's autograd, layers and optimisers are here") {
  Net model;
  Variable<float> x(points, true);
  CHECK_FALSE(x.detach().requires_grad());
  {
    const auto guard = no_grad();
    CHECK_FALSE(model.forward(x).requires_grad());
  }
  Adam<float> adam(model, {.learning_rate = 1e-3, .weight_decay = .01});
  adam.zero_grad();
  {
    Tape tape;
    const auto loss = cross_entropy(model.forward(x), classes);
    tape.backward(loss);
  }
  CHECK(x.has_grad());
  CHECK(x.grad().shape() == points.shape());
  CHECK(clip_grad_norm(adam.parameters(), 1) > 0);
  adam.step();
  CHECK(CosineSchedule{.peak = 1e-3, .warmup_steps = 10, .total_steps = 100}(9) == Approx(1e-3));
  CHECK(infty::count_parameters(model) == 24 + 16 + 18);
  CHECK(set_requires_grad(model, false) == 6);
  CHECK(set_requires_grad(model, true, "out.") == 2);
  CHECK(set_requires_grad(model, true) == 6);
  auto half = infty::clone(model);
  CHECK(store_in_bfloat16(half) > 0);
  CHECK(infty::parameters<float>(model).size() == 6);
  CHECK(infty::named_parameters<float>(model).front().name == "in.weight");
  const auto twin = infty::clone(model);
  CHECK_FALSE(same(twin.in.weight, model.in.weight));
  auto tied = model;
  CHECK(same(tied.in.weight, model.in.weight));
  CHECK(Embedding<float>(10, 8, Random(1)).weight.shape() == Shape{10, 8});

  Two two;
  Variable<float> table(Tensor<float>::zeros({5, 2}), true);
  table.set_grad_by_rows(true);
  CHECK(table.grad_by_rows());
  two_rates(two);
  CHECK(two.a.value().item() == 1);
  CHECK(two.b.value().item() == Approx(1 - 1e-3));

  const tests::TemporaryFolder folder;
  const auto path = folder / "model.safetensors";
  infty::save_parameters(path, model);
  CHECK(infty::load_parameters(path, model).complete());
  CHECK(infty::load_parameters(path, model, "", {.strict = false}).complete());

  infty::save_parameters(path, model.in);
  Linear<double> wide{2, 8, Random(3)};
  CHECK(infty::load_parameters(path, wide).complete());
  CHECK(wide.weight.value().to_vector()[0] ==
        static_cast<double>(model.in.weight.value().to_vector()[0]));
}

TEST_CASE("docs: a training loop beside PyTorch's") {
  std::ostringstream printed;
  auto* const before = std::cout.rdbuf(printed.rdbuf());

  Net model;
  Adam<float> adam(model, {.learning_rate = 1e-2});
  for (int step = 0; step < 200; ++step) {
    adam.zero_grad();
    Tape tape;  // records as long as it lives
    const auto loss = cross_entropy(model.forward(points), classes);
    tape.backward(loss);
    clip_grad_norm(adam.parameters(), 1);
    adam.step();
  }
  const auto answers = argmax(model.forward(points).value());  // there is no tape: nothing is kept
  std::cout << "answers " << answers.to_vector()[0] << answers.to_vector()[1]
            << answers.to_vector()[2] << answers.to_vector()[3] << '\n';

  std::cout.rdbuf(before);
  CHECK(printed.str() == "answers 1001\n");
}

TEST_CASE("docs: the same loop, a call a step") {
  Net model;
  Adam<float> adam(model);
  double last = 0;

  for (int step = 0; step < 200; ++step) {
    const TrainStep done = train_step(adam, {.learning_rate = 1e-2, .max_norm = 1}, [&] {
      return cross_entropy(model.forward(points), classes);
    });
    last = done.loss;
  }

  CHECK(last < .1);
}

TEST_CASE("docs: every call in the page's tables is compiled here") {
  const fs::path root = fs::path(INFTY_TEST_DATA).parent_path();
  const auto content_of = [&](const char* path) {
    std::ifstream in(root / path);
    REQUIRE(in.good());
    std::ostringstream text;
    text << in.rdbuf();
    return text.str();
  };
  const std::string here = content_of("tests/docs_snippets/coming_from_pytorch.cpp");
  std::istringstream page(content_of("docs/coming_from_pytorch.md"));
  int calls = 0;
  for (std::string line; std::getline(page, line);) {
    if (!line.starts_with("| `")) continue;
    const auto second = line.find(" | ");
    REQUIRE(second != std::string::npos);
    const std::string cell = line.substr(second + 3, line.find(" | ", second + 3) - second - 3);
    for (std::size_t at = 0; (at = cell.find('`', at)) != std::string::npos; ++calls) {
      const auto end = cell.find('`', at + 1);
      REQUIRE(end != std::string::npos);
      INFO(line);
      CHECK(here.find(cell.substr(at + 1, end - at - 1)) != std::string::npos);
      at = end + 1;
    }
  }
  CHECK(calls > 40);
}
