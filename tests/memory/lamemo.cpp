// SPDX-License-Identifier: MIT
#include "memory/lamemo.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>
#include <vector>

#include <infty/memory/lamemo.hpp>
#include <infty/testing/gradient_check.hpp>

#include "support/around.hpp"
#include "support/catch.hpp"
#include "support/states.hpp"
#include "support/tensors.hpp"
#include "support/types.hpp"

using infty::AttentionSizes;
using infty::Index;
using infty::LaMemo;
using infty::LaMemoConfig;
using infty::LaMemoPositions;
using infty::Random;
using infty::Shape;
using infty::Tensor;
using infty::Variable;
using infty::tests::ablations;
using infty::tests::all_options;
using infty::tests::Around;
using infty::tests::drawn_tokens;
using infty::tests::small_model;

static_assert(infty::SequenceLayer<LaMemo<float>>);
static_assert(infty::Attention<LaMemo<float>>);

namespace {

/// A LaMemo in the first layer of a stack, and what a `RenewedPast` does for it: it holds the last
/// inputs, which the layer sees in front of each segment.
template <class T, class B = infty::EigenBackend>
class FirstLayer {
 public:
  using V = Variable<T, B>;

  struct State {
    infty::LaMemoState<T, B> memory;
    infty::RowSequences<T, B> input;

    template <class Visitor>
    void visit(Visitor&& see) {
      see("memory", memory);
      see("input", input);
    }
  };

  Around<T, B> around;
  LaMemo<T, B> memory;

  FirstLayer(const LaMemoConfig& config, const AttentionSizes& sizes)
      : around(sizes.model_dim),
        memory(around.drawn(LaMemo<T, B>(config, sizes, Random(1)))),
        fifo_(sizes.model_dim, config.capacity) {}

  State make_state(Index batch) const {
    return {memory.make_state(batch), fifo_.make_state(batch)};
  }

  /// What is added to the past [B, M, d] and to the segment behind it.
  V forward(State& state, const V& x, bool normed) const {
    infty::Pass<T, B> pass;
    return forward(state, x, normed, pass);
  }
  V forward(State& state, const V& x, bool normed, infty::Pass<T, B>& pass) const {
    const auto& held = state.input.length;
    const Index past = *std::max_element(held.begin(), held.end()), most = fifo_.capacity();
    pass.before = past;
    const V all = concat(narrow(V(state.input.vectors), most - past, most), x);
    const V y = memory.forward(state.memory, all, around.norm(normed), pass);
    fifo_.write(state.input, x.value());
    return y;
  }

 private:
  infty::Fifo<T, B> fifo_;
};

/// The same layer in plain loops: every vector of the past knows up to which place it has read, and
/// reads what has come since, one key after the other.
class PlainLaMemo {
 public:
  PlainLaMemo(const FirstLayer<double>& layer, AttentionSizes sizes, bool normed)
      : layer_(layer), sizes_(sizes), normed_(normed), config_(layer.memory.config()) {}

  void forget() { held_.clear(); }

