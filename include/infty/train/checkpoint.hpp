// SPDX-License-Identifier: MIT
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include <infty/autograd/parameters.hpp>
#include <infty/core/error.hpp>
#include <infty/core/needs.hpp>
#include <infty/core/random.hpp>
#include <infty/core/state.hpp>
#include <infty/io/json.hpp>
#include <infty/io/safetensors.hpp>
#include <infty/train/checkpoint_renames.hpp>
#include <infty/train/checkpoint_version.hpp>
#include <infty/train/checkpoint_writing.hpp>
#include <infty/train/load_report.hpp>

// Checkpoints are safetensors files. Layers, states, optimisers and random generators name what
// they hold; a prefix such as "model." lets several share a file. What is loaded takes its place
// when all of it has been read and checked, or not at all.
//
// Whatever holds more than parameters says which version of this format it is
// (checkpoint_version.hpp). Parameters alone are a plain file that others may have written: they
// need no version, but where there is one it must be one that is read, too. What version 1 called
// otherwise is found by its old name (checkpoint_renames.hpp).

namespace infty {

/// Loads what belongs together from one checkpoint, all of it or nothing: each call reads and
/// checks, `apply` puts everything in its place. The objects must stay where they are until then.
///
///     CheckpointLoader loader("model.safetensors");
///     loader.parameters(model, "model.").optimizer(adam, "optimizer.").random(random, "random");
///     loader.apply();
class CheckpointLoader {
 public:
  /// Opens a checkpoint, of which nothing is loaded yet.
  /// @throws infty::IoError if the file is missing, is not exactly safetensors, or is a checkpoint
  /// of a version that is not read
  explicit CheckpointLoader(const std::filesystem::path& path) : file_(path) {
    require_checkpoint(file_, false);
  }

  /// Returns the file, for its string metadata.
  const SafetensorsFile& file() const { return file_; }

  /// Takes all parameters of a layer, written by `save_parameters` or under the same names by
  /// others. They are copied in place, so that an optimiser's handles stay valid.
  /// @param prefix   what the file has in front of the layer's names
  /// @param options  with `strict` off, parameters that the file lacks keep their values, and what
  /// begins with `prefix` and is no parameter is passed over: `apply` reports both
  /// @throws infty::IoError that names the first parameter that is of another shape or, if strict,
  /// missing
  template <class L>
  CheckpointLoader& parameters(L& layer, const std::string& prefix = "", LoadOptions options = {}) {
    for_each_parameter(layer, ReserveName{*this, prefix});
    for_each_parameter(layer, StageParameter{*this, prefix, options.strict});
    add_prefix(prefix, options.strict);
    return *this;
  }

  /// Takes a state, written by `save_state`, in exchange for one of the same memory. The number of
  /// rows, and the length of the sequences that wait to be written, are those of the file.
  /// @throws infty::IoError that names the first member that is missing or does not fit, or the
  /// version of the file that is not ours
  template <class State>
  CheckpointLoader& state(State& state, const std::string& prefix = "") {
    require_checkpoint(file_);
    const auto loaded = std::make_shared<State>(state);
    ReadMember read{*this, prefix};
    detail::walk_saved(*loaded, read, detail::MemberPath());
    add_prefix(prefix);
    writes_.push_back([loaded, to = &state] { *to = std::move(*loaded); });
    return *this;
  }

  /// Takes an optimiser's state, written by `save_optimizer`.
  /// @throws infty::IoError that names the first member that does not fit, or the file's version
  template <class Optimizer>
  CheckpointLoader& optimizer(Optimizer& optimizer, const std::string& prefix = "") {
    require_checkpoint(file_);
    optimizer.visit([&](std::string_view name, auto& member) {
      const std::string stored = prefix + std::string(name);
      if constexpr (std::is_same_v<std::remove_reference_t<decltype(member)>, Index>) {
        const std::string& there = take(stored);
        file_.check_shape(there, Shape{});
        const Index count = file_.read<Index>(there).front();
        check_count(there, count);
        writes_.push_back([count, to = &member] { *to = count; });
      } else {
        stage(stored, Variable(member));
      }
    });
    if constexpr (requires { optimizer.each_passed_over([](const std::string&) {}); })
      optimizer.each_passed_over(
          [&](const std::string& own) { taken_[stored_name(file_, prefix + own)] = prefix + own; });
    add_prefix(prefix);
    return *this;
  }

