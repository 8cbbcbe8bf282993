// SPDX-License-Identifier: MIT
#include <limits>
#include <utility>
#include <vector>

#include <infty/autograd/shape.hpp>
#include <infty/memory/no_memory.hpp>
#include <infty/memory/short_term_memory.hpp>

#include "support/around.hpp"
#include "support/catch.hpp"
#include "support/states.hpp"
#include "support/tensors.hpp"
#include "support/types.hpp"

using infty::Index;
using infty::Random;
using infty::Shape;
using infty::ShortTermConfig;
using infty::ShortTermMemory;
using infty::Tensor;
using infty::Variable;
using infty::tests::uniform_tensor;

namespace {

constexpr infty::AttentionSizes sizes{.model_dim = 6, .heads = 2, .head_dim = 4};

using infty::tests::Around;

/// Places [begin, end) of x [batch, L, d].
template <class T, class B>
Tensor<T, B> part(const Tensor<T, B>& x, Index begin, Index end) {
  return narrow(Variable<T, B>(x), begin, end).value();
}

}  // namespace

TEMPLATE_LIST_TEST_CASE("ShortTermMemory: a segment sees what it would see in a longer one", "",
                        infty::tests::Types) {
  using T = typename TestType::T;
  using B = typename TestType::B;
  const Around<T, B> attend(sizes.model_dim);
  const auto memory = attend.drawn(ShortTermMemory<T, B>({.capacity = 5}, sizes, Random(1)));
  CHECK(memory.fifo().most_held() == 5);
  Random random(infty::tests::seed);
  const auto x = uniform_tensor<T, B>({2, 9, 6}, random);
  for (const bool normed : {false, true}) {
    // The last place of a segment of six sees five before it and itself, however it came to that.
    auto whole = memory.make_state(2), pieces = memory.make_state(2);
    attend(memory, whole, part(x, 0, 3), normed);
    infty::Pass<T, B> pass{.traced = true, .regularised = true};
    const auto at_once = attend(memory, whole, part(x, 3, 9), normed, pass);
    CHECK(at_once.context.shape() == Shape{2, 6, 6});
    CHECK(at_once.queries.shape() == Shape{2, 6, 8});
    REQUIRE(pass.trace.size() == 1);
    CHECK(pass.trace[0].name == "past_weights");
    CHECK(pass.losses.empty());
    Tensor<T, B> last;
    for (Index i = 0; i < 9; ++i) {
      const auto one = attend(memory, pieces, part(x, i, i + 1), normed);
      CHECK(one.leaving.length == infty::RowCounts{i < 5 ? 0 : 1, i < 5 ? 0 : 1});
      last = one.context.value();
    }
    // Place 8 sees 3..8 both times: there by memory and segment, here by memory alone.
    const auto none = attend.drawn(infty::NoMemory<T, B>({}, sizes, Random(1)));
    auto nothing = none.make_state(2);
    const auto alone = attend(none, nothing, part(x, 3, 9), normed);
    CHECK(infty::tests::error(part(alone.context.value(), 5, 6).to_vector(), last.to_vector()) <
          infty::tests::tolerance<T>);
    CHECK(pieces.recent.vectors.to_vector() == whole.recent.vectors.to_vector());
    CHECK(pieces.recent.vectors.to_vector() == part(x, 4, 9).to_vector());
  }
}

TEST_CASE("ShortTermMemory: the stride is 1 unless a long-term memory takes in what leaves") {
  CHECK(ShortTermConfig{.capacity = 12}.resolved(true).stride == 12);
  CHECK(ShortTermConfig{.capacity = 12, .stride = 5}.resolved(true).stride == 5);
  CHECK(ShortTermConfig{.capacity = 12, .stride = 5}.resolved(false).stride == 1);
  CHECK(ShortTermConfig{.capacity = 0}.resolved(true).stride == 1);
  CHECK(ShortTermMemory<float>({.capacity = 4, .stride = 3}, sizes).fifo().most_held() == 6);
  CHECK(infty::NoMemory<float>({}, sizes).fifo().most_held() == 0);
}

