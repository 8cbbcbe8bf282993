// SPDX-License-Identifier: MIT
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <string>
#include <utility>
#include <vector>

#include <infty/autograd/matmul.hpp>
#include <infty/autograd/reduce.hpp>
#include <infty/autograd/softmax.hpp>
#include <infty/memory/joint_slots.hpp>
#include <infty/memory/memformer.hpp>
#include <infty/model/block.hpp>
#include <infty/model/layers.hpp>
#include <infty/nn/embedding.hpp>
#include <infty/nn/multi_head_attention.hpp>

#include "support/golden_case.hpp"

namespace infty::tests {

/// The attention of an encoder with a bias by distance, in buckets: a key's distance backwards, one
/// by one below half of them, then logarithmically; all later keys have that of the query itself.
template <class T, class B>
struct BucketedAttention {
  using Scalar = T;
  using BackendType = B;
  using V = Variable<T, B>;
  struct Config {
    Index buckets = 32, max_distance = 128;
  };

  MultiHeadAttention<T, B> maps;
  V table;  // [buckets, H]
  Config config;

  BucketedAttention(Config c, AttentionSizes sizes, Random random)
      : maps(sizes.model_dim, sizes.heads, sizes.head_dim, random),
        table(Tensor<T, B>::zeros(Shape{c.buckets, sizes.heads}), true),
        config(c) {}

  template <class Visitor>
  void visit(Visitor&& see) {
    see("maps", maps);
    see("table", table);
  }

  V forward(const V& x) const {
    const Index length = x.dim(1), H = maps.heads, D = maps.query.weight.dim(0) / H;
    const auto split = [&](const Linear<T, B>& map) {  // [B, H, L, D]
      return transpose(reshape(map.forward(x), Shape{x.dim(0), length, H, D}), 1, 2);
    };
    std::vector<Index> buckets;  // [K, L]
    for (Index key = 0; key < length; ++key)
      for (Index query = 0; query < length; ++query) buckets.push_back(bucket(query - key));
    const V bias =
        transpose(embedding(Tensor<Index, B>::from(Shape{length, length}, buckets), table), 0, 2);
    const V scores = scale(matmul(split(maps.query), transpose(split(maps.key), 2, 3)),
                           static_cast<T>(1 / std::sqrt(static_cast<double>(D)))) +
                     bias;
    const V read = transpose(matmul(softmax(scores), split(maps.value)), 1, 2);
    return maps.out.forward(reshape(read, Shape{x.dim(0), length, H * D}));
  }

 private:
  Index bucket(Index back) const {
    const Index exact = config.buckets / 2;
    if (back < exact) return std::max<Index>(back, 0);
    const double far =
        std::log(static_cast<double>(back) / static_cast<double>(exact)) /
        std::log(static_cast<double>(config.max_distance) / static_cast<double>(exact)) *
        static_cast<double>(config.buckets - exact);
    return std::min(exact + static_cast<Index>(far), config.buckets - 1);
  }
};

/// Replays a case of a Memformer: segments one behind the other on one tape, the memory behind
/// each, the loss, and the gradients of everything, memories among them.
template <class T, class B>
class MemformerReplay {
  using V = Variable<T, B>;

 public:
  explicit MemformerReplay(GoldenCase& file)
      : file_(file), segments_(file.count("segments")), batch_(file.count("batch")) {
    if (file.number("norm_eps", 1e-5) != 1e-5) file.fail("norm_eps must be 1e-5");
  }

  Comparison run() {
    const std::string kind = file_.text("kind");
    if (kind == "memformer_slots")
      slots();
    else if (kind == "memformer_gru")
      gru();
    else if (kind == "memformer_bmn")
      joint();
    else
      file_.fail("kind ", kind, " is not known here");
    file_.require_all_seen();
    return result_;
  }

 private:
  using Side = JointSlotSide<T, B>;

  /// A recorded parameter, or a band of its rows: bands stand one behind the other.
  struct Part {
    std::string name;
    V variable;
  };
  struct Watched {
    std::string name;
    V variable;
  };

  // What each kind is.

  void slots() {
    const Index d = file_.shape("param.bias")[1], m = file_.shape("param.bias")[0];
    const Index heads = file_.count("heads");
    SlotWriter<T, B> writer(
        {.slots = m, .heads = heads, .temperature = file_.number("temperature")}, d, Random(1));
    SlotReader<T, B> reader(d, heads, Random(2));
    part("reader_query", reader.query);
    part("reader_key", reader.key);
    part("reader_value", reader.value);
    part("writer_query", writer.query);
    part("writer_key", writer.key);
    part("writer_value", writer.value);
    parts_.push_back({"bias", writer.bias});
    load();
    Tape tape;
    V memory = watch("memory.initial", repeated(writer.initial()));
    see("memory.initial", memory);
    V loss(Tensor<T, B>::zeros(Shape{}));
    for (Index s = 0; s < segments_; ++s) {
      const V x(file_.read(of(s) + "input").template tensor<T, B>(), true);
      watched_.push_back({of(s) + "grad.input", x});
      const V out = reader.forward(x, memory);
      memory = watch(of(s) + "memory", writer.forward(memory, x));
      see(of(s) + "output", out);
      see(of(s) + "memory", memory);
      loss = loss + weighed(out, of(s) + "loss_weight");
    }
    finish(tape, loss + weighed(memory, "memory.loss_weight"));
  }

