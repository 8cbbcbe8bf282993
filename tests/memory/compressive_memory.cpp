// SPDX-License-Identifier: MIT
#include <algorithm>
#include <cmath>
#include <cstddef>
#include <limits>
#include <string>
#include <utility>
#include <vector>

#include <infty/autograd/parameters.hpp>
#include <infty/memory/compressive_memory.hpp>
#include <infty/testing/gradient_check.hpp>

#include "support/catch.hpp"
#include "support/states.hpp"
#include "support/tensors.hpp"
#include "support/types.hpp"

using infty::AttentionSizes;
using infty::Compression;
using infty::CompressiveConfig;
using infty::CompressiveMemory;
using infty::Index;
using infty::Random;
using infty::ReconstructionLoss;
using infty::RowCounts;
using infty::Shape;
using infty::Tensor;
using infty::Variable;

static_assert(infty::Memory<CompressiveMemory<float>>);

namespace {

constexpr AttentionSizes few{.model_dim = 4, .heads = 2, .head_dim = 3};

/// A layer's part of what a memory is given; biases and norm are no zeros and ones.
template <class T, class B = infty::EigenBackend>
struct LayerAround {
  infty::RelativeAttention<T, B> attention{few.model_dim, few.heads, few.head_dim, Random(1)};
  infty::LayerNorm<T, B> norm{few.model_dim};
  infty::AttentionBiases<T, B> biases{few};
  Tensor<T, B> encoding = infty::distance_encoding<T, B>(60, few.model_dim);

  LayerAround() {
    Random random(2);
    for (auto* x : {&norm.bias, &biases.content, &biases.position})
      fill_uniform(x->value(), -1, 1, random);
  }

  infty::Segment<T, B> segment(const Variable<T, B>& x, bool normed) const {
    return {x, attention, normed ? &norm : nullptr, biases, encoding};
  }
};

using Vector = std::vector<double>;

/// One row of the memory in plain loops.
class PlainRow {
 public:
  PlainRow(const LayerAround<double>& layer, const CompressiveMemory<double>& memory, bool normed)
      : layer_(&layer), memory_(&memory), normed_(normed) {}

  void forget() { held_.clear(), compressed_.clear(); }

  /// What the segment reads; `leaving` gets the compressed vectors that go for it.
  std::vector<Vector> read(const std::vector<Vector>& segment, std::vector<Vector>& leaving) {
    const CompressiveConfig& config = memory_->config();
    std::vector<Vector> all = compressed_;
    for (const Held& held : held_) all.push_back(held.x);
    const std::size_t past = all.size();
    all.insert(all.end(), segment.begin(), segment.end());
    std::vector<Vector> out;
    for (std::size_t i = past; i < all.size(); ++i) {
      Vector heads;
      for (Index h = 0; h < few.heads; ++h) {
        Vector weights;
        double total = 0;
        for (std::size_t j = 0; j <= i; ++j) {
          weights.push_back(std::exp(score(all[i], all[j], static_cast<Index>(i - j), h)));
          total += weights.back();
        }
        Vector sum(static_cast<std::size_t>(few.head_dim), 0.0);
        for (std::size_t j = 0; j <= i; ++j) {
          const Vector value = projected(layer_->attention.value, normed(all[j]), h);
          for (std::size_t c = 0; c < sum.size(); ++c) sum[c] += weights[j] / total * value[c];
          if (j >= compressed_.size() && j < past)
            held_[j - compressed_.size()].attention += weights[j] / total / few.heads;
        }
        heads.insert(heads.end(), sum.begin(), sum.end());
      }
      for (Held& held : held_) ++held.queries;
      out.push_back(times(layer_->attention.out, heads));
    }
    for (const Vector& x : segment) held_.push_back({x, 0, 0});
    std::vector<Held> old;
    while (static_cast<Index>(held_.size()) >= config.capacity + config.rate)
      for (Index i = 0; i < config.rate; ++i) {
        old.push_back(held_.front());
        held_.erase(held_.begin());
      }
    for (const Vector& x : compressed(old)) compressed_.push_back(x);
    const Index stride = std::max<Index>(config.stride, 1);
    while (static_cast<Index>(compressed_.size()) >= config.compressed_capacity + stride)
      for (Index i = 0; i < stride; ++i) {
        leaving.push_back(compressed_.front());
        compressed_.erase(compressed_.begin());
      }
    return out;
  }

