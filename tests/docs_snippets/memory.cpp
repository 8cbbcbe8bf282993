// SPDX-License-Identifier: MIT
#include <infty/memory/memory_pair.hpp>
#include <infty/memory/no_memory.hpp>
#include <infty/testing/memory_invariants.hpp>

#include "io/temporary_folder.hpp"
#include "support/catch.hpp"

using infty::Index, infty::Random, infty::Shape, infty::Tensor, infty::Variable;

/// How much of what was remembered stays, a vector.
struct AverageConfig {
  double decay = 1;
};

/// What an average remembers: rows of sums, and of the weights of what is in them.
template <class T, class B = infty::EigenBackend>
struct AverageState {
  Tensor<T, B> sum, weight;  // [batch, d], [batch, 1]

  template <class Visitor>
  void visit(Visitor&& see) {
    see("sum", sum);
    see("weight", weight);
  }
};

/// Whether a segment x [batch, L, d] fits a state.
template <class T, class B>
void check(const AverageState<T, B>& state, const Tensor<T, B>& x) {
  infty::require<infty::ShapeError>(state.sum.shape() == Shape{x.dim(0), x.dim(2)}, "AverageMemory",
                                    "the segment is ", x.shape(), ", the state holds ",
                                    state.sum.shape());
}

/// For every place of a segment x [batch, L, d] the average of what came before it; zeros where
/// nothing did. A function of its own: nvcc takes no kernel in a private member.
template <class T, class B>
Tensor<T, B> average_before(const AverageState<T, B>& state, const Tensor<T, B>& x) {
  Tensor<T, B> average(x.shape());
  const Index length = x.dim(1), d = x.dim(2);
  const T *const s = state.sum.data(), *const w = state.weight.data();
  T* const to = average.data();
  B::for_each(average.size(), [=] INFTY_HOST_DEVICE(Index i) {
    const Index row = i / (length * d);
    to[i] = w[row] > 0 ? s[row * d + i % d] / w[row] : T(0);
  });
  return average;
}

/// The state behind a segment, in tensors of its own: copies of a state share theirs.
template <class T, class B>
AverageState<T, B> average_with(const AverageState<T, B>& state, const Tensor<T, B>& x, T decay) {
  auto sum = state.sum.clone(), weight = state.weight.clone();
  const Index length = x.dim(1), d = x.dim(2);
  const T* const from = x.data();
  T *const s = sum.data(), *const w = weight.data();
  B::for_each_row(sum.size(), length, [=] INFTY_HOST_DEVICE(Index i) {
    for (Index l = 0; l < length; ++l) s[i] = decay * s[i] + from[(i / d * length + l) * d + i % d];
  });
  B::for_each_row(weight.size(), length, [=] INFTY_HOST_DEVICE(Index i) {
    for (Index l = 0; l < length; ++l) w[i] = decay * w[i] + 1;
  });
  return {sum, weight};
}

/// Attention over the segment, and beside it, through a linear layer, the average of all vectors
/// before it.
template <class T, class B = infty::EigenBackend>
class AverageMemory {
 public:
  using Scalar = T;
  using BackendType = B;
  using Config = AverageConfig;
  using State = AverageState<T, B>;

  AverageMemory(AverageConfig config, infty::AttentionSizes sizes, Random random)
      : segment_alone_({}, sizes),
        out_(sizes.model_dim, sizes.model_dim, random, false),
        decay_(static_cast<T>(config.decay)) {
    infty::require(0 < config.decay && config.decay <= 1, "AverageMemory", "decay is ",
                   config.decay, ": it must lie in (0, 1]");
  }

  template <class Visitor>
  void visit(Visitor&& see) {
    see("out", out_);
  }

  State make_state(Index batch, Index /*first_row*/) const {
    return {Tensor<T, B>::zeros({batch, out_.weight.dim(1)}), Tensor<T, B>::zeros({batch, 1})};
  }

  infty::MemoryReading<T, B> forward(State& state, const infty::Segment<T, B>& segment) const {
    check(state, segment.x.value());
    const Variable<T, B> average(average_before(state, segment.x.value()));  // [batch, L, d]
    auto none = segment_alone_.make_state(segment.x.dim(0));
    auto reading = segment_alone_.forward(none, segment);
    reading.context = reading.context + out_.forward(segment.normed(average));
    state = average_with(state, segment.x.value(), decay_);
    return reading;
  }

  infty::RowSequences<T, B> observe(State& state, const infty::Segment<T, B>& segment) const {
    check(state, segment.x.value());
    auto none = segment_alone_.make_state(segment.x.dim(0));
    auto leaving =
        segment_alone_.observe(none, segment);  // all of it, for a memory behind this one
    state = average_with(state, segment.x.value(), decay_);
    return leaving;
  }

  Index reach() const { return 0; }

  double flops(Index batch, Index length) const {
    return segment_alone_.flops(batch, length) +
           2.0 * static_cast<double>(batch * length * out_.weight.size());
  }

 private:
  infty::NoMemory<T, B> segment_alone_;
  infty::Linear<T, B> out_;  // d -> d
  T decay_;
};

static_assert(infty::Memory<AverageMemory<float>>);
static_assert(infty::Memory<infty::MemoryPair<AverageMemory<float>, infty::LongTermMemory<float>>>);

TEST_CASE("docs: a memory of one's own keeps the promises of all memories") {
  const infty::tests::TemporaryFolder folder;
  infty::testing::require_memory<AverageMemory>({.decay = .9}, folder / "state");
}

TEST_CASE("docs: a model with a memory of one's own") {
  const infty::TransformerLM<double, AverageMemory> model(
      {.vocabulary = 5, .model_dim = 8, .layers = 2, .heads = 2, .feed_forward = 16}, {.decay = .9},
      Random(1));
  auto state = model.make_state(2);
  const auto tokens = Tensor<Index>::from({2, 3}, {0, 1, 2, 3, 4, 0});
  model.observe(state, tokens);  // only the memory is to see these
  const auto output = model.forward(state, tokens);
  CHECK(model.logits(output.hidden).shape() == Shape{2, 3, 5});
  CHECK(bytes_of(state) == 2 * 2 * (8 + 1) * sizeof(double));  // layers, rows, numbers
}
