// SPDX-License-Identifier: MIT
#include <cmath>
#include <cstddef>
#include <iterator>
#include <span>
#include <type_traits>
#include <vector>

#include <infty/autograd/tape.hpp>
#include <infty/lifelong/masked_language_model.hpp>
#include <infty/testing/gradient_check.hpp>
#include <infty/train/adam.hpp>

#include "lifelong/predictor_case.hpp"
#include "support/catch.hpp"
#include "support/types.hpp"

using infty::Index;
using infty::MaskedText;
using infty::Random;
using infty::Shape;

namespace masked_language_model {

template <class T, class B = infty::EigenBackend>
auto small(std::uint64_t draws = 3) {
  const auto encoder = infty::tests::small_classifier<T, B>(draws);
  return infty::MaskedLanguageModel(encoder.embedding, encoder.body, Random(draws + 7));
}

/// Three of two lengths; one has nothing to be guessed. Token 10 is the mask.
const std::vector<MaskedText> texts{{.tokens = {0, 10, 3, 4}, .places = {1, 3}, .targets = {2, 4}},
                                    {.tokens = {0, 5, 10}, .places = {2}, .targets = {6}},
                                    {.tokens = {0, 7, 8, 9}, .places = {}, .targets = {}},
                                    {.tokens = {0, 1, 10, 2}, .places = {2}, .targets = {9}}};

/// -log softmax(E h / √d + b) of a target, where h is computed by loops from the encoder's answer.
template <class Model>
double loss_by_hand(const Model& model, const MaskedText& text, std::size_t guess) {
  const auto words = infty::Tensor<Index, infty::EigenBackend>::from(
      Shape{1, std::ssize(text.tokens)}, text.tokens);
  const auto read = infty::detail::read_texts(model.embedding, model.body, words, false);
  const Index d = read.dim(2), vocabulary = model.bias.dim(0);
  const auto x = read.value().to_vector(),
             table = model.embedding.tokens.weight.value().to_vector(),
             w = model.transform.weight.value().to_vector(),
             c = model.transform.bias.value().to_vector(), b = model.bias.value().to_vector();
  const auto at = [](const auto& all, Index i) { return all[static_cast<std::size_t>(i)]; };
  std::vector<double> h;
  double mean = 0, variance = 0;
  for (Index i = 0; i < d; ++i) {
    double y = at(c, i);
    for (Index j = 0; j < d; ++j) y += at(w, i * d + j) * at(x, text.places[guess] * d + j);
    h.push_back(y * (1 + std::erf(y / std::sqrt(2.))) / 2);
    mean += h.back() / static_cast<double>(d);
  }
  for (const double y : h) variance += (y - mean) * (y - mean) / static_cast<double>(d);
  for (double& y : h) y = (y - mean) / std::sqrt(variance + 1e-5);
  double sum = 0, own = 0;
  for (Index v = 0; v < vocabulary; ++v) {
    double score = at(b, v);
    for (Index i = 0; i < d; ++i) score += at(table, v * d + i) * at(h, i) / std::sqrt(double(d));
    sum += std::exp(score);
    if (v == text.targets[guess]) own = score;
  }
  return std::log(sum) - own;
}

}  // namespace masked_language_model

TEMPLATE_LIST_TEST_CASE("MaskedLanguageModel: gradients, also of the table that both ends share",
                        "", infty::tests::Types) {
  using T = typename TestType::T;
  using B = typename TestType::B;
  auto model = masked_language_model::small<T, B>();
  const auto& texts = masked_language_model::texts;
  CHECK(infty::count_parameters(model) == infty::count_parameters(model.embedding) +
                                              infty::count_parameters(model.body) + 4 * 4 + 4 +
                                              2 * 4 + 11);
  if constexpr (std::is_same_v<T, double>) {
    const auto worst = infty::gradient_check<T, B>([&] { return model.loss(texts); },
                                                   infty::named_parameters<T, B>(model));
    CHECK(static_cast<double>(worst.largest) < 1e-7);
  } else {
    CHECK(std::isfinite(static_cast<double>(model.loss(texts).value().item())));
  }
}

