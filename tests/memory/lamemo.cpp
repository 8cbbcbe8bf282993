// SPDX-License-Identifier: MIT
#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <optional>
#include <vector>

#include <infty/memory/lamemo.hpp>
#include <infty/model/transformer_lm.hpp>
#include <infty/testing/gradient_check.hpp>

#include "support/catch.hpp"
#include "support/states.hpp"
#include "support/tensors.hpp"
#include "support/types.hpp"

using infty::AttentionSizes;
using infty::Index;
using infty::LaMemo;
using infty::Random;
using infty::Shape;
using infty::Tensor;
using infty::Variable;

static_assert(infty::Memory<LaMemo<float>>);

namespace {

/// A layer's part of what a LaMemo is given, in which biases and norm are no zeros.
template <class T, class B = infty::EigenBackend>
struct LaMemoLayer {
  AttentionSizes sizes;
  infty::RelativeAttention<T, B> attention;
  infty::LayerNorm<T, B> norm;
  infty::LaMemoBiases<T, B> biases;
  Tensor<T, B> encoding;

  explicit LaMemoLayer(AttentionSizes s)
      : sizes(s),
        attention(s.model_dim, s.heads, s.head_dim, Random(1)),
        norm(s.model_dim),
        biases(s),
        encoding(infty::distance_encoding<T, B>(40, s.model_dim)) {
    Random random(infty::tests::seed);
    for (auto* x : {&norm.bias, &biases.content, &biases.position, &biases.future})
      fill_uniform(x->value(), -1, 1, random);
  }

  infty::Segment<T, B, infty::LaMemoBiases<T, B>> segment(const Variable<T, B>& x, bool normed,
                                                          const Variable<T, B>* past = nullptr,
                                                          bool renew = true) const {
    return {x, attention, normed ? &norm : nullptr, biases, encoding, past, renew};
  }
};

/// The same layer in plain loops: every vector of the past knows up to which place it has read, and
/// reads what has come since, one key after the other.
class PlainLaMemo {
 public:
  PlainLaMemo(const LaMemoLayer<double>& layer, bool normed, Index capacity)
      : layer_(layer), normed_(normed), capacity_(capacity) {}

  void forget() { held_.clear(); }

  /// What is added to the vectors of the past, then to the segment's, for a segment of one row.
  std::vector<std::vector<double>> read(const std::vector<std::vector<double>>& segment) {
    const std::size_t past = held_.size();
    const auto first = static_cast<Index>(seen_in_all_);
    for (const auto& x : segment) held_.push_back({x, static_cast<Index>(seen_in_all_++), {}, {}});
    for (std::size_t i = 0; i < held_.size(); ++i) {
      Vector& vector = held_[i];
      const bool old = i < past;
      // The past reads up to the segment's first vector; the segment's read up to themselves.
      for (Index h = 0; h < layer_.sizes.heads; ++h) {
        const Index until = old ? first : vector.place;
        double total = 0;
        std::vector<double> sum(static_cast<std::size_t>(layer_.sizes.head_dim), 0.0);
        for (const Vector& key : held_) {
          if (key.place > until || (old && key.place <= vector.read_until)) continue;
          const double weight = std::exp(score(vector, key, h));
          total += weight;
          for (std::size_t d = 0; d < sum.size(); ++d)
            sum[d] += weight * projected(layer_.attention.value, key.input, h)[d];
        }
        for (double& x : sum) x /= total;
        if (!old) {
          vector.total.push_back(total);
          vector.context.insert(vector.context.end(), sum.begin(), sum.end());
          continue;
        }
        double& kept = vector.total[static_cast<std::size_t>(h)];
        const double share = kept / (kept + total + 1e-6 * std::max(kept, total));
        for (std::size_t d = 0; d < sum.size(); ++d) {
          double& context = vector.context[static_cast<std::size_t>(h) * sum.size() + d];
          context = share * context + (1 - share) * sum[d];
        }
        kept += total;
      }
    }
    std::vector<std::vector<double>> out;
    for (Vector& vector : held_) {
      vector.read_until = std::max(first, vector.place);
      out.push_back(times(layer_.attention.out, vector.context));
    }
    while (static_cast<Index>(held_.size()) > capacity_) held_.erase(held_.begin());
    return out;
  }

 private:
  struct Vector {
    std::vector<double> input;
    Index place;
    std::vector<double> context, total;
    Index read_until = 0;
  };

  static std::vector<double> times(const infty::Linear<double, infty::EigenBackend>& map,
                                   const std::vector<double>& x) {
    std::vector<double> y;
    for (Index i = 0; i < map.weight.dim(0); ++i) {
      y.push_back(0);
      for (std::size_t j = 0; j < x.size(); ++j)
        y.back() +=
            map.weight.value().data()[i * static_cast<Index>(x.size()) + static_cast<Index>(j)] *
            x[j];
    }
    return y;
  }

