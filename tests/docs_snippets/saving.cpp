// SPDX-License-Identifier: MIT
#include <cstddef>
#include <iostream>
#include <sstream>
#include <streambuf>
#include <string>
#include <vector>

#include <infty/autograd/clone.hpp>
#include <infty/memory/infty_memory.hpp>
#include <infty/model/transformer_lm.hpp>
#include <infty/nn/embedding.hpp>
#include <infty/nn/linear.hpp>
#include <infty/train/checkpoint.hpp>
#include <infty/train/trainer.hpp>

#include "io/temporary_folder.hpp"
#include "support/catch.hpp"

namespace mine {

struct Classifier {
  infty::Embedding<float> embedding{10, 8, infty::Random(1)};
  infty::Linear<float> hidden{8, 16, infty::Random(2)};
  infty::Linear<float> answer{16, 3, infty::Random(3)};

  template <class Visitor>
  void visit(Visitor&& see) {
    see("embedding", embedding);
    see("hidden", hidden);
    see("answer", answer);
  }
};

}  // namespace mine

namespace {

using infty::tests::TemporaryFolder;

/// What is printed as long as it lives.
class Printed {
 public:
  Printed() : before_(std::cout.rdbuf(text_.rdbuf())) {}
  Printed(const Printed&) = delete;
  Printed& operator=(const Printed&) = delete;
  ~Printed() { std::cout.rdbuf(before_); }

  std::string text() const { return text_.str(); }

 private:
  std::ostringstream text_;
  std::streambuf* before_;
};

std::vector<float> weights_of(const mine::Classifier& model) {
  std::vector<float> all;
  infty::for_each_parameter(model, [&](const std::string&, const auto& parameter) {
    for (const float x : parameter.value().to_vector()) all.push_back(x);
  });
  return all;
}

/// Weights that differ from those that a classifier begins with.
mine::Classifier trained_classifier() {
  mine::Classifier model;
  infty::for_each_parameter(
      model, [](const std::string&, auto& parameter) { parameter.value().fill(.25F); });
  return model;
}

}  // namespace

TEST_CASE("docs: weights are saved and loaded, all of them or none") {
  const TemporaryFolder folder;
  const auto path = folder / "classifier.safetensors";
  const mine::Classifier trained = trained_classifier();

  infty::save_parameters(path, trained);  // replaces an old file when the new one is complete
  mine::Classifier model;
  infty::load_parameters(path, model);  // all of it, or an infty::IoError and nothing

  CHECK(weights_of(model) == weights_of(trained));

  const Printed printed;
  const infty::SafetensorsFile file(path);
  for (const auto& [name, entry] : file.tensors()) std::cout << name << ' ' << entry.shape << '\n';
  CHECK(printed.text() == R"(answer.bias [3]
answer.weight [3, 16]
embedding.weight [10, 8]
hidden.bias [16]
hidden.weight [16, 8]
)");
}

TEST_CASE("docs: half the bytes") {
  const TemporaryFolder folder;
  const auto path = folder / "classifier.safetensors";
  const mine::Classifier trained = trained_classifier();

  infty::save_parameters(path, trained, "", infty::StoredFloats::bfloat16);

  mine::Classifier model;
  infty::load_parameters(path, model);
  CHECK(weights_of(model) == weights_of(trained));  // .25 is a number in bfloat16
}

