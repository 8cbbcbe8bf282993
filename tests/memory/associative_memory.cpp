// SPDX-License-Identifier: MIT
#include <algorithm>
#include <cmath>
#include <limits>
#include <string>
#include <utility>
#include <vector>

#include <infty/autograd/reduce.hpp>
#include <infty/memory/associative_memory.hpp>
#include <infty/memory/to.hpp>
#include <infty/testing/gradient_check.hpp>
#include <infty/testing/invariants.hpp>
#include <infty/train/checkpoint.hpp>

#include "io/temporary_folder.hpp"
#include "support/catch.hpp"
#include "support/other_backend.hpp"
#include "support/states.hpp"
#include "support/tensors.hpp"
#include "support/types.hpp"

using infty::AssociativeConfig;
using infty::AssociativeMemory;
using infty::Index;
using infty::Random;
using infty::Shape;
using infty::Tensor;
using infty::Variable;
using infty::tests::numbers_of;

namespace associative_tests {

/// The paper's form, and all options of the later models.
std::vector<AssociativeConfig> all_forms() {
  return {{.key_dim = 2, .nu = 2},
          {.key_dim = 4, .nu = 3, .correction = false},
          {.heads = 2, .key_dim = 6, .unit_features = true},
          {.heads = 3, .key_dim = 6, .nu = 1, .unit_features = true, .gating = true},
          {.heads = 2, .key_dim = 4, .unit_features = true, .denominator = false},
          {.heads = 2, .key_dim = 4, .bounded = false}};
}

/// A memory of vectors of 6, whose values are no zeros.
template <class T, class B = infty::EigenBackend>
AssociativeMemory<T, B> memory(const AssociativeConfig& config) {
  AssociativeMemory<T, B> out(config, 6, Random(1));
  Random random(2);
  for_each_parameter(out, [&](const std::string&, auto& parameter) {
    fill_uniform(parameter.value(), -1, 1, random);
  });
  return out;
}

using Matrix = std::vector<std::vector<double>>;

/// What a vector's write is weighed by and no gradient flows through.
struct Constants {
  double gamma, share;
};

/// One row of a memory by its definition, in plain loops.
template <class T, class B>
struct ByHand {
  AssociativeConfig config;
  Matrix query, key, value, strength;
  std::vector<double> bias;
  Matrix a, z;  // of each head
  bool written = false;
  std::vector<Constants> held, seen;  // those to take, if any, and those that were taken

  explicit ByHand(const AssociativeMemory<T, B>& of)
      : config(of.config()),
        query(rows(of.query.weight)),
        key(rows(of.key.weight)),
        value(rows(of.value.weight)),
        strength(rows(of.strength.weight)) {
    for (const T x : of.strength.bias.value().to_vector()) bias.push_back(static_cast<double>(x));
    const auto heads = static_cast<std::size_t>(config.heads),
               f = static_cast<std::size_t>(config.features());
    a.assign(heads, std::vector<double>(f * (value.size() / heads)));
    z.assign(heads, std::vector<double>(f));
  }

