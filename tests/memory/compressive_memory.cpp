// SPDX-License-Identifier: MIT
#include <algorithm>
#include <cmath>
#include <cstddef>
#include <limits>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <infty/autograd/parameters.hpp>
#include <infty/memory/compressive_memory.hpp>
#include <infty/testing/gradient_check.hpp>

#include "support/around.hpp"
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
using infty::tests::Around;
using infty::tests::numbers_of;

static_assert(infty::Attention<CompressiveMemory<float>>);

namespace {

constexpr AttentionSizes few{.model_dim = 4, .heads = 2, .head_dim = 3};

using Vector = std::vector<double>;

/// One row of the memory in plain loops.
class PlainRow {
 public:
  PlainRow(const Around<double>& around, const CompressiveMemory<double>& memory, bool normed)
      : around_(&around), memory_(&memory), normed_(normed) {}

  void forget() { held_.clear(), compressed_.clear(); }

  /// What the segment reads; `leaving` gets the compressed vectors that go for it. The first
  /// `before` and the last `behind` of its vectors are memory tokens.
  std::vector<Vector> read(const std::vector<Vector>& segment, std::vector<Vector>& leaving,
                           std::size_t before, std::size_t behind) {
    const CompressiveConfig& config = memory_->config();
    std::vector<Vector> all = compressed_;
    for (const Held& held : held_) all.push_back(held.x);
    const std::size_t past = all.size();
    all.insert(all.end(), segment.begin(), segment.end());
    std::vector<Vector> out;
    read_of_past.assign(static_cast<std::size_t>(few.heads), {});
    read_of_compressed = read_of_past;
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
          const Vector value = projected(memory_->attention.value, normed(all[j]), h);
          for (std::size_t c = 0; c < sum.size(); ++c) sum[c] += weights[j] / total * value[c];
          if (j >= compressed_.size() && j < past)
            held_[j - compressed_.size()].attention += weights[j] / total / few.heads;
        }
        const auto at = static_cast<std::size_t>(h);
        if (i >= past + before && i + behind < all.size())
          for (std::size_t j = 0; j < past; ++j)
            (j < compressed_.size() ? read_of_compressed : read_of_past)[at].push_back(weights[j] /
                                                                                       total);
        heads.insert(heads.end(), sum.begin(), sum.end());
      }
      for (Held& held : held_) ++held.queries;
      out.push_back(times(memory_->attention.out, heads));
    }
    for (std::size_t i = before; i + behind < segment.size(); ++i)
      held_.push_back({segment[i], 0, 0});
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

  /// What words of the last segment read of what was held and of what was compressed, by head: a
  /// list of words' lists.
  std::vector<Vector> read_of_past, read_of_compressed;

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
                      around_->layer_norm.weight.value().data()[i] +
                  around_->layer_norm.bias.value().data()[i]);
    return y;
  }

  static Vector projected(const infty::Linear<double, infty::EigenBackend>& map, const Vector& x,
                          Index head) {
    const Vector all = times(map, x);
    return {all.begin() + head * few.head_dim, all.begin() + (head + 1) * few.head_dim};
  }

  double score(const Vector& query, const Vector& key, Index distance, Index head) const {
    const auto& attention = memory_->attention;
    const double* const row = encoding_.data() + (60 - 1 - distance) * few.model_dim;
    const Vector q = projected(attention.query, normed(query), head),
                 k = projected(attention.key, normed(key), head),
                 r = projected(attention.position, {row, row + few.model_dim}, head);
    const double* const u = attention.content_bias.value().data() + head * few.head_dim;
    const double* const w = attention.position_bias.value().data() + head * few.head_dim;
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

  const Around<double>* around_;
  const CompressiveMemory<double>* memory_;
  bool normed_;
  Tensor<double> encoding_ = infty::distance_encoding<double>(60, few.model_dim);
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

/// Checks what a pass was shown of a row that holds so many vectors of a kind: by head, `expected`
/// at the last places, and zeros in front of them.
void check_shown(const infty::Pass<double>& pass, std::string_view name, Index row,
                 const infty::RowCounts& held, const std::vector<Vector>& expected) {
  const bool any = std::any_of(held.begin(), held.end(), [](Index n) { return n > 0; });
  const auto is_it = [&](const auto& shown) { return shown.name == name; };
  REQUIRE(std::any_of(pass.trace.begin(), pass.trace.end(), is_it) == any);
  if (!any) return;
  const auto shown = first_shown(pass, name);
  const Index words = shown.dim(2), places = shown.dim(3), n = held[static_cast<std::size_t>(row)];
  const auto got = shown.value().slice(row, row + 1).to_vector();
  std::size_t at = 0;
  for (const Vector& head : expected)
    for (Index i = 0; i < words; ++i)
      for (Index j = 0; j < places; ++j) {
        const Index from = j - (places - n);
        const double weight = from < 0 ? 0 : head[static_cast<std::size_t>(i * n + from)];
        CHECK(std::fabs(got[at++] - weight) < 1e-12);
      }
  CHECK(at == got.size());
}

constexpr auto all_compressions = {Compression::mean, Compression::max, Compression::convolution,
                                   Compression::dilated, Compression::most_used};

}  // namespace