 private:
  struct Held {
    Vector x;
    double attention, queries;
  };

  static Vector times(const infty::Linear<double, infty::EigenBackend>& map, const Vector& x) {
    const auto weight = map.weight.value().to_vector();
    Vector y(static_cast<std::size_t>(map.weight.dim(0)), 0.0);
    for (std::size_t i = 0; i < y.size(); ++i)
      for (std::size_t j = 0; j < x.size(); ++j) y[i] += weight[i * x.size() + j] * x[j];
    return y;
  }

  Vector normed(const Vector& x) const {
    if (!normed_) return x;
    const auto n = static_cast<double>(x.size());
    double mean = 0, variance = 0;
    for (const double v : x) mean += v / n;
    for (const double v : x) variance += (v - mean) * (v - mean) / n;
    Vector y;
    for (std::size_t i = 0; i < x.size(); ++i)
      y.push_back((x[i] - mean) / std::sqrt(variance + 1e-5) *
                      layer_->norm.weight.value().data()[i] +
                  layer_->norm.bias.value().data()[i]);
    return y;
  }

  static Vector projected(const infty::Linear<double, infty::EigenBackend>& map, const Vector& x,
                          Index head) {
    const Vector all = times(map, x);
    return {all.begin() + head * few.head_dim, all.begin() + (head + 1) * few.head_dim};
  }

  double score(const Vector& query, const Vector& key, Index distance, Index head) const {
    const auto& attention = layer_->attention;
    const double* const row = layer_->encoding.data() + (60 - 1 - distance) * few.model_dim;
    const Vector q = projected(attention.query, normed(query), head),
                 k = projected(attention.key, normed(key), head),
                 r = projected(attention.position, {row, row + few.model_dim}, head);
    const double* const u = layer_->biases.content.value().data() + head * few.head_dim;
    const double* const w = layer_->biases.position.value().data() + head * few.head_dim;
    double sum = 0;
    for (std::size_t c = 0; c < q.size(); ++c) sum += (q[c] + u[c]) * k[c] + (q[c] + w[c]) * r[c];
    return sum / std::sqrt(static_cast<double>(few.head_dim));
  }

  std::vector<Vector> compressed(const std::vector<Held>& old) const {
    const CompressiveConfig& config = memory_->config();
    const auto rate = static_cast<std::size_t>(config.rate);
    std::vector<Vector> out;
    if (config.compression == Compression::most_used) {
      std::vector<std::pair<double, std::size_t>> by_average;
      for (std::size_t i = 0; i < old.size(); ++i)
        by_average.push_back({old[i].attention / std::max(old[i].queries, 1.0), i});
      std::sort(by_average.rbegin(), by_average.rend());
      by_average.resize(old.size() / rate);
      for (std::size_t i = 0; i < old.size(); ++i)
        if (std::any_of(by_average.begin(), by_average.end(),
                        [i](const auto& kept) { return kept.second == i; }))
          out.push_back(old[i].x);
      return out;
    }
    for (std::size_t at = 0; at < old.size(); at += rate) {
      std::vector<double> group;
      for (std::size_t i = at; i < at + rate; ++i)
        group.insert(group.end(), old[i].x.begin(), old[i].x.end());
      out.push_back(memory_->compressor
                        .forward(Variable<double>(
                            Tensor<double>::from({1, config.rate, few.model_dim}, group)))
                        .value()
                        .to_vector());
    }
    return out;
  }

