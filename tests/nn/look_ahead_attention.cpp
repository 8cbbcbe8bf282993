// SPDX-License-Identifier: MIT
#include <algorithm>
#include <array>
#include <cmath>
#include <vector>

#include <infty/autograd/elementwise.hpp>
#include <infty/autograd/shape.hpp>
#include <infty/nn/look_ahead_attention.hpp>
#include <infty/testing/gradient_check.hpp>

#include "support/attention_case.hpp"
#include "support/catch.hpp"
#include "support/tensors.hpp"
#include "support/threads.hpp"
#include "support/types.hpp"

using infty::Index;
using infty::Random;
using infty::Shape;
using infty::Tensor;
using infty::Variable;
using infty::tests::uniform_tensor;
using infty::tests::uniform_variable;

namespace {

/// The inputs of one call, drawn evenly.
template <class T, class B = infty::EigenBackend>
struct Ahead {
  Index batch, queries, keys, distances, heads, head_dim;
  Variable<T, B> q, k, v, r, u, w;
  infty::RunningAttention<T, B> past;

  Ahead(Index batch_, Index M, Index W, Index R, Index H, Index D,
        Random random = Random(infty::tests::seed))
      : batch(batch_), queries(M), keys(W), distances(R), heads(H), head_dim(D) {
    q = uniform_variable<T, B>({batch, M, H * D}, random);
    k = uniform_variable<T, B>({batch, W, H * D}, random);
    v = uniform_variable<T, B>({batch, W, H * D}, random);
    r = uniform_variable<T, B>({R, H * D}, random);
    u = uniform_variable<T, B>({H, D}, random);
    w = uniform_variable<T, B>({H, D}, random);
    past = {uniform_tensor<T, B>({batch, M, H * D}, random),
            uniform_tensor<T, B>({batch, M, H}, random, -1, 3)};
  }

  Variable<T, B> read(const Tensor<Index, B>& visible = {}, Tensor<T, B>* log_sum = nullptr,
                      Tensor<T, B>* share = nullptr) const {
    return infty::look_ahead_attention(q, k, v, r, u, w, past, visible, log_sum, share);
  }

  /// The definition, one sum after the other; the logarithms of the denominators go to `logs`, the
  /// shares of what had been read to `shares`.
  std::vector<double> by_definition(const std::vector<Index>& visible, std::vector<double>& logs,
                                    std::vector<double>& shares) const {
    const Index e = heads * head_dim;
    const auto pq = q.value().to_vector(), pk = k.value().to_vector(), pv = v.value().to_vector(),
               pr = r.value().to_vector(), pu = u.value().to_vector(), pw = w.value().to_vector(),
               had = past.context.to_vector(), had_log = past.log_sum.to_vector();
    const auto at = [](const std::vector<T>& x, Index i) {
      return static_cast<double>(x[static_cast<std::size_t>(i)]);
    };
    std::vector<double> out;
    for (Index b = 0; b < batch; ++b)
      for (Index i = 0; i < queries; ++i)
        for (Index h = 0; h < heads; ++h) {
          const Index seen = visible.empty() ? keys : visible[static_cast<std::size_t>(b)];
          std::vector<double> weight(static_cast<std::size_t>(keys), 0.0);
          double total = 0;
          for (Index c = 0; c < keys; ++c) {
            const Index place = queries - keys + 1 + c;
            if (c != keys - 1 && (place <= i || c < keys - seen)) continue;
            double score = 0;
            for (Index d = h * head_dim; d < (h + 1) * head_dim; ++d) {
              const double query = at(pq, (b * queries + i) * e + d);
              score += (query + at(pu, d)) * at(pk, (b * keys + c) * e + d);
              // Row c of r stands for distance R - 1 - c.
              score += (query + at(pw, d)) * at(pr, (distances - 1 - (place - i)) * e + d);
            }
            score = std::exp(score / std::sqrt(static_cast<double>(head_dim)));
            weight[static_cast<std::size_t>(c)] = score;
            total += score;
          }
          const double had_total = std::exp(at(had_log, (b * queries + i) * heads + h));
          const double share = had_total / (had_total + total + 1e-6 * std::max(had_total, total));
          for (Index d = h * head_dim; d < (h + 1) * head_dim; ++d) {
            double fresh = 0;
            for (Index c = 0; c < keys; ++c)
              fresh += weight[static_cast<std::size_t>(c)] / total * at(pv, (b * keys + c) * e + d);
            out.push_back(share * at(had, (b * queries + i) * e + d) + (1 - share) * fresh);
          }
          logs.push_back(std::log(had_total + total));
          shares.push_back(share);
        }
    return out;
  }
};

}  // namespace