  static Matrix rows(const Variable<T, B>& weight) {
    const auto all = weight.value().to_vector();
    Matrix out(static_cast<std::size_t>(weight.dim(0)));
    for (std::size_t i = 0; i < all.size(); ++i)
      out[i / static_cast<std::size_t>(weight.dim(1))].push_back(static_cast<double>(all[i]));
    return out;
  }
  static std::vector<double> times(const Matrix& m, const std::vector<double>& x) {
    std::vector<double> y;
    for (const auto& row : m) {
      double sum = 0;
      for (std::size_t i = 0; i < x.size(); ++i) sum += row[i] * x[i];
      y.push_back(sum);
    }
    return y;
  }
  std::vector<double> phi(const std::vector<double>& k, std::size_t head) const {
    const std::size_t d = k.size() / z.size();
    std::vector<double> r, out;
    for (const double sign : {1., -1.})
      for (std::size_t i = 0; i < d; ++i) r.push_back(std::max(sign * k[head * d + i], 0.));
    for (std::size_t j = 1; j <= static_cast<std::size_t>(config.nu); ++j)
      for (std::size_t i = 0; i < 2 * d; ++i)
        out.push_back(r[i] * r[(i + 2 * d * j - j) % (2 * d)]);
    double size = 0;
    for (const double x : out) size += x * x;
    if (config.unit_features)
      for (double& x : out) x /= std::max(std::sqrt(size), config.feature_floor);
    return out;
  }
  double mass(const std::vector<double>& f, std::size_t head) const {
    double sum = config.epsilon;
    for (std::size_t i = 0; i < f.size(); ++i) sum += f[i] * z[head][i];
    return sum;
  }
  double recall(const std::vector<double>& f, std::size_t head, std::size_t j) const {
    const std::size_t width = value.size() / z.size();
    double sum = 0;
    for (std::size_t i = 0; i < f.size(); ++i) sum += f[i] * a[head][i * width + j];
    return config.denominator ? sum / mass(f, head) : sum;
  }
  std::vector<double> read(const std::vector<double>& x) const {
    std::vector<double> out;
    const std::size_t width = value.size() / z.size();
    const auto q = times(query, x);
    for (std::size_t head = 0; head < z.size(); ++head) {
      const auto f = phi(q, head);
      for (std::size_t j = 0; j < width; ++j) out.push_back(written ? recall(f, head, j) : 0);
    }
    return out;
  }
  /// What is beside β / w of features: the larger of what is known of them and their length.
  double divisor(const std::vector<double>& f, std::size_t head) const {
    double size = config.unit_features ? 0 : config.epsilon;
    for (const double y : f) size += y * y;
    return config.denominator ? std::max(mass(f, head), size) : 1;
  }
  /// 1 / max(1, c) of a vector in a head, by all others.
  double share(const std::vector<double>& x, const Matrix& all, std::size_t head) const {
    double sum = 0;
    const std::size_t gates = strength.size() / z.size();
    for (const auto& y : all) {
      const auto f = phi(times(key, x), head), g = phi(times(key, y), head);
      const auto b = times(strength, y);
      double beta = 0, product = 0;
      for (std::size_t j = head * gates; j < (head + 1) * gates; ++j)
        beta = std::max(beta, 1 / (1 + std::exp(-b[j] - bias[j])));
      for (std::size_t i = 0; i < f.size(); ++i) product += f[i] * g[i];
      sum += product * beta / divisor(g, head);
    }
    return written && config.bounded ? 1 / std::max(1., sum) : 1;
  }
  /// γ and the share of a vector, which no gradient flows through: those of `held`, in their order,
  /// or what they are.
  Constants constants(const std::vector<double>& f, const std::vector<double>& x, const Matrix& all,
                      std::size_t head) {
    if (seen.size() < held.size()) return seen.emplace_back(held[seen.size()]);
    double size = config.unit_features ? 0 : config.epsilon;
    for (const double y : f) size += y * y;
    const double gamma = written ? std::clamp(1 - mass(f, head) / size, 0., 1.) : 1;
    return seen.emplace_back(Constants{gamma, share(x, all, head)});
  }
  void write(const Matrix& all) {
    Matrix next_a = a, next_z = z;
    const std::size_t width = value.size() / z.size();
    for (const auto& x : all) {
      const auto k = times(key, x), v = times(value, x), b = times(strength, x);
      for (std::size_t head = 0; head < z.size(); ++head) {
        const auto f = phi(k, head);
        const auto [gamma, own] = constants(f, x, all, head);
        // What is taken off is what the memory holds of the key.
        const double off = !written ? 0 : config.bounded && config.denominator ? 1 - gamma : 1;
        for (std::size_t i = 0; i < f.size(); ++i) {
          next_z[head][i] += own * (config.correction ? gamma : 1) * f[i];
          for (std::size_t j = 0; j < width; ++j) {
            const std::size_t gate = config.gating ? head * width + j : head;
            const double beta = own / (1 + std::exp(-b[gate] - bias[gate]));
            next_a[head][i * width + j] +=
                beta * f[i] * (v[head * width + j] - off * recall(f, head, j));
          }
        }
      }
    }
    a = next_a;
    z = next_z;
    written = true;
  }
};

/// A memory as the kit wants one, of tensors.
struct OfTensors {
  AssociativeMemory<double> memory;

  auto make_state(Index batch) const { return memory.make_state(batch); }
  void write(infty::AssociativeState<double, infty::EigenBackend>& state,
             const Tensor<double>& x) const {
    memory.write(state, Variable<double>(x));
  }
  Variable<double> read(const infty::AssociativeState<double, infty::EigenBackend>& state,
                        const Tensor<double>& x) const {
    return memory.read(state, Variable<double>(x));
  }
};

}  // namespace associative_tests