  const LayerAround<double>* layer_;
  const CompressiveMemory<double>* memory_;
  bool normed_;
  std::vector<Held> held_;
  std::vector<Vector> compressed_;
};

/// Row `row` of x [B, L, d].
std::vector<Vector> row_vectors(const Tensor<double>& x, Index row) {
  std::vector<Vector> out;
  for (Index i = 0; i < x.dim(1); ++i) {
    const double* const from = x.data() + (row * x.dim(1) + i) * x.dim(2);
    out.emplace_back(from, from + x.dim(2));
  }
  return out;
}

constexpr auto all_compressions = {Compression::mean, Compression::max, Compression::convolution,
                                   Compression::dilated, Compression::most_used};

}  // namespace

TEST_CASE("CompressiveMemory: reads and compresses as plain loops do, in segments of any length") {
  struct Stream {
    CompressiveConfig config;
    std::vector<Index> lengths;
  };
  const auto& [sizes, lengths] = GENERATE(
      Stream{{.capacity = 6, .compressed_capacity = 4, .rate = 2}, {5, 5, 5, 5, 5, 5}},
      Stream{{.capacity = 4, .compressed_capacity = 3, .rate = 3}, {2, 1, 7, 1, 1, 11, 3, 1, 4}},
      Stream{{.capacity = 3, .compressed_capacity = 2, .rate = 1}, {4, 1, 2, 5, 1}},
      Stream{{.capacity = 0, .compressed_capacity = 3, .rate = 2}, {1, 1, 1, 3, 2, 6}},
      Stream{{.capacity = 5, .compressed_capacity = 0, .rate = 2}, {3, 4, 1, 8}},
      Stream{{.capacity = 0, .compressed_capacity = 0, .rate = 1}, {3, 1, 2}},
      Stream{{.capacity = 2, .compressed_capacity = 2, .rate = 2, .stride = 3}, {7, 2, 9, 1, 8}});
  const bool normed = GENERATE(false, true);
  const LayerAround<double> layer;
  for (const auto compression : all_compressions) {
    CompressiveConfig config = sizes;
    config.compression = compression;
    CAPTURE(config.capacity, config.compressed_capacity, config.rate, normed,
            static_cast<int>(compression));
    const CompressiveMemory<double> memory(config, few, Random(3));
    std::vector<PlainRow> plain(3, PlainRow(layer, memory, normed));
    auto state = memory.make_state(3);
    Random random(infty::tests::seed);
    for (std::size_t step = 0; step < lengths.size(); ++step) {
      // New texts begin: rows are of different lengths from here on.
      for (const std::size_t row : {std::size_t{1}, std::size_t{2}})
        if (step == row + 1) {
          reset_row(state, static_cast<Index>(row));
          plain[row].forget();
        }
      const Variable<double> x(
          infty::tests::uniform_tensor<double>({3, lengths[step], few.model_dim}, random));
      const auto reading = memory.forward(state, layer.segment(x, normed));
      for (Index row = 0; row < 3; ++row) {
        const auto at = static_cast<std::size_t>(row);
        std::vector<Vector> leaving;
        const auto expected = plain[at].read(row_vectors(x.value(), row), leaving);
        const auto got = row_vectors(reading.context.value(), row);
        REQUIRE(got.size() == expected.size());
        for (std::size_t i = 0; i < got.size(); ++i)
          CHECK(infty::tests::error(got[i], expected[i]) < 1e-12);
        const auto gone = row_vectors(reading.leaving.vectors, row);
        REQUIRE(reading.leaving.length[at] == static_cast<Index>(leaving.size()));
        for (std::size_t i = 0; i < leaving.size(); ++i)
          CHECK(infty::tests::error(gone[gone.size() - leaving.size() + i], leaving[i]) < 1e-12);
      }
    }
  }
}

