// SPDX-License-Identifier: MIT
#include <cstdint>
#include <filesystem>
#include <limits>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include <infty/memory/infty_memory.hpp>
#include <infty/model/transformer_lm.hpp>
#include <infty/train/checkpoint.hpp>
#include <infty/train/train_step.hpp>

#include "io/temporary_folder.hpp"
#include "support/catch.hpp"
#include "train/saved_run.hpp"

using Catch::Matchers::Contains;
using infty::CheckpointLoader;
using infty::Index;
using infty::IoError;
using infty::Random;
using infty::SafetensorsFile;
using infty::SafetensorsWriter;
using infty::Shape;
using infty::Tensor;
using infty::tests::read_text;
using infty::tests::TemporaryFolder;
using Model = infty::TransformerLM<infty::InftyMemory<float>>;
using State = Model::State;

namespace {

Model make_model(std::uint64_t seed) {
  return Model({.vocabulary = 7,
                .model_dim = 8,
                .layers = 2,
                .heads = 2,
                .feed_forward = 12,
                .pre_norm = true},
               {.attention = {.capacity = 4, .stride = 1},
                .memory = infty::LongTermConfig{.basis = 6,
                                                .widths = {.1, .2},
                                                .samples = 8,
                                                .resampling = infty::Resampling::sticky,
                                                .bins = 16}},
               Random(seed));
}

Tensor<Index> tokens(Index batch, Index length, Random& random) {
  Tensor<Index> out(Shape{batch, length});
  for (Index i = 0; i < out.size(); ++i) out.data()[i] = random.below(7);
  return out;
}

/// A training run: everything that a checkpoint has to bring back.
struct Run {
  Model model;
  infty::Adam<float> adam;
  Random random{infty::tests::seed, 9};
  State state;

  explicit Run(std::uint64_t seed)
      : model(make_model(seed)), adam(model), state(model.make_state(2)) {}

  double step() {
    const auto input = tokens(2, 3, random), target = tokens(2, 3, random);
    return infty::train_step(adam, {.learning_rate = 1e-2},
                             [&] {
                               return infty::cross_entropy(
                                   model.logits(model.forward(state, input)), target);
                             })
        .loss;
  }

  void save(const std::filesystem::path& path) const {
    SafetensorsWriter writer;
    infty::tests::save_run(writer, *this);
    writer.metadata("config", "{\"layers\": 2}");
    writer.save(path);
  }

  void load(const std::filesystem::path& path) { infty::tests::load_run(path, *this); }

  std::string bytes() const {
    const TemporaryFolder folder;
    save(folder / "a");
    return read_text(folder / "a");
  }
};

/// The entries of a checkpoint, one of them left out, replaced or joined by another; the metadata
/// likewise, by `version` if there is one.
template <class Change>
void rewrite(const std::filesystem::path& from, const std::filesystem::path& to, Change&& change,
             const std::string& version = std::string(infty::checkpoint_version)) {
  const SafetensorsFile file(from);
  SafetensorsWriter writer;
  if (!version.empty()) writer.metadata("infty.checkpoint", version);
  for (const auto& [name, entry] : file.tensors())
    if (!change(writer, name))
      writer.add_bytes(name, entry.dtype, entry.shape, file.read_bytes(name));
  writer.save(to);
}

struct Two {
  infty::Variable<float> a{Tensor<float>::full({2}, 1), true};
  infty::Variable<float> b{Tensor<float>::full({2}, 1), true};

  template <class Visitor>
  void visit(Visitor&& see) {
    see("a", a);
    see("b", b);
  }
};

struct Tied {
  infty::Variable<float> a{Tensor<float>::full({2}, 1), true}, b = a;

  template <class Visitor>
  void visit(Visitor&& see) {
    see("a", a);
    see("b", b);
  }
};

}  // namespace

TEST_CASE("checkpoint: a restored run continues bit for bit") {
  const TemporaryFolder folder;
  Run run(1);
  for (int i = 0; i < 5; ++i) run.step();
  run.save(folder / "a");
  Run restored(2);
  restored.load(folder / "a");
  CHECK(restored.bytes() == run.bytes());
  for (int i = 0; i < 5; ++i) CHECK(restored.step() == run.step());
  CHECK(restored.bytes() == run.bytes());
  CHECK(SafetensorsFile(folder / "a").metadata("config") == "{\"layers\": 2}");
}

