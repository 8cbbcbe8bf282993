// SPDX-License-Identifier: MIT
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

#include <infty/autograd/activations.hpp>
#include <infty/autograd/shape.hpp>
#include <infty/core/checked.hpp>
#include <infty/core/needs.hpp>
#include <infty/memory/ops/faded_sum.hpp>
#include <infty/memory/ops/network_gradient.hpp>
#include <infty/memory/row_chunks.hpp>
#include <infty/memory/titans_config.hpp>
#include <infty/memory/titans_convolutions.hpp>
#include <infty/memory/titans_state.hpp>
#include <infty/nn/linear.hpp>
#include <infty/nn/sequence_layer.hpp>
#include <infty/nn/unit_vectors.hpp>

namespace infty {

/// A neural memory that learns while it reads [Behrouz et al. 2025, §3.1]: what it remembers are
/// the weights M of a small network, trained by gradient descent to answer each vector's key with
/// its value, with momentum S (the surprise) and decay, all of them chosen by the vectors:
///     S ← η S - ∇ Σₜ θₜ mean((M(kₜ) - vₜ)²),   M ← (1 - α) M + S     [Eqs. 10, 12, 13]
/// for every chunk, with η and α of its mean; a query reads M(q) [Eq. 15]. The gradient of a loss
/// behind it flows through all of that, to keys, values, rates and the first weights.
///
/// Chunks are counted in every row by itself from its first vector, and what does not fill one
/// waits in the state: read in pieces of any lengths, it learns what it learns at once.
template <class T, class Backend>
class TitansMemory {
 public:
  using Scalar = T;
  using BackendType = Backend;
  using V = Variable<T, Backend>;
  using Weights = std::vector<V>;  ///< of networks, a layer each
  using Config = TitansConfig;
  using State = TitansState<T, Backend>;

  Linear<T, Backend> keys, values;          ///< d -> H D, without biases
  Linear<T, Backend> rate, decay, inertia;  ///< d -> H: θ, α and η; the last empty without momentum
  Weights initial;                          ///< [H, in, out], what fresh rows begin with
  TitansConvolutions<T, Backend> convolutions;  ///< behind `keys` and `values`, if there are any
  Linear<T, Backend>
      out;  ///< H D -> d, without a bias; empty for one head of width d, as published

  /// Makes a memory with weights drawn as `Linear` draws them.
  /// @throws infty::ValueError if the configuration is not valid
  explicit TitansMemory(Config config, Random random = Random(0))
      : keys((config.validate(), config.model_dim), config.heads * config.head_dim, random.split(0),
             false),
        values(config.model_dim, config.heads * config.head_dim, random.split(1), false),
        rate(config.model_dim, config.heads, random.split(2)),
        decay(config.model_dim, config.heads, random.split(3)),
        config_(config) {
    const Index D = config.head_dim, last = config.depth - 1;
    if (config.momentum)
      inertia = Linear<T, Backend>(config.model_dim, config.heads, random.split(4));
    for (Index i = 0; i <= last; ++i) {
      const Index in = i > 0 ? config.hidden_dim() : D, to = i < last ? config.hidden_dim() : D;
      initial.push_back(detail::uniform_parameter<T, Backend>(
          Shape{config.heads, in, to}, in, random.split(5).split(static_cast<std::uint64_t>(i))));
    }
    convolutions = {config, random.split(7)};
    if (config.heads > 1 || D != config.model_dim)
      out = Linear<T, Backend>(config.heads * D, config.model_dim, random.split(6), false);
  }

  /// The constants as given.
  const Config& config() const { return config_; }

  template <class Visitor>
  void visit(Visitor&& see) {
    see("keys", keys);
    see("values", values);
    see("rate", rate);
    see("decay", decay);
    if (config_.momentum) see("inertia", inertia);
    see("initial", initial);
    see("convolutions", convolutions);
    if (out.weight.size() > 0) see("out", out);
  }