  void gru() {
    using Mixer = Memformer<BucketedAttention<T, B>, GruSlotWriter<T, B>>;
    using Stack = Layers<Block<Mixer, GeluFeed<T, B>>>;
    const std::string blocks = "encoder.layer_blocks.";
    const std::string table = blocks + "rel_pos_emb.relative_attention_bias.weight";
    const Index d = file_.shape("param.memory_slots")[1], heads = file_.count("heads");
    for (const char* const key : {"heads", "layers"})
      if (file_.count(key) == 0) file_.fail(key, " is 0: it must be at least 1");
    const AttentionSizes sizes{
        d, heads, file_.shape("param." + blocks + "layers.0.0.fn.fn.to_q.weight")[0] / heads};
    if (sizes.inner() != d) file_.fail("heads are ", sizes.inner(), " wide in all, not ", d);
    const typename Mixer::Config config{
        .attention = {file_.shape("param." + table)[0], file_.count("max_distance")},
        .slots = {.slots = file_.shape("param.memory_slots")[0],
                  .heads = file_.count("writer_heads"),
                  .updates = file_.count("updates"),
                  .feed_forward = file_.shape("param.mem_ff.fn.fn.net.0.weight")[0]}};
    auto reading = config;  // the encoder's heads read, the writer's write
    reading.slots.heads = heads;
    Stack stack;
    for (Index l = 0; l < file_.count("layers"); ++l) {
      const std::string name = blocks + "layers." + std::to_string(l) + '.';
      const std::string feed = name + "2.fn.fn.net.";
      Block<Mixer, GeluFeed<T, B>> block{
          .mixer = Mixer(reading, sizes, Random(1)),
          .mixer_norm = LayerNorm<T, B>(d),
          .feed = GeluFeed<T, B>(d, file_.shape("param." + feed + "0.weight")[0], Random(2)),
          .feed_norm = LayerNorm<T, B>(d)};
      Mixer& mixer = block.mixer;
      if (l > 0) mixer.attention.table = stack.layers[0].mixer.attention.table;
      part(name + "0.fn.norm", block.mixer_norm);
      packed(name + "0.fn.fn.", mixer.attention.maps.query, mixer.attention.maps.key,
             mixer.attention.maps.value, mixer.attention.maps.out);
      part(name + "1.fn.norm", mixer.reader_norm);
      packed(name + "1.fn.fn.", mixer.reader.query, mixer.reader.key, mixer.reader.value,
             *mixer.reader.out);
      part(name + "2.fn.norm", block.feed_norm);
      part(feed + "0", block.feed.inner);
      part(feed + "2", block.feed.outer);
      stack.layers.push_back(block);
    }
    parts_.push_back({table, stack.layers.at(0).mixer.attention.table});
    LayerNorm<T, B> norm(d);
    part("encoder.norm", norm);
    Embedding<T, B> tokens(file_.shape("param.encoder.token_emb.weight")[0], d, Random(3));
    parts_.push_back({"encoder.token_emb.weight", tokens.weight});
    GruSlotWriter<T, B> writer(config.slots, d, Random(4));
    packed("mem_updater.", writer.query, writer.key, writer.value, writer.out);
    parts_.push_back({"gru.weight_ih", writer.cell.input.weight});
    parts_.push_back({"gru.bias_ih", writer.cell.input.bias});
    parts_.push_back({"gru.weight_hh", writer.cell.state.weight});
    parts_.push_back({"gru.bias_hh", writer.cell.state.bias});
    part("mem_ff.fn.norm", writer.norm);
    part("mem_ff.fn.fn.net.0", writer.feed.inner);
    part("mem_ff.fn.fn.net.2", writer.feed.outer);
    parts_.push_back({"memory_slots", writer.first});
    load();
    const RecurrentSlots<Layers<Stack, LayerNorm<T, B>>, GruSlotWriter<T, B>> body(
        Layers<Stack, LayerNorm<T, B>>(stack, norm), writer);
    Tape tape;
    auto state = body.make_state(batch_);
    // As if written before, for the gradient that arrives at the first slots of every row.
    state.slots = watch("memory.initial", repeated(writer.initial()));
    std::fill(state.written.begin(), state.written.end(), 1);
    V loss(Tensor<T, B>::zeros(Shape{}));
    for (Index s = 0; s < segments_; ++s) {
      Pass<T, B> pass;
      const V out = body.forward(state, tokens.forward(read_tokens(of(s) + "input")), pass);
      watch(of(s) + "memory", state.slots);
      see(of(s) + "output", out);
      see(of(s) + "memory", state.slots);
      loss = loss + weighed(out, of(s) + "loss_weight");
    }
    finish(tape, loss + weighed(state.slots, "memory.loss_weight"));
  }