TEST_CASE("look_ahead_attention: one vector and one key by hand") {
  // It had read 10 with a denominator of 3. The score is (q + u) k + (q + w) r_1 = 2 * 0 + 0 * r.
  const auto full = [](Shape shape, double x) { return Tensor<double>::full(shape, x); };
  const Variable<double> q(full({1, 1, 1}, 1)), k(full({1, 1, 1}, 0)), v(full({1, 1, 1}, 50)),
      r(full({2, 1}, 7)), u(full({1, 1}, 1)), w(full({1, 1}, -1));
  Tensor<double> log_sum;
  const auto y = infty::look_ahead_attention(
      q, k, v, r, u, w, {full({1, 1, 1}, 10), full({1, 1, 1}, std::log(3.0))}, {}, &log_sum);
  // Shares of 3 and 1, up to the authors' epsilon of a millionth of the larger one.
  const double share = 1 / (1 + 1 / 3.0 + 1e-6);
  CHECK(y.value().item() == Approx(10 * share + 50 * (1 - share)).epsilon(1e-14));
  CHECK(log_sum.item() == Approx(std::log(4.0)).epsilon(1e-14));
}

TEMPLATE_LIST_TEST_CASE("look_ahead_attention: equals its definition", "", infty::tests::Types) {
  using T = typename TestType::T;
  using B = typename TestType::B;
  // With few keys the queries are taken in blocks of 64.
  for (const auto& [batch, M, W, R, H, D] :
       std::vector<std::array<Index, 6>>{{1, 1, 1, 2, 1, 1},
                                         {2, 3, 3, 4, 1, 4},
                                         {3, 12, 5, 17, 3, 2},
                                         {2, 130, 3, 140, 2, 3},
                                         {1, 150, 70, 151, 1, 5},
                                         {2, 65, 64, 66, 1, 2}}) {
    const Ahead<T, B> c(batch, M, W, R, H, D);
    CAPTURE(batch, M, W, R, H, D);
    for (const bool limited : {false, true}) {
      std::vector<Index> visible;
      if (limited)
        for (Index b = 0; b < batch; ++b) visible.push_back((b * 2 + W / 2) % (W + 1));
      const auto seen = limited ? Tensor<Index, B>::from({batch}, visible) : Tensor<Index, B>();
      Tensor<T, B> log_sum, share;
      std::vector<double> logs, shares;
      const auto expected = c.by_definition(visible, logs, shares);
      CHECK(infty::tests::error(c.read(seen, &log_sum, &share).value().to_vector(), expected) <
            infty::tests::tolerance<T>);
      CHECK(infty::tests::error(share.to_vector(), shares) < infty::tests::tolerance<T>);
      CHECK(infty::tests::error(log_sum.to_vector(), logs) < infty::tests::tolerance<T>);
    }
  }
}

TEST_CASE("look_ahead_attention: gradients of all inputs, with and without `visible`") {
  for (const auto& [M, W, R] :
       std::vector<std::array<Index, 3>>{{1, 1, 2}, {3, 3, 5}, {5, 2, 6}, {66, 2, 68}}) {
    const Index batch = M > 60 ? 1 : 2, heads = M > 60 ? 1 : 2;
    const Ahead<double> c(batch, M, W, R, heads, 2);
    Random random(7);
    const Variable<double> weight(uniform_tensor<double>(c.q.shape(), random));
    for (const bool limited : {false, true}) {
      const Tensor<Index> visible =
          limited ? Tensor<Index>::full({batch}, (W + 1) / 2) : Tensor<Index>();
      const auto loss = [&] { return infty::sum(c.read(visible) * weight); };
      CAPTURE(M, W, R, limited);
      CHECK(infty::gradient_check(loss, std::vector{c.q, c.k, c.v, c.r, c.u, c.w}) < 1e-8);
    }
  }
}

