// SPDX-License-Identifier: MIT
#pragma once

#include <algorithm>
#include <cmath>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <limits>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <infty/core/error.hpp>
#include <infty/core/shape.hpp>
#include <infty/core/tensor.hpp>
#include <infty/io/dtype.hpp>
#include <infty/io/file.hpp>
#include <infty/io/json.hpp>
#include <infty/io/safetensors_header.hpp>

namespace infty {

/// How a writer stores numbers of float and double that it copies.
enum class StoredFloats : std::uint8_t {
  exact,  ///< as they are
  /// Rounded to bfloat16, the nearest: a half or a quarter of the bytes. Tensors of whole numbers,
  /// which count something, are as they are where rounding would change one: whole numbers up to
  /// 2^24 in float and 2^53 in double, beyond which T itself has not all of them.
  bfloat16
};

/// Collects tensors and string metadata and saves them as one safetensors file. The same content
/// gives the same bytes, whatever the order in which it was added.
class SafetensorsWriter {
 public:
  /// Makes a writer without anything.
  explicit SafetensorsWriter(StoredFloats floats = StoredFloats::exact) : floats_(floats) {}

  /// Sets a metadata value. @throws infty::IoError if the key has another one already, or for what
  /// is not UTF-8
  void metadata(std::string key, std::string value) {
    check_text("metadata", key);
    check_text("metadata", value);
    const auto [at, is_new] = metadata_.try_emplace(std::move(key), value);
    if (!is_new && at->second != value)
      raise<IoError>("safetensors", "metadata ", detail::printable(at->first), " is taken");
  }

  /// Adds a copy of row-major values.
  /// @throws infty::IoError if the name is taken, "__metadata__" or not UTF-8, or if the number of
  /// values is not the shape's
  template <StoredScalar T>
  void add(std::string name, const Shape& shape, const std::vector<T>& values)
    requires(!std::same_as<T, bool>)
  {
    add(std::move(name), shape, std::span<const T>(values));
  }

  /// Adds a copy of row-major values from any contiguous memory.
  /// @throws infty::IoError if the name is taken, "__metadata__" or not UTF-8, if the number of
  /// values is not the shape's, or if one would be rounded to infinity
  template <StoredScalar T>
  void add(std::string name, const Shape& shape, std::span<const T> values) {
    if constexpr (std::floating_point<T>)
      if (floats_ == StoredFloats::bfloat16 && !counts(values))
        return add(name, shape, rounded(name, values));
    add_bytes(std::move(name), dtype_of<T>(), shape, std::as_bytes(values));
  }

  /// Adds a copy of a tensor in any backend's memory.
  /// @throws infty::IoError if the name is taken, "__metadata__" or not UTF-8, or if a number would
  /// be rounded to infinity
  template <StoredScalar T, class B>
  void add(std::string name, const Tensor<T, B>& tensor) {
    if constexpr (std::floating_point<T>)
      if (floats_ == StoredFloats::bfloat16)
        return add(std::move(name), tensor.shape(), tensor.to_vector());
    auto values = std::make_shared<const std::vector<T>>(tensor.to_vector());
    const auto bytes = std::as_bytes(std::span<const T>(*values));
    insert(std::move(name), {dtype_of<T>(), tensor.shape(), bytes, std::move(values)});
  }

  /// Adds values without copying them, exactly: they must stay in place until the file is saved.
  /// @throws infty::IoError if the name is taken, "__metadata__" or not UTF-8, or if the number of
  /// values is not the shape's
  template <StoredScalar T>
  void add_view(std::string name, const Shape& shape, std::span<const T> values) {
    insert(std::move(name), {dtype_of<T>(), shape, std::as_bytes(values), nullptr});
  }

  /// Adds a copy of little-endian bytes, for the types that C++ has no name for.
  /// @throws infty::IoError if the name is taken, "__metadata__" or not UTF-8, or if the number of
  /// bytes is not the shape's
  void add_bytes(std::string name, DType dtype, const Shape& shape,
                 std::span<const std::byte> bytes) {
    auto copy = std::make_shared<const std::vector<std::byte>>(bytes.begin(), bytes.end());
    const std::span<const std::byte> view(*copy);
    insert(std::move(name), {dtype, shape, view, std::move(copy)});
  }

  /// Calls see(name, dtype, shape, bytes) for every tensor, by name.
  template <class See>
  void each(See&& see) const {
    for (const auto& [name, data] : tensors_) see(name, data.dtype, data.shape, data.bytes);
  }

  /// Writes the file beside `path`, flushes it to the disk and renames it into place: whatever goes
  /// wrong, `path` is the old file or the whole new one.
  /// @throws infty::IoError, such as for a missing folder or a full disk
  void save(const std::filesystem::path& path) const {
    detail::ReplacingFile file(path);
    write(file);
    file.commit();
  }