TEMPLATE_LIST_TEST_CASE("CompressiveMemory: the same on every backend, its loss too", "",
                        infty::tests::Types) {
  using T = typename TestType::T;
  using B = typename TestType::B;
  const auto run = [](auto scalar, auto backend, Compression compression, ReconstructionLoss loss) {
    using U = decltype(scalar);
    using C = decltype(backend);
    const LayerAround<U, C> layer;
    CompressiveMemory<U, C> memory({.capacity = 4,
                                    .compressed_capacity = 3,
                                    .rate = 2,
                                    .compression = compression,
                                    .loss = loss},
                                   few, Random(3));
    auto state = memory.make_state(2);
    Random random(infty::tests::seed);
    std::vector<double> all;
    const auto add = [&](const auto& numbers) {
      for (const auto x : numbers) all.push_back(static_cast<double>(x));
    };
    for (const Index length : {5, 3, 1, 6}) {
      const Variable<U, C> x(infty::tests::uniform_tensor<U, C>({2, length, few.model_dim}, random),
                             true);
      infty::Tape tape;
      const auto reading = memory.forward(state, layer.segment(x, true));
      auto sum = infty::sum(reading.context * reading.context);
      if (reading.auxiliary.size() > 0) sum = sum + reading.auxiliary;
      tape.backward(sum);
      add(x.grad().to_vector());
      if (length == 5) reset_row(state, 1);
    }
    for (const auto& p : infty::parameters<U, C>(memory)) add(p.grad().to_vector());
    add(infty::tests::numbers_of(state));
    return all;
  };
  for (const auto compression : all_compressions)
    for (const auto loss : {ReconstructionLoss::attention, ReconstructionLoss::auto_encoding})
      CHECK(infty::tests::error(run(T{}, B{}, compression, loss),
                                run(double{}, infty::EigenBackend{}, compression, loss)) <
            10 * infty::tests::tolerance<T>);
}

TEST_CASE("CompressiveMemory: its losses teach the compression and nothing else") {
  const auto loss = GENERATE(ReconstructionLoss::attention, ReconstructionLoss::auto_encoding);
  const auto compression = GENERATE(Compression::convolution, Compression::dilated);
  const bool normed = GENERATE(false, true);
  LayerAround<double> layer;
  CompressiveMemory<double> memory({.capacity = 3,
                                    .compressed_capacity = 4,
                                    .rate = 3,
                                    .compression = compression,
                                    .loss = loss},
                                   few, Random(3));
  auto before = memory.make_state(2);
  Random random(infty::tests::seed);
  const auto draw = [&](Index length) {
    return infty::tests::uniform_variable<double>({2, length, few.model_dim}, random);
  };
  memory.observe(before, layer.segment(draw(7), normed));
  reset_row(before, 1);  // which then lets fewer vectors go
  memory.observe(before, layer.segment(draw(1), normed));
  const auto x = draw(7);
  const auto auxiliary = [&] {
    auto state = before;
    return memory.forward(state, layer.segment(x, normed)).auxiliary;
  };
  const auto learned = infty::parameters<double>(memory);
  REQUIRE(!learned.empty());
  // Numbers without a tape are not computed: the check's own tape is for the gradient alone.
  const auto with_tape = [&] {
    infty::Tape tape;
    const auto value = auxiliary();
    tape.clear();
    return value;
  };
  CHECK(with_tape().value().item() > 0);
  {
    infty::Tape tape;
    tape.backward(auxiliary());
  }
  for (const auto& p : learned) CHECK(p.has_grad());
  CHECK_FALSE(x.has_grad());
  infty::for_each_parameter(layer.attention, [](const std::string&, const Variable<double>& p) {
    CHECK_FALSE(p.has_grad());
  });
  for (const auto& p :
       {layer.norm.weight, layer.norm.bias, layer.biases.content, layer.biases.position})
    CHECK_FALSE(p.has_grad());
  // Against differences: what `forward` computes where a tape records.
  for (auto& p : learned) {
    const auto gradient = p.grad().to_vector();
    auto parameter = p;
    for (Index i = 0; i < parameter.size(); ++i) {
      double* const at = parameter.value().data() + i;
      const double value = *at, step = 1e-5;
      *at = value + step;
      const double above = with_tape().value().item();
      *at = value - step;
      const double below = with_tape().value().item();
      *at = value;
      CHECK(gradient[static_cast<std::size_t>(i)] ==
            Approx((above - below) / (2 * step)).margin(1e-8).epsilon(1e-6));
    }
  }
}

