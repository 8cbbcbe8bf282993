// SPDX-License-Identifier: MIT
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <infty/core/error.hpp>
#include <infty/core/shape.hpp>
#include <infty/io/dtype.hpp>
#include <infty/io/json.hpp>

namespace infty {

/// What a safetensors header says about one tensor.
struct SafetensorsEntry {
  DType dtype;          ///< of its elements
  Shape shape;          ///< extents, row-major
  std::uint64_t begin;  ///< first byte, counted from the end of the header
  std::uint64_t end;    ///< one past the last byte
};

/// A checked safetensors header, in the order of the names.
struct SafetensorsHeader {
  std::map<std::string, std::string, std::less<>> metadata;      ///< texts by name, `__metadata__`
  std::map<std::string, SafetensorsEntry, std::less<>> tensors;  ///< by name
};

namespace detail {

/// The longest header, in bytes, that the reference implementation reads.
inline constexpr std::uint64_t safetensors_header_limit = 100'000'000;

inline Shape read_shape(JsonReader& json) {
  std::array<Index, Shape::max_rank> extents{};
  std::size_t rank = 0;
  std::uint64_t product = 1;
  json.array([&] {
    const std::uint64_t extent = json.integer();
    if (rank == extents.size()) json.fail("a shape of more than ", Shape::max_rank, " dimensions");
    if (extent > (std::uint64_t{1} << 62U) / product) json.fail("a shape of over 2^62 elements");
    product *= std::max<std::uint64_t>(extent, 1);
    extents[rank++] = static_cast<Index>(extent);
  });
  return Shape(extents.begin(), extents.begin() + static_cast<Index>(rank));
}

inline SafetensorsEntry read_entry(JsonReader& json, std::string_view name) {
  std::optional<DType> dtype;
  std::optional<Shape> shape;
  std::optional<std::array<std::uint64_t, 2>> range;
  json.object([&](const std::string& key) {
    if (key == "dtype" && !dtype) {
      const std::string type = json.string();
      dtype = dtype_from_name(type);
      if (!dtype) json.fail("tensor ", printable(name), " has the unknown dtype ", printable(type));
    } else if (key == "shape" && !shape) {
      shape = read_shape(json);
    } else if (key == "data_offsets" && !range) {
      std::size_t count = 0;
      range.emplace();
      json.array([&] {
        if (count == 2) json.fail("tensor ", printable(name), " has more than two data_offsets");
        (*range)[count++] = json.integer();
      });
      if (count != 2) json.fail("tensor ", printable(name), " has less than two data_offsets");
    } else {
      json.fail("tensor ", printable(name), " has an unknown or repeated field ", printable(key));
    }
  });
  if (!dtype || !shape || !range)
    json.fail("tensor ", printable(name), " lacks its dtype, shape or data_offsets");
  return {*dtype, *shape, (*range)[0], (*range)[1]};
}

/// The tensors must fill the data from end to end, each as long as its shape and dtype say: with
/// this, no byte is read twice and none is smuggled along.
inline void check_layout(const SafetensorsHeader& header, std::uint64_t data_bytes,
                         std::string_view where) {
  std::vector<const std::pair<const std::string, SafetensorsEntry>*> order;
  order.reserve(header.tensors.size());
  for (const auto& tensor : header.tensors) order.push_back(&tensor);
  std::sort(order.begin(), order.end(), [](const auto* a, const auto* b) {
    return std::pair(a->second.begin, a->second.end) < std::pair(b->second.begin, b->second.end);
  });
  std::uint64_t covered = 0;
  for (const auto* tensor : order) {
    const SafetensorsEntry& entry = tensor->second;
    const std::uint64_t begin = entry.begin, end = entry.end;
    const auto refuse = [&](const auto&... parts) {
      raise<IoError>("safetensors", where, ": tensor ", printable(tensor->first),
                     " of data_offsets [", begin, ", ", end, "] ", parts...);
    };
    if (begin > end) refuse("ends before it begins");
    if (end > data_bytes) refuse("runs past the end of the data, ", data_bytes, " bytes");
    const auto width = static_cast<std::uint64_t>(dtype_bytes(entry.dtype));
    if ((end - begin) % width != 0 ||
        (end - begin) / width != static_cast<std::uint64_t>(entry.shape.size()))
      refuse("does not have the length of ", dtype_name(entry.dtype), ' ', entry.shape);
    if (begin < covered) refuse("overlaps another one, which ends at ", covered);
    if (begin > covered) refuse("leaves a hole from ", covered);
    covered = end;
  }
  if (covered != data_bytes)
    raise<IoError>("safetensors", where, ": the tensors end at ", covered, ", the data at ",
                   data_bytes);
}

}  // namespace detail

/// Parses and checks a safetensors header.
/// @param text        the header, with or without the spaces that pad it
/// @param data_bytes  how many bytes follow it in the file
/// @param where       begins every message, such as the file's name
/// @throws infty::IoError on anything that is not exactly the format: other JSON, repeated names,
/// unknown dtypes, shapes that do not match the offsets, tensors that overlap or leave holes
/// @post the tensors' [begin, end) are a partition of [0, data_bytes)
inline SafetensorsHeader parse_safetensors_header(std::string_view text, std::uint64_t data_bytes,
                                                  std::string_view where) {
  if (text.empty() || text.front() != '{')
    raise<IoError>("safetensors", where, ": the header does not begin with '{'");
  SafetensorsHeader header;
  bool has_metadata = false;
  detail::JsonReader json(text, where);
  json.object([&](std::string name) {
    if (name == "__metadata__") {
      if (std::exchange(has_metadata, true)) json.fail("__metadata__ is repeated");
      json.object([&](std::string key) {
        std::string value = json.string();
        const auto [at, is_new] = header.metadata.try_emplace(std::move(key), std::move(value));
        if (!is_new) json.fail("metadata ", detail::printable(at->first), " is repeated");
      });
    } else {
      const SafetensorsEntry entry = detail::read_entry(json, name);
      const auto [at, is_new] = header.tensors.try_emplace(std::move(name), entry);
      if (!is_new) json.fail("tensor ", detail::printable(at->first), " is repeated");
    }
  });
  json.finish();
  detail::check_layout(header, data_bytes, where);
  return header;
}

}  // namespace infty
