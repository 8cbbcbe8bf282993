// SPDX-License-Identifier: MIT
#include <algorithm>
#include <cmath>
#include <limits>
#include <type_traits>
#include <vector>

#include <infty/autograd/elementwise.hpp>
#include <infty/autograd/matmul.hpp>
#include <infty/autograd/reduce.hpp>
#include <infty/autograd/shape.hpp>
#include <infty/autograd/softmax.hpp>
#include <infty/core/pool.hpp>
#include <infty/nn/plain_attention.hpp>
#include <infty/testing/gradient_check.hpp>

#include "support/catch.hpp"
#include "support/tensors.hpp"
#include "support/threads.hpp"
#include "support/types.hpp"

using infty::AttentionSize;
using infty::EigenBackend;
using infty::Index;
using infty::PlainAttentionGradients;
using infty::PlainAttentionInputs;
using infty::PlainAttentionOptions;
using infty::Random;
using infty::scaled_dot_product_attention;
using infty::Shape;
using infty::Tensor;
using infty::Variable;
using infty::tests::uniform_tensor;
using infty::tests::uniform_variable;

namespace {

/// The inputs of one call, drawn evenly.
template <class T, class B>
struct PlainCase {
  AttentionSize size;
  bool causal;
  Tensor<T, B> q, k, v, dy;
  Tensor<Index, B> visible;
  std::vector<Index> seen;

  PlainCase(const AttentionSize& s, bool causal_, bool limited, double scale = 1)
      : size(s), causal(causal_) {
    Random random(infty::tests::seed);
    q = uniform_tensor<T, B>({s.batch, s.queries, s.model()}, random, -scale, scale);
    k = uniform_tensor<T, B>({s.batch, s.keys, s.model()}, random, -scale, scale);
    v = uniform_tensor<T, B>({s.batch, s.keys, s.model()}, random);
    dy = uniform_tensor<T, B>(q.shape(), random);
    // None of the keys, a few, and all.
    for (Index b = 0; b < s.batch; ++b)
      seen.push_back(limited ? (b * 7 + 3) % (s.keys + 1) : s.keys);
    if (limited && s.batch > 1) seen[0] = 0;
    if (limited) visible = Tensor<Index, B>::from({s.batch}, seen);
  }

  /// y, the gradients, which are added to ones, and the logarithms of the denominators.
  template <class Kernel>
  std::vector<std::vector<T>> run() const {
    const auto factor = static_cast<T>(1 / std::sqrt(static_cast<double>(size.head_dim)));
    const PlainAttentionInputs<T> in{
        q.data(), k.data(), v.data(), visible.empty() ? nullptr : visible.data(), causal, factor};
    Tensor<T, B> y(q.shape()), log_sum(Shape{size.batch, size.queries, size.heads});
    const auto ones = [](const Tensor<T, B>& x) { return Tensor<T, B>::full(x.shape(), T(1)); };
    Tensor<T, B> dq = ones(q), dk = ones(k), dv = ones(v);
    Kernel::forward(size, in, y.data(), log_sum.data());
    Kernel::backward(size, in, y.data(), log_sum.data(), dy.data(),
                     PlainAttentionGradients<T>{dq.data(), dk.data(), dv.data()});
    return {y.to_vector(), dq.to_vector(), dk.to_vector(), dv.to_vector(), log_sum.to_vector()};
  }

  /// The definition, one sum after the other.
  std::vector<double> by_definition() const {
    const Index L = size.queries, K = size.keys, D = size.head_dim, e = size.model();
    const auto pq = q.to_vector(), pk = k.to_vector(), pv = v.to_vector();
    const auto at = [](const std::vector<T>& x, Index i) {
      return static_cast<double>(x[static_cast<std::size_t>(i)]);
    };
    std::vector<double> out;
    for (Index b = 0; b < size.batch; ++b)
      for (Index i = 0; i < L; ++i)
        for (Index h = 0; h < size.heads; ++h) {
          std::vector<double> sum(static_cast<std::size_t>(D));
          double total = 0;
          for (Index j = K - seen[static_cast<std::size_t>(b)]; j < (causal ? K - L + i + 1 : K);
               ++j) {
            double score = 0;
            for (Index c = h * D; c < (h + 1) * D; ++c)
              score += at(pq, (b * L + i) * e + c) * at(pk, (b * K + j) * e + c);
            const double weight = std::exp(score / std::sqrt(static_cast<double>(D)));
            total += weight;
            for (Index c = 0; c < D; ++c)
              sum[static_cast<std::size_t>(c)] += weight * at(pv, (b * K + j) * e + h * D + c);
          }
          for (const double s : sum) out.push_back(total > 0 ? s / total : 0);
        }
    return out;
  }
};

/// Around the tiles of 64 queries and 128 keys, and the 8 queries that are few; more queries than
/// keys; nothing; rows that fill vectors and rows that do not.
const std::vector<AttentionSize>& plain_sizes() {
  static const std::vector<AttentionSize> all{
      {2, 0, 5, 2, 4},    {1, 1, 1, 1, 1},     {2, 1, 40, 2, 3},     {2, 8, 40, 2, 3},
      {2, 9, 40, 2, 3},   {2, 5, 5, 2, 4},     {3, 7, 20, 3, 7},     {2, 64, 128, 1, 16},
      {2, 65, 129, 2, 5}, {1, 63, 255, 1, 16}, {1, 130, 450, 1, 33}, {3, 1, 400, 4, 16},
      {2, 6, 3, 2, 4},    {2, 70, 1, 1, 8},    {2, 3, 0, 1, 2},      {2, 70, 0, 1, 8},
      {1, 9, 12, 1, 200}};
  return all;
}

}  // namespace