TEMPLATE_LIST_TEST_CASE("AssociativeMemory: written and read as defined, in plain loops", "",
                        infty::tests::Types) {
  using T = typename TestType::T;
  using B = typename TestType::B;
  for (const AssociativeConfig& config : associative_tests::all_forms()) {
    CAPTURE(config.heads, config.key_dim, config.correction, config.gating);
    const auto memory = associative_tests::memory<T, B>(config);
    associative_tests::ByHand<T, B> first(memory), second(memory);
    auto state = memory.make_state(2);
    Random random(infty::tests::seed);
    for (const Index length : {2, 3, 1}) {
      const auto x = infty::tests::uniform_tensor<T>({2, length, 6}, random);
      const Variable<T, B> on(x.template to<B>());
      const auto row = [&](Index r) {
        associative_tests::Matrix out;
        for (Index i = 0; i < length; ++i) {
          const T* const from = x.data() + (r * length + i) * 6;
          out.emplace_back(from, from + 6);
        }
        return out;
      };
      std::vector<double> expected;
      for (auto* const by_hand : {&first, &second})
        for (const auto& vector : row(by_hand == &second))
          for (const double y : by_hand->read(vector)) expected.push_back(y);
      const auto read = memory.read(state, on);
      CHECK(read.shape() == x.shape());
      // What is read is a quotient whose divisor may be small.
      CHECK(infty::tests::error(read.value().to_vector(), expected) <
            20 * infty::tests::tolerance<T>);
      memory.write(state, on);
      first.write(row(0));
      second.write(row(1));
      if (length == 2) {  // rows of different age: the second one has a first segment again
        reset_row(state, 1);
        second = associative_tests::ByHand<T, B>(memory);
      }
    }
    CHECK(state.written == infty::RowCounts{3, 2});
    CHECK(state.mass.size() == (config.denominator ? 2 * config.heads * config.features() : 0));
  }
}

TEST_CASE("AssociativeMemory: gradients of parameters, vectors and the state") {
  for (const AssociativeConfig& config : associative_tests::all_forms()) {
    CAPTURE(config.heads, config.key_dim, config.correction, config.gating);
    // Where nothing is held back by γ and by `contracting_share`, which have no gradient on
    // purpose.
    AssociativeConfig open = config;
    open.correction = open.bounded = false;
    open.epsilon = .5;  // no small divisors, for which central differences are too coarse
    auto memory = associative_tests::memory<double>(open);
    Random random(infty::tests::seed);
    const auto x = infty::tests::uniform_variable<double>({2, 3, 6}, random);
    auto start = memory.make_state(2);
    memory.write(start, infty::tests::uniform_variable<double>({2, 4, 6}, random).detach());
    start.memory = Variable<double>(start.memory.value(), true);
    start.mass = Variable<double>(start.mass.value(), true);
    const auto loss = [&] {
      auto state = start;
      memory.write(state, x);
      const auto y = memory.read(state, x);
      memory.write(state, y);
      return infty::sum(y * y) + infty::sum(state.memory * state.memory, .1) +
             infty::sum(state.mass, .1);
    };
    auto all = infty::named_parameters<double, infty::EigenBackend>(memory);
    all.push_back({"x", x});
    all.push_back({"memory", start.memory});
    if (open.denominator) all.push_back({"mass", start.mass});
    const auto worst = infty::gradient_check(loss, all, 1e-6);
    CAPTURE(worst.where);
    CHECK(worst.largest < 1e-6);
  }
}