TEST_CASE("docs: a file of others has other names") {
  const TemporaryFolder folder;
  const auto path = folder / "pretrained.safetensors";
  const mine::Classifier trained = trained_classifier();
  infty::SafetensorsWriter writer;  // what another program has written
  writer.add("backbone.embedding.weight", trained.embedding.weight.value());
  writer.add("backbone.hidden.weight", trained.hidden.weight.value());
  writer.add("backbone.hidden.bias", trained.hidden.bias.value());
  writer.add("backbone.norm.running_mean", infty::Tensor<float>::zeros({8}));
  writer.add("step", infty::Tensor<float>::zeros({1}));
  writer.save(path);
  const Printed printed;

  mine::Classifier model;
  const auto report = infty::load_parameters(path, model, "backbone.", {.strict = false});
  for (const auto& name : report.missing) std::cout << "keeps its values: " << name << '\n';
  for (const auto& name : report.unexpected) std::cout << "passed over: " << name << '\n';

  CHECK(printed.text() == R"(keeps its values: backbone.answer.weight
keeps its values: backbone.answer.bias
passed over: backbone.norm.running_mean
)");
  CHECK(model.hidden.weight.value().to_vector() == trained.hidden.weight.value().to_vector());
  CHECK(model.answer.weight.value().to_vector() ==
        mine::Classifier().answer.weight.value().to_vector());
}

TEST_CASE("docs: a tensor that lies otherwise in a file is put right by hand") {
  const TemporaryFolder folder;
  const auto path = folder / "conv1d.safetensors";
  infty::SafetensorsWriter writer;
  writer.add("h.0.mlp.weight", infty::Tensor<float>::from({2, 3}, {1, 2, 3, 4, 5, 6}));
  writer.save(path);
  infty::Linear<float> layer(2, 3, infty::Random(1));

  const infty::SafetensorsFile file(path);
  const infty::Variable<float> stored(file.tensor<float>("h.0.mlp.weight"));  // [in, out]
  layer.weight.value().copy_from(transpose(stored, 0, 1).value());            // [out, in]

  CHECK(layer.weight.value().to_vector() == std::vector<float>{1, 4, 2, 5, 3, 6});
}

TEST_CASE("docs: parts share a file by their prefixes") {
  const TemporaryFolder folder;
  const auto path = folder / "all.safetensors";
  const infty::TransformerLM<infty::InftyMemory<float>> model(
      {.vocabulary = 7, .model_dim = 8, .layers = 2, .heads = 2, .feed_forward = 16},
      {.attention = {.capacity = 4}, .memory = infty::LongTermConfig{.basis = 8, .samples = 16}});
  auto state = model.make_state(1);
  model.observe(state, infty::Tensor<infty::Index>::from({1, 5}, {1, 2, 3, 4, 5}));
  infty::Random random(7);

  infty::SafetensorsWriter writer;
  infty::save_parameters(writer, model, "model.");
  infty::save_state(writer, state, "state.");
  infty::save_random(writer, random, "random");
  writer.metadata("note", "after five tokens");
  writer.save(path);

  auto other = infty::clone(model);
  auto restored = other.make_state(1);
  infty::Random draws(0);
  infty::CheckpointLoader loader(path);
  loader.parameters(other, "model.").state(restored, "state.").random(draws, "random");
  loader.apply();  // puts all of it in its place; what threw before has changed nothing

  CHECK(loader.file().metadata("note") == "after five tokens");
  CHECK(draws.seed() == 7);
  const auto next = infty::Tensor<infty::Index>::from({1, 2}, {6, 0});
  CHECK(other.forward(restored, next).value().to_vector() ==
        model.forward(state, next).value().to_vector());
}

TEST_CASE("docs: weights come out of a training's checkpoint") {
  const TemporaryFolder folder;
  const auto path = folder / "checkpoint.safetensors";
  mine::Classifier model;
  infty::Trainer<float> trainer(model, {.steps = 3});
  const auto tokens = infty::Tensor<infty::Index>::from({4}, {1, 2, 3, 4});
  const auto targets = infty::Tensor<infty::Index>::from({4}, {0, 1, 2, 0});
  trainer.run([&] {
    return cross_entropy(
        model.answer.forward(relu(model.hidden.forward(model.embedding.forward(tokens)))), targets);
  });
  trainer.save(path);

  mine::Classifier weights;  // without the optimiser
  infty::load_parameters(path, weights, "model.");

  CHECK(weights_of(weights) == weights_of(model));
}
