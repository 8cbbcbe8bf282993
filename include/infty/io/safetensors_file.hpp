// SPDX-License-Identifier: MIT
#pragma once

#include <algorithm>
#include <array>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

#include <infty/core/error.hpp>
#include <infty/core/fwd.hpp>
#include <infty/core/shape.hpp>
#include <infty/core/tensor.hpp>
#include <infty/io/dtype.hpp>
#include <infty/io/file.hpp>
#include <infty/io/json.hpp>
#include <infty/io/safetensors_header.hpp>

namespace infty {

/// A safetensors file open for reading; https://huggingface.co/docs/safetensors is the format.
///
/// Opening reads and checks the header alone, and believes no number in it that the file's size
/// does not bear out. Tensors are read when asked for. Several threads may read from one object.
/// Every function throws infty::IoError, naming the file, the tensor and what is wrong.
class SafetensorsFile {
 public:
  /// Opens a file and reads its header.
  /// @throws infty::IoError if the file is missing, not a regular file, or not exactly the format
  explicit SafetensorsFile(const std::filesystem::path& path) : file_(path) {
    const std::string where = path.string();
    std::uint64_t length = 0;
    if (file_.size() < sizeof length)
      raise<IoError>("safetensors", where, ": ", file_.size(), " bytes are too few for a header");
    file_.read_at(0, &length, sizeof length);
    if (length > detail::safetensors_header_limit || length > file_.size() - sizeof length)
      raise<IoError>("safetensors", where, ": a header of ", length, " bytes in a file of ",
                     file_.size(), "; at most ", detail::safetensors_header_limit, " are read");
    std::string text(static_cast<std::size_t>(length), '\0');
    file_.read_at(sizeof length, text.data(), length);
    data_begin_ = sizeof length + length;
    header_ = parse_safetensors_header(text, file_.size() - data_begin_, where);
  }

  /// The path given.
  const std::filesystem::path& path() const { return file_.path(); }

  /// The file's string metadata, by key.
  const auto& metadata() const { return header_.metadata; }

  /// Returns the value of a metadata key. @throws infty::IoError if there is none
  const std::string& metadata(std::string_view key) const {
    const auto at = header_.metadata.find(key);
    if (at == header_.metadata.end()) fail("no metadata ", detail::printable(key));
    return at->second;
  }

  /// All entries, by name.
  const auto& tensors() const { return header_.tensors; }

  /// Lists all names, sorted.
  std::vector<std::string> names() const {
    std::vector<std::string> out;
    out.reserve(header_.tensors.size());
    for (const auto& [name, entry] : header_.tensors) out.push_back(name);
    return out;
  }

  /// Returns whether the file holds a tensor of this name.
  bool has(std::string_view name) const { return header_.tensors.contains(name); }

  /// Returns the shape of a tensor. @throws infty::IoError if there is no such tensor
  const Shape& shape(std::string_view name) const { return entry(name).shape; }

  /// Returns the type of a tensor's elements. @throws infty::IoError if there is no such tensor
  DType dtype(std::string_view name) const { return entry(name).dtype; }

  /// Reads the elements in row-major order. Floating-point T and `BFloat16` read F64, F32,
  /// F16 and BF16, rounded to the nearest; integer T reads every integer type and BOOL (as 0 and
  /// 1).
  /// @throws infty::IoError if there is no such tensor, if it would have to be turned from integers
  /// into fractions or back, or if T cannot hold an element
  template <StoredScalar T>
    requires(!std::same_as<T, bool>)  // vector<bool> has no elements; read BOOL as std::uint8_t
  std::vector<T> read(std::string_view name) const {
    const SafetensorsEntry& stored = entry(name);
    if (dtype_is_float(stored.dtype) != dtype_is_float(dtype_of<T>()))
      fail("tensor ", detail::printable(name), " is ", dtype_name(stored.dtype), ", asked for as ",
           dtype_name(dtype_of<T>()));
    std::vector<T> values(static_cast<std::size_t>(stored.shape.size()));
    if (stored.dtype == dtype_of<T>()) {
      file_.read_at(data_begin_ + stored.begin, values.data(), stored.end - stored.begin);
    } else {
      detail::with_stored_type(stored.dtype, [&]<class S>(std::type_identity<S>) {
        read_converted<S>(name, stored, values);
      });
    }
    return values;
  }

  /// Reads a tensor into a backend's memory.
  /// @throws infty::IoError if there is no such tensor, or T cannot hold an element (see `read`)
  template <StoredScalar T, class B = EigenBackend>
  Tensor<T, B> tensor(std::string_view name) const {
    return Tensor<T, B>::from(shape(name), read<T>(name));
  }

  /// Reads into a tensor of the file's shape.
  /// @throws infty::IoError if there is no such tensor, if T cannot hold an element (see `read`),
  /// or if the shapes differ; then `to` is as it was
  template <StoredScalar T, class B>
  void read_into(std::string_view name, Tensor<T, B>& to) const {
    check_shape(name, to.shape());
    const std::vector<T> values = read<T>(name);
    B::from_host(to.data(), values.data(), to.size());
  }

  /// Checks a shape. @throws infty::IoError unless there is a tensor of that name and shape
  void check_shape(std::string_view name, const Shape& expected) const {
    const Shape& stored = shape(name);
    if (!(stored == expected))
      fail("tensor ", detail::printable(name), " is ", stored, ", ", expected, " is needed");
  }

  /// Reads the bytes as they stand in the file, little-endian.
  /// @throws infty::IoError if there is no such tensor, or the file ends before it
  std::vector<std::byte> read_bytes(std::string_view name) const {
    const SafetensorsEntry& stored = entry(name);
    std::vector<std::byte> bytes(static_cast<std::size_t>(stored.end - stored.begin));
    file_.read_at(data_begin_ + stored.begin, bytes.data(), bytes.size());
    return bytes;
  }

 private:
  const SafetensorsEntry& entry(std::string_view name) const {
    const auto at = header_.tensors.find(name);
    if (at == header_.tensors.end()) fail("no tensor ", detail::printable(name));
    return at->second;
  }

  template <class S, class T>
  void read_converted(std::string_view name, const SafetensorsEntry& stored,
                      std::vector<T>& values) const {
    std::array<S, 2048> chunk;
    for (std::size_t done = 0; done < values.size();) {
      const std::size_t count = (std::min)(chunk.size(), values.size() - done);
      file_.read_at(data_begin_ + stored.begin + done * sizeof(S), chunk.data(), count * sizeof(S));
      for (std::size_t i = 0; i < count; ++i)
        if (!detail::convert(chunk[i], values[done + i]))
          fail("tensor ", detail::printable(name), ": element ", done + i, " does not fit from ",
               dtype_name(stored.dtype), " into ", dtype_name(dtype_of<T>()));
      done += count;
    }
  }

  template <class... Parts>
  [[noreturn]] void fail(const Parts&... parts) const {
    raise<IoError>("safetensors", path().string(), ": ", parts...);
  }

  detail::InputFile file_;
  SafetensorsHeader header_;
  std::uint64_t data_begin_ = 0;
};

}  // namespace infty