namespace associative_tests {

/// What segments read of a row, and what is left of it, by plain loops.
struct RowRun {
  std::vector<double> read;
  double loss = 0;
  std::vector<Constants> seen;
};

/// Reads and writes the segments of one row, from a state.
/// @param held  γ and shares to take; none for those that there are
RowRun run_row(const AssociativeMemory<double>& memory,
               const infty::AssociativeState<double, infty::EigenBackend>& start,
               const std::vector<Variable<double>>& segments, Index row,
               const std::vector<Constants>& held) {
  ByHand by_hand(memory);
  by_hand.held = held;
  by_hand.written = start.written[static_cast<std::size_t>(row)] > 0;
  const auto take = [&](const Variable<double>& from, Matrix& to) {
    if (from.size() == 0) return;
    const double* at = from.value().data() + row * (from.size() / from.dim(0));
    for (auto& head : to)
      for (double& x : head) x = *at++;
  };
  take(start.memory, by_hand.a);
  take(start.mass, by_hand.z);
  RowRun run;
  for (const auto& segment : segments) {
    Matrix vectors(static_cast<std::size_t>(segment.dim(1)), std::vector<double>(6));
    take(segment, vectors);
    for (const auto& x : vectors)
      for (const double y : by_hand.read(x)) run.read.push_back(y);
    by_hand.write(vectors);
  }
  for (const double y : run.read) run.loss += y * y;
  for (const auto* const left : {&by_hand.a, &by_hand.z})
    for (const auto& head : *left)
      for (const double x : head)
        if (left == &by_hand.a || by_hand.config.denominator) run.loss += .1 * x * x;
  run.seen = by_hand.seen;
  return run;
}

}  // namespace associative_tests

TEST_CASE("AssociativeMemory: gradients of two segments with all that is held back") {
  // γ and shares have no gradient on purpose: by hand, they are held as they are.
  constexpr Index rows = 2;
  constexpr double step = 1e-6;
  for (AssociativeConfig config : associative_tests::all_forms()) {
    CAPTURE(config.heads, config.key_dim, config.correction, config.bounded, config.denominator);
    config.epsilon = .1;  // no small divisors, for which central differences are too coarse
    // Of keys of two dimensions, features of length 1 are the same for all.
    if (config.unit_features && config.key_dim / config.heads == 2) config.key_dim *= 2;
    auto memory = associative_tests::memory<double>(config);
    memory.strength.bias.value().fill(1);
    Random random(infty::tests::seed);
    auto start = memory.make_state(rows);
    memory.write(start, infty::tests::uniform_variable<double>({rows, 4, 6}, random).detach());
    reset_row(start, rows - 1);
    start.memory = Variable<double>(start.memory.value(), true);
    start.mass = Variable<double>(start.mass.value(), true);
    // Vectors of a segment are alike, for that they have less of a share.
    std::vector<Variable<double>> segments;
    for (const Index length : {5, 4}) {
      const auto near = infty::tests::uniform_variable<double>({rows, 1, 6}, random, -2, 2),
                 apart = infty::tests::uniform_variable<double>({rows, length, 6}, random, -.5, .5);
      segments.emplace_back((near + apart).value().clone(), true);
    }
    auto inputs = infty::named_parameters<double, infty::EigenBackend>(memory);
    for (const auto& segment : segments) inputs.push_back({"x", segment});
    inputs.push_back({"memory", start.memory});
    if (config.denominator) inputs.push_back({"mass", start.mass});

    infty::Tape tape;
    auto state = start;
    std::vector<Variable<double>> answers;
    for (const auto& segment : segments) {
      answers.push_back(memory.read(state, segment));
      memory.write(state, segment);
    }
    auto loss = infty::sum(state.memory * state.memory, .1);
    if (config.denominator) loss = loss + infty::sum(state.mass * state.mass, .1);
    for (const auto& y : answers) loss = loss + infty::sum(y * y);
    tape.backward(loss);

    std::vector<std::vector<associative_tests::Constants>> held(rows);
    const auto run_row = [&](Index row) {
      return associative_tests::run_row(memory, start, segments, row,
                                        held[static_cast<std::size_t>(row)]);
    };
    const auto by_hand = [&] {
      double sum = 0;
      for (Index row = 0; row < rows; ++row) sum += run_row(row).loss;
      return sum;
    };
    const auto differences = [&](Variable<double> input, Index count) {
      std::vector<double> out;
      for (Index i = 0; i < count; ++i) {
        double& x = input.value().data()[i];
        const double was = std::exchange(x, x + step), above = by_hand();
        x = was - step;
        out.push_back((above - by_hand()) / (2 * step));
        x = was;
      }
      return out;
    };
    // Nothing is held yet: these go through γ and shares.
    const auto through = differences(segments[1], segments[1].size());
    int parts = 0, shares = 0;
    for (Index row = 0; row < rows; ++row) {
      const auto run = run_row(row);
      held[static_cast<std::size_t>(row)] = run.seen;
      for (const auto& [gamma, share] : run.seen) {
        parts += gamma > 0 && gamma < 1;
        shares += share < 1;
      }
      std::vector<double> read;
      for (const auto& y : answers) {
        const double* const at = y.value().data() + row * (y.size() / rows);
        read.insert(read.end(), at, at + y.size() / rows);
      }
      CHECK(infty::tests::error(read, run.read) < 1e-12);
    }
    CHECK(parts > 0);
    CHECK((shares > 0) == config.bounded);
    CHECK(loss.value().item() == Approx(by_hand()).epsilon(1e-12));
    if (config.bounded || config.correction)
      CHECK(infty::tests::error(segments[1].grad().to_vector(), through) > 1e-3);
    for (auto& [name, input] : inputs) {
      CAPTURE(name);
      // What a fresh row holds is nothing, which is no input.
      const bool of_state = name == "memory" || name == "mass";
      const Index count = of_state ? input.size() / rows * (rows - 1) : input.size();
      std::vector<double> gradient = input.grad().to_vector();
      gradient.resize(static_cast<std::size_t>(count));
      CHECK(infty::tests::error(gradient, differences(input, count)) < 1e-7);
    }
  }
}