  void joint() {
    const Shape& bias = file_.shape("param.memory_bias");
    const Index m = bias[1], d = bias[2];
    const JointSlotConfig config{.slots = m,
                                 .layers = file_.count("layers"),
                                 .heads = file_.count("heads"),
                                 .feed_forward = file_.shape("param.layers.0.fc1.weight")[0]};
    JointSlots<T, B> body(config, d, Random(1));
    for (Index l = 0; l < config.layers; ++l) {
      const std::string name = "layers." + std::to_string(l) + '.';
      auto& layer = body.layers[static_cast<std::size_t>(l)];
      side(name, "mem_", layer.slots);
      side(name, "", layer.words);
    }
    Embedding<T, B> tokens(file_.shape("param.embed_tokens.weight")[0], d, Random(2));
    Embedding<T, B> positions(file_.shape("param.embed_positions.weight")[0], d, Random(3));
    LayerNorm<T, B> norm(d);
    parts_.push_back({"embed_tokens.weight", tokens.weight});
    parts_.push_back({"embed_positions.weight", positions.weight});
    part("layernorm_embedding", norm);
    parts_.push_back({"memory_bias", body.bias});
    part("memory_layer_norm", body.norm);
    part("memory_gate_net.dense", body.gate.inner);
    part("memory_gate_net.dense2", body.gate.outer);
    load();
    Tape tape;
    auto state = body.make_state(batch_);
    V loss(Tensor<T, B>::zeros(Shape{}));
    for (Index s = 0; s < segments_; ++s) {
      if (file_.has(of(s) + "reset")) {
        const auto reset = file_.read_tokens(of(s) + "reset");
        for (std::size_t row = 0; row < reset.size(); ++row)
          if (reset[row] != 0) reset_row(state, static_cast<Index>(row));
      }
      const Order order = padding_first(s);
      const Shape shape = file_.shape(of(s) + "input");
      const auto at = [&](const std::vector<Index>& all) {
        return Tensor<Index, B>::from(shape, order.apply(all, 1));
      };
      std::vector<Index> places;
      for (Index i = 0; i < shape.size(); ++i)
        places.push_back(i % shape[1] + file_.count("position_offset"));
      const V x = norm.forward(tokens.forward(at(file_.read_tokens(of(s) + "input"))) +
                               positions.forward(at(places)));
      Pass<T, B> pass;
      const V out =
          body.forward(state, x, Tensor<Index, B>::from(Shape{batch_}, order.visible), pass);
      watch(of(s) + "memory", state.slots);
      see(of(s) + "memory", state.slots);
      const auto in_order = [&](const std::string& name) {
        const Shape& words = file_.shape(of(s) + "input");
        file_.require_shape(name, Shape{words[0], words[1], d});
        const Recorded r = file_.read(name);
        return Recorded{r.shape, order.apply(r.values, d)};
      };
      see(of(s) + "output", record_of(out.value()), in_order(of(s) + "output"));
      loss = loss + sum(out * V(in_order(of(s) + "loss_weight").template tensor<T, B>()));
    }
    finish(tape, loss + weighed(state.slots, "memory.loss_weight"));
  }

  /// The places of a segment with each row's padding in front: attention without positions does not
  /// care, and the library's rows are aligned to the right.
  struct Order {
    std::vector<Index> from;     ///< [B L], places in the flattened segment
    std::vector<Index> visible;  ///< [B]

    template <class Number>
    std::vector<Number> apply(const std::vector<Number>& all, Index width) const {
      std::vector<Number> out;
      for (const Index place : from)
        for (Index j = 0; j < width; ++j)
          out.push_back(all[static_cast<std::size_t>(place * width + j)]);
      return out;
    }
  };
  Order padding_first(Index s) {
    const Shape& shape = file_.shape(of(s) + "input");
    std::vector<Index> mask(static_cast<std::size_t>(shape.size()), 1);
    if (file_.has(of(s) + "mask")) {
      file_.require_shape(of(s) + "mask", Shape{shape[0], shape[1]});
      mask = file_.read_tokens(of(s) + "mask");
    }
    Order order;
    for (Index row = 0; row < shape[0]; ++row) {
      Index seen = 0;
      for (const Index kept : {0, 1})
        for (Index i = row * shape[1]; i < (row + 1) * shape[1]; ++i)
          if ((mask[static_cast<std::size_t>(i)] != 0) == (kept != 0)) {
            order.from.push_back(i);
            seen += kept;
          }
      order.visible.push_back(seen);
    }
    return order;
  }