TEMPLATE_LIST_TEST_CASE("look_ahead_attention: the same gradients on every backend", "",
                        infty::tests::Types) {
  using T = typename TestType::T;
  using B = typename TestType::B;
  const auto gradients = [](const auto& c) {
    infty::Tape tape;
    const auto y = c.read();
    tape.backward(infty::sum(y * y));
    std::vector<double> all;
    for (const auto* x : {&c.q, &c.k, &c.v, &c.r, &c.u, &c.w})
      for (const auto g : x->grad().to_vector()) all.push_back(static_cast<double>(g));
    return all;
  };
  Random random(infty::tests::seed);
  CHECK(infty::tests::error(gradients(Ahead<T, B>(2, 70, 5, 80, 2, 3)),
                            gradients(Ahead<double>(2, 70, 5, 80, 2, 3))) <
        10 * infty::tests::tolerance<T>);
}

TEST_CASE("look_ahead_attention: two readings of a few keys each are one of all of them") {
  // Without positions, which would differ: what is averaged by the denominators is one softmax.
  const Index M = 4, e = 6;
  Ahead<double> c(2, M, 2, M + 1, 2, 3);
  c.r.value().fill(0);
  Random random(3);
  const auto k = uniform_variable<double>({2, 2, e}, random),
             v = uniform_variable<double>({2, 2, e}, random);
  infty::RunningAttention<double> twice;
  // Queries 0 and 1 see both keys at places 3 and 4.
  twice.context = c.read({}, &twice.log_sum).value();
  const auto later = infty::look_ahead_attention(c.q, k, v, c.r, c.u, c.w, twice);
  infty::RunningAttention<double> at_once = c.past;
  const auto both = infty::look_ahead_attention(c.q, infty::concat(c.k, k), infty::concat(c.v, v),
                                                c.r, c.u, c.w, at_once);
  // Of four keys, at places 1 to 4, query 0 sees all.
  for (Index b = 0; b < 2; ++b)
    for (Index d = 0; d < e; ++d)
      CHECK(later.value().to_vector()[static_cast<std::size_t>(b * M * e + d)] ==
            Approx(both.value().to_vector()[static_cast<std::size_t>(b * M * e + d)])
                .margin(3e-6));  // three times epsilon, for values within 1
}

TEMPLATE_LIST_TEST_CASE(
    "look_ahead_attention: behind nothing, what is read ahead has all the share", "",
    infty::tests::Types) {
  using T = typename TestType::T;
  using B = typename TestType::B;
  Ahead<T, B> c(2, 3, 1, 5, 2, 2);  // one key: its value is all that can be read
  c.past = infty::RunningAttention<T, B>::nothing(2, 3, 2, 2);
  Tensor<T, B> log_sum, share;
  infty::Tape tape;
  const auto y = c.read({}, &log_sum, &share);
  const auto read = y.value().to_vector(), value = c.v.value().to_vector();
  for (std::size_t row = 0; row < 2; ++row)
    for (std::size_t i = 0; i < 12; ++i) CHECK(read[row * 12 + i] == value[row * 4 + i % 4]);
  CHECK(share.to_vector() == std::vector<T>(12, T(0)));
  for (const T x : log_sum.to_vector()) CHECK(std::isfinite(x));
  tape.backward(infty::sum(y));
  CHECK(c.v.grad().to_vector() == std::vector<T>(8, T(3)));
  CHECK(c.q.grad().to_vector() == std::vector<T>(24, T(0)));  // of the one key whatever it is
}

TEST_CASE("look_ahead_attention: gradients behind nothing, of what is read ahead in full") {
  Ahead<double> c(2, 5, 3, 6, 2, 2);
  c.past = infty::RunningAttention<double>::nothing(2, 5, 2, 2);
  Random random(7);
  const Variable<double> weight(uniform_tensor<double>(c.q.shape(), random));
  const auto loss = [&] { return infty::sum(c.read() * weight); };
  CHECK(infty::gradient_check(loss, std::vector{c.q, c.k, c.v, c.r, c.u, c.w}) < 1e-8);
}