TEST_CASE("CompressiveMemory: the attention loss, by hand") {
  // Of two equal vectors and their mean every query reads the same; of others it does not.
  const LayerAround<double> layer;
  CompressiveMemory<double> memory({.capacity = 0, .compressed_capacity = 1, .rate = 2}, few,
                                   Random(3));
  // The convolution that is the mean.
  auto& map = memory.compressor.maps[0];
  map.bias.value().fill(0);
  map.weight.value().fill(0);
  for (Index i = 0; i < few.model_dim; ++i)
    for (const Index part : {Index{0}, few.model_dim})
      map.weight.value().data()[i * 2 * few.model_dim + part + i] = 0.5;
  auto state = memory.make_state(1);
  infty::Tape tape;
  const Variable<double> equal(Tensor<double>::from({1, 2, 4}, {1, 2, 3, 4, 1, 2, 3, 4}));
  CHECK(memory.forward(state, layer.segment(equal, false)).auxiliary.value().item() < 1e-25);
  const Variable<double> other(Tensor<double>::from({1, 2, 4}, {1, 2, 3, 4, 4, 3, 2, 1}));
  CHECK(memory.forward(state, layer.segment(other, false)).auxiliary.value().item() > 1e-6);
}

TEST_CASE(
    "CompressiveMemory: nothing to learn, no loss; nothing leaves, no loss; no tape, no loss") {
  const LayerAround<float> layer;
  const Variable<float> x(Tensor<float>::full({1, 6, few.model_dim}, 1));
  for (const auto compression : all_compressions) {
    const CompressiveMemory<float> memory(
        {.capacity = 2, .compressed_capacity = 2, .rate = 2, .compression = compression}, few,
        Random(3));
    auto state = memory.make_state(1);
    CHECK(memory.forward(state, layer.segment(x, false)).auxiliary.size() == 0);
    infty::Tape tape;
    const bool learns =
        compression == Compression::convolution || compression == Compression::dilated;
    CHECK(memory.forward(state, layer.segment(x, false)).auxiliary.size() == (learns ? 1 : 0));
    const Variable<float> one(Tensor<float>::full({1, 1, few.model_dim}, 1));
    CHECK(memory.forward(state, layer.segment(one, false)).auxiliary.size() == 0);
  }
}

TEST_CASE("CompressiveMemory: kept keys and values are made anew when what makes them changes") {
  LayerAround<double> layer;
  const CompressiveMemory<double> memory({.capacity = 3, .compressed_capacity = 2, .rate = 2}, few,
                                         Random(3));
  auto state = memory.make_state(1);
  Random random(infty::tests::seed);
  const Variable<double> x(infty::tests::uniform_tensor<double>({1, 8, few.model_dim}, random));
  for (const Index length : {8, 1, 2}) {
    const Variable<double> piece(Tensor<double>::full({1, length, few.model_dim}, 0.5));
    memory.forward(state, layer.segment(length == 8 ? x : piece, true));
  }
  const Variable<double> next(Tensor<double>::full({1, 1, few.model_dim}, 0.25));
  const auto unlike_before = [&](Variable<double>& parameter) {
    auto kept = state, fresh = state;
    const auto before = memory.forward(kept, layer.segment(next, true)).context.value().to_vector();
    parameter.value().data()[0] += 1;
    kept = state;
    fresh.cache = {};
    const auto after = memory.forward(kept, layer.segment(next, true)).context.value().to_vector();
    CHECK(after == memory.forward(fresh, layer.segment(next, true)).context.value().to_vector());
    return after != before;
  };
  CHECK(unlike_before(layer.attention.key.weight));
  CHECK(unlike_before(layer.attention.value.weight));
  CHECK(unlike_before(layer.attention.position.weight));
  CHECK(unlike_before(layer.norm.weight));
  CHECK(unlike_before(layer.norm.bias));
}

