// SPDX-License-Identifier: MIT
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <infty/autograd/parameters.hpp>
#include <infty/autograd/reduce.hpp>
#include <infty/io/json.hpp>
#include <infty/memory/memorizing_attention.hpp>
#include <infty/model/block.hpp>
#include <infty/nn/feed_forward.hpp>
#include <infty/nn/rms_norm.hpp>

#include "support/golden_case.hpp"

namespace infty::tests {

/// Replays cases of the kinds `memorizing_gate` and `memorizing_joint`, segment by segment: the
/// first of a whole layer, the second of its attention.
template <class T, class B>
class MemorizingReplay {
  using V = Variable<T, B>;
  using Attention = MemorizingAttention<T, B>;
  using Layer = Block<Attention, FeedForward<T, B>, RMSNorm<T, B>>;

 public:
  explicit MemorizingReplay(GoldenCase& file)
      : file_(file),
        gate_(file.text("kind") == "memorizing_gate"),
        config_(config_of(file, gate_)),
        sizes_{dim("segment0.input", 2), file.count("heads"), file.count("head_dim")},
        layer_{Attention(config_, sizes_), {}, {}, {}} {
    file.require_agrees("model_dim", sizes_.model_dim);
    if (gate_)
      name_layer();
    else
      name_attention();
    for (auto& [name, parameter] : parameters_) {
      const Recorded from = file.read("param." + name);
      if (name == "to_kv.weight") {
        set_parameter<T, B>(file, name, half(from, 0), layer_.mixer.key.weight);
        set_parameter<T, B>(file, name, half(from, 1), layer_.mixer.value.weight);
      } else {
        set_parameter<T, B>(file, name, in_own_shape(from), parameter);
      }
    }
  }

  Comparison run() {
    const Index batch = dim("segment0.input", 0);
    auto state = layer_.mixer.make_state(batch);
    std::vector<Index> written(static_cast<std::size_t>(batch), 0);
    for (Index s = 0; s < file_.count("segments"); ++s) {
      const std::string at = "segment" + std::to_string(s) + '.';
      for (const Index row : emptied(s, at)) {
        if (gate_)
          reset_row(state, row);
        else
          state.memory.reset_row(row);  // the local one stays
        written[static_cast<std::size_t>(row)] = 0;
      }
      const auto stored = state.memory.latest(config_.capacity);
      const auto before = state.memory.saved();
      before_ = record_of(before.vectors);
      before_count_ = before.length;
      zero_grad(layer_);
      const V x(file_.read(at + "input").template tensor<T, B>(), true);
      Tape tape;
      Pass<T, B> pass{.traced = true};
      const V out = gate_ ? layer_forward(state, x, pass) : layer_.mixer.forward(state, x, pass);
      see(at + "output", record_of(out.value()));
      see_trace(at, pass);
      if (!gate_) see_retrieved(at, pass, stored);
      for (Index& n : written) n += x.dim(1);
      if (gate_)
        see_ring(at, state, written);
      else
        see_entries(at, state);
      tape.backward(out, file_.read(at + "loss_weight").template tensor<T, B>());
      see_gradients(at + "grad.", x);
    }
    file_.require_all_seen();
    if (result_.compared == 0) file_.fail("records nothing to compare");
    return result_;
  }

 private:
  static MemorizingConfig config_of(const GoldenCase& file, bool gate) {
    MemorizingConfig config;
    config.capacity = file.count("capacity");
    config.k = file.count("k");
    config.buckets = file.text("relative_bias") == "None" ? 0 : file.count("buckets");
    config.max_distance = file.count("max_distance");
    config.strict = file.text("local_mask").starts_with("strict");
    if (config.strict) config.window = file.count("segment");
    if (gate) {
      config.normalized = file.flag("normalize_keys", true);
      config.epsilon = file.number("normalize_eps");
      config.null_score = file.number("softmax_floor");
      config.cache = file.count("cache");
      config.attend_to_nothing = config.cache > 0;
      const Index key_heads = file.count("key_heads");
      config.key_heads = key_heads == file.count("heads") ? 0 : key_heads;
    } else {
      config.merge = MemorizingMerge::joint;
      config.key_heads = file.count("key_heads");
      config.bias_scale = file.number("bias_scale");
      config.cache = file.count("local_memory");
      config.overlapping = false;
    }
    return config;
  }