TEST_CASE("look_ahead_attention: only keys to the right, and of those the visible ones") {
  Ahead<double> c(1, 5, 4, 6, 1, 3);
  const auto before = c.read().value().to_vector();
  // Queries 2 to 4 see places 3, 4 and 5: not key 0, at place 2.
  for (Index d = 0; d < 3; ++d) {
    c.k.value().data()[d] = 1e30;
    c.v.value().data()[d] = -1e30;
  }
  const auto after = c.read().value().to_vector();
  for (std::size_t i = 2 * 3; i < 5 * 3; ++i) CHECK(after[i] == before[i]);
  infty::Tape tape;
  tape.backward(infty::sum(c.read(Tensor<Index>::from({1}, {2}))));
  for (Index d = 0; d < 2 * 3; ++d) {
    CHECK(c.k.grad().data()[d] == 0);
    CHECK(c.v.grad().data()[d] == 0);
  }
}

TEST_CASE("look_ahead_attention: denominators of any size stay finite, and the larger one counts") {
  for (const double log : {-1e30, -800.0, 800.0, 1e30}) {
    Ahead<double> c(1, 3, 3, 4, 1, 2);
    c.past.log_sum.fill(log);
    infty::Tape tape;
    Tensor<double> log_sum;
    const auto y = c.read({}, &log_sum);
    CAPTURE(log);
    const auto old = c.past.context.to_vector(), now = y.value().to_vector();
    for (std::size_t i = 0; i < now.size(); ++i) {
      CHECK(std::abs(now[i]) <= 1);
      if (log > 0) CHECK(now[i] == Approx(old[i]).margin(2e-6));
    }
    for (const double x : log_sum.to_vector()) {
      CHECK(std::isfinite(x));
      if (log > 0) CHECK(x == log);
    }
    tape.backward(infty::sum(y));
    for (const double g : c.q.grad().to_vector()) CHECK(std::isfinite(g));
  }
}

TEST_CASE("look_ahead_attention: the same bits with one thread and with two") {
  const auto run = [] {
    const Ahead<float> c(3, 100, 40, 141, 2, 8);
    return infty::tests::read_and_gradients(c, Tensor<Index>::from({3}, {0, 40, 17}));
  };
  CHECK(infty::tests::with_threads(1, run) == infty::tests::with_threads(2, run));
}

TEST_CASE("look_ahead_attention: shapes and values that do not fit") {
  const Ahead<float> c(2, 3, 2, 4, 2, 2), wider(2, 3, 3, 4, 2, 2), longer(2, 4, 2, 5, 2, 2);
  CHECK_THROWS_WITH(
      infty::look_ahead_attention(c.q, longer.q, longer.q, c.r, c.u, c.w, c.past),
      "[look_ahead_attention] q is [2, 3, 4], k [2, 4, 4], v [2, 4, 4], r [4, 4], u [2, 2], w [2, "
      "2]: they must be [B, M, HD], [B, W, HD] twice, [R, HD], [H, D] twice, 1 <= W <= M < R");
  CHECK_THROWS_AS(infty::look_ahead_attention(c.q, c.k, wider.v, c.r, c.u, c.w, c.past),
                  infty::ShapeError);
  CHECK_THROWS_AS(infty::look_ahead_attention(longer.q, c.k, c.v, c.r, c.u, c.w, longer.past),
                  infty::ShapeError);
  CHECK_THROWS_WITH(infty::look_ahead_attention(c.q, c.k, c.v, c.r, c.u, c.w, longer.past),
                    "[look_ahead_attention] past is [2, 4, 4] and [2, 4, 2], q is [2, 3, 4]: past "
                    "must be [B, M, HD] and [B, M, H]");
  CHECK_THROWS_AS(c.read(Tensor<Index>::from({3}, {0, 0, 0})), infty::ShapeError);
  CHECK_THROWS_WITH(c.read(Tensor<Index>::from({2}, {3, 0})),
                    "[look_ahead_attention] visible is 3 for row 0: it must lie in [0, 2]");
  CHECK_THROWS_AS(c.read(Tensor<Index>::from({2}, {-1, 0})), infty::ValueError);
}