  /// What is added to the vectors of the past, then to the segment's, for a segment of one row.
  std::vector<std::vector<double>> read(const std::vector<std::vector<double>>& segment) {
    const std::size_t past = held_.size();
    shares.clear();
    past_weights.assign(static_cast<std::size_t>(sizes_.heads), std::vector<std::vector<double>>());
    const auto first = static_cast<Index>(seen_in_all_);
    for (const auto& x : segment) held_.push_back({x, static_cast<Index>(seen_in_all_++), {}, {}});
    for (std::size_t i = 0; i < held_.size(); ++i) {
      Vector& vector = held_[i];
      const bool old = i < past;
      if (old && !config_.look_ahead) {  // what it has read stays what it is
        shares.insert(shares.end(), static_cast<std::size_t>(sizes_.heads), 1.0);
        continue;
      }
      // The past reads up to the segment's first vector; the segment's read up to themselves.
      for (Index h = 0; h < sizes_.heads; ++h) {
        const Index until = old ? first : vector.place;
        double total = 0;
        std::vector<double> sum(static_cast<std::size_t>(sizes_.head_dim), 0.0), of_past;
        for (const Vector& key : held_) {
          if (key.place > until || (old && key.place <= vector.read_until)) continue;
          const double weight = std::exp(score(vector, key, h));
          total += weight;
          if (key.place < first) of_past.push_back(weight);
          for (std::size_t d = 0; d < sum.size(); ++d)
            sum[d] += weight * projected(layer_.memory.attention.value, key.input, h)[d];
        }
        for (double& x : sum) x /= total;
        if (!old) {
          for (double& x : of_past) x /= total;
          of_past.insert(of_past.begin(), static_cast<std::size_t>(config_.capacity) - past, 0.0);
          past_weights[static_cast<std::size_t>(h)].push_back(of_past);
          vector.total.push_back(total);
          vector.context.insert(vector.context.end(), sum.begin(), sum.end());
          continue;
        }
        double& kept = vector.total[static_cast<std::size_t>(h)];
        const double share =
            config_.interpolation ? kept / (kept + total + 1e-6 * std::max(kept, total)) : 0;
        shares.push_back(share);
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
      out.push_back(times(layer_.memory.attention.out, vector.context));
    }
    while (static_cast<Index>(held_.size()) > config_.capacity) held_.erase(held_.begin());
    return out;
  }

  /// α of the last call, of every vector of the past and every head.
  std::vector<double> shares;
  /// What each vector of the last segment has read of the past, by head, vector and place.
  std::vector<std::vector<std::vector<double>>> past_weights;

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
                      layer_.around.layer_norm.weight.value().data()[i] +
                  layer_.around.layer_norm.bias.value().data()[i]);
    return y;
  }

  std::vector<double> projected(const infty::Linear<double, infty::EigenBackend>& map,
                                const std::vector<double>& x, Index head) const {
    const auto all = times(map, normed(x));
    const auto begin = all.begin() + head * sizes_.head_dim;
    return {begin, begin + sizes_.head_dim};
  }

  double score(const Vector& query, const Vector& key, Index head) const {
    const Index D = sizes_.head_dim, d = sizes_.model_dim;
    const Index distance = std::abs(query.place - key.place);
    const double* const row = encoding_.data() + (encoding_.dim(0) - 1 - distance) * d;
    std::vector<double> encoding{row, row + d};
    const bool right = key.place > query.place;
    const bool one_bias = config_.positions == LaMemoPositions::transformer_xl;
    if (right && one_bias)  // of a negative distance
      for (std::size_t m = 0; m < encoding.size() / 2; ++m) encoding[m] = -encoding[m];
    const auto r = times(layer_.memory.attention.position, encoding);
    const auto q = projected(layer_.memory.attention.query, query.input, head),
               k = projected(layer_.memory.attention.key, key.input, head);
    const auto& position =
        right && !one_bias ? layer_.memory.future_bias : layer_.memory.attention.position_bias;
    double sum = 0;
    for (Index i = 0; i < D; ++i) {
      const auto at = static_cast<std::size_t>(i);
      sum += (q[at] + layer_.memory.attention.content_bias.value().data()[head * D + i]) * k[at];
      sum += (q[at] + position.value().data()[head * D + i]) *
             r[static_cast<std::size_t>(head * D + i)];
    }
    return sum / std::sqrt(static_cast<double>(D));
  }