TEST_CASE("AssociativeMemory: keeps to what every memory keeps to") {
  for (const AssociativeConfig& config : associative_tests::all_forms()) {
    CAPTURE(config.heads, config.key_dim, config.correction, config.gating);
    const associative_tests::OfTensors of{associative_tests::memory<double>(config)};
    Random random(infty::tests::seed);
    infty::testing::Stream<Tensor<double>> stream;
    for (const Index length : {5, 1, 3})
      stream.pieces.push_back(infty::tests::uniform_tensor<double>({3, length, 6}, random));
    stream.queries = infty::tests::uniform_tensor<double>({3, 4, 6}, random);
    const infty::tests::TemporaryFolder folder;
    const auto through = [&](const auto& state) {
      infty::save_state(folder / "state.safetensors", state);
      auto loaded = of.make_state(3);
      infty::load_state(folder / "state.safetensors", loaded);
      return loaded;
    };
    infty::testing::require_invariants(of, stream, through, 1e-12);
    // A copy on another backend reads the same.
    auto state = of.make_state(3);
    of.write(state, stream.pieces[0]);
    using Other = infty::tests::OtherBackend;
    AssociativeMemory<double, Other> copy(config, 6, Random(5));
    copy_parameters(of.memory, copy);
    CHECK(copy.read(infty::to<Other>(state), Variable<double, Other>(stream.queries.to<Other>()))
              .value()
              .to_vector() == of.read(state, stream.queries).value().to_vector());
    // It stays finite, and as large as it is.
    const auto bytes = bytes_of(state);
    for (int i = 0; i < 300; ++i) of.write(state, stream.pieces[static_cast<std::size_t>(i % 3)]);
    CHECK(bytes_of(state) == bytes);
    CHECK(is_finite(state));
  }
}

TEST_CASE("AssociativeMemory: segments of vectors that are alike do not make it grow") {
  // No write leaves it larger than it was and what the same write leaves in a fresh one.
  const auto size = [](const auto& state) {
    double sum = 0;
    for (const double x : state.memory.value().to_vector()) sum += x * x;
    return std::sqrt(sum);
  };
  double largest_as_in_paper = 0;
  for (AssociativeConfig config : associative_tests::all_forms())
    for (const bool bounded : {true, false}) {
      config.bounded = bounded;
      CAPTURE(config.heads, config.key_dim, config.denominator, bounded);
      const auto memory = associative_tests::memory<double>(config);
      Random random(infty::tests::seed);
      std::vector<Variable<double>> segments;
      for (const Index length : {8, 8, 30}) {
        const auto one = infty::tests::uniform_tensor<double>({1, 1, 6}, random, -3, 3);
        Tensor<double> alike(Shape{1, length, 6});
        for (Index i = 0; i < length; ++i)
          alike.reshape({length, 6}).slice(i, i + 1).copy_from(one.reshape({1, 6}));
        segments.emplace_back(alike);
      }
      auto state = memory.make_state(1);
      for (std::size_t i = 0; i < 500; ++i) {
        const auto& segment = segments[i % 7 % segments.size()];
        const double before = size(state);
        memory.write(state, segment);
        if (!bounded) {
          if (std::isfinite(size(state)))
            largest_as_in_paper = std::max(largest_as_in_paper, size(state));
          continue;
        }
        auto fresh = memory.make_state(1);
        memory.write(fresh, segment);
        REQUIRE(size(state) <= (before + size(fresh)) * (1 + 1e-12));
      }
      if (bounded) CHECK(is_finite(state));
    }
  CHECK(largest_as_in_paper > 1e30);
}

