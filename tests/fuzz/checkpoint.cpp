// SPDX-License-Identifier: MIT
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <iterator>
#include <limits>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include <infty/memory/infty_memory.hpp>
#include <infty/model/transformer_lm.hpp>
#include <infty/train/checkpoint.hpp>
#include <infty/train/train_step.hpp>

#include "fuzz/fuzz.hpp"
#include "io/temporary_folder.hpp"

// A checkpoint of a small model, its optimiser and its state, with any of its tensors changed: it
// is refused and changes nothing, or it is loaded, comes back from another file, and training goes
// on from it or is refused.

namespace infty::fuzz {

namespace {

using Model = TransformerLM<infty::InftyMemory<float>>;
using tests::read_text;
using tests::TemporaryFolder;

/// All that a checkpoint brings back.
struct Run {
  Model model{{.vocabulary = 3, .model_dim = 2, .layers = 1, .heads = 1, .feed_forward = 2},
              {.attention = {.capacity = 2, .stride = 2},
               .memory = LongTermConfig{.basis = 2,
                                        .widths = {.1, .2},
                                        .samples = 3,
                                        .resampling = Resampling::sticky,
                                        .bins = 4}}};
  Adam<float> adam{model};
  Random random{1, 9};
  Model::State state = model.make_state(2);

  void step() {
    const auto tokens = Tensor<Index>::from(
        {batch_of(state), 1},
        std::vector<Index>(static_cast<std::size_t>(batch_of(state)), random.below(3)));
    train_step(adam, {}, [&] {
      const auto hidden = model.forward(state, tokens);
      return cross_entropy(model.logits(hidden), tokens);
    });
  }

  std::string save() const {
    SafetensorsWriter writer;
    save_parameters(writer, model, "model.");
    save_optimizer(writer, adam, "optimizer.");
    save_random(writer, random, "random");
    save_state(writer, state, "state.");
    const TemporaryFolder folder;
    writer.save(folder / "a");
    return read_text(folder / "a");
  }

  void load(const std::string& bytes) {
    const MemoryFile file(bytes);
    CheckpointLoader loader(file.path());
    loader.parameters(model, "model.").optimizer(adam, "optimizer.").random(random, "random");
    loader.state(state, "state.").apply();
  }
};

struct Entry {
  DType type;
  Shape shape;
  std::vector<std::byte> bytes;
};
using Entries = std::map<std::string, Entry>;

const std::string& good() {
  static const std::string bytes = [] {
    Run run;
    for (int i = 0; i < 9; ++i) run.step();
    return run.save();
  }();
  return bytes;
}

using Limits = std::numeric_limits<Index>;

void change(Entries& entries, std::map<std::string, std::string>& metadata, Input& input) {
  const auto any = [&] { return std::next(entries.begin(), input.below(std::ssize(entries))); };
  const auto at = any();
  Entry& entry = at->second;
  const auto fill = [&] {
    entry.bytes.resize(static_cast<std::size_t>(entry.shape.size() * dtype_bytes(entry.type)));
  };
  const auto put = [&](const auto& value) {
    const std::size_t size = sizeof value, count = entry.bytes.size() / size;
    if (count > 0) std::memcpy(entry.bytes.data() + input.below(count) * size, &value, size);
  };
  switch (input.below(8)) {
    case 0:
      if (entries.size() > 1) entries.erase(at);
      return;
    case 1:
      entries[at->first + std::string(1, static_cast<char>('a' + input.below(26)))] = entry;
      return;
    case 2:
      entry = any()->second;
      return;
    case 3:
      entry.type = static_cast<DType>(input.below(13));
      return fill();
    case 4: {
      std::vector<Index> extents(input.below(std::size_t{5}));
      for (Index& extent : extents) extent = input.below(6);
      entry.shape = Shape(extents.begin(), extents.end());
      return fill();
    }
    case 5:
      return put(input.any_of<Index>(
          {-1, 0, 1, 5, Limits::max(), Limits::max() - 1, Limits::max() / 2 + 1, Limits::min()}));
    case 6:
      return put(input.any_of<float>({-1, 0, 1e30F, std::numeric_limits<float>::infinity(),
                                      std::numeric_limits<float>::quiet_NaN(), 1e-40F}));
    default:
      for (auto& [key, value] : metadata) value = std::string(input.below(std::size_t{9}), '7');
  }
}

/// The good checkpoint's entries and metadata.
struct Parts {
  Entries entries;
  std::map<std::string, std::string> metadata;

  explicit Parts(const SafetensorsFile& file)
      : metadata(file.metadata().begin(), file.metadata().end()) {
    for (const auto& [name, entry] : file.tensors())
      entries[name] = {entry.dtype, entry.shape, file.read_bytes(name)};
  }
};

std::string changed(Input& input) {
  static const Parts parts{SafetensorsFile(MemoryFile(good()).path())};
  auto [entries, metadata] = parts;
  while (!input.empty()) change(entries, metadata, input);
  SafetensorsWriter writer;
  for (const auto& [key, value] : metadata) writer.metadata(key, value);
  for (const auto& [name, entry] : entries)
    writer.add_bytes(name, entry.type, entry.shape, entry.bytes);
  const TemporaryFolder folder;
  writer.save(folder / "a");
  return read_text(folder / "a");
}

}  // namespace

void run(std::string_view bytes) {
  static Run first, second;
  Input input(bytes);
  const std::string file = changed(input);
  static bool is_good = false;
  if (!is_good) first.load(good());
  is_good = !accepted([&] { first.load(file); });
  const std::string saved = first.save();
  if (is_good) return check(saved == good(), "a checkpoint that is refused changes nothing");
  second.load(saved);
  check(second.save() == saved, "what was loaded is saved and comes back");
  for (int i = 0; i < 3; ++i) accepted([&] { first.step(); });
}

std::vector<std::string> seeds() {
  std::vector<std::string> out{""};
  for (int kind = 0; kind < 8; ++kind) {
    std::string bytes;
    for (int i = 0; i < 2; ++i)
      bytes += {char(40 + 7 * i + kind), char(kind), char(i + 1), char(4)};
    out.push_back(bytes);
  }
  return out;
}

}  // namespace infty::fuzz