TEMPLATE_LIST_TEST_CASE("scaled_dot_product_attention: two keys by hand", "", infty::tests::Types) {
  using T = typename TestType::T;
  using B = typename TestType::B;
  // Scores 2 · 0 and 2 · log 3 / 2: weights 1/4 and 3/4.
  const Variable<T, B> q(Tensor<T, B>::full({1, 1, 1}, T(2)));
  const Variable<T, B> k(Tensor<T, B>::from({1, 2, 1}, {0, std::log(T(3)) / 2}));
  const Variable<T, B> v(Tensor<T, B>::from({1, 2, 1}, {10, 20}));
  CHECK(static_cast<double>(scaled_dot_product_attention(q, k, v).value().item()) == Approx(17.5));
  const auto even = scaled_dot_product_attention(q, k, v, {.scale = 0.});
  CHECK(static_cast<double>(even.value().item()) == Approx(15));
}

TEMPLATE_LIST_TEST_CASE(
    "scaled_dot_product_attention: the backend's kernel, the composition and the definition agree",
    "", infty::tests::Types) {
  using T = typename TestType::T;
  using B = typename TestType::B;
  using Kernel = typename infty::detail::ChosenPlainAttention<B>::type;
  using Composed = infty::ComposedPlainAttention<B>;
  if constexpr (std::is_same_v<B, EigenBackend>)
    static_assert(std::is_same_v<Kernel, EigenBackend::FusedPlainAttention>);
  for (const AttentionSize& s : plain_sizes())
    for (const bool causal : {false, true})
      for (const bool limited : {false, true}) {
        if (causal && s.keys < s.queries) continue;
        CAPTURE(s.batch, s.queries, s.keys, s.heads, s.head_dim, causal, limited);
        const PlainCase<T, B> c(s, causal, limited);
        const auto got = c.template run<Kernel>();
        auto expected = c.template run<Composed>();
        CHECK(infty::tests::error(got[0], c.by_definition()) < infty::tests::tolerance<T>);
        for (std::size_t i = 0; i < 4; ++i) {
          CAPTURE(i);
          CHECK(infty::tests::error(got[i], expected[i]) < infty::tests::tolerance<T>);
        }
        // Without a key both are -infinity.
        for (std::size_t i = 0; i < got[4].size(); ++i)
          if (got[4][i] != expected[4][i])
            CHECK(std::abs(got[4][i] - expected[4][i]) <
                  static_cast<T>(infty::tests::tolerance<T>) * (1 + std::abs(expected[4][i])));
      }
}

TEMPLATE_LIST_TEST_CASE("scaled_dot_product_attention: what matmul and softmax say", "",
                        infty::tests::Types) {
  using T = typename TestType::T;
  using B = typename TestType::B;
  const Index batch = 2, L = 6, K = 9, H = 3, D = 4;
  Random random(infty::tests::seed);
  const auto q = uniform_variable<T, B>({batch, L, H * D}, random),
             k = uniform_variable<T, B>({batch, K, H * D}, random),
             v = uniform_variable<T, B>({batch, K, H * D}, random);
  const auto seed = uniform_tensor<T, B>({batch, L, H * D}, random);
  const auto gradients = [&](const Variable<T, B>& y, infty::Tape& tape) {
    for (auto x : {q, k, v}) x.zero_grad();
    tape.backward(y, seed);
    std::vector<std::vector<T>> all{y.value().to_vector()};
    for (const auto& x : {q, k, v}) all.push_back(x.grad().to_vector());
    return all;
  };
  infty::Tape tape;
  const auto fused = gradients(scaled_dot_product_attention(q, k, v, {.heads = H}), tape);
  const auto heads = [&](const Variable<T, B>& x) {
    return infty::transpose(infty::reshape(x, {batch, x.dim(1), H, D}), 1, 2);
  };
  const auto weights =
      infty::softmax(infty::matmul(heads(q), infty::transpose(heads(k), 2, 3)) / T(2));
  const auto y =
      infty::reshape(infty::transpose(infty::matmul(weights, heads(v)), 1, 2), {batch, L, H * D});
  const auto composed = gradients(y, tape);
  for (std::size_t i = 0; i < fused.size(); ++i)
    CHECK(infty::tests::error(fused[i], composed[i]) < infty::tests::tolerance<T>);
}