TEST_CASE("AssociativeMemory: a fresh one adds nothing until its values are learned") {
  const AssociativeMemory<double> memory({.key_dim = 4}, 6, Random(1));
  Random random(infty::tests::seed);
  const auto x = infty::tests::uniform_variable<double>({1, 4, 6}, random);
  auto state = memory.make_state(1);
  for (int i = 0; i < 2; ++i) {
    memory.write(state, x);
    CHECK(memory.read(state, x).value().to_vector() == std::vector<double>(24));
  }
}

TEST_CASE("AssociativeMemory: what is written under a key is read by it, and written over") {
  // One value after the other under the same key: the delta rule replaces, half at a time.
  auto memory = associative_tests::memory<double>({.key_dim = 4, .correction = true});
  memory.query.weight.value().copy_from(memory.key.weight.value());
  memory.strength.weight.value().fill(0);
  memory.strength.bias.value().fill(40);  // β = 1
  Random random(infty::tests::seed);
  const auto x = infty::tests::uniform_variable<double>({1, 1, 6}, random);
  const auto value = memory.value.forward(x).value().to_vector();
  auto state = memory.make_state(1);
  memory.write(state, x);
  CHECK(infty::tests::error(memory.read(state, x).value().to_vector(), value) < 1e-4);  // ε
  memory.value.weight.value().copy_from((-memory.value.weight).value());
  memory.write(state, x);
  std::vector<double> other;
  for (const double y : value) other.push_back(-y);
  CHECK(infty::tests::error(memory.read(state, x).value().to_vector(), other) < 1e-3);
}

namespace associative_tests {

/// One that writes with β = 1 and asks by what it writes under.
AssociativeMemory<double> exact(AssociativeConfig config) {
  auto made = memory<double>(config);
  made.query.weight.value().copy_from(made.key.weight.value());
  made.strength.weight.value().fill(0);
  made.strength.bias.value().fill(40);
  return made;
}

}  // namespace associative_tests

TEST_CASE("AssociativeMemory: a fact is held as it was written, new or half known") {
  for (AssociativeConfig config : associative_tests::all_forms()) {
    if (!config.bounded || !config.correction) continue;
    CAPTURE(config.heads, config.key_dim, config.denominator);
    config.epsilon = 1e-14;
    const auto memory = associative_tests::exact(config);
    associative_tests::ByHand by_hand(memory);
    Random random(infty::tests::seed);
    auto state = memory.make_state(1);
    int half_known = 0;
    for (int i = 0; i < 40; ++i) {
      const auto x = infty::tests::uniform_variable<double>({1, 1, 6}, random, -3, 3);
      const auto vector = x.value().to_vector();
      // A key of which more is known than its length is corrected in part, as in the paper.
      bool all_of_it = true, any_known = false;
      for (std::size_t head = 0; head < by_hand.z.size(); ++head) {
        const auto f = by_hand.phi(by_hand.times(by_hand.key, vector), head);
        double size = 0;
        for (const double y : f) size += y * y;
        const double known = config.denominator ? by_hand.mass(f, head) : 0;
        all_of_it = all_of_it && known <= size;
        any_known = any_known || known > .01 * size;
      }
      memory.write(state, x);
      by_hand.write({vector});
      if (!all_of_it) continue;
      CHECK(infty::tests::error(memory.read(state, x).value().to_vector(),
                                memory.value.forward(x).value().to_vector()) < 1e-9);
      half_known += any_known;
    }
    if (config.denominator) CHECK(half_known > 0);
  }
}

