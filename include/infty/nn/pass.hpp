// SPDX-License-Identifier: MIT
#pragma once

#include <optional>
#include <string_view>
#include <utility>
#include <vector>

#include <infty/autograd/reduce.hpp>
#include <infty/autograd/tape.hpp>
#include <infty/core/pool.hpp>
#include <infty/core/state.hpp>
#include <infty/nn/dropout.hpp>
#include <infty/nn/fwd.hpp>
#include <infty/nn/token_rules.hpp>

namespace infty {

/// Which vectors of the last block are kept: none, or what its feed-forward layer works on, in
/// front of the norm that stands there or behind it.
enum class FeedInput { none, plain, normed };

/// Vectors of the past that no layer of attention holds, of every row, the newest last.
template <class T, class Backend>
struct OlderVectors {
  Variable<T, Backend> vectors;  ///< [batch, P, d], of any finite value in front of a shorter row's
  RowCounts length = {};         ///< [batch], each <= P
};

/// One call of a model: what all of its layers are told, and what they report. A call that throws
/// leaves it spent.
template <class T, class Backend>
struct Pass {
  using V = Variable<T, Backend>;

  /// Something that a layer reports, under a name that is a literal.
  struct Entry {
    std::string_view name;  ///< such as "divergence"
    V value;                ///< a scalar in `losses`, of any shape in `trace`
    /// In `trace`, what the dimensions are, a word each, such as "row head word slot": "row" is the
    /// batch, "word" the words of the segment in their order, "head" the heads, and what else there
    /// is the layer names. Who draws whatever is shown goes by it; empty for what is no picture.
    std::string_view axes = {};
    Index layer = -1;  ///< in `trace`, which of its stack has shown it; -1: none of a stack
  };
  /// What has been reported, in the order of the layers.
  using Entries = PoolVector<Entry>;

  Random* random = nullptr;  ///< for dropout, while training; null for none
  double dropout = 0;        ///< share that is dropped where `random` is given, in [0, 1)
  /// Share of attention's probabilities that is dropped there, in [0, 1), by the mixers that go by
  /// it: `CausalAttention`, `CachedAttention`, `CompressiveCausalAttention`.
  double attention_dropout = 0;
  /// Whether anybody wants a layer's answer. Without it a layer moves its state on and may return
  /// nothing.
  bool answer = true;
  /// Of how many vectors, the first of the segment, anybody wants the answers, where it is not 0:
  /// a layer that `answers_first` may leave the others out.
  Index first = 0;
  Index before = 0;  ///< first vectors of the segment that are memory tokens
  Index behind = 0;  ///< last ones that are
  /// Whether anybody wants the answers of the first `before` vectors. Without it a mixer may leave
  /// them out.
  bool answer_before = true;
  TokenRules tokens = {};    ///< what memory tokens see, and whether they are held
  bool traced = false;       ///< whether layers fill `trace`
  bool regularised = false;  ///< whether losses are wanted even while no tape records
  V slots = {};              ///< [B, m, d], what layers may read beside the segment; empty for none
  /// The words of the segment [batch, L], none of which are memory tokens, for layers that look at
  /// these beside the vectors; empty where nobody has them. A `LanguageModel` puts its own here.
  Tensor<Index, Backend> words = {};
  /// Token types of the words [batch, L], for an embedding that adds their vectors, as GPT-2's does
  /// (`TypedEmbedding`); empty for none.
  Tensor<Index, Backend> types = {};
  /// [batch], how many words of a row's segment, the last ones, are there; those in front of them
  /// are padding, which nobody is to see. Empty for all. Only layers that say `reads_padded` go by
  /// it, and whoever pads asks them first.
  Tensor<Index, Backend> visible = {};

