// SPDX-License-Identifier: MIT
// What moves between EigenBackend and Thrust's backends: tensors, layers, states and checkpoints.

#include <cmath>
#include <cstddef>
#include <filesystem>
#include <string>
#include <type_traits>
#include <vector>

#include <infty/memory/infty_memory.hpp>
#include <infty/memory/to.hpp>
#include <infty/model/transformer_lm.hpp>
#include <infty/nn/to.hpp>
#include <infty/train/checkpoint.hpp>
#include <infty/train/train_step.hpp>

#include "io/temporary_folder.hpp"
#include "support/catch.hpp"
#include "support/states.hpp"
#include "support/tensors.hpp"
#include "support/types.hpp"

using namespace infty;
using infty::tests::error;
using infty::tests::numbers_of;
using infty::tests::read_text;
using infty::tests::TemporaryFolder;
using infty::tests::tolerance;
using infty::tests::Types;
using infty::tests::uniform_tensor;

namespace {

template <class T, class B>
using Model = TransformerLM<InftyMemory<T, B>>;

template <class T, class B>
Model<T, B> make_model(std::uint64_t seed) {
  return Model<T, B>({.vocabulary = 7, .model_dim = 8, .layers = 2, .heads = 2, .feed_forward = 12},
                     {.attention = {.capacity = 4, .stride = 1},
                      .memory = LongTermConfig{.basis = 6,
                                               .widths = {.1, .2},
                                               .samples = 8,
                                               .resampling = Resampling::sticky,
                                               .bins = 16}},
                     Random(seed));
}

/// A training run: everything that a checkpoint has to bring back.
template <class T, class B>
struct Run {
  Model<T, B> model;
  Adam<T, B> adam;
  Random random{infty::tests::seed, 9};
  typename Model<T, B>::State state;

  explicit Run(std::uint64_t seed)
      : model(make_model<T, B>(seed)), adam(model), state(model.make_state(2)) {}

  Tensor<Index, B> tokens() {
    std::vector<Index> all(6);
    for (Index& token : all) token = random.below(7);
    return Tensor<Index, B>::from({2, 3}, all);
  }

  /// @return  the loss
  double step() {
    const auto input = tokens(), target = tokens();
    const auto loss = [&] {
      return cross_entropy(model.logits(model.forward(state, input)), target);
    };
    return train_step(adam, {.learning_rate = 1e-2}, loss).loss;
  }

  void save(const std::filesystem::path& path) const {
    SafetensorsWriter writer;
    save_parameters(writer, model, "model.");
    save_optimizer(writer, adam, "optimizer.");
    save_random(writer, random, "random");
    save_state(writer, state, "state.");
    writer.save(path);
  }
  void load(const std::filesystem::path& path) {
    CheckpointLoader(path)
        .parameters(model, "model.")
        .optimizer(adam, "optimizer.")
        .random(random, "random")
        .state(state, "state.")
        .apply();
  }
};

/// A checkpoint of one backend is read on another, written again to the same bytes, and continued.
template <class T, class From, class To>
void require_checkpoint_moves() {
  const TemporaryFolder folder;
  Run<T, From> from(1);
  for (int i = 0; i < 4; ++i) from.step();
  from.save(folder / "from");
  Run<T, To> to(2);
  to.load(folder / "from");
  to.save(folder / "to");
  CHECK(read_text(folder / "to") == read_text(folder / "from"));
  for (int i = 0; i < 3; ++i) CHECK(std::abs(to.step() - from.step()) < tolerance<T>);
}

}  // namespace

TEMPLATE_LIST_TEST_CASE("to: a tensor goes to the backend and back", "", Types) {
  using T = typename TestType::T;
  using B = typename TestType::B;
  Random random(1);
  const auto here = uniform_tensor<T>({3, 1000}, random);
  const auto there = here.template to<B>();
  CHECK((std::is_same_v<decltype(there), const Tensor<T, B>>));
  CHECK(there.to_vector() == here.to_vector());
  CHECK(there.slice(1, 2).template to<EigenBackend>().to_vector() == here.slice(1, 2).to_vector());
  CHECK(Tensor<T, B>().template to<EigenBackend>().empty());
  CHECK(Variable<T>(here, true).template to<B>().requires_grad());
}

TEMPLATE_LIST_TEST_CASE("to: a model and its state read on where they were", "", Types) {
  using T = typename TestType::T;
  using B = typename TestType::B;
  Run<T, EigenBackend> run(3);
  for (int i = 0; i < 4; ++i) run.step();
  const auto model = to<B>(run.model);
  auto state = to<B>(run.state);
  CHECK(numbers_of(state) == numbers_of(run.state));
  const auto tokens = run.tokens();
  const auto here = run.model.forward(run.state, tokens);
  const auto there = model.forward(state, tokens.template to<B>());
  CHECK(error(there.value().to_vector(), here.value().to_vector()) < tolerance<T>);
  CHECK(error(numbers_of(state), numbers_of(run.state)) < tolerance<T>);

  const auto back = to<EigenBackend>(to<B>(run.state));
  CHECK(numbers_of(back) == numbers_of(run.state));
}

TEMPLATE_LIST_TEST_CASE("copy_parameters: from the host and back to it, the same bits", "", Types) {
  using T = typename TestType::T;
  using B = typename TestType::B;
  auto from = make_model<T, EigenBackend>(1), back = make_model<T, EigenBackend>(2);
  auto there = make_model<T, B>(3);
  copy_parameters(from, there);
  copy_parameters(there, back);
  std::vector<std::vector<T>> values;
  for_each_parameter(from, [&](const std::string&, const auto& parameter) {
    values.push_back(parameter.value().to_vector());
  });
  std::size_t next = 0;
  for_each_parameter(back, [&](const std::string& name, const auto& parameter) {
    INFO(name);
    CHECK(parameter.value().to_vector() == values[next++]);
  });
}

TEMPLATE_LIST_TEST_CASE("checkpoint: written on EigenBackend, read on this one", "", Types) {
  require_checkpoint_moves<typename TestType::T, EigenBackend, typename TestType::B>();
}

TEMPLATE_LIST_TEST_CASE("checkpoint: written on this backend, read on EigenBackend", "", Types) {
  require_checkpoint_moves<typename TestType::T, typename TestType::B, EigenBackend>();
}