  // Names.

  static std::string of(Index s) { return "segment" + std::to_string(s) + '.'; }

  template <class L>
  void part(const std::string& name, L& layer) {  // a Linear or a LayerNorm
    parts_.push_back({name + ".weight", layer.weight});
    if (layer.bias.size() > 0) parts_.push_back({name + ".bias", layer.bias});
  }

  void packed(const std::string& name, Linear<T, B>& query, Linear<T, B>& key, Linear<T, B>& value,
              Linear<T, B>& out) {
    part(name + "to_q", query);
    parts_.push_back({name + "to_kv.weight", key.weight});
    parts_.push_back({name + "to_kv.weight", value.weight});
    parts_.push_back({name + "to_kv.bias", key.bias});
    parts_.push_back({name + "to_kv.bias", value.bias});
    part(name + "to_out", out);
  }

  void side(const std::string& layer, const std::string& which, Side& maps) {
    const std::string attention = layer + "self_attn." + which;
    part(attention + "q_proj", maps.query);
    part(attention + "k_proj", maps.key);
    part(attention + "v_proj", maps.value);
    part(attention + "out_proj", maps.out);
    part(layer + which + "self_attn_layer_norm", maps.attention_norm);
    part(layer + which + "fc1", maps.feed.inner);
    part(layer + which + "fc2", maps.feed.outer);
    part(layer + which + "final_layer_norm", maps.feed_norm);
  }

  // What is read and compared.

  Tensor<Index, B> read_tokens(const std::string& name) {
    return Tensor<Index, B>::from(file_.shape(name), file_.read_tokens(name));
  }

  V repeated(const V& slots) const {
    return V(Tensor<T, B>::zeros(Shape{batch_, slots.dim(0), slots.dim(1)})) + slots;
  }

  V weighed(const V& x, const std::string& weights) {
    file_.require_shape(weights, x.shape());
    return sum(x * V(file_.read(weights).template tensor<T, B>()));
  }

  V watch(const std::string& name, const V& variable) {
    if (file_.has(name + ".grad")) watched_.push_back({name + ".grad", variable});
    return variable;
  }

  /// Calls f(name, parts) for every recorded parameter and the bands that it has become.
  template <class F>
  void each_recorded(F&& f) {
    for (std::size_t i = 0; i < parts_.size();) {
      std::vector<V> bands;
      const std::string name = parts_[i].name;
      for (; i < parts_.size() && parts_[i].name == name; ++i) bands.push_back(parts_[i].variable);
      f(name, bands);
    }
  }

  void load() {
    each_recorded([&](const std::string& name, std::vector<V>& bands) {
      const Recorded whole = file_.read("param." + name);
      auto next = whole.values.begin();
      for (V& band : bands) {
        if (whole.values.end() - next < band.size())
          file_.fail("param.", name, " is ", whole.shape, ", too small for the rest of the case");
        const auto end = next + band.size();
        set_parameter<T, B>(file_, name, {band.shape(), {next, end}}, band);
        next = end;
      }
      if (next != whole.values.end())
        file_.fail("param.", name, " is ", whole.shape, ", too large for the rest of the case");
    });
  }

  void finish(Tape& tape, const V& loss) {
    if (file_.has("loss")) see("loss", loss);
    tape.backward(loss);
    for (const Watched& w : watched_)
      if (file_.has(w.name)) see(w.name, record_of(w.variable.grad()), file_.read(w.name));
    each_recorded([&](const std::string& name, std::vector<V>& bands) {
      if (!file_.has("grad." + name)) return;
      Recorded all{{}, {}};
      for (const V& band : bands) {
        const Recorded one = record_of(band.grad());
        all.values.insert(all.values.end(), one.values.begin(), one.values.end());
      }
      all.shape = Shape{static_cast<Index>(all.values.size())};
      see(".grad." + name, all, file_.read("grad." + name));
    });
  }

  void see(const std::string& name, const V& ours) {
    see(name, record_of(ours.value()), file_.read(name));
  }
  void see(const std::string& name, const Recorded& ours, const Recorded& theirs) {
    result_.see(file_, name, ours, theirs);
  }

  GoldenCase& file_;
  Index segments_, batch_;
  std::vector<Part> parts_;
  std::vector<Watched> watched_;
  Comparison result_;
};

template <class T, class B>
Comparison replay_memformer(GoldenCase& file) {
  return MemformerReplay<T, B>(file).run();
}

}  // namespace infty::tests