  /// Tokens that were looked up for each word [batch, L, k], for a model that reads such (`Spalm`);
  /// empty for none.
  Tensor<Index, Backend> retrieved = {};
  /// What stands in front of all that attention holds, as attention sees vectors, behind their
  /// norm; empty for none. Of attention that says `reads_older`; who puts it there takes it away.
  OlderVectors<T, Backend> older = {};
  /// Which inputs of the last `Block`'s feed-forward layer are kept in `feed_input`.
  FeedInput keep = FeedInput::none;
  /// [batch, L, d], those of the words, without a gradient; empty where no block has kept any.
  Tensor<T, Backend> feed_input = {};

  /// Whether the call is of a training, for layers that go by the batch then and by what they have
  /// seen before otherwise (`BatchNorm`). Left open, it is while a tape records: say false for
  /// gradients of a model as it is used, true for what trains without a tape.
  std::optional<bool> training = {};
  Index layer = -1;  ///< which layer of a stack runs, as `Layers` says; -1: none of a stack

  Entries losses = {};  ///< of layers' own, scalars; made if `wants_losses()`
  Entries trace = {};   ///< what layers let one look at, densities and the like

  /// Whether the call is of a training: see `training`.
  bool trains() const { return training.value_or(Tape::active() != nullptr); }

  /// The share that is dropped.
  double drop() const { return random ? dropout : 0; }

  /// x with dropout.
  V dropped(const V& x) const { return dropped(x, dropout); }

  /// The same with a share of its own, in [0, 1).
  V dropped(const V& x, double share) const {
    return random ? infty::dropout(x, share, *random) : x;
  }

  /// residual + dropout(x).
  V add_dropped(const V& residual, const V& x) const {
    Random unused(0);
    return infty::add_dropped(residual, x, drop(), random ? *random : unused);
  }

  /// Whether layers are to compute losses of their own.
  bool wants_losses() const { return answer && (regularised || Tape::active()); }

  /// Keeps a loss of a layer's own.
  void lose(std::string_view name, V value) { losses.push_back({name, std::move(value)}); }

  /// Keeps what one may look at, if anybody does.
  /// @param axes  what its dimensions are, see `Entry`; a literal, as the name is
  void show(std::string_view name, const V& value, std::string_view axes = {}) {
    if (traced) trace.push_back({name, value, axes, layer});
  }
};

namespace detail {

/// Throws infty::ShapeError that names `op` unless so many vectors can have as many memory tokens
/// among them as a pass says.
template <class T, class B>
void require_room_for_tokens(const char* op, Index vectors, const Pass<T, B>& pass) {
  require<ShapeError>(pass.before >= 0 && pass.behind >= 0 && pass.before <= vectors - pass.behind,
                      op, "of ", vectors, " vectors, ", pass.before, " and ", pass.behind,
                      " are said to be memory tokens");
}

}  // namespace detail

/// Refuses memory tokens that ride along under other rules than a mixer keeps to which knows of
/// none: each sees all up to itself, and is not held.
/// @throws infty::ValueError that names `op`
template <class T, class B>
void require_causal_tokens(const char* op, const Pass<T, B>& pass) {
  require(pass.before + pass.behind == 0 || pass.tokens == TokenRules{}, op, pass.before, " and ",
          pass.behind,
          " memory tokens have rules of their own (both_ways, read_past, held): it has none but "
          "that each sees all up to itself and is not held");
}

/// What was shown first under a name. @throws infty::ValueError if nothing was
template <class T, class B>
const Variable<T, B>& first_shown(const Pass<T, B>& pass, std::string_view name) {
  for (const auto& shown : pass.trace)
    if (shown.name == name) return shown.value;
  raise<ValueError>("first_shown", "no layer has shown ", name,
                    pass.traced ? "" : ": the pass is not traced");
}

/// The sum of all losses of a name -> scalar; 0 where there is none.
template <class T, class B>
Variable<T, B> loss_named(const Pass<T, B>& pass, std::string_view name) {
  Variable<T, B> total(Tensor<T, B>::zeros(Shape{}));
  for (const auto& loss : pass.losses)
    if (loss.name == name) total = total + loss.value;
  return total;
}

}  // namespace infty