  /// Takes a random generator, written by `save_random`.
  /// @throws infty::IoError if it is missing or is none, or for the version of the file
  CheckpointLoader& random(Random& random, const std::string& name) {
    require_checkpoint(file_);
    const std::string& stored = take(name);
    file_.check_shape(stored, Shape{3});
    const auto words = file_.read<std::uint64_t>(stored);
    Random loaded(words[0], words[1]);
    loaded.seek(words[2]);
    writes_.push_back([loaded, to = &random] { *to = loaded; });
    return *this;
  }

  /// Puts everything that was taken in its place, and returns what was passed over. A tensor of the
  /// file belongs to the longest of the prefixes that it begins with.
  /// @throws infty::IoError that names a tensor that nobody took, of a prefix that was loaded
  /// strictly; then all objects are as they were
  LoadReport apply() {
    LoadReport report = report_;
    for (const auto& [name, entry] : file_.tensors()) {
      if (taken_.contains(name) || is_dropped(file_, name)) continue;
      const auto strict = is_strict(name);
      if (!strict) continue;
      if (*strict) fail(name, "is in the file and belongs to nothing that is loaded");
      report.unexpected.push_back(name);
    }
    for (const auto& write : writes_) write();
    writes_.clear();
    return report;
  }

 private:
  // What `parameters` and `state` do is no lambda, of which every layer and state has its own: see
  // autograd/parameters.hpp.

  /// What the file has by the name of one parameter is no other's by an older name.
  struct ReserveName {
    CheckpointLoader& loader;
    const std::string& prefix;

    template <class V>
    void operator()(const std::string& name, const V&) const {
      if (loader.file_.has(prefix + name)) loader.taken_.try_emplace(prefix + name, prefix + name);
    }
  };

  struct StageParameter {
    CheckpointLoader& loader;
    const std::string& prefix;
    bool strict;

    template <class V>
    void operator()(const std::string& name, V& parameter) const {
      const std::string own = prefix + name, stored = stored_name(loader.file_, own);
      if (strict || (loader.file_.has(stored) && !loader.is_others(own, stored)))
        loader.stage(own, parameter);
      else
        loader.report_.missing.push_back(own);
    }
  };

  struct ReadMember {
    CheckpointLoader& loader;
    const std::string& prefix;
    Index batch = -1;

    template <class M>
    void operator()(const detail::MemberPath& full, M& member, const RowCounts* sequence) {
      const std::string name = full.text(), stored = loader.take(prefix + name);
      if (batch < 0) batch = loader.rows_of(stored);
      if constexpr (std::is_same_v<M, RowCounts>) {
        member = loader.read_counts(stored, batch);
      } else if constexpr (std::is_same_v<M, RowIds>) {
        member.id = loader.read_rows(stored, batch);
      } else {
        const auto& tensor = detail::tensor_of(member);
        using Own = std::remove_cvref_t<decltype(tensor)>;
        const Shape own = tensor.shape().with(0, batch);
        const std::string counts = stored_name(loader.file_, prefix + detail::length_beside(name));
        loader.file_.check_shape(
            stored, sequence ? loader.with_stored_length(stored, own, counts, batch) : own);
        // Version 1 made no room in fresh rows where there is some today.
        const bool fresh = sequence && is_empty_sequence(loader.file_, stored);
        member = M(fresh ? Own::zeros(own) : loader.read_like(stored, tensor));
      }
    }
  };

  /// What begins with a prefix is to be taken, all of it if one of those who load by it is strict.
  void add_prefix(const std::string& prefix, bool strict = true) { prefixes_[prefix] |= strict; }

  /// Whether a tensor must be taken, by the longest prefix; nothing if it begins with none.
  std::optional<bool> is_strict(const std::string& name) const {
    std::optional<bool> strict;
    // A longer prefix of the same name stands behind a shorter one.
    for (const auto& [prefix, whether] : prefixes_)
      if (name.starts_with(prefix)) strict = whether;
    return strict;
  }

  template <class... Parts>
  [[noreturn]] void fail(const std::string& name, const Parts&... parts) const {
    raise<IoError>("load", file_.path().string(), ": tensor ", detail::printable(name), ' ',
                   parts...);
  }