TEST_CASE("ShortTermMemory: what cannot be is refused") {
  CHECK_THROWS_WITH(ShortTermMemory<float>({.capacity = -1}, sizes),
                    "[ShortTermConfig] capacity is -1: it must be at least 0");
  CHECK_THROWS_WITH(ShortTermMemory<float>({.stride = -1}, sizes),
                    "[ShortTermConfig] stride is -1: it must be at least 0");
  CHECK_THROWS_WITH(ShortTermMemory<float>({}, {.model_dim = 6, .heads = 0, .head_dim = 4}),
                    "[AttentionSizes] model_dim is 6, heads 0, head_dim 4: they must be >= 1");
  for (const infty::Index huge :
       {infty::Index{1} << 62, std::numeric_limits<infty::Index>::max()}) {
    CHECK_THROWS_WITH(ShortTermMemory<float>({.capacity = huge}, sizes),
                      Catch::Contains("[ShortTermConfig] capacity is "));
    CHECK_THROWS_WITH(ShortTermMemory<float>({.stride = huge}, sizes),
                      Catch::Contains("[ShortTermConfig] stride is "));
    CHECK_THROWS_WITH(ShortTermMemory<float>({}, {.model_dim = 6, .heads = huge, .head_dim = 4}),
                      Catch::Contains("[AttentionSizes] heads is "));
  }
  const Around<float> attend(sizes.model_dim);
  const ShortTermMemory<float> memory({.capacity = 3}, sizes), other({.capacity = 4}, sizes);
  CHECK_THROWS_AS(memory.make_state(0), infty::ValueError);
  auto state = other.make_state(2);
  CHECK_THROWS_AS(attend(memory, state, Tensor<float>::zeros({2, 3, 6}), false), infty::ShapeError);
}

TEST_CASE("ShortTermMemory: a segment that does not fit is refused, and the state is as it was") {
  const Around<float> attend(sizes.model_dim);
  const ShortTermMemory<float> memory({.capacity = 3}, sizes);
  auto state = memory.make_state(2);
  attend(memory, state, Tensor<float>::full({2, 2, 6}, 1), false);
  const auto before = infty::tests::numbers_of(state);
  for (const bool answer : {true, false})
    for (const Shape& shape : {Shape{1, 2, 6}, Shape{2, 2, 5}, Shape{2, 6}}) {
      infty::Pass<float> pass{.answer = answer};
      CAPTURE(answer, shape);
      CHECK_THROWS_AS(attend(memory, state, Tensor<float>::zeros(shape), false, pass),
                      infty::ShapeError);
    }
  for (const auto& [front, back] : {std::pair<Index, Index>{2, 1}, {-1, 1}, {1, -1}}) {
    infty::Pass<float> pass{.before = front, .behind = back};
    CHECK_THROWS_AS(attend(memory, state, Tensor<float>::zeros({2, 2, 6}), false, pass),
                    infty::ShapeError);
  }
  infty::Pass<float> pass{.before = 2, .behind = 1};
  CHECK_THROWS_WITH(attend(memory, state, Tensor<float>::zeros({2, 2, 6}), false, pass),
                    "[ShortTermMemory] of 2 vectors, 2 and 1 are said to be memory tokens");
  CHECK(infty::tests::numbers_of(state) == before);
}