  /// A state of fresh rows. @throws infty::ValueError unless 1 <= batch <= `largest_size`
  State make_state(Index batch, Index /*first_row*/ = 0) const {
    require_rows("TitansMemory::make_state", batch);
    const RowCounts none(static_cast<std::size_t>(batch), 0);
    State state{
        {}, {}, {}, none, {zeros(Shape{batch, config_.chunk - 1, config_.model_dim}), none}};
    for (const V& weight : initial) {
      const Shape shape{batch, weight.dim(0), weight.dim(1), weight.dim(2)};
      state.learned.push_back(zeros(shape));
      if (config_.momentum) state.momentum.push_back(zeros(shape));
      if (keeps_base()) state.base.push_back(zeros(shape));
    }
    convolutions.start(state, batch);
    return state;
  }

  /// Checks that a memory like this one made a state.
  /// @throws infty::ShapeError that names `op` if not; infty::ValueError if it was moved from
  void check(const char* op, const State& state) const {
    require(!initial.empty(), op, "the memory was moved from");
    const Index batch = detail::checked_rows(op, state), C = config_.chunk;
    const auto fits = [&](const Weights& weights, bool there) {
      bool good = weights.size() == (there ? initial.size() : 0);
      for (std::size_t i = 0; good && i < weights.size(); ++i)
        good = weights[i].shape() ==
               Shape{batch, initial[i].dim(0), initial[i].dim(1), initial[i].dim(2)};
      return good;
    };
    require<ShapeError>(
        batch >= 1 && fits(state.learned, true) && fits(state.momentum, config_.momentum) &&
            fits(state.base, keeps_base()) && convolutions.fits(state, batch) &&
            state.waiting.vectors.shape() == Shape{batch, C - 1, config_.model_dim},
        op, "the state holds ", state.learned.size(), " weights, the first ",
        state.learned.empty() ? Shape{} : state.learned[0].shape(), ", and waiting vectors ",
        state.waiting.vectors.shape(), ": another memory made it, ours has ", initial.size(),
        ", the first [batch, ", initial[0].dim(0), ", ", initial[0].dim(1), ", ", initial[0].dim(2),
        "], and [batch, ", C - 1, ", ", config_.model_dim, "]");
    for (const Index n : state.since)
      require<ShapeError>(n >= 0 && n % C == 0 && n <= config_.weights_every, op,
                          "a row of the state has learned ", n, " vectors since ",
                          config_.weights_every, " were full");
  }

  /// Learns the last counts[row] vectors of every row of x [B, L, d], and what had waited, as far
  /// as chunks are full. @throws infty::ShapeError; then the state is as it was
  void write(State& state, const V& x, const RowCounts& counts) const {
    learn(state, x, counts, nullptr);
  }

  /// What a row's network answers: projected queries [B, Q, H D] -> [B, Q, d].
  /// @throws infty::ShapeError
  V read(const State& state, const V& queries) const {
    check("TitansMemory", state);
    require_queries(queries, state.learned[0].dim(0));
    return combined(ask(weights(state), prepared(queries)));
  }

  /// Writes and, if there are queries [B, L, H D], one a vector of x, answers them on the way: each
  /// by the memory behind the last full chunk, which a chunk's last vector belongs to.
  /// @return [B, L, d], or nothing without queries
  /// @throws infty::ShapeError; then the state is as it was
  V learn(State& state, const V& x, const RowCounts& counts, const V* queries) const {
    check("TitansMemory", state);
    const Index batch = state.learned[0].dim(0), length = x.shape().rank() == 3 ? x.dim(1) : 0;
    require<ShapeError>(
        x.shape() == Shape{batch, length, config_.model_dim} &&
            static_cast<Index>(counts.size()) == batch &&
            std::all_of(counts.begin(), counts.end(),
                        [=](Index n) { return n == length || (!queries && n >= 0 && n < length); }),
        "TitansMemory", "vectors are ", x.shape(), ", and ", counts.size(),
        " rows count some of them: they must be [", batch, ", L, ", config_.model_dim,
        "], and counts, one a row, 0 to L, or L where there are queries");
    if (queries) require_queries(*queries, batch);
    if (length == 0) return queries ? combined(*queries) : V();
    State next = state;
    const V answers = learn_chunks(next, x, counts, queries);
    state = std::move(next);
    return answers;
  }

