// SPDX-License-Identifier: MIT
#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstddef>
#include <filesystem>
#include <iterator>
#include <limits>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include <infty/autograd/elementwise.hpp>
#include <infty/autograd/linear.hpp>
#include <infty/autograd/reduce.hpp>
#include <infty/data/text_tensors.hpp>
#include <infty/memory/infty_memory.hpp>
#include <infty/model/objective.hpp>
#include <infty/model/transformer_lm.hpp>
#include <infty/train/trainer.hpp>

#include "io/temporary_folder.hpp"
#include "support/catch.hpp"
#include "support/model.hpp"
#include "support/types.hpp"

using infty::Index;
using infty::Random;
using infty::Tensor;
using infty::Trainer;
using infty::TrainerConfig;
using infty::TrainStep;
using infty::Variable;
using infty::tests::TwoLayers;

namespace {

namespace fs = std::filesystem;
using infty::tests::read_text;

constexpr TrainerConfig ten_steps{.steps = 10,
                                  .adam = {.learning_rate = .05},
                                  .warmup_steps = 2,
                                  .last_rate = .001,
                                  .max_norm = .5};

/// A small model that learns to halve numbers that are drawn anew for every step, and all that its
/// next step depends on.
template <class T, class B>
struct Halving {
  TwoLayers<T, B> model{3, 8, 3, Random(1)};
  Random numbers{2};
  Index seen = 0;  // the place in the data
  std::vector<double> losses;
  Trainer<T, B> trainer;

  explicit Halving(TrainerConfig config = ten_steps, const std::string& settings = "",
                   const std::string& before = "{}")
      : trainer(model, std::move(config)) {
    trainer.keep("numbers", numbers)
        .keep_settings(settings, before)
        .keep_text(
            "place", [this] { return std::to_string(seen); },
            [this](const std::string& text) {
              infty::require<infty::IoError>(!text.empty() && text.size() < 9, "Halving",
                                             "no place");
              return [this, there = std::stoll(text)] { seen = there; };
            });
  }

  Variable<T, B> loss() {
    const Variable<T, B> x(infty::tests::uniform_tensor<T, B>({4, 3}, numbers));
    seen += 4;
    const auto hidden = infty::sigmoid(infty::linear(x, model.first.weight, model.first.bias));
    const auto y = infty::linear(hidden, model.second.weight, model.second.bias);
    const auto difference = y + infty::scale(x, T(-.5));
    return infty::mean(difference * difference);
  }

  /// Trains, but no further than to step `last`.
  bool run(const fs::path& checkpoint, Index last = 1000) {
    return trainer.run([&] { return loss(); },
                       {.save = [&] { trainer.save(checkpoint); },
                        .stop = [&] { return trainer.steps() >= last; },
                        .stepped = [&](const TrainStep& step,
                                       const infty::Progress&) { losses.push_back(step.loss); }});
  }
};

using Small = Halving<double, infty::EigenBackend>;

}  // namespace

TEMPLATE_LIST_TEST_CASE("Trainer: stopped and gone on with at any step, it is bit for bit one run",
                        "", infty::tests::Types) {
  using T = typename TestType::T;
  using B = typename TestType::B;
  const infty::tests::TemporaryFolder folder;
  const fs::path whole = folder / "whole", pieces = folder / "pieces";
  Halving<T, B> once;
  CHECK(once.run(whole));
  CHECK(once.losses.size() == 10);
  CHECK(once.losses.back() < once.losses.front());

  std::vector<double> losses;
  bool done = false;
  for (Index last : {0, 1, 4, 5, 9, 1000}) {
    Halving<T, B> again;  // nothing is left of the one before but its checkpoint
    if (last > 0) again.trainer.load(pieces);
    CHECK_FALSE(done);
    done = again.run(pieces, last);
    CHECK(again.seen == 4 * again.trainer.steps());
    losses.insert(losses.end(), again.losses.begin(), again.losses.end());
  }
  CHECK(done);
  CHECK(losses == once.losses);
  CHECK(read_text(pieces) == read_text(whole));
  REQUIRE_FALSE(read_text(whole).empty());
}

