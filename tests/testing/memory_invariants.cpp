// SPDX-License-Identifier: MIT
#include <string>

#include <infty/memory/no_memory.hpp>
#include <infty/testing/memory_invariants.hpp>

#include "io/temporary_folder.hpp"
#include "support/catch.hpp"

using infty::Index;
using infty::LongTermConfig;
using infty::Random;
using infty::Resampling;
using infty::testing::require_memory;

// Not without a name: a model that is made of these is a type with a name.
namespace slips {

enum class Slip {
  none,
  sees_later,
  observes_nothing,
  shares,
  grows,
  takes_any,
  detaches,
  no_count
};

struct SlippingConfig {
  Slip slip = Slip::none;
};

/// A short-term memory of four vectors that makes one mistake on request.
template <class T, class B = infty::EigenBackend>
class SlippingMemory {
 public:
  using Scalar = T;
  using BackendType = B;
  using Config = SlippingConfig;

  struct State {
    infty::ShortTermState<T, B> recent;
    infty::RowSequences<T, B> all;  ///< of the mistake `grows`

    template <class Visitor>
    void visit(Visitor&& see) {
      see("recent", recent);
      see("all", all);
    }
  };

  explicit SlippingMemory(SlippingConfig config, infty::AttentionSizes sizes, Random = Random(0))
      : slip_(config.slip), memory_({.capacity = 4}, sizes), dim_(sizes.model_dim) {}

  template <class Visitor>
  void visit(Visitor&&) {}

  State make_state(Index batch, Index = 0) const {
    return {memory_.make_state(batch),
            {infty::Tensor<T, B>::zeros({batch, 0, dim_}),
             infty::RowCounts(static_cast<std::size_t>(batch), 0)}};
  }

  infty::MemoryReading<T, B> forward(State& state, const infty::Segment<T, B>& segment) const {
    if (slip_ == Slip::takes_any && state.recent.recent.vectors.dim(2) != dim_)
      state = make_state(segment.x.dim(0));
    if (slip_ == Slip::shares)  // in place, of rows that hold some
      for (Index row = 0; row < segment.x.dim(0); ++row)
        if (state.recent.recent.length[static_cast<std::size_t>(row)] > 0)
          state.recent.recent.vectors.slice(row, row + 1).data()[4 * dim_ - 1] += 1;
    auto reading = memory_.forward(state.recent, segment);
    const Index last = segment.length() - 1;
    if (slip_ == Slip::sees_later)
      reading.context =
          reading.context + concat(narrow(segment.x, last, last + 1), narrow(segment.x, 0, last));
    if (slip_ == Slip::detaches)
      reading.context = infty::Variable<T, B>(reading.context.value().clone());
    keep(state, segment);
    return reading;
  }

  infty::RowSequences<T, B> observe(State& state, const infty::Segment<T, B>& segment) const {
    if (slip_ == Slip::observes_nothing) return {};
    if (slip_ == Slip::takes_any && state.recent.recent.vectors.dim(2) != dim_)
      state = make_state(segment.x.dim(0));
    keep(state, segment);
    return memory_.observe(state.recent, segment);
  }

  Index reach() const { return memory_.reach(); }
  double flops(Index batch, Index length) const {
    return slip_ == Slip::no_count ? 1 : memory_.flops(batch, length);
  }

 private:
  void keep(State& state, const infty::Segment<T, B>& segment) const {
    if (slip_ != Slip::grows) return;
    using V = infty::Variable<T, B>;
    state.all.vectors = concat(V(state.all.vectors), V(segment.x.value())).value();
    for (Index& length : state.all.length) length += segment.length();
  }

  Slip slip_;
  infty::ShortTermMemory<T, B> memory_;
  Index dim_;
};

}  // namespace slips

using namespace slips;

TEST_CASE("require_memory: what the kit finds in a memory with a mistake") {
  const infty::tests::TemporaryFolder folder;
  const auto broken = [&](Slip slip) {
    try {
      require_memory<SlippingMemory>({slip}, folder / "state");
    } catch (const infty::testing::InvariantError& error) {
      const std::string text = error.what();
      return text.substr(0, text.find(']') + 1);
    }
    return std::string("nothing");
  };
  CHECK(broken(Slip::none) == "nothing");
  CHECK(broken(Slip::sees_later) == "[output_ignores_future]");
  CHECK(broken(Slip::observes_nothing) == "[observe_equals_forward]");
  CHECK(broken(Slip::shares) == "[output_ignores_future]");  // copies share what it changes
  CHECK(broken(Slip::grows) == "[stays_bounded]");
  CHECK(broken(Slip::takes_any) == "[refuses_foreign_states]");
  CHECK(broken(Slip::detaches) == "[model_gradient]");
  CHECK(broken(Slip::no_count) == "[flops]");
}

TEST_CASE("NoMemory, ShortTermMemory: are memories") {
  const infty::tests::TemporaryFolder folder;
  require_memory<infty::NoMemory>({}, folder / "state");
  require_memory<infty::ShortTermMemory>({.capacity = 4}, folder / "state");
  require_memory<infty::ShortTermMemory>({.capacity = 3, .stride = 3}, folder / "state");
}

TEST_CASE("InftyMemory: is a memory, whatever is set") {
  const infty::tests::TemporaryFolder folder;
  infty::InftyConfig config{
      .short_term = {.capacity = 4},
      .long_term = LongTermConfig{.basis = 6, .widths = {.1, .3}, .samples = 5}};
  SECTION("both memories, cleared after some vectors") { config.long_term->threshold = 7; }
  SECTION("vectors leave one by one, sticky") {
    config.short_term.stride = 1;
    config.long_term->resampling = Resampling::sticky;
  }
  SECTION("long-term only") { config.short_term.capacity = 0; }
  SECTION("short-term only") { config.long_term.reset(); }
  require_memory<infty::InftyMemory>(config, folder / "state");
}

TEST_CASE("TransformerLM: with a short-term memory that holds all, pieces are the whole") {
  const infty::testing::TokenMemory<infty::ShortTermMemory> memory({.capacity = 30});
  CHECK(pieces_equal_whole(memory, infty::testing::some_stream()) < 1e-12);
}