TEST_CASE("CompressiveMemory: counts its products") {
  // A segment of 6 behind 4 + 1 vectors and 3 compressed ones: queries and output, keys and values,
  // positions, pairs three times, and 3 groups of 2 compressed in each of 2 rows.
  const CompressiveMemory<float> memory({.capacity = 4, .compressed_capacity = 3, .rate = 2}, few,
                                        Random(0));
  CHECK(memory.reach() == 8);
  const double d = 4, e = 6, maps = 2 * d * e * (2 * 6 * 2 + 2 * 14 * 2 + 14),
               pairs = 3 * 2 * 2 * e * (6 * 8 + 6 * 7 / 2.0), groups = 2 * 3 * 2 * (2 * d) * d;
  CHECK(memory.flops(2, 6) == maps + pairs + groups);
  // A stack of two sees 3 vectors by 2 products, then 1.
  CHECK(infty::Compressor<float>(Compression::dilated, 3, 4, Random(0)).flops(1) ==
        2 * 3 * (2 * d) * d);
}

TEST_CASE("CompressiveMemory: what cannot be is refused") {
  const auto make = [](CompressiveConfig config) {
    CompressiveMemory<float>(config, few, Random(0));
  };
  CHECK_THROWS_WITH(make({.rate = 0}), "[CompressiveConfig] rate is 0: it must be at least 1");
  CHECK_THROWS_AS(make({.capacity = -1}), infty::ValueError);
  CHECK_THROWS_AS(make({.compressed_capacity = -1}), infty::ValueError);
  CHECK_THROWS_AS(make({.stride = -1}), infty::ValueError);
  constexpr infty::Index huge = std::numeric_limits<infty::Index>::max();
  CHECK_THROWS_WITH(make({.capacity = huge}), Catch::Contains("[CompressiveConfig] capacity is "));
  CHECK_THROWS_WITH(make({.compressed_capacity = huge}),
                    Catch::Contains("] compressed_capacity is "));
  CHECK_THROWS_WITH(make({.rate = huge}), Catch::Contains("[CompressiveConfig] rate is "));
  CHECK_THROWS_WITH(make({.stride = huge}), Catch::Contains("[CompressiveConfig] stride is "));
  const LayerAround<float> layer;
  const CompressiveMemory<float> memory({.capacity = 2, .compressed_capacity = 2}, few, Random(0)),
      used({.capacity = 2, .compressed_capacity = 2, .compression = Compression::most_used}, few,
           Random(0));
  auto state = used.make_state(1);
  const Variable<float> x(Tensor<float>::full({1, 2, few.model_dim}, 1));
  CHECK_THROWS_WITH(
      memory.forward(state, layer.segment(x, false)),
      "[CompressiveMemory] the state holds compressed vectors [1, 2, 4] and usage [1, 5, 2]: "
      "another memory made it, ours are [1, 2, 4] and [1, 0, 2]");
  state = memory.make_state(1);
  state.compressed = memory.make_state(2).compressed;
  CHECK_THROWS_AS(memory.forward(state, layer.segment(x, false)), infty::ShapeError);
  CHECK_THROWS_AS(memory.observe(state, layer.segment(x, false)), infty::ShapeError);
  CHECK_THROWS_AS(used.make_state(0), infty::ValueError);
}