TEMPLATE_LIST_TEST_CASE("ShortTermMemory: memory tokens are attended to, and not held", "",
                        infty::tests::Types) {
  using T = typename TestType::T;
  using B = typename TestType::B;
  using Pass = infty::Pass<T, B>;
  const Around<T, B> attend(sizes.model_dim);
  const auto memory =
      attend.drawn(ShortTermMemory<T, B>({.capacity = 4, .stride = 2}, sizes, Random(1)));
  constexpr Index before = 2, behind = 1;
  const auto error = [](const Tensor<T, B>& a, const Tensor<T, B>& b) {
    return infty::tests::error(a.to_vector(), b.to_vector());
  };
  Random random(infty::tests::seed);
  for (const bool normed : {false, true}) {
    // A call on a copy of a state: what it says, and where it leaves the state.
    const auto call = [&](auto from, const Tensor<T, B>& x, Pass pass) {
      const auto attended = attend(memory, from, x, normed, pass);
      return std::pair(attended, from);
    };
    auto state = memory.make_state(2), words_alone = state;
    for (const Index words : {3, 1, 0, 5, 2}) {
      CAPTURE(normed, words);
      const Index end = before + words, L = end + behind;
      const auto x = uniform_tensor<T, B>({2, L, 6}, random);
      const Pass tokens{.before = before, .behind = behind};
      const auto [got, next] = call(state, x, tokens);

      // Attention takes them for vectors like any others, behind kept keys and without them.
      const auto [plain, with_tokens] = call(state, x, {});
      CHECK(got.context.value().to_vector() == plain.context.value().to_vector());
      CHECK(got.queries.value().to_vector() == plain.queries.value().to_vector());
      auto forgetful = state;
      forgetful.cache = {};
      const auto [anew, next_anew] = call(forgetful, x, tokens);
      CHECK(error(anew.context.value(), got.context.value()) < infty::tests::tolerance<T>);
      const auto recorded = [&] {
        infty::Tape tape;
        return call(state, x, tokens);
      }();
      CHECK(error(recorded.first.context.value(), got.context.value()) <
            infty::tests::tolerance<T>);
      const auto changed = [&](Index place) {
        const Variable<T, B> one(Tensor<T, B>::full({2, 1, 6}, T(.5)));
        const auto other = concat(concat(Variable<T, B>(part(x, 0, place)), one),
                                  Variable<T, B>(part(x, place + 1, L)))
                               .value();
        return call(state, other, tokens).first.context.value();
      };
      const auto seen = [&](const Tensor<T, B>& y) { return part(y, 0, end).to_vector(); };
      CHECK(seen(changed(0)) != seen(got.context.value()));
      CHECK(seen(changed(end)) == seen(got.context.value()));  // they see nothing behind them

      // What is held, and what leaves, are the words.
      const auto left = attend(memory, words_alone, part(x, before, end), normed).leaving;
      const auto held = infty::tests::numbers_of(words_alone);
      CHECK(infty::tests::numbers_of(with_tokens) != held);
      const auto silent = call(state, x, {.answer = false, .before = before, .behind = behind});
      for (const auto* one : {&got, &anew, &recorded.first, &silent.first}) {
        CHECK(one->leaving.length == left.length);
        CHECK(one->leaving.vectors.to_vector() == left.vectors.to_vector());
      }
      for (const auto* one : {&next, &next_anew, &recorded.second, &silent.second})
        CHECK(infty::tests::numbers_of(*one) == held);

      state = next;
      if (words == 3) {  // rows of different lengths from here on
        reset_row(state, 1);
        reset_row(words_alone, 1);
      }
    }
  }
}

TEST_CASE("ShortTermMemory: counts its products") {
  // Queries and output, keys and values, positions: 2 rows, 3 queries, 5 keys, d = 6, H D = 8; then
  // three products over 3 + 4 + 5 pairs a row.
  const double maps = 2.0 * (2 * 3 * 16 * 6 + 2 * 5 * 16 * 6 + 5 * 8 * 6);
  const double pairs = 3 * 2.0 * 2 * 8 * (3 + 4 + 5);
  CHECK(ShortTermMemory<float>({.capacity = 2}, sizes).flops(2, 3) == maps + pairs);
}