  /// Writes the same beside a file whose place it takes when that is committed.
  /// @throws infty::IoError, such as for a full disk
  void write(detail::ReplacingFile& file) const {
    const std::vector<const Item*> order = layout();
    const std::string header = header_text(order);
    const std::uint64_t length = header.size();
    if (length > detail::safetensors_header_limit)
      raise<IoError>("safetensors", file.path().string(), ": the header would take ", length,
                     " bytes; at most ", detail::safetensors_header_limit, " can be read");
    file.write(&length, sizeof length);
    file.write(header.data(), length);
    for (const Item* item : order) file.write(item->second.bytes.data(), item->second.bytes.size());
  }

 private:
  struct Data {
    DType dtype;
    Shape shape;
    std::span<const std::byte> bytes;
    std::shared_ptr<const void> owner;  // keeps the bytes; null for a view
  };
  using Item = std::pair<const std::string, Data>;

  static void check_text(std::string_view what, std::string_view text) {
    if (detail::utf8_prefix(text) != text.size())
      raise<IoError>("safetensors", what, ' ', detail::printable(text), " is not UTF-8");
  }

  template <std::floating_point T>
  static std::vector<BFloat16> rounded(const std::string& name, std::span<const T> values) {
    std::vector<BFloat16> out(values.size());
    for (std::size_t i = 0; i < values.size(); ++i)
      if (!detail::convert(values[i], out[i]))
        raise<IoError>("safetensors", "tensor ", detail::printable(name), ": ", values[i],
                       " is rounded to infinity in bfloat16");
    return out;
  }

  /// Whether all are whole numbers that T tells from the next, and rounding would change one.
  template <std::floating_point T>
  static bool counts(std::span<const T> values) {
    constexpr T all_told = T(2) / std::numeric_limits<T>::epsilon();
    bool any_lost = false;
    for (const T x : values) {
      if (!(std::abs(x) <= all_told) || x != std::floor(x)) return false;
      any_lost = any_lost || static_cast<T>(static_cast<float>(BFloat16(x))) != x;
    }
    return any_lost;
  }

  void insert(std::string name, Data data) {
    check_text("tensor name", name);
    if (name == "__metadata__") raise<IoError>("safetensors", "no tensor may be called ", name);
    const auto width = static_cast<std::size_t>(dtype_bytes(data.dtype));
    if (data.bytes.size() % width != 0 ||
        data.bytes.size() / width != static_cast<std::size_t>(data.shape.size()))
      raise<IoError>("safetensors", "tensor ", detail::printable(name), ": ", data.bytes.size(),
                     " bytes are not ", dtype_name(data.dtype), ' ', data.shape);
    const auto [at, is_new] = tensors_.try_emplace(std::move(name), std::move(data));
    if (!is_new)
      raise<IoError>("safetensors", "tensor ", detail::printable(at->first), " is taken");
  }

  // Wide elements first, then by name: so every tensor is aligned to its elements.
  std::vector<const Item*> layout() const {
    std::vector<const Item*> order;
    for (const Item& item : tensors_) order.push_back(&item);
    std::sort(order.begin(), order.end(), [](const Item* a, const Item* b) {
      const auto wide = dtype_bytes(a->second.dtype), other = dtype_bytes(b->second.dtype);
      return wide != other ? wide > other : a->first < b->first;
    });
    return order;
  }

  std::string header_text(const std::vector<const Item*>& order) const {
    std::string out = "{";
    if (!metadata_.empty()) {
      out += "\"__metadata__\":{";
      for (const auto& [key, value] : metadata_) {
        if (out.back() != '{') out += ',';
        out += detail::to_json(key) + ':' + detail::to_json(value);
      }
      out += '}';
    }
    std::uint64_t offset = 0;
    for (const Item* item : order) {
      const Data& data = item->second;
      if (out.size() > 1) out += ',';
      out += detail::to_json(item->first) + ":{\"dtype\":\"" + std::string(dtype_name(data.dtype)) +
             "\",\"shape\":[";
      for (const Index extent : data.shape) {
        if (out.back() != '[') out += ',';
        out += std::to_string(extent);
      }
      out += "],\"data_offsets\":[" + std::to_string(offset) + ',';
      offset += data.bytes.size();
      out += std::to_string(offset) + "]}";
    }
    out += '}';
    out.resize((out.size() + 7) / 8 * 8, ' ');
    return out;
  }

  StoredFloats floats_;
  std::map<std::string, std::string, std::less<>> metadata_;
  std::map<std::string, Data, std::less<>> tensors_;
};

}  // namespace infty
