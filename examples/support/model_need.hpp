// SPDX-License-Identifier: MIT
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <string>

#include "model.hpp"
#include "need.hpp"

namespace support {

/// What a model needs by its configuration, in bytes.
class ModelNeed {
 public:
  explicit ModelNeed(const ModelConfig& config)
      : config_(config),
        d_(static_cast<double>(config.transformer.model_dim)),
        e_(config.transformer.head_dim > 0 ? static_cast<double>(config.transformer.heads) *
                                                 static_cast<double>(config.transformer.head_dim)
                                           : d_),
        layers_(static_cast<double>(config.transformer.layers)),
        heads_(static_cast<double>(config.transformer.heads)),
        compressed_(two_parts() ? static_cast<double>(config.compressed) : 0),
        slots_(config.memory == "memformer" ? static_cast<double>(config.compressed) : 0),
        waiting_(static_cast<double>(waiting_of(config.memory, config.contraction))),
        recent_(config.memory == "none" || config.memory == "memorizing"
                    ? 0
                    : std::max(0., static_cast<double>(config.memory_length) - compressed_ -
                                       slots_ - waiting_)),
        parts_(static_cast<double>(parts_of(config.memory, config.contraction))),
        group_(config.memory == "compressive" ? static_cast<double>(config.compression_rate)
               : long_term()                  ? static_cast<double>(config.segment)
                                              : 1) {}

  /// Of the parameters with their gradients and Adam's two moments; the gradient of product keys'
  /// values is by rows.
  double model() const { return number * (4 * parameters() - (product_keys() ? table() : 0)); }

  /// Numbers in all parameters but biases and norms.
  double parameters() const {
    const auto& t = config_.transformer;
    double tokens = 0, before = 0, width = d_;  // each cluster of tokens is narrower
    for (std::size_t i = 0; i <= t.cutoffs.size(); ++i) {
      const auto end = static_cast<double>(i < t.cutoffs.size() ? t.cutoffs[i] : t.vocabulary);
      tokens += (end - before) * width;
      before = end;
      width /= static_cast<double>(t.div_value);
    }
    const auto f = static_cast<double>(t.feed_forward);
    double layer = mixer() + 2 * d_ * f;
    if (config_.tokens == "associative") layer += 2 * associative_keys * d_ + d_ * d_;
    double all = (t.tie_embedding ? 1 : 2) * tokens + layers_ * layer + table();
    if (config_.memory == "memformer") all += 3 * d_ * d_ + slots_ * d_;
    if (config_.tokens != "none") all += token_count() * d_;
    if (in_front()) all += 2 * d_ * d_ + front_network();
    if (product_keys()) {
      const double keys = static_cast<double>(config_.sub_keys) * key_dim();
      all += lookups() * (lookup_heads() * (keys + d_ * key_dim()) - 2 * d_ * f);
      if (config_.feed == "memory-plus") all += lookups() * 2 * d_ * d_;
    }
    if (config_.feed == "engram") all += lookups() * 4 * d_ * d_;
    return all;
  }

  /// Of the state of so many rows, their memories full.
  double state(double rows) const {
    double layer = (recent_ + group_ - 1 + compressed_ + waiting_) * d_;
    if (config_.memory == "lamemo")
      layer = recent_ * (e_ + static_cast<double>(config_.transformer.heads));
    if (is_sticky(config_.memory)) layer += parts_ * static_cast<double>(config_.long_term.bins);
    // A sum in double precision beside the means that wait.
    if (waiting_ > 0) layer += 2 * parts_ * d_;
    // Keys and values of what is held, and what is made of it.
    if (config_.memory == "memorizing")
      layer = (config_.stored == "float32" ? 2 : 1) * e_ * stored_block *
                  std::ceil(static_cast<double>(config_.memory_length) / stored_block) +
              2 * e_ * cache();
    if (is_infini(config_.memory)) layer = 2 * recent_ * e_ + associations();
    if (titans()) layer += 2 * networks() + titans_chunk * d_;
    if (linear()) layer = features() * (e_ + heads_);
    if (config_.mixer == "delta-net") layer = associations() + 12 * e_;
    if (config_.mixer == "gated-delta-net") layer = 2 * associations() + 16 * e_;
    if (config_.mixer == "memsizer") layer = static_cast<double>(config_.memory_length) * d_;
    if (config_.tokens == "associative") layer += associative_features * (d_ + 1);
    double around = slots_ * d_;  // beside the layers
    if (config_.tokens == "recurrent") around += token_count() * d_;
    if (config_.feed == "engram") around += lookups() * 9 * d_;
    if (in_front()) around += 2 * front_network() + (titans_chunk + group_) * d_;
    return number * rows * (layers_ * layer + around);
  }