  std::vector<double> normed(const std::vector<double>& x) const {
    if (!normed_) return x;
    const auto n = static_cast<double>(x.size());
    double mean = 0, variance = 0;
    for (const double v : x) mean += v / n;
    for (const double v : x) variance += (v - mean) * (v - mean) / n;
    std::vector<double> y;
    for (std::size_t i = 0; i < x.size(); ++i)
      y.push_back((x[i] - mean) / std::sqrt(variance + 1e-5) *
                      layer_.norm.weight.value().data()[i] +
                  layer_.norm.bias.value().data()[i]);
    return y;
  }

  std::vector<double> projected(const infty::Linear<double, infty::EigenBackend>& map,
                                const std::vector<double>& x, Index head) const {
    const auto all = times(map, normed(x));
    const auto begin = all.begin() + head * layer_.sizes.head_dim;
    return {begin, begin + layer_.sizes.head_dim};
  }

  double score(const Vector& query, const Vector& key, Index head) const {
    const Index D = layer_.sizes.head_dim, d = layer_.sizes.model_dim;
    const Index distance = std::abs(query.place - key.place);
    const double* const row = layer_.encoding.data() + (layer_.encoding.dim(0) - 1 - distance) * d;
    const auto r = times(layer_.attention.position, {row, row + d});
    const auto q = projected(layer_.attention.query, query.input, head),
               k = projected(layer_.attention.key, key.input, head);
    const auto& position = key.place > query.place ? layer_.biases.future : layer_.biases.position;
    double sum = 0;
    for (Index i = 0; i < D; ++i) {
      const auto at = static_cast<std::size_t>(i);
      sum += (q[at] + layer_.biases.content.value().data()[head * D + i]) * k[at];
      sum += (q[at] + position.value().data()[head * D + i]) *
             r[static_cast<std::size_t>(head * D + i)];
    }
    return sum / std::sqrt(static_cast<double>(D));
  }

  const LaMemoLayer<double>& layer_;
  bool normed_;
  Index capacity_;
  std::size_t seen_in_all_ = 0;
  std::vector<Vector> held_;
};

/// Row `row` of x [B, L, d].
std::vector<std::vector<double>> vectors_of(const Tensor<double>& x, Index row) {
  std::vector<std::vector<double>> out;
  for (Index i = 0; i < x.dim(1); ++i) {
    const double* const from = x.data() + (row * x.dim(1) + i) * x.dim(2);
    out.emplace_back(from, from + x.dim(2));
  }
  return out;
}

using SmallModel = infty::TransformerLM<double, LaMemo>;

SmallModel small_model(bool pre_norm, Index capacity) {
  SmallModel model({.vocabulary = 5,
                    .model_dim = 4,
                    .layers = 2,
                    .heads = 2,
                    .head_dim = 3,
                    .feed_forward = 5,
                    .pre_norm = pre_norm},
                   {.capacity = capacity}, Random(infty::tests::seed));
  Random random(3);
  for (auto* x : {&model.biases.content, &model.biases.position, &model.biases.future})
    fill_uniform(x->value(), -1, 1, random);
  return model;
}

Tensor<Index> drawn_tokens(Index batch, Index length, Random& random) {
  Tensor<Index> x(Shape{batch, length});
  for (Index i = 0; i < x.size(); ++i) x.data()[i] = random.below(5);
  return x;
}

}  // namespace

