// SPDX-License-Identifier: MIT
#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include <infty/train/adam.hpp>
#include <infty/train/checkpoint.hpp>

#include "io/temporary_folder.hpp"
#include "support/catch.hpp"
#include "support/tensors.hpp"
#include "support/threads.hpp"
#include "support/types.hpp"

using infty::Adam;
using infty::AdamConfig;
using infty::Index;
using infty::Shape;
using infty::Tensor;
using infty::Variable;
using infty::tests::error;
using infty::tests::tolerance;

static_assert(!std::is_copy_constructible_v<Adam<float>>);
static_assert(std::is_move_constructible_v<Adam<float>>);

namespace {

template <class T, class B = infty::EigenBackend>
struct Pair {
  Variable<T, B> a{Tensor<T, B>::from({4}, {T(1), T(-2), T(0.5), T(3)}), true};
  Variable<T, B> b{Tensor<T, B>::from({1}, {T(4)}), true};

  template <class Visitor>
  void visit(Visitor&& see) {
    see("a", a);
    see("b", b);
  }
};

// Long enough to be cut among threads.
struct Long {
  Variable<float> w{Tensor<float>::zeros({50'000}), true};

  template <class Visitor>
  void visit(Visitor&& see) {
    see("w", w);
  }
};

// The gradients of step t = 1, 2, ...; none reaches b in the first three.
template <class T, class B>
void set_gradients(Pair<T, B>& model, int t) {
  model.a.zero_grad();
  model.b.zero_grad();
  model.a.grad().copy_from(
      Tensor<T, B>::from({4}, {T(0.1 * t), T(-1), static_cast<T>(10.0 / t), T(0)}));
  if (t > 3) model.b.grad().fill(T(0.5));
}

template <class T, class B>
void step(Pair<T, B>& model, Adam<T, B>& adam, int t) {
  set_gradients(model, t);
  adam.step(0.1 / t);
}

struct Reference {
  AdamConfig config;
  std::vector<double> a, b;
};

// Five steps with rate 0.1 / t, by torch.optim.Adam and AdamW of PyTorch 2.15 in float64.
std::vector<Reference> references() {
  return {{{}, {0.7764525351691347, -1.7716666689500005, 0.2882570851143673, 3.0}, {3.9550000009}},
          {{.beta1 = 0.5, .beta2 = 0.9, .epsilon = 1e-3},
           {0.7610168424300597, -1.771894771894772, 0.30600442335037153, 3.0},
           {3.9550898203592815}},
          {{.weight_decay = 0.1},
           {0.7556520491959311, -1.7282415172546548, 0.2787473057133529, 2.9320603787475},
           {3.9370700008990003}}};
}

}  // namespace

TEMPLATE_LIST_TEST_CASE("Adam: the numbers of PyTorch", "", infty::tests::Types) {
  using T = typename TestType::T;
  using B = typename TestType::B;
  for (const Reference& reference : references()) {
    Pair<T, B> model;
    Adam<T, B> adam(model, reference.config);
    for (int t = 1; t <= 5; ++t) step(model, adam, t);
    CHECK(adam.steps() == 5);
    CHECK(error(model.a.value().to_vector(), reference.a) < tolerance<T>);
    CHECK(error(model.b.value().to_vector(), reference.b) < tolerance<T>);
  }
}

TEST_CASE("Adam: epsilon before the bias correction, by hand") {
  Pair<double> model;
  Adam<double> adam(model, {.learning_rate = 0.25, .epsilon = 0.5, .epsilon_first = true});
  const auto start = model.a.value().to_vector();
  set_gradients(model, 1);
  const auto g = model.a.grad().to_vector();
  adam.step();
  for (std::size_t i = 0; i < g.size(); ++i) {
    // p -= rate sqrt(1 - β2) / (1 - β1) m / (sqrt(v) + ε), m = (1 - β1) g, v = (1 - β2) g²
    const double root = std::sqrt(.001), step = .25 * root * g[i] / (root * std::abs(g[i]) + .5);
    CHECK(model.a.value().to_vector()[i] == Approx(start[i] - step).epsilon(1e-14));
  }
}

TEST_CASE("Adam: the first step is the rate, against the sign of the gradient") {
  Pair<double> model;
  Adam<double> adam(model, {.learning_rate = 0.25, .epsilon = 0});
  set_gradients(model, 1);
  adam.step();
  // A gradient of 0 moves nothing, even where epsilon does not keep the quotient from 0 / 0.
  CHECK(error(model.a.value().to_vector(), std::vector{0.75, -1.75, 0.25, 3.0}) < 1e-14);
}

TEST_CASE("Adam: a parameter without a gradient stays, weight decay or not") {
  Pair<float> model;
  Adam<float> adam(model, {.weight_decay = 0.5});
  for (int t = 1; t <= 3; ++t) step(model, adam, t);
  CHECK(model.b.value().item() == 4);
}

TEMPLATE_LIST_TEST_CASE("Adam: finds the bottom of a quadratic", "", infty::tests::Types) {
  using T = typename TestType::T;
  using B = typename TestType::B;
  Pair<T, B> model;
  Adam<T, B> adam(model);
  // The gradient of |curvature (x - 1)|² / 2, whose axes differ by a factor of 100.
  const std::vector<T> curvature{T(0.1), T(1), T(3), T(10)};
  for (int t = 0; t < 3000; ++t) {
    adam.zero_grad();
    const auto x = model.a.value().to_vector();
    std::vector<T> gradient(4);
    for (std::size_t i = 0; i < 4; ++i) gradient[i] = curvature[i] * (x[i] - T(1));
    model.a.grad().copy_from(Tensor<T, B>::from({4}, gradient));
    adam.step(0.05 * (1 - t / 3000.0));
  }
  CHECK(error(model.a.value().to_vector(), std::vector<T>(4, T(1))) < 1e-4);
}

TEST_CASE("Adam: state saved by name and restored continues as if nothing had happened") {
  Pair<double> model;
  Adam<double> adam(model);
  for (int t = 1; t <= 3; ++t) step(model, adam, t);

  std::map<std::string, std::vector<double>> tensors;
  std::map<std::string, Index> counts;
  adam.visit([&](const std::string& name, auto& value) {
    if constexpr (std::is_same_v<decltype(value), Index&>)
      counts[name] = value;
    else
      tensors[name] = value.to_vector();
  });
  CHECK(counts == std::map<std::string, Index>{{"steps", 3}, {"steps.a", 3}, {"steps.b", 0}});
  CHECK(tensors.size() == 4);

  Pair<double> restored;
  restored.a.value().copy_from(model.a.value());
  restored.b.value().copy_from(model.b.value());
  Adam<double> other(restored);
  other.visit([&](const std::string& name, auto& value) {
    if constexpr (std::is_same_v<decltype(value), Index&>)
      value = counts.at(name);
    else
      value.copy_from(Tensor<double>::from(value.shape(), tensors.at(name)));
  });
  for (int t = 4; t <= 6; ++t) {
    step(model, adam, t);
    step(restored, other, t);
  }
  CHECK(restored.a.value().to_vector() == model.a.value().to_vector());
  CHECK(restored.b.value().to_vector() == model.b.value().to_vector());
  CHECK(other.steps() == 6);
}

TEST_CASE("Adam: tied weights are stepped once") {
  Pair<double> model;
  model.b = model.a;
  Adam<double> adam(model, {.learning_rate = 0.25, .epsilon = 0});
  CHECK(adam.parameters().size() == 1);
  model.a.grad().fill(1);
  adam.step();
  CHECK(error(model.a.value().to_vector(), std::vector{0.75, -2.25, 0.25, 2.75}) < 1e-14);
}

TEST_CASE("Adam: keeps gradients that have arrived, zero_grad forgets them") {
  Pair<float> model;
  model.a.grad().fill(2);
  Adam<float> adam(model);
  CHECK(model.a.has_grad());
  CHECK_FALSE(model.b.has_grad());
  CHECK(model.a.grad().to_vector() == std::vector<float>(4, 2));
  adam.zero_grad();
  CHECK_FALSE(model.a.has_grad());
}

TEST_CASE("Adam: the same bits with one thread and with two") {
  const auto run = [] {
    Long model;
    Adam<float> adam(model);
    infty::Random random(infty::tests::seed);
    for (int t = 0; t < 3; ++t) {
      infty::fill_uniform(model.w.grad(), -1, 1, random);
      adam.step();
    }
    return model.w.value().to_vector();
  };
  CHECK(infty::tests::with_threads(1, run) == infty::tests::with_threads(2, run));
}

// Numbers that processors are slow with: a table's row that no token names, or a unit that is dead,
// would have them for ever.
TEMPLATE_LIST_TEST_CASE("Adam: no gradient leaves a moment below the least normal number", "",
                        infty::tests::Types) {
  using T = typename TestType::T;
  using B = typename TestType::B;
  constexpr T least = std::numeric_limits<T>::min();
  const auto is_normal = [](T x) { return x == T(0) || !(std::abs(x) < least); };
  std::vector<T> sizes;  // from a denormal one on, by factors of 8, to some 1e18
  for (T x = least / 64; x < T(1e18); x *= 8) sizes.push_back(sizes.size() % 2 == 0 ? x : -x);
  const auto n = static_cast<Index>(sizes.size());
  const Shape shape{n};
  const std::vector<T> zeros(sizes.size());
  const auto grad = Tensor<T, B>::from(shape, sizes), none = Tensor<T, B>::zeros(shape);
  auto p = Tensor<T, B>::full(shape, T(1)), m = Tensor<T, B>::zeros(shape),
       v = Tensor<T, B>::zeros(shape);
  const infty::AdamFactors<T> factors{T(0.9), T(0.1), T(0.9), T(0.1), T(1), least};
  const auto step = [&](const Tensor<T, B>& g) {
    const infty::AdamItem<T> item{p.data(), g.data(), m.data(), v.data(), n, T(0.01), T(1)};
    infty::detail::chosen_t<infty::ComposedAdam<B>>::step(factors, &item, 1);
  };
  const auto all_normal = [&](const Tensor<T, B>& x) {
    const auto numbers = x.to_vector();
    return std::all_of(numbers.begin(), numbers.end(), is_normal);
  };
  for (int t = 0; t < 3; ++t) step(grad);
  CHECK(all_normal(m));
  CHECK(all_normal(v));
  // A gradient whose square is a number moves its parameter by some of the rate, and none by more.
  const auto moved = p.to_vector();
  for (std::size_t i = 0; i < sizes.size(); ++i) {
    CAPTURE(sizes[i]);
    if (std::abs(sizes[i]) > std::sqrt(least) * 64) CHECK(std::abs(moved[i] - T(1)) > T(0.005));
    CHECK(std::abs(moved[i] - T(1)) < T(0.05));
  }
  const int steps = sizeof(T) == 4 ? 2'000 : 8'000;  // behind which the largest would be below it
  for (int t = 0; t < steps; ++t) {
    step(none);
    if (t % 32 > 0) continue;
    CHECK(all_normal(m));
    CHECK(all_normal(v));
  }
  CHECK(m.to_vector() == zeros);
  CHECK(v.to_vector() == zeros);

  // What is no number is not taken for a small one.
  const T nan = std::numeric_limits<T>::quiet_NaN(), inf = std::numeric_limits<T>::infinity();
  step(Tensor<T, B>::from(shape, std::vector<T>(sizes.size(), nan)));
  for (const T x : m.to_vector()) REQUIRE(std::isnan(x));
  for (const T x : v.to_vector()) REQUIRE(std::isnan(x));
  v.fill(0);
  m.fill(0);
  step(Tensor<T, B>::from(shape, std::vector<T>(sizes.size(), -inf)));
  for (const T x : m.to_vector()) REQUIRE(x == -inf);
  for (const T x : v.to_vector()) REQUIRE(x == inf);
}

TEST_CASE("AdamConfig: constants out of range are refused by name") {
  Pair<float> model;
  const double nan = std::numeric_limits<double>::quiet_NaN();
  const auto make = [&](AdamConfig config) { const Adam<float> adam(model, config); };
  CHECK_THROWS_WITH(make({.beta1 = 1}), "[AdamConfig] beta1 is 1: it must lie in [0, 1)");
  CHECK_THROWS_AS(make({.beta2 = -0.1}), infty::ValueError);
  CHECK_THROWS_AS(make({.beta2 = nan}), infty::ValueError);
  CHECK_THROWS_WITH(make({.epsilon = -1}), "[AdamConfig] epsilon is -1: it must lie in [0, 1e+30]");
  CHECK_THROWS_AS(make({.learning_rate = nan}), infty::ValueError);
  CHECK_THROWS_AS(make({.weight_decay = -1}), infty::ValueError);
}

TEST_CASE("Adam: a bad rate or a bad restored count changes nothing") {
  Pair<double> model;
  Adam<double> adam(model);
  set_gradients(model, 1);
  const auto before = model.a.value().to_vector();
  CHECK_THROWS_WITH(adam.step(-1), "[Adam::step] learning_rate is -1: it must lie in [0, 1e+30]");
  CHECK_THROWS_AS(adam.step(std::numeric_limits<double>::infinity()), infty::ValueError);
  adam.visit([](const std::string& name, auto& value) {
    if constexpr (std::is_same_v<decltype(value), Index&>)
      if (name == "steps.b") value = -1;
  });
  CHECK_THROWS_WITH(adam.step(),
                    "[Adam::step] the count of steps of b is -1: it must be at least 0");
  CHECK(model.a.value().to_vector() == before);
  CHECK(adam.steps() == 0);
}

TEST_CASE("Adam: memory that may not be written is refused before anything has stepped") {
  Pair<double> model;
  const double fixed[] = {1, 2};
  model.b = Variable<double>(Tensor<double>::wrap(fixed, Shape{2}), true);
  Adam<double> adam(model);
  set_gradients(model, 4);
  const auto before = model.a.value().to_vector();
  CHECK_THROWS_AS(adam.step(), infty::ValueError);
  CHECK(std::as_const(model.a.value()).to_vector() == before);
  adam.visit([](const std::string&, auto& value) {
    if constexpr (std::is_same_v<decltype(value), Index&>) CHECK(value == 0);
  });
}

TEST_CASE("Adam: a parameter that has got another shape is refused") {
  Pair<double> model;
  Adam<double> adam(model);
  set_gradients(model, 1);
  const auto before = model.a.value().to_vector();
  model.b.value() = infty::Tensor<double>::zeros({7});
  CHECK_FALSE(model.b.has_grad());  // what had arrived was of the old shape
  CHECK(model.b.grad().shape() == infty::Shape{7});
  CHECK_THROWS_AS(adam.step(), infty::ShapeError);
  CHECK(model.a.value().to_vector() == before);
  CHECK(adam.steps() == 0);
}

namespace {

/// A table that keeps its gradient by rows, [rows, 3], drawn from a seed.
template <class T, class B = infty::EigenBackend>
struct Table {
  Variable<T, B> table;

  explicit Table(Index rows = 5) {
    infty::Random random(infty::tests::seed);
    table = infty::tests::uniform_variable<T, B>({rows, 3}, random);
    table.set_grad_by_rows(true);
  }

  template <class Visitor>
  void visit(Visitor&& see) {
    see("table", table);
  }
};

double gradient_of(int t, Index row, Index column) {
  return std::sin(static_cast<double>(7 * t + 3 * row + column));
}

/// The gradients of some rows, rising, at step t.
template <class T, class B>
infty::RowGradient<T, B> rows_at(int t, const std::vector<Index>& rows, Index count = 5) {
  std::vector<T> values;
  for (const Index row : rows)
    for (Index column = 0; column < 3; ++column)
      values.push_back(static_cast<T>(gradient_of(t, row, column)));
  const auto n = static_cast<Index>(rows.size());
  return {Tensor<Index, B>::from({n}, rows), Tensor<T, B>::from({n, 3}, values), count};
}

const std::vector<std::vector<Index>>& rows_read() {
  static const std::vector<std::vector<Index>> all{{1, 4}, {1}, {}, {0, 1, 4}, {4}, {1, 2}};
  return all;
}

}  // namespace

TEMPLATE_LIST_TEST_CASE("Adam: by rows, a row is a parameter that counts its own steps", "",
                        infty::tests::Types) {
  using T = typename TestType::T;
  using B = typename TestType::B;
  const AdamConfig config{.beta1 = .8, .beta2 = .95, .weight_decay = .1};
  Table<T, B> model;
  std::vector<double> p(15), m(15), v(15);
  std::vector<int> count(5);
  const std::vector<T> start = model.table.value().to_vector();
  for (std::size_t i = 0; i < 15; ++i) p[i] = static_cast<double>(start[i]);
  Adam<T, B> adam(model, config);
  int t = 0;
  for (const auto& rows : rows_read()) {
    ++t;
    adam.zero_grad();
    model.table.add_row_grad(rows_at<T, B>(t, rows));
    CHECK(model.table.row_grad() != nullptr);
    const double rate = .1 / t;
    adam.step(rate);
    for (const Index row : rows) {
      const int own = ++count[static_cast<std::size_t>(row)];
      for (Index column = 0; column < 3; ++column) {
        const auto i = static_cast<std::size_t>(3 * row + column);
        const double g = gradient_of(t, row, column);
        m[i] = .8 * m[i] + .2 * g;
        v[i] = .95 * v[i] + .05 * g * g;
        p[i] = (1 - .1 * rate) * p[i] -
               rate * (m[i] / (1 - std::pow(.8, own))) /
                   (std::sqrt(v[i] / (1 - std::pow(.95, own))) + config.epsilon);
      }
    }
  }
  CHECK(error(model.table.value().to_vector(), p) < tolerance<T>);
  // A row that nobody read is as it was, weight decay or not.
  CHECK(model.table.value().slice(3, 4).to_vector() ==
        std::vector<T>(start.begin() + 9, start.begin() + 12));
  std::vector<T> counted;
  adam.visit([&](const std::string& name, auto& member) {
    if constexpr (std::is_same_v<decltype(member), Tensor<T, B>&>)
      if (name == "row_steps.table") counted = member.to_vector();
  });
  CHECK(counted == std::vector<T>{1, 4, 1, 0, 3});
}

TEST_CASE("Adam: by rows, a gradient of the whole table steps every row") {
  Table<double> model, same;
  Adam<double> adam(model), other(same);
  for (int t = 1; t <= 2; ++t) {
    adam.zero_grad();
    other.zero_grad();
    const std::vector<Index> all{0, 1, 2, 3, 4};
    model.table.add_row_grad(rows_at<double, infty::EigenBackend>(t, all));
    model.table.grad();  // by rows no more
    CHECK(model.table.row_grad() == nullptr);
    same.table.add_row_grad(rows_at<double, infty::EigenBackend>(t, all));
    adam.step();
    other.step();
  }
  CHECK(error(model.table.value().to_vector(), same.table.value().to_vector()) < 1e-15);
}

TEST_CASE("Adam: by rows, a step takes as much memory of a large table as of a small one") {
  const auto bytes = [](Index count) {
    Table<float> model(count);
    Adam<float> adam(model);
    std::size_t most = 0;
    for (int t = 1; t <= 2; ++t) {
      adam.zero_grad();
      infty::HostPool::instance().reset_peak();
      const std::size_t before = infty::HostPool::instance().statistics().bytes_in_use;
      model.table.add_row_grad(rows_at<float, infty::EigenBackend>(t, {0, 2, 3}, count));
      adam.step();
      most = infty::HostPool::instance().statistics().peak_bytes_in_use - before;
    }
    return most;
  };
  const std::size_t small = bytes(5);
  CHECK(small > 0);
  CHECK(bytes(500'000) == small);
}

TEST_CASE("Adam: frozen parameters have no moments and stay, decay or not") {
  Pair<double> model;
  model.a.grad().fill(3);  // of an earlier training
  infty::set_requires_grad(model, false, "a");
  const auto before = model.a.value().to_vector();
  Adam<double> adam(model, {.weight_decay = .5});
  CHECK(adam.parameters().size() == 2);
  model.b.grad().fill(1);
  adam.step();
  CHECK(model.b.value().item() != 4);
  CHECK(model.a.value().to_vector() == before);
  CHECK_FALSE(model.a.has_grad());
  std::vector<std::string> members;
  adam.visit([&](const std::string& name, auto&) { members.push_back(name); });
  CHECK(members == std::vector<std::string>{"steps", "first.b", "second.b", "steps.b"});
  // What is trained again needs an optimiser that knows of it.
  infty::set_requires_grad(model, true, "a");
  model.a.grad().fill(1);
  CHECK_THROWS_WITH(adam.step(),
                    "[Adam::step] a has a gradient, and took none when the optimiser "
                    "was made: make it anew");
  CHECK(adam.steps() == 1);
}

TEST_CASE("Adam: what is shared out is refused by every rank, whichever has the moments") {
  const int rank = GENERATE(0, 1);
  Pair<double> model;
  const double fixed[] = {1, 2};
  std::string why;
  SECTION("trained again") {
    infty::set_requires_grad(model, false, "b");
    why = "b has a gradient, and took none when the optimiser was made";
  }
  SECTION("of another shape") { why = "b is [1, 1], its moments are [1]"; }
  SECTION("read-only") {
    model.b = Variable<double>(Tensor<double>::wrap(fixed, Shape{2}), true);
    why = "must not be written";
  }
  Adam<double> adam(model);
  infty::set_requires_grad(model, true);
  adam.share_out(rank, 2);
  REQUIRE(adam.owners() == std::vector{0, 1});
  if (why.starts_with("b is")) model.b.value() = model.b.value().reshape({1, 1});
  set_gradients(model, 4);
  const auto before = model.a.value().to_vector();
  CHECK_THROWS_WITH(adam.step(), Catch::Matchers::Contains(why));
  CHECK(model.a.value().to_vector() == before);
  CHECK(adam.steps() == 0);
}

TEST_CASE("Adam: a checkpoint from before parameters were frozen is gone on from") {
  Pair<double> model;
  Adam<double> all(model);
  for (int t = 1; t <= 4; ++t) step(model, all, t);
  const infty::tests::TemporaryFolder folder;
  const auto save = [&](const Adam<double>& adam) {
    infty::SafetensorsWriter writer;
    infty::save_optimizer(writer, adam, "adam.");
    writer.save(folder / "adam");
  };
  save(all);
  Pair<double> frozen;
  infty::set_requires_grad(frozen, false, "a");
  Adam<double> some(frozen);
  infty::CheckpointLoader(folder / "adam").optimizer(some, "adam.").apply();
  CHECK(some.steps() == 4);
  save(some);
  Adam<double> again(frozen);
  infty::CheckpointLoader(folder / "adam").optimizer(again, "adam.").apply();
  CHECK_THROWS_AS(infty::CheckpointLoader(folder / "adam").optimizer(all, "adam."), infty::IoError);
}

TEST_CASE("Adam: of a fixed rate and a multiple of the step's the one counts that was said last") {
  for (const bool fixed_last : {false, true}) {
    Pair<double> model;
    Adam<double> adam(model, {.epsilon = 0});
    if (fixed_last) adam.scale_rate("b", 8);
    adam.fix_rate("b", 1);
    if (!fixed_last) adam.scale_rate("b", 8);
    CHECK(adam.has_own_rate(1) == fixed_last);
    set_gradients(model, 4);  // of both
    adam.step(.25);
    CHECK(model.b.value().item() == (fixed_last ? 3 : 2));
  }
}

TEST_CASE("Adam: a rate of their own for the parameters of a name") {
  Pair<double> model;
  Adam<double> adam(model, {.epsilon = 0});
  CHECK(adam.fix_rate("b", .5) == 1);
  set_gradients(model, 4);  // of both
  adam.step(.25);
  CHECK(error(model.a.value().to_vector(), std::vector{.75, -1.75, .25, 3.}) < 1e-14);
  CHECK(model.b.value().item() == 3.5);
  CHECK_THROWS_WITH(adam.fix_rate("c", .5), "[Adam::fix_rate] no parameter has 'c' in its name");
  CHECK_THROWS_WITH(adam.fix_rate("b", -1),
                    "[Adam::fix_rate] learning_rate is -1: it must lie in [0, 1e+30]");

  Pair<double> followed;
  Adam<double> follower(followed, {.epsilon = 0});
  CHECK(follower.scale_rate("b", 2) == 1);
  CHECK(!follower.has_own_rate(1));
  set_gradients(followed, 4);
  follower.step(.25);
  CHECK(followed.a.value().to_vector() == model.a.value().to_vector());
  CHECK(followed.b.value().item() == 3.5);
  CHECK_THROWS_WITH(follower.scale_rate("c", 2),
                    "[Adam::scale_rate] no parameter has 'c' in its name");
  CHECK_THROWS_WITH(follower.scale_rate("b", -1),
                    "[Adam::scale_rate] times is -1: it must lie in [0, 1e+30]");

  follower.scale_rate("b", 1e30);  // which is within the range, and what it makes of a rate is not
  set_gradients(followed, 4);
  const auto before = followed.b.value().item();
  CHECK_THROWS_WITH(follower.step(10),
                    "[Adam::step] the rate of b is 1e+31: it must lie in [0, 1e30]");
  CHECK(followed.a.value().to_vector() == model.a.value().to_vector());
  CHECK(followed.b.value().item() == before);

  Table<double> table, plain;
  Adam<double> own(table), whole(plain);
  own.fix_rate("table", .01);
  for (auto* const one : {&table, &plain})
    one->table.add_row_grad(rows_at<double, infty::EigenBackend>(1, {1, 3}));
  own.step(.5);
  whole.step(.01);
  CHECK(table.table.value().to_vector() == plain.table.value().to_vector());
}