TEST_CASE("load_parameters: the optimiser goes on with the parameters it holds") {
  const TemporaryFolder folder;
  Run source(1), target(2);
  infty::save_parameters(folder / "a", source.model);
  const auto* const memory = target.model.head.biases[0].value().data();
  infty::load_parameters(folder / "a", target.model);
  CHECK(target.model.head.biases[0].value().data() == memory);
  CHECK(same(target.adam.parameters().front().variable, target.model.embedding.weights[0]));
  CHECK(target.step() == source.step());
}

TEST_CASE("load_state: rows and waiting sequences of other numbers; copies keep what they have") {
  const TemporaryFolder folder;
  Run run(1);
  for (int i = 0; i < 3; ++i) run.step();
  infty::save_state(folder / "a", run.state);
  State state = run.model.make_state(5);
  const State copy = state;
  infty::load_state(folder / "a", state);
  CHECK(infty::batch_of(state) == 2);
  CHECK(infty::batch_of(copy) == 5);
  Random random(3);
  const auto next = tokens(2, 3, random);
  State original = run.state;
  CHECK(run.model.forward(state, next).value().to_vector() ==
        run.model.forward(original, next).value().to_vector());
}

TEST_CASE("checkpoint: weights and a state in bfloat16 are half as large, and go on") {
  Run run(1);
  for (int i = 0; i < 4; ++i) run.step();
  const TemporaryFolder folder;
  const auto all = infty::StoredFloats::bfloat16;
  infty::save_parameters(folder / "weights", run.model);
  infty::save_parameters(folder / "half", run.model, "", all);
  infty::save_state(folder / "state", run.state, "", all);
  const auto bytes = [&](const char* name) {
    const SafetensorsFile file(folder / name);
    std::uint64_t all_bytes = 0;
    for (const auto& [tensor, entry] : file.tensors()) all_bytes += entry.end - entry.begin;
    return all_bytes;
  };
  CHECK(2 * bytes("half") == bytes("weights"));

  Run other(2);
  infty::load_parameters(folder / "half", other.model);
  infty::load_state(folder / "state", other.state);
  const auto of_run = infty::parameters<float>(run.model),
             of_other = infty::parameters<float>(other.model);
  for (std::size_t p = 0; p < of_run.size(); ++p) {
    const auto exact = of_run[p].value().to_vector(), rounded = of_other[p].value().to_vector();
    for (std::size_t i = 0; i < exact.size(); ++i)
      REQUIRE(rounded[i] == infty::detail::to_bfloat16(exact[i]));
  }
  std::vector<Tensor<float>> ours, theirs;
  const auto into = [](std::vector<Tensor<float>>& list) {
    return [&list](const std::string&, const auto& member) {
      if constexpr (infty::detail::is_tensor<std::remove_cvref_t<decltype(member)>>)
        list.push_back(infty::detail::tensor_of(member));
    };
  };
  infty::for_each_member(run.state, into(ours));
  infty::for_each_member(other.state, into(theirs));
  REQUIRE(ours.size() == theirs.size());
  for (std::size_t m = 0; m < ours.size(); ++m)
    for (Index i = 0; i < ours[m].size(); ++i)
      REQUIRE(theirs[m].data()[i] == infty::detail::to_bfloat16(ours[m].data()[i]));

  const auto input = tokens(2, 3, run.random);
  const auto guard = infty::no_grad();
  const auto a = run.model.logits(run.model.forward(run.state, input)).value();
  const auto b = other.model.logits(other.model.forward(other.state, input)).value();
  for (Index i = 0; i < a.size(); ++i) CHECK(b.data()[i] == Approx(a.data()[i]).margin(.05));
}

