// SPDX-License-Identifier: MIT
#pragma once

#include <chrono>
#include <cstdio>
#include <filesystem>
#include <string>

#include "evaluate.hpp"

namespace language_model {

/// What a datastore is built of, beside a model and a text.
struct BuildOptions {
  EvaluateOptions of = {.split = "train", .text = "", .look_up = {}};  ///< the model and the text
  std::filesystem::path out = "datastore";
  std::string key = "normed", metric = "squared_l2", stored = "float32";
  IndexOptions index;
};

/// Reads a text with a model and keeps its keys and the tokens behind them in a folder. The same
/// command goes on with what was interrupted: the text is read again, and what is there is not
/// written again.
inline void build_datastore(const BuildOptions& build) {
  const EvaluateOptions& options = build.of;
  const auto [s, group] = changed_settings(options);
  support::use_products(s.products);
  infty::require(build.stored == "float32" || build.index.kind == "exact", "build-datastore",
                 "--stored ", build.stored, " goes with --index exact: FAISS's take float32");
  infty::require(s.spalm.empty(), "build-datastore",
                 "the model was trained with --spalm, and looks things up itself: keys are those "
                 "of a model that does not");
  const Tokenizer tokenizer(s.level, options.model);
  const auto [split, name] = named_split(s, tokenizer, options.split, options.text);
  const auto model = load_model(s, tokenizer, options.model, group);
  const auto& stream = split.stream;
  const StoreOrigin origin{
      .model = std::filesystem::canonical(options.model).string(),
      .weights = fingerprint_of(*model),
      .vocabulary = tokenizer.fingerprint(),
      .text = options.text.empty() ? name : std::filesystem::canonical(options.text).string(),
      .stream = fingerprint_of(stream),
      .tokens = std::ssize(stream.tokens),
      .key = build.key,
      .segment = s.segment,
      .batch = s.evaluation_batch,
      .memory_length = s.memory_length,
      .compressed = compressed_length(s),
      .group = group,
      .documents = s.documents};
  const std::string about = support::json_of(origin).dump();
  const auto metric = metric_of(build.metric);
  config_of(build.index, metric, s.model.model_dim);  // refused before the text is read
  const support::InterruptGuard interrupt;
  const auto make_index = [&](const Store& of) {
    if (build.index.kind == "exact") return;
    std::printf("%s\n", StoreIndex(of, build.out, metric, build.index).said().c_str());
  };
  auto store = Store::build(build.out, s.model.model_dim, about, build.stored);
  const Index there = store.size();
  if (there == origin.tokens) {
    std::printf("%s is finished: %lld keys\n", build.out.c_str(), static_cast<long long>(there));
    return make_index(store);
  }
  if (there > 0) std::fprintf(stderr, "goes on behind %lld keys\n", static_cast<long long>(there));
  const auto start = std::chrono::steady_clock::now();
  Index entry = 0;
  const auto keep = [&](support::Model::State& state, const TextBatch& batch) {
    auto read = model->read(state, batch, {.keys = feed_input(build.key)});
    const Index d = read.keys.dim(1);
    for (Index place = 0; place < std::ssize(batch.targets); ++place) {
      const Index target = batch.targets[static_cast<std::size_t>(place)];
      if (target < 0 || entry++ < there) continue;
      store.append(std::as_const(read.keys).data() + place * d, &target, 1);
    }
    return std::move(read.losses);
  };
  const auto score = evaluate_shown(
      "build", *model, s, tokenizer, split,
      [&](Index) {
        support::stop_if_interrupted([&] {
          return std::to_string(store.finished()) + " keys are safe in " + build.out.string() +
                 "; the same command goes on";
        });
      },
      keep);
  store.flush();
  const std::chrono::duration<double> time = std::chrono::steady_clock::now() - start;
  std::printf("%lld keys of %lld numbers in %s, %.0f tokens/s; perplexity of the text %.3f\n",
              static_cast<long long>(store.size()), static_cast<long long>(store.dim()),
              build.out.c_str(), static_cast<double>(entry) / time.count(), score.perplexity());
  make_index(store);
}

/// The options of `build-datastore`.
inline void add_build(CLI::App& app, BuildOptions& b) {
  add_model(app, b.of);
  add_text(app, b.of);
  app.add_option("--out", b.out, "folder of the datastore")->capture_default_str();
  app.add_option("--key", b.key,
                 "input of the last feed-forward layer: behind the norm in front of it, or before")
      ->capture_default_str()
      ->check(CLI::IsMember(key_names));
  app.add_option("--stored", b.stored,
                 "what keys are kept as: bfloat16 takes half of the bytes, and is searched by "
                 "--index exact")
      ->capture_default_str()
      ->check(CLI::IsMember({"float32", "bfloat16"}));
  app.add_option("--metric", b.metric, "by which an index of FAISS's searches")
      ->capture_default_str()
      ->check(CLI::IsMember({"squared_l2", "inner_product"}));
  add_index(app, b.index);
}

}  // namespace language_model