  void name_layer() {
    auto& mixer = layer_.mixer;
    layer_.mixer_norm =
        RMSNorm<T, B>(sizes_.model_dim, static_cast<T>(file_.number("layernorm_eps")));
    layer_.feed_norm = layer_norm_like(layer_.mixer_norm);
    layer_.feed = FeedForward<T, B>(sizes_.model_dim, file_.count("ffn_dim"), Random(1));
    layer_.feed.inner.bias = layer_.feed.outer.bias = {};
    parameters_ = {{"external_memory_bias", mixer.gate},
                   {"tbase._kvq.keys_layer.kernel", mixer.key.weight},
                   {"tbase._kvq.queries_layer.kernel", mixer.query.weight},
                   {"tbase._kvq.values_layer.kernel", mixer.value.weight},
                   {"tbase._kvq.pre_attn_layernorm.scale", layer_.mixer_norm.weight},
                   {"tbase.post_attn_mlp.output_layer.kernel", mixer.out.weight},
                   {"tbase.pre_ffn_layernorm.scale", layer_.feed_norm.weight},
                   {"tbase.ffn.hidden0.kernel", layer_.feed.inner.weight},
                   {"tbase.ffn.output_layer.kernel", layer_.feed.outer.weight}};
    if (config_.normalized)
      parameters_.push_back({"tbase._kvq.attention_scale", mixer.temperature});
    if (config_.buckets > 0)
      parameters_.push_back({"relative_positions.rel_embedding", mixer.position.weight});
  }

  void name_attention() {
    auto& mixer = layer_.mixer;
    parameters_ = {{"to_q.weight", mixer.query.weight},
                   {"to_kv.weight", mixer.key.weight},  // and the value's below it
                   {"to_out.weight", mixer.out.weight},
                   {"scale", mixer.temperature},
                   {"relative_attention_bias", mixer.position.weight}};
  }

  static RMSNorm<T, B> layer_norm_like(const RMSNorm<T, B>& norm) {
    return RMSNorm<T, B>(norm.weight.dim(0), norm.epsilon);
  }

  Index dim(const std::string& name, Index i) const {
    const Shape& shape = file_.shape(name);
    if (shape.rank() != 3) file_.fail(name, " is ", shape, ": it must have three dimensions");
    return shape[i];
  }

  /// The gated program's matrices are turned, the other's temperatures have dimensions to spare.
  Recorded in_own_shape(Recorded x) const {
    if (gate_ && x.shape.rank() == 2) return x.swapped(0);
    if (x.shape.rank() == 3) x.shape = Shape{x.shape.size()};
    return x;
  }

  /// The keys' or the values' rows of the joint program's one matrix.
  Recorded half(const Recorded& x, Index which) const {
    if (x.shape.rank() != 2 || x.shape[0] % 2 != 0)
      file_.fail("to_kv.weight is ", x.shape, ": its rows must be those of keys and values");
    const Index rows = x.shape[0] / 2, size = rows * x.shape[1];
    const auto begin = x.values.begin() + which * size;
    return {x.shape.with(0, rows), {begin, begin + size}};
  }

  /// The layer around the attention.
  V layer_forward(MemorizingState<T, B>& state, const V& x, Pass<T, B>& pass) const {
    typename Layer::State all{state, {}};
    const V out = layer_.forward(all, x, pass);
    state = all.mixer;
    return out;
  }

  /// Rows whose memory is emptied before a segment.
  std::vector<Index> emptied(Index segment, const std::string& at) {
    std::vector<Index> rows;
    if (gate_) {
      const auto starts = file_.read_tokens(at + "document_start");
      for (std::size_t row = 0; row < starts.size(); ++row)
        if (starts[row] != 0) rows.push_back(static_cast<Index>(row));
      return rows;
    }
    const std::string text = file_.text("clear");
    infty::detail::JsonReader reader(text, "clear");
    reader.object([&](const std::string& key) {
      reader.array([&] {
        const auto row = static_cast<Index>(reader.integer());
        if (key == std::to_string(segment)) rows.push_back(row);
      });
    });
    return rows;
  }

  void see(const std::string& name, const Recorded& ours) {
    if (file_.has(name)) result_.see(file_, name, ours, file_.read(name));
  }

  static V traced(const Pass<T, B>& pass, std::string_view name) {
    for (const auto& entry : pass.trace)
      if (entry.name == name) return entry.value;
    return {};
  }

