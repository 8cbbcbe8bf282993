// SPDX-License-Identifier: MIT
#include <array>
#include <cmath>
#include <cstddef>
#include <string>
#include <utility>
#include <vector>

#include <infty/autograd/elementwise.hpp>
#include <infty/autograd/reduce.hpp>
#include <infty/memory/compressive_causal_attention.hpp>
#include <infty/nn/causal_attention.hpp>
#include <infty/nn/layer_norm.hpp>
#include <infty/testing/gradient_check.hpp>
#include <infty/testing/memory_invariants.hpp>

#include "io/temporary_folder.hpp"
#include "support/catch.hpp"
#include "support/tensors.hpp"
#include "support/types.hpp"

namespace compressive_causal {

using infty::Compression;
using infty::CompressiveCausalAttention;
using infty::CompressiveCausalConfig;
using infty::Index;
using infty::InputNorm;
using infty::LayerNorm;
using infty::Linear;
using infty::Pass;
using infty::Random;
using infty::Shape;
using infty::Tensor;
using infty::Variable;
using infty::tests::error;
using infty::tests::uniform_tensor;
using Vector = std::vector<double>;

constexpr infty::AttentionSizes small{.model_dim = 4, .heads = 2, .head_dim = 3};

template <class T>
Vector in_double(const std::vector<T>& x) {
  return {x.begin(), x.end()};
}

/// y = W x + b.
template <class T, class B>
Vector times(const Linear<T, B>& map, const Vector& x) {
  const Vector weight = in_double(map.weight.value().to_vector());
  Vector y = in_double(map.bias.value().to_vector());
  for (std::size_t i = 0; i < y.size(); ++i)
    for (std::size_t j = 0; j < x.size(); ++j) y[i] += weight[i * x.size() + j] * x[j];
  return y;
}

/// One row by the definition: a list of compressed vectors, one of vectors, and plain loops.
template <class T, class B>
class ByDefinition {
 public:
  ByDefinition(const CompressiveCausalAttention<T, B>& layer, const LayerNorm<T, B>& norm)
      : layer_(layer), norm_(norm), slopes_(in_double(layer.position.slopes.value().to_vector())) {}

  std::vector<Vector> operator()(const std::vector<Vector>& segment) {
    std::vector<Vector> all = compressed_;
    all.insert(all.end(), held_.begin(), held_.end());
    const std::size_t past = all.size();
    all.insert(all.end(), segment.begin(), segment.end());
    std::vector<Vector> out;
    read_of_past = {};
    for (std::size_t i = past; i < all.size(); ++i) {
      const Vector q = times(layer_.maps.query, normed(all[i]));
      Vector heads(6, 0.0);
      for (std::size_t h = 0; h < 2; ++h) {
        Vector sum(3, 0.0);
        double total = 0, past_total = 0;
        for (std::size_t j = 0; j <= i; ++j) {
          const Vector k = times(layer_.maps.key, normed(all[j])),
                       v = times(layer_.maps.value, normed(all[j]));
          double score = 0;
          for (std::size_t c = 3 * h; c < 3 * h + 3; ++c) score += q[c] * k[c] / std::sqrt(3.0);
          const double weight = std::exp(score - slopes_[h] * static_cast<double>(i - j));
          total += weight;
          if (j < past) past_total += weight;
          for (std::size_t c = 0; c < 3; ++c) sum[c] += weight * v[3 * h + c];
        }
        for (std::size_t c = 0; c < 3; ++c) heads[3 * h + c] = sum[c] / total;
        read_of_past[h].push_back(past_total / total);
      }
      out.push_back(times(layer_.maps.out, heads));
    }
    held_.insert(held_.end(), segment.begin(), segment.end());
    const auto& config = layer_.config();
    const auto rate = static_cast<std::size_t>(config.rate);
    while (held_.size() >= static_cast<std::size_t>(config.capacity) + rate) {
      Vector group;
      for (std::size_t i = 0; i < rate; ++i)
        group.insert(group.end(), held_[i].begin(), held_[i].end());
      compressed_.push_back(times(layer_.compressor.maps[0], group));
      held_.erase(held_.begin(), held_.begin() + static_cast<std::ptrdiff_t>(rate));
    }
    while (compressed_.size() > static_cast<std::size_t>(config.compressed_capacity))
      compressed_.erase(compressed_.begin());
    return out;
  }