TEST_CASE("checkpoint: tied parameters are stored once") {
  const TemporaryFolder folder;
  Tied tied;
  infty::save_parameters(folder / "a", tied);
  CHECK(SafetensorsFile(folder / "a").names() == std::vector<std::string>{"a"});
  tied.a.value().fill(2);
  infty::load_parameters(folder / "a", tied);
  CHECK(tied.b.value().to_vector() == std::vector<float>{1, 1});
}

TEST_CASE("load_parameters: where one may not be written, none is") {
  const TemporaryFolder folder;
  Two written;
  infty::save_parameters(folder / "two", written);
  const float fixed[] = {3, 4};
  Two read;
  read.a.value().fill(5);
  read.b = infty::Variable<float>(infty::Tensor<float>::wrap(fixed, {2}), true);
  CHECK_THROWS_AS(infty::load_parameters(folder / "two", read), infty::ValueError);
  CHECK(std::as_const(read.a.value()).to_vector() == std::vector<float>{5, 5});
}

TEST_CASE("load_parameters: what is stored in bfloat16 stays so if a file is refused") {
  const TemporaryFolder folder;
  const auto made = [](Index feed_forward) {
    return Model(
        {.vocabulary = 5, .model_dim = 4, .layers = 2, .heads = 2, .feed_forward = feed_forward},
        {.attention = {.capacity = 4}}, Random(1));
  };
  infty::save_parameters(folder / "other", made(7));
  infty::save_parameters(folder / "same", made(6));
  auto model = made(6);
  infty::store_in_bfloat16(model);
  CHECK_THROWS_AS(infty::load_parameters(folder / "other", model), IoError);
  infty::for_each_parameter(model, [](const std::string&, const infty::Variable<float>& p) {
    CHECK((p.stored_in_bfloat16() != nullptr) == (p.shape().rank() == 2));
  });
  infty::load_parameters(folder / "same", model);
  const auto numbers_of = [](const Model& of) {
    std::vector<std::vector<float>> all;
    infty::for_each_parameter(of, [&](const std::string&, const infty::Variable<float>& p) {
      CHECK_FALSE(p.stored_in_bfloat16());
      all.push_back(p.value().to_vector());
    });
    return all;
  };
  CHECK(numbers_of(model) == numbers_of(made(6)));
}

TEST_CASE("checkpoint: what does not fit is named, and everything stays as it was") {
  const TemporaryFolder folder;
  Run source(1);
  for (int i = 0; i < 3; ++i) source.step();
  source.save(folder / "good");
  Run run(2);
  run.step();
  const std::string before = run.bytes();
  const auto refused = [&](const std::string& name, const std::string& rule, auto&& change) {
    rewrite(folder / "good", folder / "bad", change);
    INFO(name);
    CHECK_THROWS_WITH(run.load(folder / "bad"), Contains(name) && Contains(rule));
    CHECK_THROWS_AS(run.load(folder / "bad"), IoError);
    CHECK(run.bytes() == before);
  };
  const auto without = [&](const std::string& missing) {
    refused(missing, "no tensor",
            [&](SafetensorsWriter&, const std::string& name) { return name == missing; });
  };
  without("model.output_bias");
  without("optimizer.first.output_bias");
  without("optimizer.steps");
  without("random");
  without("state.layers.1.mixer.attention.recent.length");

  const auto replaced = [&](const std::string& which, const std::string& rule, Shape shape,
                            const auto& values) {
    refused(which, rule, [&](SafetensorsWriter& writer, const std::string& name) {
      if (name == which) writer.add(name, shape, values);
      return name == which;
    });
  };
  using Floats = std::vector<float>;
  using Counts = std::vector<Index>;
  replaced("model.output_bias", "[7] is needed", {6}, Floats(6));
  replaced("model.output_bias", "asked for as F32", {7}, Counts(7));
  replaced("optimizer.steps.output_bias", "at least 0", {}, Counts{-1});
  replaced("optimizer.steps", "at most 2^62", {}, Counts{std::numeric_limits<Index>::max()});
  replaced("optimizer.second.output_bias", "[7] is needed", {1, 7}, Floats(7));
  replaced("random", "[3] is needed", {2}, Counts(2));
  const std::string state = "state.layers.0.";
  replaced(state + "mixer.past.memory.coefficients", "[2, 6, 8] is needed", {2, 5, 8}, Floats(80));
  replaced(state + "mixer.past.memory.attention", "[2, 16] is needed", {2, 15}, Floats(30));
  replaced(state + "mixer.past.memory.written", "at least 0", {2}, Counts{1, -1});
  replaced(state + "mixer.past.memory.written", "at most 2^62", {2},
           Counts{1, std::numeric_limits<Index>::max()});
  replaced(state + "mixer.past.memory.writes", "[2] is needed", {3}, Counts{1, 1, 1});
  replaced(state + "mixer.past.leaving.vectors", "[2, 3, 8] is needed", {2, 3, 7}, Floats(42));
  replaced(state + "mixer.past.leaving.length", "holds 4", {2}, Counts{3, 4});
  replaced(state + "mixer.attention.recent.vectors", "must have rows", {}, Floats(1));

  for (const std::string extra : {"model.more", "optimizer.more", "state.more"})
    refused(extra, "belongs to nothing", [&](SafetensorsWriter& writer, const std::string& name) {
      if (name == "random") writer.add(extra, Shape{1}, Floats(1));
      return false;
    });
}