TEST_CASE("LaMemo: reads and renews as plain loops do, in segments of any length") {
  struct Stream {
    AttentionSizes sizes;
    Index capacity;
    std::vector<Index> lengths;
  };
  const auto& [sizes, capacity, lengths] =
      GENERATE(Stream{{.model_dim = 6, .heads = 2, .head_dim = 4}, 8, {5, 5, 5, 5, 5}},
               Stream{{.model_dim = 6, .heads = 2, .head_dim = 4}, 8, {3, 1, 6, 2, 11, 1, 1, 4}},
               Stream{{.model_dim = 4, .heads = 1, .head_dim = 3}, 3, {5, 5, 2}},
               Stream{{.model_dim = 2, .heads = 1, .head_dim = 1}, 4, {1, 1, 1, 1, 1, 1, 1}},
               Stream{{.model_dim = 4, .heads = 2, .head_dim = 2}, 1, {2, 2, 1, 1, 3}},
               Stream{{.model_dim = 4, .heads = 2, .head_dim = 2}, 0, {4, 1, 4}});
  const bool normed = GENERATE(false, true);
  CAPTURE(capacity, lengths, normed);
  const LaMemoLayer<double> layer(sizes);
  const LaMemo<double> memory({.capacity = capacity}, sizes, Random(0));
  std::vector<PlainLaMemo> plain(2, PlainLaMemo(layer, normed, capacity));
  auto state = memory.make_state(2);
  Random random(infty::tests::seed);
  for (std::size_t step = 0; step < lengths.size(); ++step) {
    if (step == 2) {
      // A new text begins in row 1, whose memory is then shorter.
      reset_row(state, 1);
      plain[1].forget();
    }
    const Variable<double> x(
        infty::tests::uniform_tensor<double>({2, lengths[step], sizes.model_dim}, random));
    const auto reading = memory.forward(state, layer.segment(x, normed));
    for (Index row = 0; row < 2; ++row) {
      const auto expected = plain[static_cast<std::size_t>(row)].read(vectors_of(x.value(), row));
      auto all = vectors_of(reading.context.value(), row);
      if (reading.past.size() > 0) {
        const auto past = vectors_of(reading.past_context.value(), row);
        all.insert(all.begin(), past.begin(), past.end());
      }
      REQUIRE(all.size() >= expected.size());
      for (std::size_t i = 0; i < expected.size(); ++i)
        CHECK(infty::tests::error(all[all.size() - expected.size() + i], expected[i]) < 1e-12);
    }
  }
}

TEMPLATE_LIST_TEST_CASE("LaMemo: the same on every backend", "", infty::tests::Types) {
  using T = typename TestType::T;
  using B = typename TestType::B;
  constexpr AttentionSizes sizes{.model_dim = 6, .heads = 2, .head_dim = 4};
  const auto run = [&](auto scalar, auto backend) {
    using U = decltype(scalar);
    using C = decltype(backend);
    const LaMemoLayer<U, C> layer(sizes);
    const LaMemo<U, C> memory({.capacity = 7}, sizes, Random(0));
    auto state = memory.make_state(3);
    Random random(infty::tests::seed);
    std::vector<double> all;
    for (const Index length : {5, 3, 1, 6}) {
      const Variable<U, C> x(infty::tests::uniform_tensor<U, C>({3, length, 6}, random), true);
      infty::Tape tape;
      const auto reading = memory.forward(state, layer.segment(x, true));
      auto sum = infty::sum(reading.context * reading.context);
      if (reading.past.size() > 0) sum = sum + infty::sum(reading.past_context);
      tape.backward(sum);
      for (const auto g : x.grad().to_vector()) all.push_back(static_cast<double>(g));
      if (length == 5) reset_row(state, 1);
    }
    const auto held = infty::tests::numbers_of(state);
    all.insert(all.end(), held.begin(), held.end());
    return all;
  };
  CHECK(infty::tests::error(run(T{}, B{}), run(double{}, infty::EigenBackend{})) <
        10 * infty::tests::tolerance<T>);
}

TEST_CASE("LaMemo: gradients through two layers, also where a row has begun anew") {
  const bool pre_norm = GENERATE(false, true);
  auto model = small_model(pre_norm, 4);
  auto state = model.make_state(2);
  Random random(infty::tests::seed);
  model.observe(state, drawn_tokens(2, 3, random));
  reset_row(state, 0);
  model.observe(state, drawn_tokens(2, 2, random));
  const auto input = drawn_tokens(2, 3, random), target = drawn_tokens(2, 3, random);
  const auto loss = [&] {
    auto branch = state;
    const auto first = model.forward(branch, input).hidden;
    return infty::mean(model.losses(first, target));
  };
  CAPTURE(pre_norm);
  CHECK(infty::gradient_check(loss, infty::parameters<double>(model)) < 1e-7);
}

TEST_CASE("LaMemo: with and without a tape, and observed, the memory moves on alike") {
  const auto model = small_model(false, 5);
  auto taped = model.make_state(2), untaped = taped, observed = taped;
  Random random(infty::tests::seed);
  for (const Index length : {4, 1, 7, 3}) {
    const auto x = drawn_tokens(2, length, random);
    std::vector<double> with_tape;
    {
      infty::Tape tape;
      with_tape = model.forward(taped, x).hidden.value().to_vector();
    }
    CHECK(model.forward(untaped, x).hidden.value().to_vector() == with_tape);
    model.observe(observed, x);
    CHECK(infty::tests::numbers_of(taped) == infty::tests::numbers_of(untaped));
    // Rows are observed one by one, in products of other sizes.
    CHECK(infty::tests::error(infty::tests::numbers_of(observed),
                              infty::tests::numbers_of(untaped)) < 1e-13);
  }
  // Inputs are held by the first layer alone.
  CHECK(taped.layers[0].input.vectors.shape() == Shape{2, 5, 4});
  CHECK(taped.layers[1].input.vectors.shape() == Shape{2, 0, 4});
}