  /// What each vector of the last segment has read of the past in all, by head.
  std::array<Vector, 2> read_of_past;

 private:
  Vector normed(const Vector& x) const {
    std::vector<T> values(x.begin(), x.end());
    return in_double(
        norm_.forward(Variable<T, B>(Tensor<T, B>::from(Shape{4}, values))).value().to_vector());
  }

  const CompressiveCausalAttention<T, B>& layer_;
  const LayerNorm<T, B>& norm_;
  Vector slopes_;
  std::vector<Vector> compressed_, held_;
};

TEMPLATE_LIST_TEST_CASE("CompressiveCausalAttention: what plain loops make of it", "",
                        infty::tests::Types) {
  using T = typename TestType::T;
  using B = typename TestType::B;
  const CompressiveCausalConfig config{
      .compressed_capacity = 3, .rate = 2, .capacity = 1, .slopes = infty::SlopeStart::alibi};
  const CompressiveCausalAttention<T, B> layer(config, small, Random(2));
  LayerNorm<T, B> norm(4);
  Random random(infty::tests::seed);
  fill_uniform(norm.bias.value(), T(-1), T(1), random);
  auto state = layer.make_state(2);
  std::vector<ByDefinition<T, B>> rows(2, ByDefinition<T, B>(layer, norm));
  for (const Index length : {3, 5, 1, 4}) {
    CAPTURE(length);
    const Variable<T, B> x(uniform_tensor<T, B>({2, length, 4}, random));
    Pass<T, B> pass{.traced = true};
    const auto got = layer.forward(state, x, InputNorm<T, B>(norm), pass).value().to_vector();
    Vector shown;  // by row, head and word: what is read of all that is held
    for (const auto& entry : pass.trace) {
      CHECK(entry.axes == "row head word place");
      const auto values = in_double(entry.value.value().to_vector());
      const auto places = static_cast<std::size_t>(entry.value.dim(3));
      CHECK(entry.value.dim(3) == (entry.name == "past_weights" ? 2 : 3));
      shown.resize(values.size() / places);
      for (std::size_t i = 0; i < values.size(); ++i) shown[i / places] += values[i];
    }
    const auto all = in_double(x.value().to_vector());
    Vector expected, of_past;
    for (Index row = 0; row < 2; ++row) {
      std::vector<Vector> segment;
      for (Index i = 0; i < length; ++i) {
        const auto at = all.begin() + (row * length + i) * 4;
        segment.emplace_back(at, at + 4);
      }
      for (const Vector& y : rows[static_cast<std::size_t>(row)](segment))
        expected.insert(expected.end(), y.begin(), y.end());
      for (const Vector& read : rows[static_cast<std::size_t>(row)].read_of_past)
        of_past.insert(of_past.end(), read.begin(), read.end());
    }
    CHECK(error(got, expected) < infty::tests::tolerance<T>);
    CHECK(pass.trace.empty() == (length == 3));
    if (!shown.empty()) CHECK(error(shown, of_past) < infty::tests::tolerance<T>);
  }
  CHECK(state.compressed.length == infty::RowCounts{3, 3});
}

TEST_CASE("CompressiveCausalAttention: keeps to what every memory keeps to") {
  const auto compression = GENERATE(Compression::convolution, Compression::mean);
  const infty::tests::TemporaryFolder folder;
  infty::testing::require_mixer<CompressiveCausalAttention<double>>(
      {.compressed_capacity = 3, .rate = 2, .capacity = 2, .compression = compression},
      folder / "state.safetensors");
}

TEST_CASE("CompressiveCausalAttention: a fresh row is read as by causal attention") {
  const CompressiveCausalAttention<double> layer({.rate = 3}, small, Random(2));
  infty::CausalAttention<double> plain({}, small, Random(1));
  plain.maps = layer.maps;
  auto state = layer.make_state(2);
  Random random(4);
  const Variable<double> x(uniform_tensor<double>({2, 7, 4}, random));
  Pass<double> pass;
  const auto first = layer.forward(state, x, {}, pass).value().to_vector();
  const auto expected = plain.forward(x).value().to_vector();
  CHECK(error(first, expected) < 1e-14);
  CHECK(state.memory.length == infty::RowCounts{1, 1});
  CHECK(state.compressed.length == infty::RowCounts{2, 2});
  CHECK(error(layer.forward(state, x, {}, pass).value().to_vector(), expected) > 1e-3);
}

TEST_CASE("CompressiveCausalAttention: gradients, of the compression by its own loss alone") {
  CompressiveCausalAttention<double> layer(
      {.compressed_capacity = 4, .rate = 2, .capacity = 1, .slopes = infty::SlopeStart::alibi},
      small, Random(2));
  LayerNorm<double> norm(4);
  Random random(4);
  const Variable<double> first(uniform_tensor<double>({2, 5, 4}, random)),
      second(uniform_tensor<double>({2, 4, 4}, random));
  const Variable<double> weight(uniform_tensor<double>({2, 4, 4}, random));
  const auto run = [&](bool compression) {
    auto state = layer.make_state(2);
    Pass<double> pass{.regularised = true};
    layer.forward(state, first, InputNorm<double>(norm), pass);
    const auto y = layer.forward(state, second, InputNorm<double>(norm), pass);
    return compression ? loss_named(pass, "compression") : sum(y * weight);
  };
  // Of what is read: all but the compression, which stays what it was while the past is written.
  auto all = infty::named_parameters<double>(layer);
  std::vector<Variable<double>> read{norm.weight, norm.bias}, compressing;
  for (const auto& [name, p] : all)
    (name.find("compression") == std::string::npos ? read : compressing).push_back(p);
  CHECK(read.size() == 11);
  CHECK(compressing.size() == 2);
  CHECK(infty::gradient_check([&] { return run(false); }, read) < 1e-7);
  CHECK(infty::gradient_check([&] { return run(true); }, compressing) < 1e-7);
  for (const bool compression : {false, true}) {
    infty::zero_grad(layer);
    norm.weight.zero_grad();
    infty::Tape tape;
    tape.backward(run(compression));
    for (const auto& [name, p] : all) {
      CAPTURE(name, compression);
      CHECK(p.has_grad() == ((name.find("compression") != std::string::npos) == compression));
    }
    CHECK(norm.weight.has_grad() == !compression);
  }
}

TEST_CASE("CompressiveCausalAttention: drops attention's probabilities while training") {
  const CompressiveCausalAttention<double> layer({.rate = 2}, small, Random(2));
  Random random(4), draws(5);
  const Variable<double> x(uniform_tensor<double>({1, 4, 4}, random));
  auto state = layer.make_state(1), same = state;
  Pass<double> pass, dropping{.random = &draws, .attention_dropout = .5};
  CHECK(error(layer.forward(state, x, {}, dropping).value().to_vector(),
              layer.forward(same, x, {}, pass).value().to_vector()) > 1e-3);
  CHECK(draws.counter() == 2 * 4 * 4);
}

TEST_CASE("CompressiveCausalAttention: what cannot be is refused by name") {
  const auto refused = [](CompressiveCausalConfig config, const char* why) {
    CHECK_THROWS_WITH(CompressiveCausalAttention<float>(config, small),
                      Catch::Matchers::Contains(why));
  };
  refused({.rate = 0}, "rate is 0");
  refused({.compressed_capacity = -1}, "compressed_capacity is -1");
  refused({.compression = Compression::most_used}, "compression is most_used");
  const CompressiveCausalAttention<float> layer({.compressed_capacity = 3}, small),
      other({.compressed_capacity = 4}, small);
  auto state = layer.make_state(1), wrong = other.make_state(1);
  const Variable<float> x(Tensor<float>::zeros({1, 3, 4}));
  Pass<float> pass, tokens{.before = 1};
  CHECK_THROWS_AS(layer.forward(wrong, x, {}, pass), infty::ShapeError);
  CHECK_THROWS_WITH(layer.forward(state, x, {}, tokens),
                    Catch::Matchers::Contains("it takes none"));
  CHECK(state.memory.length == infty::RowCounts{0});
}

}  // namespace compressive_causal