TEMPLATE_LIST_TEST_CASE(
    "ShortTermMemory: a traced pass sees what words and tokens read of each "
    "other",
    "", infty::tests::Types) {
  using T = typename TestType::T;
  using B = typename TestType::B;
  // Every vector of the past and of the segment is another unit vector, which values and answers of
  // one head leave as they are: what a place answers are its weights.
  constexpr Index d = 10, capacity = 4, past = 3, m = 2, words = 3, length = 2 * m + words;
  ShortTermMemory<T, B> memory({.capacity = capacity}, {.model_dim = d, .heads = 2, .head_dim = d},
                               Random(1));
  std::vector<T> one(static_cast<std::size_t>(d * d));
  for (std::size_t i = 0; i < d; ++i) one[i * (d + 1)] = T(1);
  const auto unit = Tensor<T, B>::from({1, d, d}, one);
  std::vector<T> values = one;
  values.insert(values.end(), one.begin(), one.end());
  memory.attention.value.weight.value().copy_from(Tensor<T, B>::from({2 * d, d}, values));
  const auto of_head = [&](std::size_t head) {
    std::vector<T> out(2 * d * d);
    for (std::size_t i = 0; i < d; ++i) out[i * 2 * d + head * d + i] = T(1);
    return Tensor<T, B>::from({d, 2 * d}, out);
  };
  using infty::AheadPositions, infty::TokenRules;
  for (const TokenRules& rules :
       {TokenRules{}, TokenRules{.both_ways = true}, TokenRules{.read_past = false},
        TokenRules{.both_ways = true, .read_past = true, .ahead = AheadPositions::shifted}}) {
    CAPTURE(rules.both_ways, rules.read_past);
    std::vector<T> read, read_back, of_past;
    infty::Pass<T, B> pass;
    for (std::size_t head = 0; head < 2; ++head) {
      memory.attention.out.weight.value().copy_from(of_head(head));
      auto state = memory.make_state(1);
      infty::Pass<T, B> first;
      memory.forward(state, Variable<T, B>(part(unit, 0, past)), {}, first);
      pass = infty::Pass<T, B>{.before = m, .behind = m, .tokens = rules, .traced = true};
      const auto y =
          memory.forward(state, Variable<T, B>(part(unit, past, d)), {}, pass).value().to_vector();
      REQUIRE(std::ssize(y) == length * d);
      const auto weight = [&](Index query, Index key) {
        return y[static_cast<std::size_t>(query * d + past + key)];
      };
      for (Index i = m; i < m + words; ++i)
        for (Index j = 0; j < m; ++j) read.push_back(weight(i, j));
      for (Index i = m; i < m + words; ++i)
        for (Index j = 0; j < capacity; ++j)
          of_past.push_back(j < capacity - past
                                ? T(0)
                                : y[static_cast<std::size_t>(i * d + j - (capacity - past))]);
      for (Index i = m + words; i < length; ++i)
        for (Index j = m; j < m + words; ++j) read_back.push_back(weight(i, j));
      for (Index i = 0; i < length; ++i) {
        double sum = 0;
        for (Index j = 0; j < d; ++j)
          sum += static_cast<double>(y[static_cast<std::size_t>(i * d + j)]);
        CHECK(sum == Approx(1));
      }
    }
    CHECK(first_shown(pass, "tokens_read").shape() == Shape{1, 2, words, m});
    CHECK(infty::tests::error(first_shown(pass, "tokens_read").value().to_vector(), read) <
          infty::tests::tolerance<T>);
    CHECK(first_shown(pass, "words_read").shape() == Shape{1, 2, m, words});
    CHECK(infty::tests::error(first_shown(pass, "words_read").value().to_vector(), read_back) <
          infty::tests::tolerance<T>);
    CHECK(first_shown(pass, "past_weights").shape() == Shape{1, 2, words, capacity});
    CHECK(infty::tests::error(first_shown(pass, "past_weights").value().to_vector(), of_past) <
          infty::tests::tolerance<T>);
    CHECK(pass.trace.size() == 3);
    for (const auto& shown : pass.trace)
      CHECK(shown.axes == (shown.name == "tokens_read"  ? "row head word token"
                           : shown.name == "words_read" ? "row head token word"
                                                        : "row head word place"));
  }
}
