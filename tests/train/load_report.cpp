// SPDX-License-Identifier: MIT
#include <string>
#include <vector>

#include <infty/nn/linear.hpp>
#include <infty/train/adam.hpp>
#include <infty/train/checkpoint.hpp>

#include "io/temporary_folder.hpp"
#include "support/catch.hpp"

// A user's layers, in a namespace of the user's.
namespace somebody_with_weights {

struct Body {
  infty::Linear<float> in, out;

  template <class Visitor>
  void visit(Visitor&& see) {
    see("in", in);
    see("out", out);
  }
};

struct WithHead {
  infty::Linear<float> in, out, head;

  template <class Visitor>
  void visit(Visitor&& see) {
    see("in", in);
    see("out", out);
    see("head", head);
  }
};

namespace {

using Catch::Matchers::Contains;
using infty::Random;
using infty::tests::TemporaryFolder;
using Names = std::vector<std::string>;

Body body(std::uint64_t seed) { return {{3, 4, Random(seed)}, {4, 2, Random(seed + 1)}}; }

WithHead with_head(std::uint64_t seed) {
  return {{3, 4, Random(seed)}, {4, 2, Random(seed + 1)}, {2, 5, Random(seed + 2)}};
}

std::vector<float> weights(const infty::Linear<float>& layer) {
  return layer.weight.value().to_vector();
}

}  // namespace

TEST_CASE("load_parameters: strict takes what matches exactly, and reports nothing") {
  const TemporaryFolder folder;
  const Body saved = body(1);
  infty::save_parameters(folder / "a", saved, "model.");
  CHECK(infty::SafetensorsFile(folder / "a").names() ==
        Names{"model.in.bias", "model.in.weight", "model.out.bias", "model.out.weight"});
  Body loaded = body(5);
  const infty::LoadReport report = infty::load_parameters(folder / "a", loaded, "model.");
  CHECK(report.complete());
  CHECK(weights(loaded.out) == weights(saved.out));
}

TEST_CASE("load_parameters: without strict, what is missing keeps its values and is named") {
  const TemporaryFolder folder;
  const Body saved = body(1);
  infty::save_parameters(folder / "a", saved, "model.");
  WithHead loaded = with_head(5);
  const auto in = weights(loaded.in), head = weights(loaded.head);

  CHECK_THROWS_WITH(infty::load_parameters(folder / "a", loaded, "model."),
                    Contains("no tensor") && Contains("model.head.weight"));
  CHECK(weights(loaded.in) == in);

  const auto report = infty::load_parameters(folder / "a", loaded, "model.", {.strict = false});
  CHECK(report.missing == Names{"model.head.weight", "model.head.bias"});
  CHECK(report.unexpected.empty());
  CHECK_FALSE(report.complete());
  CHECK(weights(loaded.in) == weights(saved.in));
  CHECK(weights(loaded.out) == weights(saved.out));
  CHECK(weights(loaded.head) == head);
}

TEST_CASE("load_parameters: without strict, what is too much is passed over and named") {
  const TemporaryFolder folder;
  const WithHead saved = with_head(1);
  infty::SafetensorsWriter writer;
  infty::save_parameters(writer, saved, "model.");
  writer.add("step", infty::Shape{1}, std::vector<float>{7});  // not behind the prefix
  writer.save(folder / "a");
  Body loaded = body(5);
  const auto in = weights(loaded.in);

  CHECK_THROWS_WITH(infty::load_parameters(folder / "a", loaded, "model."),
                    Contains("model.head.bias") && Contains("belongs to nothing"));
  CHECK(weights(loaded.in) == in);

  const auto report = infty::load_parameters(folder / "a", loaded, "model.", {.strict = false});
  CHECK(report.missing.empty());
  CHECK(report.unexpected == Names{"model.head.bias", "model.head.weight"});
  CHECK(weights(loaded.in) == weights(saved.in));
}

TEST_CASE("load_parameters: another shape is an error, strict or not, and nothing is loaded") {
  const TemporaryFolder folder;
  Body saved = body(1);
  saved.out = infty::Linear<float>(4, 3, Random(9));
  infty::save_parameters(folder / "a", saved);
  Body loaded = body(5);
  const auto in = weights(loaded.in);
  CHECK_THROWS_WITH(infty::load_parameters(folder / "a", loaded, "", {.strict = false}),
                    Contains("out.weight") && Contains("is needed"));
  CHECK_THROWS_AS(infty::load_parameters(folder / "a", loaded, "", {.strict = false}),
                  infty::IoError);
  CHECK(weights(loaded.in) == in);
}

TEST_CASE("checkpoint: a tensor belongs to the longest prefix, strict or not") {
  const TemporaryFolder folder;
  Body model = body(1);
  infty::Adam<float> adam(model);
  const auto write = [&](const std::string& name, const std::string& extra) {
    infty::SafetensorsWriter writer;
    infty::save_parameters(writer, model);
    infty::save_optimizer(writer, adam, "optimizer.");
    writer.add(extra, infty::Shape{1}, std::vector<float>{7});
    writer.save(folder / name);
  };
  const auto load = [&](const std::string& name) {
    infty::CheckpointLoader loader(folder / name);
    loader.parameters(model, "", {.strict = false}).optimizer(adam, "optimizer.");
    return loader.apply();
  };
  write("of nobody", "step");
  CHECK(load("of nobody").unexpected == Names{"step"});
  write("of the optimizer", "optimizer.more");
  CHECK_THROWS_WITH(load("of the optimizer"), Contains("optimizer.more"));
}

}  // namespace somebody_with_weights