TEST_CASE("Trainer: a language model with its memory, dropout and text goes on bit for bit") {
  using Lm = infty::TransformerLM<infty::InftyMemory<float>>;
  infty::TokenStream text;
  std::vector<infty::TokenId> tokens;
  for (int i = 0; i < 150; ++i) tokens.push_back(static_cast<infty::TokenId>(i * i % 11));
  text.append(tokens);
  const infty::tests::TemporaryFolder folder;

  struct Training {
    Lm model{{.vocabulary = 11,
              .model_dim = 8,
              .layers = 2,
              .heads = 2,
              .feed_forward = 8,
              .dropout = .1},
             {.attention = {.capacity = 3, .stride = 1},
              .memory = infty::LongTermConfig{.basis = 4,
                                              .widths = {.1, .3},
                                              .samples = 6,
                                              .resampling = infty::Resampling::sticky,
                                              .bins = 8}},
             Random(1)};
    infty::BatchStream batches;
    Lm::State state = model.make_state(2);
    Random dropout{2};
    Trainer<float> trainer{model, {.steps = 16, .adam = {.learning_rate = .01}, .max_norm = 1}};
    std::vector<double> losses;

    explicit Training(const infty::TokenStream& text) : batches(text, {.batch = 2, .segment = 5}) {
      trainer.keep("state.", state).keep("dropout", dropout);
      trainer.keep_text(
          "next",
          [this] {
            const auto& position = batches.position();
            return infty::settings_json(position.next) + std::to_string(position.epoch);
          },
          [this](const std::string& place) {
            return [this, place] {
              // Steps are a place, too: 15 segments are a pass.
              for (Index i = 0; i < trainer.steps(); ++i) batches.next();
              CHECK(infty::settings_json(batches.position().next) +
                        std::to_string(batches.position().epoch) ==
                    place);
            };
          });
    }

    bool run(const fs::path& path, Index last) {
      return trainer.run(
          [&] {
            const auto batch = batches.next();
            reset_rows(model, state, batch);
            infty::Pass<float> pass{.random = &dropout};
            const auto hidden = model.forward(state, infty::input_tokens(batch), pass);
            return infty::objective(model, hidden, infty::target_tokens(batch), pass,
                                    {{"divergence", 1e-3}})
                .total;
          },
          {.save = [&] { trainer.save(path); },
           .stop = [&] { return trainer.steps() >= last; },
           .stepped = [&](const TrainStep& step,
                          const infty::Progress&) { losses.push_back(step.loss); }});
    }
  };

  Training once(text), before(text), behind(text);
  CHECK(once.run(folder / "whole", 100));
  CHECK_FALSE(before.run(folder / "pieces", 7));
  behind.trainer.load(folder / "pieces");
  CHECK(behind.run(folder / "pieces", 100));
  auto losses = before.losses;
  losses.insert(losses.end(), behind.losses.begin(), behind.losses.end());
  CHECK(losses == once.losses);
  CHECK(losses.size() == 16);
  CHECK(read_text(folder / "pieces") == read_text(folder / "whole"));
}

TEST_CASE("Trainer: each step has the schedule's rate and is clipped") {
  Small a, b;
  std::vector<double> rates;
  const auto expected = [&](Index step) { return ten_steps.rate(step); };
  infty::Adam<double> adam(b.model, ten_steps.adam);
  a.trainer.run([&] { return a.loss(); },
                {.stepped = [&](const TrainStep& step, const infty::Progress& progress) {
                  const Index i = std::ssize(rates);
                  rates.push_back(step.learning_rate);
                  CHECK(step.learning_rate == expected(i));
                  CHECK(progress.done() == i + 1);
                  CHECK(progress.total() == 10);
                  const auto by_hand =
                      infty::train_step(adam, {.learning_rate = expected(i), .max_norm = .5},
                                        [&] { return b.loss(); });
                  CHECK(step.loss == by_hand.loss);
                  CHECK(step.grad_norm == by_hand.grad_norm);
                }});
  CHECK(rates.size() == 10);
  CHECK(a.trainer.steps() == 10);
}