TEST_CASE("checkpoint: another version is named, and everything stays as it was") {
  const TemporaryFolder folder;
  Run source(1), run(2);
  source.step();
  source.save(folder / "good");
  infty::save_state(folder / "state", source.state);
  const auto nothing = [](SafetensorsWriter&, const std::string&) { return false; };
  const std::string before = run.bytes();
  for (const auto& [version, named] :
       {std::pair("", "is a checkpoint of no version, version '1' or '2' is needed: make"),
        std::pair("3", "is a checkpoint of version '3', version '1' or '2' is needed: make")}) {
    rewrite(folder / "good", folder / "bad", nothing, version);
    CHECK_THROWS_WITH(run.load(folder / "bad"), Contains(named));
    rewrite(folder / "state", folder / "bad", nothing, version);
    CHECK_THROWS_WITH(infty::load_state(folder / "bad", run.state), Contains(named));
  }
  CHECK_THROWS_AS(infty::load_state(folder / "bad", run.state), IoError);
  CHECK(run.bytes() == before);
}

TEST_CASE(
    "load_parameters: a file of others has no version, and one of another version is refused") {
  const TemporaryFolder folder;
  Run source(1), run(2);
  infty::save_parameters(folder / "ours", source.model);
  const auto nothing = [](SafetensorsWriter&, const std::string&) { return false; };
  rewrite(folder / "ours", folder / "plain", nothing, "");
  CHECK(SafetensorsFile(folder / "plain").metadata().empty());
  infty::load_parameters(folder / "plain", run.model);
  CHECK(run.model.head.biases[0].value().to_vector() ==
        source.model.head.biases[0].value().to_vector());
  rewrite(folder / "ours", folder / "later", nothing, "12");
  CHECK_THROWS_WITH(infty::load_parameters(folder / "later", run.model),
                    Contains("of version '12', version '1' or '2' is"));
}

TEST_CASE("checkpoint: what begins with no prefix that is loaded is nobody's business") {
  const TemporaryFolder folder;
  Run source(1), run(2);
  source.save(folder / "a");
  infty::load_parameters(folder / "a", run.model, "model.");
  CHECK(run.model.head.biases[0].value().to_vector() ==
        source.model.head.biases[0].value().to_vector());
  CHECK_THROWS_AS(infty::load_parameters(folder / "a", run.model), IoError);
  CHECK_THROWS_AS(infty::load_parameters(folder / "missing", run.model), IoError);
}

TEST_CASE("checkpoint: a name that is taken is an error, and a failed save keeps the old file") {
  const TemporaryFolder folder;
  const Run run(1);
  SafetensorsWriter writer;
  infty::save_random(writer, run.random, "random");
  CHECK_THROWS_AS(infty::save_random(writer, run.random, "random"), IoError);
  CHECK_THROWS_AS(infty::save_parameters(folder / "missing" / "a", run.model), IoError);
}
