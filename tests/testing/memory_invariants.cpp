// SPDX-License-Identifier: MIT
#include <string>

#include <infty/autograd/shape.hpp>
#include <infty/memory/infty_memory.hpp>
#include <infty/memory/linear_attention.hpp>
#include <infty/memory/no_memory.hpp>
#include <infty/memory/short_term_memory.hpp>
#include <infty/nn/linear.hpp>
#include <infty/testing/memory_invariants.hpp>

#include "io/temporary_folder.hpp"
#include "support/catch.hpp"
#include "support/mean_memory.hpp"
#include "support/nearest_memory.hpp"
#include "support/other_backend.hpp"

using infty::Index;
using infty::LongTermConfig;
using infty::Random;
using infty::Resampling;
using infty::testing::require_memory;
using infty::testing::require_mixer;
using infty::tests::MeanMemory;

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
  forgets_gradient,
  hides,
  spoils,
  first_ones,
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
  using V = infty::Variable<T, B>;
  static constexpr bool answers_first = true;

  struct State {
    infty::ShortTermState<T, B> recent;
    infty::RowSequences<T, B> all;  ///< of the mistake `grows`

    template <class Visitor>
    void visit(Visitor&& see) {
      see("recent", recent);
      see("all", all);
    }
  };

  explicit SlippingMemory(SlippingConfig config, infty::AttentionSizes sizes,
                          Random random = Random(0))
      : slip_(config.slip),
        memory_({.capacity = 4}, sizes, random.split(0)),
        more_(sizes.model_dim, sizes.model_dim, random.split(1)),
        dim_(sizes.model_dim) {}

  template <class Visitor>
  void visit(Visitor&& see) {
    memory_.visit(see);
    if (slip_ != Slip::hides) see("more", more_);
  }

  State make_state(Index batch, Index = 0) const {
    return {memory_.make_state(batch),
            {infty::Tensor<T, B>::zeros({batch, 0, dim_}),
             infty::RowCounts(static_cast<std::size_t>(batch), 0)}};
  }

  V forward(State& state, const V& x, const infty::InputNorm<T, B>& norm,
            infty::Pass<T, B>& pass) const {
    if (slip_ == Slip::observes_nothing && !pass.answer) return {};
    if (slip_ == Slip::takes_any && state.recent.recent.vectors.dim(2) != dim_)
      state = make_state(x.dim(0));
    if (slip_ == Slip::spoils && state.recent.recent.vectors.dim(2) != dim_)
      state.recent.recent.length.assign(state.all.length.size(), 0);
    if (slip_ == Slip::shares && pass.answer)  // in place, of rows that hold some
      for (Index row = 0; row < x.dim(0); ++row)
        if (state.recent.recent.length[static_cast<std::size_t>(row)] > 0)
          state.recent.recent.vectors.slice(row, row + 1).data()[4 * dim_ - 1] += 1;
    V y = memory_.forward(state.recent, x, norm, pass);
    const Index last = x.dim(1) - 1;
    if (slip_ == Slip::sees_later && pass.answer)
      y = y + concat(narrow(x, last, last + 1), narrow(x, 0, last));
    if (slip_ == Slip::detaches) y = V(y.value().clone());
    if (slip_ == Slip::forgets_gradient && pass.answer)
      y = y + linear(x, more_.weight.detach()) * 1e-6;
    if (slip_ == Slip::hides && pass.answer) y = y + more_.forward(x);
    if (slip_ == Slip::first_ones && pass.first > 0) y = narrow(y, 1, y.dim(1));
    if (slip_ == Slip::grows) {
      state.all.vectors = concat(V(state.all.vectors), V(x.value())).value();
      for (Index& length : state.all.length) length += x.dim(1);
    }
    return y;
  }

  double flops(Index batch, Index length) const {
    return slip_ == Slip::no_count ? 1 : memory_.flops(batch, length);
  }

 private:
  Slip slip_;
  infty::ShortTermMemory<T, B> memory_;
  infty::Linear<T, B> more_;
  Index dim_;
};

/// A mixer whose states are of one shape in all models.
template <class T, class B = infty::EigenBackend>
class CountingMixer {
 public:
  using Scalar = T;
  using BackendType = B;
  using V = infty::Variable<T, B>;
  struct Config {};
  struct State {
    infty::RowCounts age;

    template <class Visitor>
    void visit(Visitor&& see) {
      see("age", age);
    }
  };

  CountingMixer(Config, infty::AttentionSizes sizes, Random random)
      : map_(sizes.model_dim, sizes.model_dim, random) {}

  template <class Visitor>
  void visit(Visitor&& see) {
    map_.visit(see);
  }
  State make_state(Index batch, Index = 0) const {
    return {infty::RowCounts(static_cast<std::size_t>(batch), 0)};
  }
  V forward(State& state, const V& x, infty::Pass<T, B>&) const {
    V y = map_.forward(x);
    for (Index& n : state.age) n += x.dim(1);
    return y;
  }

 private:
  infty::Linear<T, B> map_;
};

}  // namespace slips

using namespace slips;