TEST_CASE("scaled_dot_product_attention: gradients against differences") {
  for (const AttentionSize& s : std::vector<AttentionSize>{
           {1, 1, 1, 1, 1}, {2, 3, 5, 2, 3}, {2, 6, 6, 1, 2}, {2, 5, 3, 2, 2}})
    for (const bool causal : {false, true})
      for (const bool limited : {false, true}) {
        if (causal && s.keys < s.queries) continue;
        const PlainCase<double, EigenBackend> c(s, causal, limited);
        const Variable<double> q(c.q, true), k(c.k, true), v(c.v, true), weight(c.dy);
        const PlainAttentionOptions<> options{
            .heads = s.heads, .causal = causal, .scale = 0.7, .visible = c.visible};
        const auto loss = [&] {
          return infty::sum(scaled_dot_product_attention(q, k, v, options) * weight);
        };
        CAPTURE(s.queries, s.keys, causal, limited);
        CHECK(infty::gradient_check(loss, std::vector{q, k, v}) < 1e-8);
      }
}

TEMPLATE_LIST_TEST_CASE("scaled_dot_product_attention: the last query sees all keys, others fewer",
                        "", infty::tests::Types) {
  using T = typename TestType::T;
  using B = typename TestType::B;
  const Index L = 70, K = 100, e = 4;
  const PlainCase<T, B> c({1, L, K, 2, 2}, true, false);
  const Variable<T, B> q(c.q), v(c.v, true);
  Variable<T, B> k(c.k, true);
  infty::Tape tape;
  const auto y = scaled_dot_product_attention(q, k, v, {.heads = 2, .causal = true});
  const auto before = y.value().to_vector();
  tape.backward(infty::sum(infty::narrow(y, 0, 3)));
  const auto dk = k.grad().to_vector(), dv = v.grad().to_vector();
  for (Index i = 0; i < K * e; ++i) {
    const auto at = static_cast<std::size_t>(i);
    CHECK((dv[at] != 0) == (i / e < K - L + 3));
    if (i / e >= K - L + 3) CHECK(dk[at] == 0);
  }
  auto keys = c.k.to_vector();
  std::fill(keys.begin() + (K - L + 3) * e, keys.end(), T(1e15));
  k = Variable<T, B>(Tensor<T, B>::from(c.k.shape(), keys));
  const auto after = scaled_dot_product_attention(q, k, v, {.heads = 2, .causal = true});
  const auto numbers = after.value().to_vector();
  CHECK(std::equal(before.begin(), before.begin() + 3 * e, numbers.begin()));
  CHECK(before != numbers);
}

TEMPLATE_LIST_TEST_CASE("scaled_dot_product_attention: padding may be anything that is a number",
                        "", infty::tests::Types) {
  using T = typename TestType::T;
  using B = typename TestType::B;
  for (const Index L : {2, 66}) {
    const PlainCase<T, B> c({2, L, 7, 1, 3}, false, false);
    auto k = c.k.to_vector(), v = c.v.to_vector();
    const auto read = [&] {
      const Variable<T, B> keys(Tensor<T, B>::from(c.k.shape(), k)),
          values(Tensor<T, B>::from(c.v.shape(), v));
      return scaled_dot_product_attention(Variable<T, B>(c.q), keys, values,
                                          {.visible = Tensor<Index, B>::from({2}, {3, 0})})
          .value()
          .to_vector();
    };
    const auto before = read();
    for (std::size_t i = 3 * L; i < before.size(); ++i) CHECK(before[i] == 0);  // sees nothing
    std::fill_n(k.begin(), 12, T(1e30));
    std::fill_n(v.begin(), 12, T(-1e30));
    CHECK(read() == before);
  }
}

TEMPLATE_LIST_TEST_CASE("scaled_dot_product_attention: large and tiny scores stay finite", "",
                        infty::tests::Types) {
  using T = typename TestType::T;
  using B = typename TestType::B;
  for (const double size : {1e15, 1e-38})
    for (const Index L : {3, 70}) {
      const PlainCase<T, B> c({1, L, 140, 1, 4}, true, false, size);
      const Variable<T, B> q(c.q, true), k(c.k, true), v(c.v, true);
      infty::Tape tape;
      const auto y = scaled_dot_product_attention(q, k, v, {.causal = true});
      // An average of values in [-1, 1).
      for (const T x : y.value().to_vector()) CHECK(std::abs(x) <= T(1.0001));
      tape.backward(infty::sum(y));
      for (const auto& x : {q, k, v})
        for (const T g : x.grad().to_vector()) CHECK(std::isfinite(g));
    }
}