TEST_CASE("MaskedLanguageModel: the loss is that of the words to be guessed, and of no others") {
  auto model = masked_language_model::small<double>();
  const auto& texts = masked_language_model::texts;
  using masked_language_model::loss_by_hand;
  const double by_hand = (loss_by_hand(model, texts[0], 0) + loss_by_hand(model, texts[0], 1) +
                          loss_by_hand(model, texts[1], 0) + loss_by_hand(model, texts[3], 0)) /
                         4;
  CHECK(model.loss(texts).value().item() == Approx(by_hand).epsilon(1e-12));
  const auto logits = model.logits(texts);
  REQUIRE(logits.size() == 2);
  CHECK(logits[0].shape() == Shape{1, 11});
  CHECK(logits[1].shape() == Shape{3, 11});

  // A text without any changes nothing, and has no gradient: what stands in it has none.
  auto others = texts;
  others[2].tokens = {1, 2, 3, 4, 5};
  CHECK(model.loss(others).value().item() == model.loss(texts).value().item());
  {
    infty::Tape tape;
    tape.backward(model.loss(texts));
  }
  // Place 4 and behind it are in no text, and all texts but one stop before place 3.
  const auto places = model.embedding.places.weight.grad().to_vector();
  for (std::size_t i = 4 * 4; i < places.size(); ++i) CHECK(places[i] == 0);
}

TEST_CASE("MaskedLanguageModel: it learns which word is missing from those around") {
  auto model = masked_language_model::small<float>();
  infty::Adam<float> adam(model, {.learning_rate = 1e-2});
  Random random(4);
  // The third word is the sum of both others: who does not see them knows nothing of it.
  const auto draw = [&](Index n) {
    std::vector<MaskedText> out;
    for (Index i = 0; i < n; ++i) {
      const Index a = 1 + random.below(3), b = 1 + random.below(3), sum = 3 + a + b - 2;
      out.push_back({.tokens = {0, a, 10, b}, .places = {2}, .targets = {sum}});
    }
    return out;
  };
  const auto asked = draw(90);
  const auto loss_of = [&] {
    const auto guard = infty::no_grad();
    return static_cast<double>(model.loss(asked).value().item());
  };
  const double before = loss_of();
  for (Index step = 0; step < 400; ++step) {
    adam.zero_grad();
    {
      infty::Tape tape;
      tape.backward(model.loss(draw(16)));
    }
    adam.step();
  }
  CHECK(before > 1.5);
  CHECK(loss_of() < .3);  // guessing the sum alone has 1.52 nats
}

TEST_CASE("MaskedLanguageModel: what cannot be is refused") {
  const auto model = masked_language_model::small<double>();
  const auto loss = [&](const MaskedText& text) {
    return model.loss(std::span<const MaskedText>(&text, 1));
  };
  CHECK_THROWS_WITH(model.loss({}), Catch::Contains("there is no word to be guessed"));
  CHECK_THROWS_WITH(loss({.tokens = {1}, .places = {}, .targets = {}}),
                    Catch::Contains("there is no word to be guessed"));
  CHECK_THROWS_WITH(loss({.tokens = {}, .places = {0}, .targets = {1}}),
                    Catch::Contains("text 0 has no tokens"));
  CHECK_THROWS_WITH(loss({.tokens = {1, 2}, .places = {2}, .targets = {1}}),
                    Catch::Contains("text 0 has no place 2: it has 2 tokens"));
  CHECK_THROWS_WITH(loss({.tokens = {1, 2}, .places = {-1}, .targets = {1}}),
                    Catch::Contains("text 0 has no place -1"));
  CHECK_THROWS_WITH(loss({.tokens = {1, 2}, .places = {}, .targets = {1}}),
                    Catch::Contains("text 0 has 0 places and 1 targets"));
  CHECK_THROWS_AS(loss({.tokens = {1, 11}, .places = {0}, .targets = {1}}), infty::ValueError);
  CHECK_THROWS_AS(loss({.tokens = {1, 2}, .places = {0}, .targets = {11}}), infty::ValueError);
  CHECK_THROWS_AS(loss({.tokens = {1, 2}, .places = {0}, .targets = {infty::ignore_index}}),
                  infty::ValueError);
}