TEST_CASE("require_mixer: what the kit finds in a mixer with a mistake") {
  const infty::tests::TemporaryFolder folder;
  const auto broken = [&](Slip slip) {
    try {
      require_mixer<SlippingMemory<double>>({slip}, folder / "state");
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
  CHECK(broken(Slip::forgets_gradient) == "[model_gradient]");
  CHECK(broken(Slip::hides) == "[visits_all]");
  CHECK(broken(Slip::spoils) == "[refuses_foreign_states]");
  CHECK(broken(Slip::first_ones) == "[answers_first]");
  CHECK(broken(Slip::no_count) == "[flops]");
}

TEST_CASE("require_mixer: what it finds is told by rule, member, shape, element and both values") {
  const infty::tests::TemporaryFolder folder;
  const auto said = [&](Slip slip) {
    try {
      require_mixer<SlippingMemory<double>>({slip}, folder / "state");
    } catch (const infty::testing::InvariantError& error) {
      return std::string(error.what());
    }
    return std::string();
  };
  CHECK_THAT(said(Slip::observes_nothing),
             Catch::Contains("; observe leaves the state that forward leaves, with a tape and "
                             "without one: state member '") &&
                 Catch::Contains(" observed, ") && Catch::EndsWith(" forward"));
  CHECK_THAT(said(Slip::grows),
             Catch::Contains("; a full state stays as large as it is, and finite: state member "
                             "'layers.0.mixer.all.vectors' is [1, 490, 4] behind 490 tokens, [1, "
                             "140, 4] behind 140"));
  CHECK_THAT(said(Slip::takes_any),
             Catch::Contains("; another's state is refused and left as it was: forward of a model "
                             "with model_dim 6 took a state of one with 4"));
  CHECK_THAT(said(Slip::detaches),
             Catch::Matches(R"(.*allowed is 1e-06; gradients are those of central differences: )"
                            R"(parameter layers\.\d\.mixer\.[\w.]+ \[[\d, ]+\], row \d+, element )"
                            R"(\d+: 0 by backward, -?[\d.e-]+ by central differences)"));
}

TEST_CASE("NoMemory, ShortTermMemory: keep to what every mixer keeps to") {
  const infty::tests::TemporaryFolder folder;
  require_mixer<infty::NoMemory<double>>({}, folder / "state");
  require_mixer<infty::ShortTermMemory<double>>({.capacity = 4}, folder / "state");
  require_mixer<infty::ShortTermMemory<double>>({.capacity = 3, .stride = 3}, folder / "state");
}

TEST_CASE("require_mixer: a state that is of one shape in all models is no foreign one") {
  const infty::tests::TemporaryFolder folder;
  require_mixer<CountingMixer<double>>({}, folder / "state");
}

TEST_CASE("InftyMemory: keeps to what every mixer keeps to, whatever is set") {
  const infty::tests::TemporaryFolder folder;
  infty::InftyConfig config{.attention = {.capacity = 4},
                            .memory = LongTermConfig{.basis = 6, .widths = {.1, .3}, .samples = 5}};
  SECTION("both memories, cleared after some vectors") { config.memory->threshold = 7; }
  SECTION("vectors leave one by one, sticky") {
    config.attention.stride = 1;
    config.memory->resampling = Resampling::sticky;
  }
  SECTION("long-term only") { config.attention.capacity = 0; }
  SECTION("short-term only") { config.memory.reset(); }
  require_mixer<infty::InftyMemory<double>>(config, folder / "state");
}

TEST_CASE("LongTermMemory: is a memory, beside attention over each segment alone") {
  const infty::tests::TemporaryFolder folder;
  LongTermConfig config{.basis = 6, .widths = {.1, .3}, .samples = 5};
  SECTION("as it is") {}
  SECTION("sticky") { config.resampling = Resampling::sticky; }
  require_memory<infty::LongTermMemory<double>>(config, folder / "state");
}

TEST_CASE("require_memory: a memory of one's own need not count products nor share anything") {
  const infty::tests::TemporaryFolder folder;
  require_memory<MeanMemory<double>>({}, folder / "state");
  CHECK_THROWS_WITH(require_memory<MeanMemory<double>>({.counts_rows = false}, folder / "state"),
                    Catch::Contains("[reset_equals_fresh]"));
}

TEST_CASE("require_memory: a memory that keeps what it remembers in an index, without a gradient") {
  using Nearest = infty::tests::NearestMemory<double>;
  using Mixer = infty::WithMemory<infty::NoMemory<double>, Nearest>;
  static_assert(!infty::state_takes_gradient<Nearest> && !infty::state_takes_gradient<Mixer>);
  static_assert(infty::state_takes_gradient<infty::LongTermMemory<double>>);
  const infty::tests::TemporaryFolder folder;
  require_memory<Nearest>({.capacity = 6}, folder / "state");
}

TEST_CASE("require_mixer: a mixer on a backend that is not the default") {
  const infty::tests::TemporaryFolder folder;
  CHECK_NOTHROW(require_mixer<infty::LinearAttention<double, infty::tests::OtherBackend>>(
      {}, folder / "state"));
}

TEST_CASE("TransformerLM: with a short-term memory that holds all, pieces are the whole") {
  const infty::testing::TokenMemory<infty::ShortTermMemory<double>> memory({.capacity = 30});
  CHECK(pieces_equal_whole(memory, infty::testing::some_stream()) < 1e-12);
}