  /// θ of vectors, how long the step is by which each is learned: [B, L, d] -> [B, L, H].
  /// @throws infty::ShapeError
  V steps(const V& x) const {
    return scale(sigmoid(rate.forward(x)), static_cast<T>(config_.max_rate));
  }

 private:
  static V zeros(const Shape& shape) { return V(Tensor<T, Backend>::zeros(shape)); }

  bool keeps_base() const { return config_.weights_every > config_.chunk; }

  void require_queries(const V& queries, Index batch) const {
    const Index inner = config_.heads * config_.head_dim;
    require<ShapeError>(
        queries.shape().rank() == 3 && queries.shape() == Shape{batch, queries.dim(1), inner},
        "TitansMemory", "queries are ", queries.shape(), ": they must be [", batch, ", Q, ", inner,
        "]");
  }

  /// first + moved, of every layer.
  Weights moved(const Weights& by) const {
    Weights all;
    for (std::size_t i = 0; i < initial.size(); ++i) all.push_back(add(initial[i], by[i]));
    return all;
  }
  Weights weights(const State& state) const { return moved(state.learned); }

  /// Keys or queries [B, n, H D] as networks see them.
  V prepared(const V& x) const {
    const V y = config_.silu ? silu(x) : x;
    return !config_.unit ? y : unit_vectors(y, config_.head_dim, 1e-6, 0);
  }

  /// Prepared queries [B, Q, H D] -> [B, Q, H D].
  V ask(const Weights& now, const V& queries) const {
    if (queries.dim(1) == 0) return queries;
    return detail::side_by_side(network(now, detail::by_head(queries, config_.heads)));
  }

  V combined(const V& answers) const {
    return out.weight.size() > 0 ? out.forward(answers) : answers;
  }

  /// What a chunk's gradients need, of all chunks of a segment: keys and values [B, F C, H D],
  /// steps θ [B, F C, H], and of each chunk's mean 1 - α and η [B, F, H].
  struct Lesson {
    V keys, values, steps, stays, inertia;
  };

  Lesson lesson(const State& state, const V& x, Index chunks) const {
    const Index C = config_.chunk, batch = x.dim(0), d = config_.model_dim;
    const V part(Tensor<T, Backend>::full(Shape{1, C}, T(1) / static_cast<T>(C)));
    const V mean = C == 1 ? x
                          : reshape(matmul(part, reshape(x, Shape{batch * chunks, C, d})),
                                    Shape{batch, chunks, d});
    const V taught = convolutions.projected(values, convolutions.value, state, x);
    return {prepared(convolutions.projected(keys, convolutions.key, state, x)),
            config_.silu ? silu(taught) : taught, steps(x), T(1) - sigmoid(decay.forward(mean)),
            config_.momentum ? sigmoid(inertia.forward(mean)) : V()};
  }

