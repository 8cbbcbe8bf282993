// SPDX-License-Identifier: MIT
#pragma once

#include <algorithm>
#include <cstddef>

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
        compressed_(two_parts() ? static_cast<double>(config.compressed) : 0),
        recent_(config.memory == "none" ? 0
                                        : static_cast<double>(config.memory_length) - compressed_),
        group_(config.memory == "compressive" ? static_cast<double>(config.compression_rate)
               : long_term()                  ? static_cast<double>(config.segment)
                                              : 1) {}

  /// Of the parameters with their gradients and Adam's two moments.
  double model() const { return number * 4 * parameters(); }

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
    double layer = 5 * d_ * e_ + 2 * d_ * static_cast<double>(t.feed_forward);
    if (config_.memory == "compressive") layer += group_ * d_ * d_;
    if (long_term())
      layer += 3 * d_ * e_ + 2 * compressed_ + (config_.long_term.gate ? 3 * d_ * d_ : 0);
    return (t.tie_embedding ? 1 : 2) * tokens + layers_ * layer;
  }

  /// Of the state of so many rows, their memories full.
  double state(double rows) const {
    double layer = (recent_ + group_ - 1 + compressed_) * d_;
    if (config_.memory == "lamemo")
      layer = recent_ * (e_ + static_cast<double>(config_.transformer.heads));
    if (config_.memory == "infty-sticky") layer += static_cast<double>(config_.long_term.bins);
    return number * rows * layers_ * layer;
  }

  /// Of reading a segment behind full memories: of all layers where a gradient is to flow, else of
  /// one.
  double segment(double rows, double length, bool training) const {
    const auto& t = config_.transformer;
    const double past = recent_ + group_ - 1 + (long_term() ? 0 : compressed_);
    const double keys = past + length;
    const auto f = static_cast<double>(t.feed_forward);
    // Keys, values and their sources stay for all layers; the rest only where it is differentiated.
    const double each = training ? 3 * e_ + 5 * d_ + 2 * f : 2 * e_ + 3 * d_ + f;
    const double held = rows * keys * (2 * e_ + (training ? 2 : 0) * d_) + 2 * keys * e_;
    double layer = rows * length * each;
    if (config_.memory == "lamemo") layer += rows * past * each;
    if (long_term()) layer += rows * compressed_ * (2 * d_ + e_);
    const auto head = static_cast<double>(t.cutoffs.empty() ? t.vocabulary : t.cutoffs.front());
    double bytes = number * (layers_ * held + (training ? layers_ : 1) * layer + keys * d_ +
                             (training ? 2 : 1) * rows * length * head);
    if (config_.memory == "infty-sticky")
      bytes += number * rows * static_cast<double>(config_.long_term.bins) *
               (1 + static_cast<double>(t.heads) * length / 64);
    if (long_term())
      bytes += write_bytes(compressed_, static_cast<double>(config_.long_term.samples),
                           std::max(length, group_));
    return bytes;
  }

 private:
  static constexpr double number = sizeof(float);

  bool long_term() const { return config_.memory.starts_with("infty"); }
  bool two_parts() const { return long_term() || config_.memory == "compressive"; }

  ModelConfig config_;
  double d_, e_, layers_, compressed_, recent_, group_;
};

}  // namespace support