  const FirstLayer<double>& layer_;
  AttentionSizes sizes_;
  Tensor<double> encoding_ = infty::distance_encoding<double>(40, sizes_.model_dim);
  bool normed_;
  LaMemoConfig config_;
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
  const auto option = GENERATE(range(0, 5));
  CAPTURE(capacity, lengths, normed, option);
  const FirstLayer<double> layer(all_options(capacity)[static_cast<std::size_t>(option)], sizes);
  std::vector<PlainLaMemo> plain(2, PlainLaMemo(layer, sizes, normed));
  auto state = layer.make_state(2);
  Random random(infty::tests::seed);
  for (std::size_t step = 0; step < lengths.size(); ++step) {
    if (step == 2) {
      // A new text begins in row 1, whose memory is then shorter.
      infty::reset_row(state, 1);
      plain[1].forget();
    }
    const Variable<double> x(
        infty::tests::uniform_tensor<double>({2, lengths[step], sizes.model_dim}, random));
    infty::Pass<double> pass{.traced = true};
    const auto added = layer.forward(state, x, normed, pass);
    CHECK(pass.trace.size() == (pass.before > 0 ? 2 : 0));
    for (Index row = 0; row < 2; ++row) {
      auto& reference = plain[static_cast<std::size_t>(row)];
      const auto expected = reference.read(vectors_of(x.value(), row));
      if (pass.before > 0) {
        const auto alpha = first_shown(pass, "alpha");
        REQUIRE(alpha.shape() == Shape{2, pass.before, sizes.heads});
        auto shown =
            narrow(alpha, pass.before - static_cast<Index>(reference.shares.size()) / sizes.heads,
                   pass.before)
                .value()
                .slice(row, row + 1)
                .to_vector();
        CHECK(infty::tests::error(shown, reference.shares) < 1e-13);
        const auto weights = first_shown(pass, "past_weights");
        REQUIRE(weights.shape() == Shape{2, sizes.heads, lengths[step], capacity});
        std::vector<double> read;
        for (const auto& head : reference.past_weights)
          for (const auto& one : head) read.insert(read.end(), one.begin(), one.end());
        CHECK(infty::tests::error(weights.value().slice(row, row + 1).to_vector(), read) < 1e-13);
      }
      const auto all = vectors_of(added.value(), row);
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
  const auto option = GENERATE(range(0, 5));
  CAPTURE(option);
  const auto run = [&](auto scalar, auto backend) {
    using U = decltype(scalar);
    using C = decltype(backend);
    const FirstLayer<U, C> layer(all_options(7)[static_cast<std::size_t>(option)], sizes);
    auto state = layer.make_state(3);
    Random random(infty::tests::seed);
    std::vector<double> all;
    for (const Index length : {5, 3, 1, 6}) {
      const Variable<U, C> x(infty::tests::uniform_tensor<U, C>({3, length, 6}, random), true);
      infty::Tape tape;
      const auto added = layer.forward(state, x, true);
      const Index past = added.dim(1) - length;
      const auto read = narrow(added, past, past + length);
      auto sum = infty::sum(read * read);
      if (past > 0) sum = sum + infty::sum(narrow(added, 0, past));
      tape.backward(sum);
      for (const auto g : x.grad().to_vector()) all.push_back(static_cast<double>(g));
      if (length == 5) infty::reset_row(state, 1);
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
  const auto option = GENERATE(range(0, 5));
  auto model = small_model(pre_norm, all_options(4)[static_cast<std::size_t>(option)]);
  auto state = model.make_state(2);
  Random random(infty::tests::seed);
  model.observe(state, drawn_tokens(2, 3, random));
  infty::reset_row(state, 0);
  model.observe(state, drawn_tokens(2, 2, random));
  const auto input = drawn_tokens(2, 3, random), target = drawn_tokens(2, 3, random);
  const auto loss = [&] {
    auto branch = state;
    const auto first = model.forward(branch, input);
    return infty::mean(model.losses(first, target));
  };
  CAPTURE(pre_norm, option);
  CHECK(infty::gradient_check(loss, infty::parameters<double>(model)) < 1e-7);
}

TEST_CASE("LaMemo: with and without a tape, and observed, the memory moves on alike") {
  const auto model = small_model(false, {.capacity = 5});
  auto taped = model.make_state(2), untaped = taped, observed = taped;
  Random random(infty::tests::seed);
  for (const Index length : {4, 1, 7, 3}) {
    const auto x = drawn_tokens(2, length, random);
    std::vector<double> with_tape;
    {
      infty::Tape tape;
      with_tape = model.forward(taped, x).value().to_vector();
    }
    CHECK(model.forward(untaped, x).value().to_vector() == with_tape);
    model.observe(observed, x);
    CHECK(infty::tests::numbers_of(taped) == infty::tests::numbers_of(untaped));
    // Rows are observed one by one, in products of other sizes.
    CHECK(infty::tests::error(infty::tests::numbers_of(observed),
                              infty::tests::numbers_of(untaped)) < 1e-13);
  }
  // Inputs are held in front of the first layer alone.
  CHECK(taped.body.input.vectors.shape() == Shape{2, 5, 4});
  CHECK(taped.body.inner.layers.size() == 2);
}

TEST_CASE("LaMemo: where nobody wants the past\'s answers, the segment\'s are the same") {
  constexpr AttentionSizes sizes{.model_dim = 6, .heads = 2, .head_dim = 4};
  const FirstLayer<double> layer({.capacity = 4}, sizes);
  auto state = layer.make_state(2);
  Random random(infty::tests::seed);
  layer.forward(state, infty::tests::uniform_variable<double>({2, 3, 6}, random), true);
  const auto x = infty::tests::uniform_variable<double>({2, 5, 6}, random);  // behind a past of 3
  const auto run = [&](bool answer, bool answer_before) {
    auto memory = state.memory;
    infty::Pass<double> pass{.answer = answer, .before = 3, .answer_before = answer_before};
    const auto y = layer.memory.forward(memory, x, layer.around.norm(true), pass);
    return std::pair(y, infty::tests::numbers_of(memory));
  };
  const auto [all, after] = run(true, true);
  const auto [segment, after_segment] = run(true, false);
  const auto [nothing, after_nothing] = run(false, true);
  CHECK(all.shape() == Shape{2, 5, 6});
  CHECK(segment.shape() == Shape{2, 2, 6});
  CHECK(infty::tests::error(segment.value().to_vector(), narrow(all, 3, 5).value().to_vector()) <
        1e-14);
  CHECK(nothing.size() == 0);
  CHECK(after_segment == after);
  CHECK(after_nothing == after);
}

TEST_CASE("LaMemo: counts its products") {
  // Queries and output of 2 rows of 2 + 3 vectors, keys and values of as many, 5 positions, d = 6,
  // H D = 8; then three products over 3 + 4 + 5 pairs to the left a row, and 2 + 1 to the right.
  const double maps = 2.0 * (2 * 5 * 16 * 6 + 2 * 5 * 16 * 6 + 5 * 8 * 6);
  const double pairs = 3 * 2.0 * 2 * 8 * (3 + 4 + 5 + 3);
  CHECK(LaMemo<float>({.capacity = 2}, {.model_dim = 6, .heads = 2, .head_dim = 4}, Random(0))
            .flops(2, 3) == maps + pairs);
  // Without look-ahead: neither the queries of the past nor what they would read. Distances to the
  // right of their own: those of two vectors.
  const auto of = [](const LaMemoConfig& config) {
    return LaMemo<float>(config, {.model_dim = 6, .heads = 2, .head_dim = 4}, Random(0))
        .flops(2, 3);
  };
  const double past = 2.0 * 2 * 8 * 6;
  CHECK(of({.capacity = 2, .look_ahead = false}) == maps + pairs - 2 * past - 3 * 2.0 * 2 * 8 * 3);
  CHECK(of({.capacity = 2, .interpolation = false}) == maps + pairs);
  CHECK(of({.capacity = 2, .positions = LaMemoPositions::transformer_xl}) == maps + pairs + past);
}

TEST_CASE("LaMemo: what does not fit is refused, and the state is as it was") {
  constexpr AttentionSizes sizes{.model_dim = 4, .heads = 2, .head_dim = 2};
  CHECK_THROWS_WITH(LaMemo<float>({.capacity = -1}, sizes, Random(0)),
                    "[LaMemoConfig] capacity is -1: it must be >= 0");
  CHECK_THROWS_AS(LaMemo<float>({}, {.model_dim = 4, .heads = 0, .head_dim = 2}, Random(0)),
                  infty::ValueError);
  CHECK_THROWS_WITH(LaMemo<float>({.capacity = Index{1} << 62}, sizes, Random(0)),
                    Catch::Contains("[LaMemoConfig] capacity is 4611686018427387904"));
  CHECK_THROWS_WITH(
      LaMemo<float>({.look_ahead = false, .interpolation = false}, sizes, Random(0)),
      "[LaMemoConfig] look_ahead and interpolation are false: one must be true, or the past reads "
      "nothing");
  const LaMemo<double> memory({.capacity = 3}, sizes, Random(0));
  CHECK_THROWS_WITH(memory.make_state(0), "[LaMemo::make_state] batch is 0: it must be >= 1");
  const auto x = [](Index batch, Index length, Index d) {
    return Variable<double>(Tensor<double>::full({batch, length, d}, 1));
  };
  const auto forward = [&](auto& state, const Variable<double>& segment, Index before,
                           Index behind = 0, bool answer = true) {
    infty::Pass<double> pass{.answer = answer, .before = before, .behind = behind};
    memory.forward(state, segment, {}, pass);
  };
  const auto two = x(2, 2, 4), four = x(2, 4, 4);
  auto state = memory.make_state(2);
  forward(state, two, 0, 0, false);
  const auto before = infty::tests::numbers_of(state);
  const auto one = x(1, 4, 4), narrow = x(2, 4, 3), empty = x(2, 2, 4), flat = x(1, 8, 4);
  for (const auto* wrong : {&one, &narrow, &empty, &flat})
    for (const bool answer : {true, false})
      CHECK_THROWS_AS(forward(state, *wrong, 2, 0, answer), infty::ShapeError);
  CHECK_THROWS_WITH(
      forward(state, four, 1),
      "[LaMemo::forward] of 4 vectors 1 are the past and 0 are memory tokens behind: the state "
      "holds 2 vectors, which must stand in front of at least one (RenewedPast does that)");
  CHECK_THROWS_WITH(forward(state, four, 2, 1), Catch::Contains("1 are memory tokens behind"));
  CHECK_THROWS_WITH(forward(state, four, 3, 2),
                    "[LaMemo::forward] of 4 vectors, 3 and 2 are said to be memory tokens");
  auto other = LaMemo<double>({.capacity = 4}, sizes, Random(0)).make_state(2);
  CHECK_THROWS_WITH(forward(other, two, 0), Catch::Contains("another memory made it"));
  for (const LaMemoConfig& config : ablations(3)) {
    if (config.positions == LaMemoPositions::transformer_xl && config.interpolation) continue;
    auto ablated = LaMemo<double>(config, sizes, Random(0)).make_state(2);
    CHECK_THROWS_WITH(forward(ablated, two, 0), Catch::Contains("another memory made it"));
  }
  auto none = infty::take_rows(state, 0, 0);
  CHECK_THROWS_AS(forward(none, Variable<double>(Tensor<double>::zeros({0, 2, 4})), 0),
                  infty::ShapeError);
  auto broken = state;
  broken.unseen[0] = 3;
  CHECK_THROWS_WITH(forward(broken, four, 2),
                    "[LaMemo::forward] row 0 holds 2 vectors, 3 of them unseen: they must be <= 3 "
                    "and <= the former, and >= 1 unless there are none");
  broken = state;
  broken.unseen.pop_back();
  CHECK_THROWS_WITH(forward(broken, four, 2, 0, false), Catch::Contains("of 2 and 1 rows"));
  CHECK(infty::tests::numbers_of(state) == before);
}