TEST_CASE("LaMemo: lets the oldest vectors go") {
  constexpr AttentionSizes sizes{.model_dim = 2, .heads = 1, .head_dim = 2};
  const LaMemoLayer<double> layer(sizes);
  const LaMemo<double> memory({.capacity = 3}, sizes, Random(0));
  CHECK(memory.reach() == 3);
  auto state = memory.make_state(1), same = state;
  std::vector<double> left;
  double next = 0;
  for (const Index length : {2, 2, 5}) {
    Variable<double> x(Tensor<double>(Shape{1, length, 2}));
    for (Index i = 0; i < x.size(); ++i) x.value().data()[i] = next++;
    const auto leaving = memory.forward(state, layer.segment(x, false)).leaving;
    CHECK(memory.observe(same, layer.segment(x, false)).vectors.to_vector() ==
          leaving.vectors.to_vector());
    for (const double v : leaving.vectors.to_vector()) left.push_back(v);
  }
  CHECK(left == std::vector<double>{0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11});
  CHECK(state.input.vectors.to_vector() == std::vector<double>{12, 13, 14, 15, 16, 17});
}

TEST_CASE("LaMemo: counts its products") {
  // Queries and output of 2 rows of 2 + 3 vectors, keys and values of as many, 5 positions, d = 6,
  // H D = 8; then three products over 3 + 4 + 5 pairs to the left a row, and 2 + 1 to the right.
  const double maps = 2.0 * (2 * 5 * 16 * 6 + 2 * 5 * 16 * 6 + 5 * 8 * 6);
  const double pairs = 3 * 2.0 * 2 * 8 * (3 + 4 + 5 + 3);
  CHECK(LaMemo<float>({.capacity = 2}, {.model_dim = 6, .heads = 2, .head_dim = 4}, Random(0))
            .flops(2, 3) == maps + pairs);
}

TEST_CASE("LaMemo: what does not fit is refused, and the state is as it was") {
  constexpr AttentionSizes sizes{.model_dim = 4, .heads = 2, .head_dim = 2};
  CHECK_THROWS_WITH(LaMemo<float>({.capacity = -1}, sizes, Random(0)),
                    "[LaMemoConfig] capacity is -1: it must be >= 0");
  CHECK_THROWS_AS(LaMemo<float>({}, {.model_dim = 4, .heads = 0, .head_dim = 2}, Random(0)),
                  infty::ValueError);
  CHECK_THROWS_WITH(LaMemo<float>({.capacity = Index{1} << 62}, sizes, Random(0)),
                    Catch::Contains("[LaMemoConfig] capacity is 4611686018427387904"));
  const LaMemoLayer<double> layer(sizes);
  const LaMemo<double> memory({.capacity = 3}, sizes, Random(0));
  CHECK_THROWS_WITH(memory.make_state(0), "[LaMemo::make_state] batch is 0: it must be >= 1");
  const auto x = [](Index batch, Index length, Index d) {
    return Variable<double>(Tensor<double>::full({batch, length, d}, 1));
  };
  const auto two = x(2, 2, 4);
  auto state = memory.make_state(2);
  memory.observe(state, layer.segment(two, false));
  const auto before = infty::tests::numbers_of(state);
  const auto one = x(1, 2, 4), narrow = x(2, 2, 3), empty = x(2, 0, 4), past = x(2, 1, 4);
  for (const auto* wrong : {&one, &narrow, &empty})
    CHECK_THROWS_AS(memory.forward(state, layer.segment(*wrong, false)), infty::ShapeError);
  CHECK_THROWS_WITH(memory.observe(state, layer.segment(two, false, &past)),
                    "[LaMemo::observe] the renewed past is [2, 1, 4]: they must be [2, 2, 4]");
  auto other = LaMemo<double>({.capacity = 4}, sizes, Random(0)).make_state(2);
  CHECK_THROWS_AS(memory.forward(other, layer.segment(two, false)), infty::ShapeError);
  auto broken = state;
  broken.unseen[0] = 3;
  CHECK_THROWS_WITH(memory.forward(broken, layer.segment(two, false)),
                    "[LaMemo::forward] row 0 holds 2 vectors, 3 of them unseen: they must be <= 3 "
                    "and <= the former, and >= 1 unless there are none");
  broken = state;
  broken.input.length.pop_back();
  CHECK_THROWS_WITH(memory.observe(broken, layer.segment(two, false)),
                    "[LaMemo::observe] the state's input.length has 1 rows, its input.vectors 2");
  CHECK(infty::tests::numbers_of(state) == before);
}