  void see_trace(const std::string& at, const Pass<T, B>& pass) {
    const Recorded query = record_of(traced(pass, "query").value());
    see(at + "query", gate_ ? query : query.swapped(1));
    see(at + "attention.local", record_of(traced(pass, "local").value()));
    see(at + "attention.external", record_of(traced(pass, "retrieved").value()));
  }

  /// What the search finds, in the order in which the file has it: any is right.
  void see_retrieved(const std::string& at, const Pass<T, B>& pass,
                     const StoredEntries<T, B>& stored) {
    if (!file_.has(at + "retrieved.valid")) return;
    const V query = traced(pass, "query");
    const Shape& found_by = file_.shape(at + "retrieved.key");
    if (found_by.rank() != 5 || found_by[4] != sizes_.head_dim ||
        found_by[0] != std::ssize(before_count_) ||
        found_by.size(0, 3) * sizes_.head_dim != query.size())
      file_.fail(at, "retrieved.key is ", found_by, ", the queries are ", query.shape());
    file_.require_shape(at + "retrieved.value", found_by);
    file_.require_shape(at + "retrieved.valid",
                        Shape{found_by[0], found_by[1], found_by[2], found_by[3]});
    const auto valid = file_.read_tokens(at + "retrieved.valid");
    const Recorded keys = file_.read(at + "retrieved.key"),
                   values = file_.read(at + "retrieved.value");
    const Index batch = keys.shape[0], heads = keys.shape[1], length = keys.shape[2];
    const Index k = keys.shape[3], D = keys.shape[4];
    const auto found =
        nearest(query.value().reshape(Shape{batch, length, heads * D}), stored, heads, config_.k);
    const auto indices = found.indices.to_vector();
    const Index columns = found.indices.dim(3);
    Recorded own_keys = keys, own_values = values;
    for (Index b = 0; b < batch; ++b)
      for (Index h = 0; h < heads; ++h)
        for (Index i = 0; i < length; ++i) {
          std::vector<std::pair<std::vector<double>, std::vector<double>>> ours;
          for (Index j = 0; j < columns; ++j) {
            const Index entry =
                indices[static_cast<std::size_t>(((b * length + i) * heads + h) * columns + j)];
            if (entry >= 0) ours.push_back(entry_of(b, entry));
          }
          const Index row = ((b * heads + h) * length + i) * k;
          for (Index j = 0; j < k; ++j) {
            const auto to = static_cast<std::size_t>((row + j) * D);
            const auto key = own_keys.values.begin() + static_cast<Index>(to);
            const auto value = own_values.values.begin() + static_cast<Index>(to);
            if (valid[static_cast<std::size_t>(row + j)] == 0) {
              std::fill_n(key, D, 0.);
              std::fill_n(value, D, 0.);
              continue;
            }
            if (ours.empty()) file_.fail(at, "retrieved: more than ", columns, " were found there");
            const auto distance = [&](const auto& one) {
              double sum = 0;
              for (Index d = 0; d < D; ++d)
                sum += std::abs(one.first[static_cast<std::size_t>(d)] - key[d]);
              return sum;
            };
            const auto same = std::min_element(
                ours.begin(), ours.end(),
                [&](const auto& a, const auto& b_) { return distance(a) < distance(b_); });
            std::copy(same->first.begin(), same->first.end(), key);
            std::copy(same->second.begin(), same->second.end(), value);
            ours.erase(same);
          }
          if (!ours.empty()) file_.fail(at, "retrieved: fewer were found there");
        }
    result_.see(file_, at + "retrieved.key", own_keys, keys);
    result_.see(file_, at + "retrieved.value", own_values, values);
  }

  /// Entry i of row b of what was stored before the segment.
  std::pair<std::vector<double>, std::vector<double>> entry_of(Index b, Index i) const {
    const Index D = sizes_.head_dim, longest = before_.shape[1];
    const Index first = longest - before_count_[static_cast<std::size_t>(b)];
    const auto begin = before_.values.begin() + (b * longest + first + i) * 2 * D;
    return {{begin, begin + D}, {begin + D, begin + 2 * D}};
  }