TEST_CASE("CompressiveMemory: reads and compresses as plain loops do, in segments of any length") {
  struct Stream {
    CompressiveConfig config;
    std::vector<Index> lengths;
  };
  using Tokens = std::pair<Index, Index>;
  const auto& [sizes, lengths] = GENERATE(
      Stream{{.capacity = 6, .compressed_capacity = 4, .rate = 2}, {5, 5, 5, 5, 5, 5}},
      Stream{{.capacity = 4, .compressed_capacity = 3, .rate = 3}, {2, 1, 7, 1, 1, 11, 3, 1, 4}},
      Stream{{.capacity = 3, .compressed_capacity = 2, .rate = 1}, {4, 1, 2, 5, 1}},
      Stream{{.capacity = 0, .compressed_capacity = 3, .rate = 2}, {1, 1, 1, 3, 2, 6}},
      Stream{{.capacity = 5, .compressed_capacity = 0, .rate = 2}, {3, 4, 1, 8}},
      Stream{{.capacity = 0, .compressed_capacity = 0, .rate = 1}, {3, 1, 2}},
      Stream{{.capacity = 2, .compressed_capacity = 2, .rate = 2, .stride = 3}, {7, 2, 9, 1, 8}});
  const bool normed = GENERATE(false, true);
  // Memory tokens in front of and behind each segment: they are seen, and not held.
  const auto [before, behind] = GENERATE(Tokens{0, 0}, Tokens{2, 1});
  const Around<double> attend(few.model_dim);
  for (const auto compression : all_compressions) {
    CompressiveConfig config = sizes;
    config.compression = compression;
    CAPTURE(config.capacity, config.compressed_capacity, config.rate, normed, before,
            static_cast<int>(compression));
    const auto memory = attend.drawn(CompressiveMemory<double>(config, few, Random(3)));
    std::vector<PlainRow> plain(3, PlainRow(attend, memory, normed));
    auto state = memory.make_state(3);
    Random random(infty::tests::seed);
    for (std::size_t step = 0; step < lengths.size(); ++step) {
      // New texts begin: rows are of different lengths from here on.
      for (const std::size_t row : {std::size_t{1}, std::size_t{2}})
        if (step == row + 1) {
          reset_row(state, static_cast<Index>(row));
          plain[row].forget();
        }
      const Index length = before + lengths[step] + behind;
      const Variable<double> x(
          infty::tests::uniform_tensor<double>({3, length, few.model_dim}, random));
      infty::Pass<double> pass{.before = before, .behind = behind}, traced = pass;
      traced.traced = true;
      const auto held = state.memory.length, compressed = state.compressed.length;
      auto forgetful = state, recorded = state, silent = state;
      const auto reading = attend(memory, state, x, normed, pass);
      CHECK(reading.queries.shape() == Shape{3, length, 6});
      // The same without kept keys and values, and where a tape records.
      forgetful.cache = {};
      const auto check_same = [&](const auto& other, const auto& left_behind) {
        CHECK(infty::tests::error(other.context.value().to_vector(),
                                  reading.context.value().to_vector()) < 1e-12);
        CHECK(infty::tests::error(other.leaving.vectors.to_vector(),
                                  reading.leaving.vectors.to_vector()) < 1e-12);
        CHECK(infty::tests::error(numbers_of(left_behind), numbers_of(state)) < 1e-12);
      };
      check_same(attend(memory, forgetful, x, normed, traced), forgetful);
      {
        infty::Tape tape;
        check_same(attend(memory, recorded, x, normed, pass), recorded);
      }
      infty::Pass<double> unanswered{.answer = false, .before = before, .behind = behind};
      attend(memory, silent, x, normed, unanswered);
      CHECK(infty::tests::error(numbers_of(silent), numbers_of(state)) < 1e-12);
      for (Index row = 0; row < 3; ++row) {
        const auto at = static_cast<std::size_t>(row);
        std::vector<Vector> leaving;
        const auto expected =
            plain[at].read(row_vectors(x.value(), row), leaving, static_cast<std::size_t>(before),
                           static_cast<std::size_t>(behind));
        check_shown(traced, "past_weights", row, held, plain[at].read_of_past);
        check_shown(traced, "compressed_weights", row, compressed, plain[at].read_of_compressed);
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
    const Around<U, C> attend(few.model_dim);
    auto memory = attend.drawn(CompressiveMemory<U, C>({.capacity = 4,
                                                        .compressed_capacity = 3,
                                                        .rate = 2,
                                                        .compression = compression,
                                                        .loss = loss},
                                                       few, Random(3)));
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
      infty::Pass<U, C> pass{.before = length > 3 ? 1 : 0, .behind = length > 3 ? 1 : 0};
      const auto context = attend(memory, state, x, true, pass).context;
      tape.backward(infty::sum(context * context) + loss_named(pass, "compression"));
      add(x.grad().to_vector());
      if (length == 5) reset_row(state, 1);
    }
    for (const auto& p : infty::parameters<U, C>(memory)) add(p.grad().to_vector());
    add(numbers_of(state));
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
  const Around<double> attend(few.model_dim);
  auto memory = attend.drawn(CompressiveMemory<double>({.capacity = 3,
                                                        .compressed_capacity = 4,
                                                        .rate = 3,
                                                        .compression = compression,
                                                        .loss = loss},
                                                       few, Random(3)));
  auto before = memory.make_state(2);
  Random random(infty::tests::seed);
  const auto draw = [&](Index length) {
    return infty::tests::uniform_variable<double>({2, length, few.model_dim}, random);
  };
  const auto observe = [&](Index length) {
    infty::Pass<double> pass{.answer = false};
    attend(memory, before, draw(length), normed, pass);
    CHECK(pass.losses.empty());
  };
  observe(7);
  reset_row(before, 1);  // which then lets fewer vectors go
  observe(1);
  const auto x = draw(7);
  const auto auxiliary = [&] {
    auto state = before;
    infty::Pass<double> pass;
    attend(memory, state, x, normed, pass);
    CHECK(pass.losses.size() == 1);
    return loss_named(pass, "compression");
  };
  std::vector<Variable<double>> learned, others{attend.layer_norm.weight, attend.layer_norm.bias};
  infty::for_each_parameter(memory, [&](const std::string& name, const Variable<double>& p) {
    const bool learns = name.rfind("compression.", 0) == 0 || name.rfind("decoder.", 0) == 0;
    (learns ? learned : others).push_back(p);
  });
  REQUIRE(!learned.empty());
  CHECK(others.size() == 2 + 7);
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
  for (const auto& p : others) CHECK_FALSE(p.has_grad());
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

TEST_CASE("CompressiveMemory: answers, of later segments too, teach the compression nothing") {
  const Around<double> attend(few.model_dim);
  const auto memory = attend.drawn(CompressiveMemory<double>(
      {.capacity = 3, .compressed_capacity = 4, .rate = 3}, few, Random(3)));
  auto state = memory.make_state(2);
  Random random(infty::tests::seed);
  infty::Tape tape;
  auto sum = infty::tests::uniform_variable<double>({1}, random);
  for (int segment = 0; segment < 3; ++segment) {
    const auto x = infty::tests::uniform_variable<double>({2, 7, few.model_dim}, random);
    sum = sum + infty::sum(attend(memory, state, x, false).context);
  }
  REQUIRE(state.compressed.length == infty::RowCounts{4, 4});
  tape.backward(sum);
  int learned = 0, others = 0;
  infty::for_each_parameter(memory, [&](const std::string& name, const Variable<double>& p) {
    (name.rfind("compression.", 0) == 0 ? learned : others) += p.has_grad() ? 1 : 0;
  });
  CHECK(learned == 0);
  CHECK(others > 0);
}

TEST_CASE("CompressiveMemory: the attention loss, by hand") {
  // Of two equal vectors and their mean every query reads the same; of others it does not.
  const Around<double> attend(few.model_dim);
  auto memory = attend.drawn(CompressiveMemory<double>(
      {.capacity = 0, .compressed_capacity = 1, .rate = 2}, few, Random(3)));
  // The convolution that is the mean.
  auto& map = memory.compressor.maps[0];
  map.bias.value().fill(0);
  map.weight.value().fill(0);
  for (Index i = 0; i < few.model_dim; ++i)
    for (const Index part : {Index{0}, few.model_dim})
      map.weight.value().data()[i * 2 * few.model_dim + part + i] = 0.5;
  auto state = memory.make_state(1);
  infty::Tape tape;
  const auto loss = [&](const Tensor<double>& x) {
    infty::Pass<double> pass;
    attend(memory, state, x, false, pass);
    REQUIRE(pass.losses.size() == 1);
    return loss_named(pass, "compression").value().item();
  };
  CHECK(loss(Tensor<double>::from({1, 2, 4}, {1, 2, 3, 4, 1, 2, 3, 4})) < 1e-25);
  CHECK(loss(Tensor<double>::from({1, 2, 4}, {1, 2, 3, 4, 4, 3, 2, 1})) > 1e-6);
}

TEST_CASE(
    "CompressiveMemory: nothing to learn, no loss; nothing leaves, no loss; no tape, no loss") {
  const Around<float> attend(few.model_dim);
  const auto x = Tensor<float>::full({1, 6, few.model_dim}, 1);
  for (const auto compression : all_compressions) {
    const CompressiveMemory<float> memory(
        {.capacity = 2, .compressed_capacity = 2, .rate = 2, .compression = compression}, few,
        Random(3));
    auto state = memory.make_state(1);
    const auto losses = [&](const Tensor<float>& segment) {
      infty::Pass<float> pass;
      attend(memory, state, segment, false, pass);
      return pass.losses.size();
    };
    CHECK(losses(x) == 0);
    infty::Tape tape;
    const bool learns =
        compression == Compression::convolution || compression == Compression::dilated;
    CHECK(losses(x) == (learns ? 1 : 0));
    CHECK(losses(Tensor<float>::full({1, 1, few.model_dim}, 1)) == 0);
  }
}

TEST_CASE("CompressiveMemory: kept keys and values are made anew when what makes them changes") {
  Around<double> attend(few.model_dim);
  auto memory = attend.drawn(CompressiveMemory<double>(
      {.capacity = 3, .compressed_capacity = 2, .rate = 2}, few, Random(3)));
  auto state = memory.make_state(1);
  Random random(infty::tests::seed);
  const Variable<double> x(infty::tests::uniform_tensor<double>({1, 8, few.model_dim}, random));
  for (const Index length : {8, 1, 2}) {
    const Variable<double> piece(Tensor<double>::full({1, length, few.model_dim}, 0.5));
    attend(memory, state, length == 8 ? x : piece, true);
  }
  const Variable<double> next(Tensor<double>::full({1, 1, few.model_dim}, 0.25));
  const auto unlike_before = [&](Variable<double>& parameter) {
    auto kept = state, fresh = state;
    const auto before = attend(memory, kept, next, true).context.value().to_vector();
    parameter.value().data()[0] += 1;
    kept = state;
    fresh.cache = {};
    const auto after = attend(memory, kept, next, true).context.value().to_vector();
    CHECK(after == attend(memory, fresh, next, true).context.value().to_vector());
    return after != before;
  };
  CHECK(unlike_before(memory.attention.key.weight));
  CHECK(unlike_before(memory.attention.value.weight));
  CHECK(unlike_before(memory.attention.position.weight));
  CHECK(unlike_before(attend.layer_norm.weight));
  CHECK(unlike_before(attend.layer_norm.bias));
}

TEST_CASE("CompressiveMemory: counts its products") {
  // A segment of 6 behind 4 + 1 vectors and 3 compressed ones: queries and output, keys and values,
  // positions, pairs three times, and 3 groups of 2 compressed in each of 2 rows.
  const CompressiveMemory<float> memory({.capacity = 4, .compressed_capacity = 3, .rate = 2}, few,
                                        Random(0));
  CHECK(memory.most_seen() == 8);
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
  const Around<float> attend(few.model_dim);
  const CompressiveMemory<float> memory({.capacity = 2, .compressed_capacity = 2}, few, Random(0)),
      used({.capacity = 2, .compressed_capacity = 2, .compression = Compression::most_used}, few,
           Random(0));
  auto state = used.make_state(1);
  const Variable<float> x(Tensor<float>::full({1, 2, few.model_dim}, 1));
  CHECK_THROWS_WITH(
      attend(memory, state, x, false),
      "[CompressiveMemory] the state holds compressed vectors [1, 2, 4] and usage [1, 5, 2]: "
      "another memory made it, ours are [1, 2, 4] and [1, 0, 2]");
  state = memory.make_state(1);
  state.compressed = memory.make_state(2).compressed;
  CHECK_THROWS_AS(attend(memory, state, x, false), infty::ShapeError);
  infty::Pass<float> unanswered{.answer = false}, tokens{.before = 2, .behind = 1};
  CHECK_THROWS_AS(attend(memory, state, x, false, unanswered), infty::ShapeError);
  state = memory.make_state(1);
  CHECK_THROWS_WITH(attend(memory, state, x, false, tokens),
                    "[CompressiveMemory] of 2 vectors, 2 and 1 are said to be memory tokens");
  CHECK_THROWS_AS(used.make_state(0), infty::ValueError);
}