TEST_CASE("scaled_dot_product_attention: NaN spoils the queries that see it alone") {
  for (const Index L : {3, 70}) {
    PlainCase<float, EigenBackend> c({1, L, L, 1, 4}, true, false);
    c.q.data()[4] = std::numeric_limits<float>::quiet_NaN();  // of query 1
    const auto y = c.run<EigenBackend::FusedPlainAttention>()[0];
    for (Index i = 0; i < 4 * L; ++i)
      CHECK(std::isnan(y[static_cast<std::size_t>(i)]) == (i / 4 == 1));
  }
}

TEST_CASE("scaled_dot_product_attention: the same bits with any number of threads") {
  const PlainCase<float, EigenBackend> c({3, 130, 300, 2, 10}, true, true);
  using Fused = EigenBackend::FusedPlainAttention;
  const auto run = [&] { return c.run<Fused>(); };
  CHECK(infty::tests::with_threads(1, run) == infty::tests::with_threads(3, run));
}

TEST_CASE("scaled_dot_product_attention: only the gradients that are wanted") {
  const PlainCase<double, EigenBackend> c({2, 70, 140, 2, 6}, true, true);
  const auto gradients = [&](std::size_t wanted) {
    std::vector<Variable<double>> x;
    for (const auto& value : {c.q, c.k, c.v})
      x.emplace_back(value, wanted == 3 || wanted == x.size());
    infty::Tape tape;
    tape.backward(scaled_dot_product_attention(x[0], x[1], x[2],
                                               {.heads = 2, .causal = true, .visible = c.visible}),
                  c.dy);
    return x;
  };
  const auto all = gradients(3);
  for (std::size_t wanted = 0; wanted < 3; ++wanted) {
    const auto some = gradients(wanted);
    CAPTURE(wanted);
    for (std::size_t i = 0; i < 3; ++i) CHECK(some[i].has_grad() == (i == wanted));
    CHECK(some[wanted].grad().to_vector() == all[wanted].grad().to_vector());
  }
}

TEST_CASE("scaled_dot_product_attention: memory does not grow with the number of scores") {
  const auto peak = [](Index length) {
    const PlainCase<float, EigenBackend> c({1, length, 2 * length, 2, 8}, true, false);
    auto& pool = infty::HostPool::instance();
    pool.reset_peak();
    const std::size_t before = pool.statistics().bytes_in_use;
    infty::tests::with_threads(1, [&] { c.run<EigenBackend::FusedPlainAttention>(); });
    return pool.statistics().peak_bytes_in_use - before;
  };
  CHECK(peak(2048) < peak(512) * 41 / 10);
}

TEST_CASE("scaled_dot_product_attention: shapes and values that do not fit") {
  const auto zeros = [](const Shape& shape) {
    return Variable<float>(Tensor<float>::zeros(shape));
  };
  const auto q = zeros({2, 3, 4}), k = zeros({2, 2, 4});
  CHECK_THROWS_WITH(scaled_dot_product_attention(q, k, zeros({2, 3, 4})),
                    "[scaled_dot_product_attention] q is [2, 3, 4], k [2, 2, 4], v [2, 3, 4]: they "
                    "must be [B, L, HD] and [B, K, HD] twice");
  CHECK_THROWS_AS(scaled_dot_product_attention(zeros({1, 3, 4}), k, k), infty::ShapeError);
  CHECK_THROWS_AS(scaled_dot_product_attention(zeros({2, 3, 5}), k, k), infty::ShapeError);
  CHECK_THROWS_AS(scaled_dot_product_attention(zeros({3, 4}), k, k), infty::ShapeError);
  CHECK_THROWS_WITH(scaled_dot_product_attention(q, k, k, {.heads = 3}),
                    "[scaled_dot_product_attention] q is [2, 3, 4], heads are 3: they must divide "
                    "the last extent, which must not be 0");
  CHECK_THROWS_AS(scaled_dot_product_attention(q, k, k, {.heads = 0}), infty::ShapeError);
  CHECK_THROWS_WITH(scaled_dot_product_attention(q, k, k, {.causal = true}),
                    "[scaled_dot_product_attention] q is [2, 3, 4], k [2, 2, 4]: causal attention "
                    "needs as many keys as queries, or more");
  CHECK_THROWS_AS(scaled_dot_product_attention(q, k, k, {.visible = Tensor<Index>::zeros({3})}),
                  infty::ShapeError);
  CHECK_THROWS_WITH(
      scaled_dot_product_attention(q, k, k, {.visible = Tensor<Index>::from({2}, {2, 3})}),
      "[scaled_dot_product_attention] visible is 3 for row 1: it must lie in [0, 2]");
}