  /// Of reading a segment behind full memories: of all layers where a gradient is to flow, else of
  /// one.
  double segment(double rows, double words, bool training) const {
    const auto& t = config_.transformer;
    const double sides = config_.tokens == "recurrent" ? 2 : config_.tokens == "none" ? 0 : 1;
    const double length = words + sides * token_count();
    const double past = recent_ + group_ - 1 + (long_term() ? 0 : compressed_) + cache();
    const double keys = past + length;
    const auto f = static_cast<double>(t.feed_forward);
    // Keys, values and their sources stay for all layers; the rest only where it is differentiated.
    const double each = training ? 3 * e_ + 5 * d_ + 2 * f : 2 * e_ + 3 * d_ + f;
    const double held = rows * keys * (2 * e_ + (training ? d_ : 0)) + 2 * keys * e_;
    double layer = rows * length * each;
    if (config_.memory == "lamemo") layer += rows * past * each;
    if (long_term()) layer += rows * compressed_ * (2 * d_ + e_);
    const auto head = static_cast<double>(t.cutoffs.empty() ? t.vocabulary : t.cutoffs.front());
    double bytes = number * (layers_ * held + (training ? layers_ : 1) * layer + keys * d_ +
                             (training ? 2 : 1) * rows * length * head);
    if (is_sticky(config_.memory))
      bytes += number * rows * parts_ * static_cast<double>(config_.long_term.bins) *
               (1 + static_cast<double>(t.heads) * length / 64);
    if (long_term())
      bytes += write_bytes(compressed_, static_cast<double>(config_.long_term.samples),
                           std::max(length, group_));
    return bytes + number * parts(rows, length, training);
  }

 private:
  static constexpr double number = sizeof(float);
  // What the parts of a composed model are made with: see support/models.
  static constexpr double titans_chunk = 16, associative_keys = 64, associative_features = 384,
                          delta_chunk = 64, stored_block = 512;

  bool in_front() const { return config_.tokens == "titans-front"; }
  /// Of a network as wide as the model that learns while it reads.
  double front_network() const { return 8 * d_ * d_; }
  bool titans() const { return config_.memory == "titans" || config_.mixer == "titans-layer"; }
  bool product_keys() const {
    return config_.feed == "product-keys" || config_.feed == "memory-plus";
  }
  bool linear() const {
    return config_.mixer == "linear" || config_.mixer == "rfa" || config_.mixer == "t2r";
  }
  /// Of a head's queries and keys, in linear attention.
  double features() const {
    return config_.mixer == "rfa" ? 128 : config_.mixer == "t2r" ? 32 : e_ / heads_;
  }
  /// Keys of its past that a query of such a memory attends to.
  double neighbours() const { return static_cast<double>(memorizing_of(config_).k); }
  double lookups() const { return static_cast<double>(config_.lookups.layers.size()); }
  double lookup_heads() const { return static_cast<double>(config_.lookups.heads); }
  /// Vectors before the segment that a memory of single keys attends to as well.
  double cache() const {
    return config_.memory == "memorizing" ? static_cast<double>(config_.memorizing.cache) : 0;
  }
  double token_count() const { return static_cast<double>(config_.token_count); }
  double key_dim() const { return 2 * std::max(1., std::floor(d_ / 4)); }
  /// Of the matrices of keys and values of all heads.
  double associations() const { return e_ * e_ / heads_; }
  /// Of the networks that learn while they read, of two layers, the inner one four times as wide.
  double networks() const { return 8 * associations(); }

