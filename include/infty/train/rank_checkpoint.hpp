// SPDX-License-Identifier: MIT
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

#include <infty/core/error.hpp>
#include <infty/io/fingerprint.hpp>
#include <infty/io/safetensors_writer.hpp>
#include <infty/parallel/communicator.hpp>
#include <infty/train/named_parameters.hpp>

namespace infty {

namespace detail {

/// Tensors as bytes, for a message.
inline std::vector<std::byte> packed_tensors(const SafetensorsWriter& writer) {
  std::vector<std::byte> out;
  const auto put = [&](const void* from, std::size_t n) {
    const auto* const bytes = static_cast<const std::byte*>(from);
    out.insert(out.end(), bytes, bytes + n);
  };
  const auto number = [&](std::int64_t value) { put(&value, sizeof value); };
  writer.each([&](const std::string& name, DType dtype, const Shape& shape,
                  std::span<const std::byte> bytes) {
    number(static_cast<std::int64_t>(name.size()));
    put(name.data(), name.size());
    number(static_cast<std::int64_t>(dtype));
    number(shape.rank());
    for (const Index extent : shape) number(extent);
    number(static_cast<std::int64_t>(bytes.size()));
    put(bytes.data(), bytes.size());
  });
  return out;
}

/// Adds the tensors of a message of `packed_tensors`.
inline void add_packed(SafetensorsWriter& writer, std::span<const std::byte> from) {
  const auto take = [&](std::size_t n) {
    require<CommunicationError>(n <= from.size(), "gather_tensors", "a message is cut short");
    const auto part = from.first(n);
    from = from.subspan(n);
    return part;
  };
  const auto number = [&] {
    std::int64_t value = 0;
    std::memcpy(&value, take(sizeof value).data(), sizeof value);
    return value;
  };
  while (!from.empty()) {
    const auto letters = take(static_cast<std::size_t>(number()));
    const std::string name(reinterpret_cast<const char*>(letters.data()), letters.size());
    const auto dtype = static_cast<DType>(number());
    std::vector<Index> extents(static_cast<std::size_t>(number()));
    for (Index& extent : extents) extent = number();
    writer.add_bytes(name, dtype, Shape(extents.begin(), extents.end()),
                     take(static_cast<std::size_t>(number())));
  }
}

/// Tells the values of parameters apart.
template <class T, class B>
std::uint64_t fingerprint_of(const std::vector<NamedParameter<T, B>>& parameters) {
  Fingerprint all;
  for (const auto& parameter : parameters)
    for (const T value : parameter.variable.value().to_vector())
      all.add(
          std::bit_cast<std::conditional_t<sizeof(T) == 4, std::uint32_t, std::uint64_t>>(value));
  return all.bits();
}

}  // namespace detail

/// Gives the first rank the tensors of all others, under their names, which no two may share: its
/// writer has them all behind this, and the others' have what they had.
/// @throws infty::IoError for a name that is taken; infty::CommunicationError
template <Communicator C>
void gather_tensors(C& ranks, SafetensorsWriter& writer) {
  if (ranks.rank() > 0) {
    const auto message = detail::packed_tensors(writer);
    const std::uint64_t length = message.size();
    ranks.send(0, std::as_bytes(std::span(&length, 1)));
    ranks.send(0, message);
    return;
  }
  for (int rank = 1; rank < ranks.size(); ++rank) {
    std::uint64_t length = 0;
    ranks.receive(rank, std::as_writable_bytes(std::span(&length, 1)));
    std::vector<std::byte> message(static_cast<std::size_t>(length));
    ranks.receive(rank, message);
    detail::add_packed(writer, message);
  }
}

}  // namespace infty