TEST_CASE("Trainer: saves every so often, behind the last step and where it stops, once each") {
  const auto saved_at = [](Index save_every, Index stop_at, double minutes = 0,
                           Index slow_step = -1) {
    TrainerConfig config = ten_steps;
    config.save_every = save_every;
    config.save_minutes = minutes;
    Small s(config);
    std::vector<Index> saved;
    bool logged = true;
    const bool done = s.trainer.run(
        [&] {
          if (s.trainer.steps() + 1 == slow_step)
            std::this_thread::sleep_for(std::chrono::milliseconds(250));
          return s.loss();
        },
        {.save =
             [&] {
               saved.push_back(s.trainer.steps());
               logged = logged && s.trainer.steps() == std::ssize(s.losses);
             },
         .stop = [&] { return s.trainer.steps() == stop_at; },
         .stepped = [&](const TrainStep& step,
                        const infty::Progress&) { s.losses.push_back(step.loss); }});
    CHECK(done == (stop_at > 10));
    CHECK(logged);  // what is done behind a step is done before it is saved
    return saved;
  };
  CHECK(saved_at(4, 100) == std::vector<Index>{4, 8, 10});
  CHECK(saved_at(5, 100) == std::vector<Index>{5, 10});
  CHECK(saved_at(4, 6) == std::vector<Index>{4, 6});
  CHECK(saved_at(4, 8) == std::vector<Index>{4, 8});
  CHECK(saved_at(4, 0) == std::vector<Index>{0});
  CHECK(saved_at(4, 10) == std::vector<Index>{4, 8, 10});

  // By the clock: behind every step where it has always run out, and behind one that takes long.
  CHECK(saved_at(100, 100, 1e-12) == std::vector<Index>{1, 2, 3, 4, 5, 6, 7, 8, 9, 10});
  CHECK(saved_at(4, 100, 10) == std::vector<Index>{4, 8, 10});
  const auto slow = saved_at(100, 100, .2 / 60, 5);
  CHECK(std::count(slow.begin(), slow.end(), 5) == 1);
  CHECK(saved_at(100, 100, 0, 5) == std::vector<Index>{10});

  Small s;
  CHECK(s.trainer.run([&] { return s.loss(); }));  // nothing has to be saved
  CHECK(s.trainer.run([&] { return s.loss(); }));  // nor done
  CHECK(s.trainer.steps() == 10);
}

TEST_CASE("Trainer: a checkpoint of other settings is refused by name, and nothing has changed") {
  const infty::tests::TemporaryFolder folder;
  Small first(ten_steps, R"({"tau":0.75,"steps":10})");
  first.run(folder / "run", 3);
  Small same(ten_steps, R"({"steps":10,"tau":0.75})");
  CHECK_NOTHROW(same.trainer.load(folder / "run"));
  CHECK(same.trainer.steps() == 3);

  // A setting that is newer than the checkpoint has the value that it had before it was one.
  const std::string newer = R"({"tau":0.75,"steps":10,"products":"float32"})";
  Small later(ten_steps, newer, R"({"products":"float32"})");
  CHECK_NOTHROW(later.trainer.load(folder / "run"));
  CHECK(later.trainer.steps() == 3);
  for (const char* const was : {"{}", R"({"products":"bfloat16"})"}) {
    Small not_so(ten_steps, newer, was);
    CHECK_THROWS_AS(not_so.trainer.load(folder / "run"), infty::IoError);
    CHECK(not_so.trainer.steps() == 0);
  }

  Small other(ten_steps, R"({"tau":0.5,"steps":10})");
  const auto before = other.model.first.weight.value().to_vector();
  CHECK_THROWS_WITH(
      other.trainer.load(folder / "run"),
      "[settings] " + (folder / "run").string() + " has tau '0.75', and 0.5 is asked for");
  Small more(ten_steps, R"({"tau":0.75})");
  CHECK_THROWS_WITH(more.trainer.load(folder / "run"),
                    Catch::Matchers::EndsWith("has the unknown setting 'steps'"));
  CHECK(other.model.first.weight.value().to_vector() == before);
  CHECK(other.trainer.steps() == 0);
  CHECK(other.seen == 0);
}