  /// The name that the file has a tensor by, which is taken.
  const std::string& take(const std::string& name) {
    const std::string stored = stored_name(file_, name);
    if (version_of(file_) == first_checkpoint_version && !file_.has(stored))
      raise<IoError>("load", file_.path().string(), ": no tensor ", detail::printable(name),
                     ", nor what version '", first_checkpoint_version,
                     "', which wrote the file, may have called so: make it anew, or read it with "
                     "the infty that wrote it");
    if (is_others(name, stored))
      raise<IoError>("load", file_.path().string(), ": no tensor ", detail::printable(name),
                     ", for ", detail::printable(stored), " is ",
                     detail::printable(taken_.at(stored)), "'s");
    return taken_.try_emplace(stored, name).first->first;
  }

  /// Whether a tensor was taken as that of another name, and one of the two is not the file's.
  bool is_others(const std::string& name, const std::string& stored) const {
    const auto at = taken_.find(stored);
    return at != taken_.end() && at->second != name;
  }

  template <class T, class B>
  Tensor<T, B> read_like(const std::string& name, const Tensor<T, B>&) const {
    return file_.tensor<T, B>(name);
  }

  /// What is stored in bfloat16 is in full when it is written, and no sooner.
  template <class T, class B>
  void stage(const std::string& name, Variable<T, B> to) {
    const std::string& stored = take(name);
    file_.check_shape(stored, to.shape());
    // Memory that may not be written throws here, before anything is.
    if (!to.stored_in_bfloat16()) to.value().data();
    writes_.push_back(
        [to, from = file_.tensor<T, B>(stored)]() mutable { to.value().copy_from(from); });
  }

  Index rows_of(const std::string& name) const {
    const Shape& shape = file_.shape(name);
    if (shape.rank() == 0 || shape[0] == 0) fail(name, "is ", shape, ": it must have rows");
    return shape[0];
  }

  RowCounts read_rows(const std::string& name, Index batch) const {
    file_.check_shape(name, Shape{batch});
    const auto values = file_.read<Index>(name);
    return RowCounts(values.begin(), values.end());
  }

  RowCounts read_counts(const std::string& name, Index batch) const {
    const RowCounts counts = read_rows(name, batch);
    for (const Index count : counts) check_count(name, count);
    return counts;
  }

  /// Nobody counts to 2^62, and what is added to a larger count may overflow.
  void check_count(const std::string& name, Index count) const {
    if (count < 0) fail(name, "holds ", count, ": it must be at least 0");
    if (count > Index{1} << 62) fail(name, "holds ", count, ": it must be at most 2^62");
  }

  /// `expected` with the length of the sequence in the file, in which all rows must fit.
  Shape with_stored_length(const std::string& name, const Shape& expected,
                           const std::string& counts, Index batch) const {
    const Shape& shape = file_.shape(name);
    if (shape.rank() < 2) return expected;
    for (const Index count : read_counts(counts, batch))
      if (count > shape[1]) fail(counts, "holds ", count, ", and the sequence is ", shape);
    return expected.with(1, shape[1]);
  }

  SafetensorsFile file_;
  std::map<std::string, std::string> taken_;  // the file's names, and whose tensors they are
  std::map<std::string, bool> prefixes_;      // and whether all that begins with it must be taken
  LoadReport report_;
  std::vector<std::function<void()>> writes_;
};

/// Copies the parameters that begin with `prefix` in a file into those of a layer. Returns what did
/// not match, of which there is nothing unless `strict` is off, as PyTorch's load_state_dict does.
/// @throws infty::IoError that names the first tensor that is of another shape or, if strict,
/// missing or too much; then the layer is as it was
template <Addressed L>
LoadReport load_parameters(const std::filesystem::path& path, L& layer,
                           const std::string& prefix = "", LoadOptions options = {}) {
  static_assert(Layer<L>, "load_parameters: the layer" INFTY_NO_VISIT);
  return CheckpointLoader(path).parameters(layer, prefix, options).apply();
}

/// Replaces a state by that of a file of the same memory; copies of it keep what they have. @throws
/// infty::IoError that names the first tensor that does not fit; then the state is as it was
template <Addressed State>
void load_state(const std::filesystem::path& path, State& state, const std::string& prefix = "") {
  static_assert(Visitable<State>, "load_state: the state" INFTY_NO_VISIT);
  CheckpointLoader(path).state(state, prefix).apply();
}

}  // namespace infty