  /// Numbers in the values of a lookup.
  double table() const {
    const auto slots =
        static_cast<double>(config_.sub_keys) * static_cast<double>(config_.sub_keys);
    const double own = config_.feed == "memory-plus" ? 1 : lookups();
    return product_keys() ? own * slots * d_ : config_.feed == "engram" ? own * 2 * slots * d_ : 0;
  }

  /// Numbers in what mixes vectors in a layer, and in a memory beside attention.
  double mixer() const {
    const std::string &memory = config_.memory, &mixer = config_.mixer;
    double layer = 5 * d_ * e_;
    if (memory == "compressive") layer += group_ * d_ * d_;
    if (long_term())
      layer += (memory == "infty-gibbs" ? 2 : 3) * d_ * e_ + 2 * compressed_ +
               (config_.long_term.gate ? 3 * d_ * d_ : 0);
    if (memory == "titans") layer += 3 * d_ * e_ + networks();
    if (memory == "memformer") layer += 3 * d_ * d_;
    if (memory == "memorizing" || is_infini(memory) || linear() || mixer == "delta-net")
      layer = 4 * d_ * e_;
    if (mixer == "rfa" || mixer == "t2r") layer += (mixer == "rfa" ? 64 : 32) * e_;
    if (mixer == "gated-delta-net") layer = 8 * d_ * e_;
    if (mixer == "memsizer")
      layer = (heads_ + 1) * static_cast<double>(config_.memory_length) * d_ + d_ * d_;
    if (mixer == "titans-layer") layer = 4 * d_ * e_ + networks();
    return layer;
  }

  /// Numbers that the parts beside attention and feed-forward work on.
  double parts(double rows, double length, bool training) const {
    const double stack = training ? layers_ : 1, places = rows * length;
    const auto n = static_cast<double>(config_.sub_keys);
    const auto memory = static_cast<double>(config_.memory_length);
    double all = 0;
    // Scores of both halves, and what they are made of.
    if (product_keys()) all += lookups() * places * lookup_heads() * (2 * n + 3 * key_dim());
    if (config_.feed == "engram") all += lookups() * places * (training ? 20 : 8) * d_;
    if (config_.memory == "memorizing")
      all += stack * places * (2 * heads_ * neighbours() + 2 * e_);
    // Scores at the points of the integral.
    if (config_.memory == "infty-gibbs")
      all += 2 * places * heads_ * static_cast<double>(config_.long_term.points);
    if (config_.mixer == "memsizer") all += stack * places * memory * (2 * heads_ + 3);
    if (config_.mixer.ends_with("delta-net") || linear()) {
      const double memory_of_heads = linear() ? features() * e_ : associations();
      all += stack * (places / delta_chunk + 2 * rows) * 2 * memory_of_heads +
             stack * places * (delta_chunk * heads_ + (linear() ? 5 : 12) * e_);
      if (linear()) all += stack * places * 8 * features() * heads_;
    }
    if (is_infini(config_.memory)) all += stack * places * 6 * e_;
    // A network's weights, momentum and gradient behind every chunk.
    if (titans())
      all += stack * rows * networks() * (training ? 8 * std::ceil(length / titans_chunk) : 8);
    if (in_front())
      all += rows * front_network() * (training ? 8 * std::ceil(length / titans_chunk) : 8);
    if (config_.memory == "memformer")
      all += stack * rows * (slots_ * 4 * d_ + length * slots_ * heads_);
    if (config_.tokens == "associative")
      all += stack * rows * associative_features * (2 * d_ + 4 * length);
    return all;
  }

  bool long_term() const { return is_infty(config_.memory); }
  bool two_parts() const { return long_term() || config_.memory == "compressive"; }

  ModelConfig config_;
  double d_, e_, layers_, heads_, compressed_, slots_, waiting_, recent_, parts_, group_;
};

}  // namespace support