TEST_CASE("Trainer: of a checkpoint that lacks something, or has too much, nothing is taken") {
  const infty::tests::TemporaryFolder folder;
  Small first;
  first.run(folder / "run", 3);
  const auto refused = [&](auto&& change, const std::string& message) {
    Small s;
    change(s);
    const auto before = s.model.first.weight.value().to_vector();
    const Random numbers = s.numbers;
    CHECK_THROWS_WITH(s.trainer.load(folder / "run"), Catch::Matchers::Contains(message));
    CHECK(s.model.first.weight.value().to_vector() == before);
    CHECK(s.numbers == numbers);
    CHECK(s.seen == 0);
    CHECK(s.trainer.steps() == 0);
  };
  Random extra(3);
  refused([&](Small& s) { s.trainer.keep("extra", extra); }, "extra");
  refused(
      [&](Small& s) {
        s.trainer.keep_text(
            "none", [] { return ""; },
            [](const std::string&) -> std::function<void()> { return {}; });
      },
      "none");
  refused(
      [&](Small& s) {
        s.trainer.keep_text(
            "place", [] { return ""; },
            [](const std::string& text) -> std::function<void()> {
              infty::raise<infty::IoError>("test", "the place ", text, " cannot be");
            });
      },
      "the place 12 cannot be");
  TwoLayers<double> wider(3, 9, 3, Random(1));
  Trainer<double> of_wider(wider);
  CHECK_THROWS_AS(of_wider.load(folder / "run"), infty::IoError);
  CHECK_THROWS_AS(of_wider.load(folder / "none"), infty::IoError);
}

TEST_CASE("Trainer: NaN stops with step and parameter, and the last good checkpoint stays") {
  const infty::tests::TemporaryFolder folder;
  Small s;
  s.run(folder / "run", 4);
  const std::string good = read_text(folder / "run");

  Small t;
  t.trainer.load(folder / "run");
  const auto poison = [&] {
    if (t.trainer.steps() == 6)
      t.model.second.bias.value().data()[1] = std::numeric_limits<double>::quiet_NaN();
    return t.loss();
  };
  const auto save = [&] { t.trainer.save(folder / "run"); };
  CHECK_THROWS_WITH(
      t.trainer.run(poison, {.save = save}),
      "[train_step] step 6: parameter second.bias is not finite, and the loss is nan");
  CHECK(read_text(folder / "run") == good);

  // A step may make of finite gradients what is none, and nobody has looked at it yet.
  CHECK_THROWS_WITH(save(), "[Trainer::save] behind step 6: parameter second.bias is not finite");
  CHECK(read_text(folder / "run") == good);

  Small u;
  u.trainer.load(folder / "run");
  CHECK(u.run(folder / "run"));
}

TEST_CASE("Trainer: settings that no checkpoint could be gone on with by are refused at once") {
  TwoLayers<double, infty::EigenBackend> model(3, 8, 3, Random(1));
  Trainer<double> trainer(model, ten_steps);
  for (const char* const bad : {"{\"rate\":inf}", "[]", "{\"a\":1", "x"}) {
    CHECK_THROWS_AS(trainer.keep_settings(bad), infty::IoError);
    CHECK_THROWS_AS(trainer.keep_settings("{}", bad), infty::IoError);
  }
  trainer.keep_settings("").keep_settings("{\"rate\":\"inf\"}", "");
  const infty::tests::TemporaryFolder folder;
  trainer.save(folder / "run");
  CHECK_NOTHROW(trainer.load(folder / "run"));
}

TEST_CASE("Trainer: several share a checkpoint by their prefixes") {
  const infty::tests::TemporaryFolder folder;
  TwoLayers<double> a(2, 2, 2, Random(1)), b(2, 2, 2, Random(2));
  Random of_a(3), of_b(4);
  const auto make = [&](TwoLayers<double>& model, const std::string& prefix, Random& random) {
    Trainer<double> trainer(model, {}, prefix);
    trainer.keep("random", random);
    return trainer;
  };
  auto first = make(a, "a.", of_a), second = make(b, "b.", of_b);
  of_b.uniform();
  infty::SafetensorsWriter writer;
  first.save(writer);
  second.save(writer);
  writer.save(folder / "both");

  TwoLayers<double> c(2, 2, 2, Random(5));
  Random of_c(6);
  auto third = make(c, "b.", of_c);
  third.load(folder / "both");
  CHECK(c.first.weight.value().to_vector() == b.first.weight.value().to_vector());
  CHECK(of_c == of_b);
  CHECK_THROWS_AS(make(c, "c.", of_c).load(folder / "both"), infty::IoError);
  CHECK_THROWS_AS(Trainer<double>(c, {.steps = 0}), infty::ValueError);
}