  /// Learns all chunks of a segment, one after the other, and asks on the way.
  V learn_chunks(State& next, const V& x, const RowCounts& counts, const V* queries) const {
    const detail::RowChunks chunks(config_.chunk, x.dim(1), next.waiting.length, counts);
    const Index C = config_.chunk;
    const V all = concat(next.waiting.vectors, x);
    Lesson taught;
    if (chunks.most > 0) {
      const V lessons = detail::pick(all, chunks.most * C,
                                     [&](Index row, Index i) { return chunks.learned(row, i); });
      taught = lesson(next, lessons, chunks.most);
      convolutions.keep(next, lessons,
                        [&](Index row) { return chunks.full[static_cast<std::size_t>(row)] * C; });
    }
    V asked;
    if (queries)
      asked = detail::pick(prepared(*queries), chunks.begun * C,
                           [&](Index row, Index i) { return chunks.query(row, i); });
    Weights now = weights(next), base = first_base(next), answers;
    for (Index j = 0; j < chunks.begun; ++j) {
      const Index last = (j + 1) * C - 1;
      if (queries && C > 1) answers.push_back(ask(now, narrow(asked, j * C, last)));
      if (j < chunks.most) take_step(next, now, base, taught, j, chunks);
      if (queries) answers.push_back(ask(now, narrow(asked, last, last + 1)));
    }
    const V learned = detail::row_mask<T, Backend>(
        x.dim(0), [&](Index row) { return chunks.full[static_cast<std::size_t>(row)] > 0; });
    for (std::size_t i = 0; chunks.most > 0 && i < now.size(); ++i)
      next.learned[i] = detail::chosen(learned, next.learned[i], subtract(now[i], initial[i]));
    if (C > 1) {
      const V kept =
          detail::pick(all, C - 1, [&](Index row, Index i) { return chunks.kept(row, i); });
      next.waiting.vectors = multiply(kept, V(chunks.template kept_mask<T, Backend>()));
    }
    next.waiting.length = chunks.left;
    if (!queries) return {};
    return combined(detail::pick(detail::joined(std::move(answers)), x.dim(1),
                                 [&](Index row, Index i) { return chunks.answer(row, i); }));
  }

  /// The weights at which gradients are taken until they are renewed, a network for each row; none
  /// where these are always the newest.
  Weights first_base(const State& state) const {
    if (config_.weights_every > 0) return keeps_base() ? moved(state.base) : Weights{};
    Weights apart;
    for (const V& learned : state.learned) apart.push_back(zeros(learned.shape()));
    return moved(apart);
  }

  /// Learns chunk j of the rows that have so many [Eqs. 10 and 13]: `now` are their weights, and
  /// what the state says of these is left as it is.
  void take_step(State& next, Weights& now, Weights& base, const Lesson& taught, Index j,
                 const detail::RowChunks& chunks) const {
    const Index C = config_.chunk, every = config_.weights_every, batch = now[0].dim(0),
                heads = config_.heads;
    const auto of_chunk = [&](const V& x) {
      return detail::by_head(narrow(x, j * C, (j + 1) * C), heads);
    };
    const auto of_mean = [&](const V& x) {
      return reshape(narrow(x, j, j + 1), Shape{batch, heads, 1, 1});
    };
    Weights gradient = network_gradient(base.empty() ? now : base, of_chunk(taught.keys),
                                        of_chunk(taught.values), of_chunk(taught.steps));
    if (config_.max_surprise > 0)
      for (V& each : gradient) each = shortened(each, config_.max_surprise);
    const V stays = of_mean(taught.stays);
    const V learns = detail::row_mask<T, Backend>(
        batch, [&](Index row) { return chunks.full[static_cast<std::size_t>(row)] > j; });
    for (std::size_t i = 0; i < now.size(); ++i) {
      const V surprise = config_.momentum ? faded_sum(of_mean(taught.inertia), next.momentum[i],
                                                      gradient[i], T(-1))
                                          : -gradient[i];
      now[i] = detail::chosen(learns, now[i], faded_sum(stays, now[i], surprise));
      if (config_.momentum) next.momentum[i] = detail::chosen(learns, next.momentum[i], surprise);
    }
    if (!keeps_base()) return;
    for (std::size_t row = 0; row < next.since.size(); ++row)
      if (chunks.full[row] > j) next.since[row] = next.since[row] % every + C;
    if (std::find(next.since.begin(), next.since.end(), every) == next.since.end()) return;
    const V renews = detail::row_mask<T, Backend>(
        batch, [&](Index row) { return next.since[static_cast<std::size_t>(row)] == every; });
    for (std::size_t i = 0; i < now.size(); ++i)
      next.base[i] = detail::chosen(renews, next.base[i], subtract(now[i], initial[i]));
    base = moved(next.base);
  }

  Config config_;
};

}  // namespace infty