TEST_CASE("AssociativeMemory: a new fact is held beside one that is known, and replaces none") {
  // Keys that share no feature: A of the first two dimensions, B of the last two.
  auto memory = associative_tests::exact({.key_dim = 6, .nu = 1});
  for (auto* const map : {&memory.query, &memory.key, &memory.value}) {
    map->weight.value().fill(0);
    for (Index i = 0; i < 6; ++i) map->weight.value().data()[i * 7] = 1;
  }
  const auto tokens = [](const std::vector<std::vector<double>>& all) {
    std::vector<double> flat;
    for (const auto& x : all) flat.insert(flat.end(), x.begin(), x.end());
    return Variable<double>(Tensor<double>::from({1, static_cast<Index>(all.size()), 6}, flat));
  };
  const std::vector<double> a{1, 1, 0, 0, 0, 0}, b{0, 0, 0, 0, 1, 1};
  auto state = memory.make_state(1);
  memory.write(state, tokens({a}));
  memory.write(state, tokens({a, b}));
  CHECK(infty::tests::error(memory.read(state, tokens({a})).value().to_vector(), a) < 1e-4);
  CHECK(infty::tests::error(memory.read(state, tokens({b})).value().to_vector(), b) < 1e-4);
}

TEST_CASE(
    "AssociativeMemory: vectors that are alike write no more than the fact, no vectors nothing") {
  for (const AssociativeConfig& config : associative_tests::all_forms()) {
    if (!config.bounded || !config.correction) continue;
    CAPTURE(config.heads, config.key_dim, config.denominator);
    const auto memory = associative_tests::exact(config);
    Random random(infty::tests::seed);
    const auto first = infty::tests::uniform_variable<double>({1, 3, 6}, random, -3, 3);
    const auto one = infty::tests::uniform_variable<double>({1, 1, 6}, random, -3, 3);
    auto once = memory.make_state(1);
    memory.write(once, Variable<double>(Tensor<double>::zeros({1, 0, 6})));
    CHECK(once.written == infty::RowCounts{0});
    memory.write(once, first);
    auto often = once;
    memory.write(once, one);
    memory.write(often, concat(concat(one, one), concat(one, one)));
    const auto written = memory.value.forward(one).value().to_vector();
    const double off_once =
                     infty::tests::error(memory.read(once, one).value().to_vector(), written),
                 off_often =
                     infty::tests::error(memory.read(often, one).value().to_vector(), written);
    // Of a key that is known too well one corrects a part, and several all of it, not more.
    CHECK(off_often <= off_once + 1e-12);
    CHECK(off_often < 1e-4);
  }
}

TEST_CASE("AssociativeMemory: configurations and shapes that are refused") {
  const auto refused = [](AssociativeConfig config, const std::string& name, Index d = 6) {
    CAPTURE(name);
    try {
      const AssociativeMemory<float> memory(config, d, Random(1));
      FAIL("was made");
    } catch (const infty::ValueError& error) {
      CHECK(std::string(error.what()).find(name) != std::string::npos);
    }
  };
  refused({.heads = 0}, "heads is 0");
  refused({.key_dim = 0}, "key_dim is 0");
  refused({.heads = 2, .key_dim = 3}, "key_dim is 3");
  refused({.nu = 0}, "nu is 0");
  refused({.nu = std::numeric_limits<Index>::max() / 4}, "nu is");
  refused({.epsilon = 0}, "epsilon");
  refused({.feature_floor = std::nan("")}, "feature_floor");
  refused({.heads = 4}, "d is 6");
  refused({}, "d is 0", 0);
  refused({}, "features", Index{1} << 54);
  const auto memory = associative_tests::memory<double>({.key_dim = 4});
  CHECK_THROWS_AS(memory.make_state(0), infty::ValueError);
  auto state = memory.make_state(2);
  const auto zeros = [](Shape shape) { return Variable<double>(Tensor<double>::zeros(shape)); };
  memory.write(state, zeros({2, 3, 6}));
  const auto before = numbers_of(state);
  CHECK_THROWS_AS(memory.write(state, zeros({2, 3, 5})), infty::ShapeError);
  CHECK_THROWS_AS(memory.write(state, zeros({1, 3, 6})), infty::ShapeError);
  CHECK_THROWS_AS(memory.read(state, zeros({2, 6})), infty::ShapeError);
  CHECK_THROWS_AS(associative_tests::memory<double>({.key_dim = 2}).read(state, zeros({2, 3, 6})),
                  infty::ShapeError);
  CHECK(numbers_of(state) == before);
}