  /// The joint program's entries, the oldest first.
  void see_entries(const std::string& at, const MemorizingState<T, B>& state) {
    const auto saved = state.memory.saved();
    const Recorded entries = record_of(saved.vectors);
    const Index D = sizes_.head_dim, longest = entries.shape[1];
    for (std::size_t b = 0; b < saved.length.size(); ++b) {
      const Index n = saved.length[b], row = static_cast<Index>(b);
      const auto end = entries.values.begin() + (row + 1) * longest * 2 * D;
      see(at + "memory" + std::to_string(b), {Shape{n, 2, D}, {end - n * 2 * D, end}});
    }
    const auto& length = state.cache.length;
    const Index held = *std::max_element(length.begin(), length.end());
    const V local = narrow(V(state.cache.vectors), config_.cache - held, config_.cache);
    see(at + "local", record_of(local.value()));
  }

  /// The gated program's entries by slot, the number of all that were ever written modulo the
  /// capacity. What stands in a slot without an entry is not ours to know.
  void see_ring(const std::string& at, const MemorizingState<T, B>& state,
                const std::vector<Index>& written) {
    const auto saved = state.memory.saved();
    const Recorded ours = record_of(saved.vectors);
    const Index longest = ours.shape[1], H = ours.shape[3], D = ours.shape[4];
    for (Index part = 0; part < 2; ++part) {
      const std::string name = at + (part == 0 ? "memory.key" : "memory.value");
      if (!file_.has(name)) continue;
      file_.require_shape(name, Shape{std::ssize(written), H, config_.capacity, D});
      Recorded slots = file_.read(name);
      const Index capacity = slots.shape[2];
      for (std::size_t b = 0; b < written.size(); ++b)
        for (Index i = 0; i < saved.length[b]; ++i)
          for (Index h = 0; h < H; ++h)
            for (Index d = 0; d < D; ++d) {
              const Index row = static_cast<Index>(b), n = saved.length[b];
              const Index slot = (written[b] - n + i) % capacity;
              slots.values[static_cast<std::size_t>(((row * H + h) * capacity + slot) * D + d)] =
                  ours.values[static_cast<std::size_t>(
                      (((row * longest + longest - n + i) * 2 + part) * H + h) * D + d)];
            }
      see(name, slots);
    }
    Recorded counts{Shape{static_cast<Index>(written.size()), H}, {}};
    for (std::size_t b = 0; b < written.size(); ++b) {
      const Index held = saved.length[b];
      const Index all = std::min(written[b], config_.capacity) == held ? written[b] : held;
      counts.values.insert(counts.values.end(), static_cast<std::size_t>(H),
                           static_cast<double>(all));
    }
    if (file_.has(at + "memory.count")) {
      const auto recorded = file_.read_tokens(at + "memory.count");
      result_.see(file_, at + "memory.count", counts,
                  {counts.shape, std::vector<double>(recorded.begin(), recorded.end())});
    }
    if (config_.cache == 0) return;
    const Recorded cached = record_of(state.cache.vectors);  // [batch, cache, 2 H D]
    for (Index part = 0; part < 2; ++part) {
      Recorded one{cached.shape.with(2, H * D), {}};
      for (Index i = 0; i < cached.shape[0] * cached.shape[1]; ++i) {
        const auto begin = cached.values.begin() + (2 * i + part) * H * D;
        one.values.insert(one.values.end(), begin, begin + H * D);
      }
      see(at + (part == 0 ? "cache.key" : "cache.value"), one);
    }
  }

  void see_gradients(const std::string& prefix, const V& x) {
    see(prefix + "input", record_of(x.grad()));
    for (const auto& [name, parameter] : parameters_) {
      Recorded own = record_of(parameter.grad());
      if (name == "to_kv.weight") {
        const Recorded below = record_of(layer_.mixer.value.weight.grad());
        own.values.insert(own.values.end(), below.values.begin(), below.values.end());
      }
      see(prefix + name, gate_ && own.shape.rank() == 2 ? own.swapped(0) : own);
    }
  }

  GoldenCase& file_;
  bool gate_;
  MemorizingConfig config_;
  AttentionSizes sizes_;
  Layer layer_;
  std::vector<std::pair<std::string, V>> parameters_;
  Recorded before_;
  RowCounts before_count_;
  Comparison result_;
};

/// Replays a case of the kinds `memorizing_*` in scalar T on backend B. @throws infty::IoError
template <class T, class B>
Comparison replay_memorizing(GoldenCase& file) {
  return MemorizingReplay<T, B>(file).run();
}

}  // namespace infty::tests
