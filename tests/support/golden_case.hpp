// SPDX-License-Identifier: MIT
#pragma once

#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstddef>
#include <filesystem>
#include <limits>
#include <set>
#include <string>
#include <string_view>
#include <system_error>
#include <vector>

#include <infty/autograd/variable.hpp>
#include <infty/core/error.hpp>
#include <infty/core/tensor.hpp>
#include <infty/io/safetensors_file.hpp>

namespace infty::tests {

/// A tensor as a case file holds it.
struct Recorded {
  Shape shape;
  std::vector<double> values;

  /// The same with dimensions i and i + 1 exchanged.
  Recorded swapped(Index i) const {
    const Index n = shape[i], m = shape[i + 1];
    const Index outer = shape.size(0, i), inner = shape.size(i + 2, shape.rank());
    Recorded out{shape.with(i, m).with(i + 1, n), std::vector<double>(values.size())};
    std::size_t next = 0;
    for (Index o = 0; o < outer; ++o)
      for (Index b = 0; b < m; ++b)
        for (Index a = 0; a < n; ++a)
          for (Index k = 0; k < inner; ++k)
            out.values[next++] =
                values[static_cast<std::size_t>(((o * n + a) * m + b) * inner + k)];
    return out;
  }

  template <class T, class B>
  Tensor<T, B> tensor() const {
    return Tensor<T, B>::from(shape, std::vector<T>(values.begin(), values.end()));
  }
};

/// A copy of a tensor's numbers in double.
template <class T, class B>
Recorded record_of(const Tensor<T, B>& x) {
  const std::vector<T> values = x.to_vector();
  return {x.shape(), std::vector<double>(values.begin(), values.end())};
}

/// A case file that keeps account of what has been read, so that nothing recorded is passed over.
/// What is missing or does not fit throws infty::IoError with the file's name.
class GoldenCase {
 public:
  explicit GoldenCase(const std::filesystem::path& path) : file_(path) {}

  template <class... Parts>
  [[noreturn]] void fail(const Parts&... parts) const {
    raise<IoError>("case", file_.path().string(), ": ", parts...);
  }

  const std::filesystem::path& path() const { return file_.path(); }
  bool has(const std::string& name) const { return file_.has(name); }
  const Shape& shape(const std::string& name) const { return file_.shape(name); }

  /// The names that begin with `prefix`.
  std::vector<std::string> names(std::string_view prefix) const {
    std::vector<std::string> out;
    for (const std::string& name : file_.names())
      if (name.starts_with(prefix)) out.push_back(name);
    return out;
  }

  Recorded read(const std::string& name) {
    seen_.insert(name);
    return {file_.shape(name), file_.template read<double>(name)};
  }
  std::vector<Index> read_tokens(const std::string& name) {
    seen_.insert(name);
    return file_.template read<Index>(name);
  }
  /// @throws infty::IoError unless a tensor has the shape that fits the rest of the case
  void require_shape(const std::string& name, const Shape& fits) const {
    if (!(shape(name) == fits))
      fail(name, " is ", shape(name), ", but ", fits, " fits the rest of the case");
  }
  void ignore(const std::string& name) { seen_.insert(name); }

  /// @throws infty::IoError if the file holds a tensor that nobody has asked for
  void require_all_seen() const {
    for (const std::string& name : file_.names())
      if (!seen_.contains(name)) fail("holds ", name, ", which cannot be compared here");
  }

  bool has_key(std::string_view key) const { return file_.metadata().contains(key); }
  const std::string& text(std::string_view key) const { return file_.metadata(key); }
  std::string text(std::string_view key, const std::string& otherwise) const {
    return has_key(key) ? text(key) : otherwise;
  }

  double number(std::string_view key) const { return parse<double>(key, text(key)); }
  double number(std::string_view key, double otherwise) const {
    return has_key(key) ? number(key) : otherwise;
  }
  Index count(std::string_view key) const {
    const Index value = parse<Index>(key, text(key));
    if (value < 0) fail(key, " is ", value, ": it must not be negative");
    return value;
  }
  /// @throws infty::IoError if the metadata says otherwise than the tensors
  void require_agrees(std::string_view key, Index by_tensors) const {
    if (has_key(key) && count(key) != by_tensors)
      fail("metadata ", key, " is ", text(key), ", by the tensors it is ", by_tensors);
  }
  bool flag(std::string_view key, bool otherwise) const {
    if (!has_key(key)) return otherwise;
    const std::string& value = text(key);
    if (value == "True" || value == "true" || value == "1") return true;
    if (value == "False" || value == "false" || value == "0" || value == "None") return false;
    fail(key, " is ", value, ": it must be True or False");
  }
  /// The numbers of "[0.01, 0.05]".
  std::vector<double> numbers(std::string_view key) const {
    std::string_view rest = text(key);
    const auto trim = [&] {
      while (!rest.empty() && rest.front() == ' ') rest.remove_prefix(1);
      while (!rest.empty() && rest.back() == ' ') rest.remove_suffix(1);
    };
    trim();
    if (rest.size() < 2 || rest.front() != '[' || rest.back() != ']')
      fail(key, " is ", rest, ": it must be a list");
    rest = rest.substr(1, rest.size() - 2);
    trim();
    std::vector<double> out;
    while (!rest.empty()) {
      const std::string_view whole = rest;
      const std::size_t end = whole.find(',');
      rest = whole.substr(0, end);
      trim();
      out.push_back(parse<double>(key, rest));
      rest = end == std::string_view::npos ? std::string_view{} : whole.substr(end + 1);
    }
    return out;
  }

 private:
  template <class Number>
  Number parse(std::string_view key, std::string_view value) const {
    Number out{};
    const auto [end, error] = std::from_chars(value.data(), value.data() + value.size(), out);
    if (error != std::errc{} || end != value.data() + value.size())
      fail("metadata ", key, " is ", value, ": it must be a number");
    return out;
  }

  SafetensorsFile file_;
  std::set<std::string, std::less<>> seen_;
};

/// The largest errors over everything that was compared.
struct Comparison {
  double worst = 0;        ///< of all recorded values and gradients
  std::string worst_name;  ///< where it is
  double worst_value = 0;  ///< of the values alone
  double worst_gradient = 0;
  std::size_t compared = 0;  ///< recorded tensors

  /// |ours - theirs| / |theirs|, or |ours| where theirs is zero.
  void see_number(const std::string& name, double ours, double theirs) {
    const double difference = std::abs(ours - theirs);
    see_error(name, theirs == 0 ? difference : difference / std::abs(theirs));
  }

  /// max|ours - theirs| / max|theirs|, or max|ours - theirs| of a gradient that vanishes but for
  /// rounding, whose numbers are below 1e-13, and where theirs is zero everywhere.
  void see(const GoldenCase& file, const std::string& name, const Recorded& ours,
           const Recorded& theirs) {
    if (ours.values.size() != theirs.values.size())
      file.fail(name, " is ", theirs.shape, ", but ", ours.shape, " fits the rest of the case");
    double difference = 0, scale = 0;
    for (std::size_t i = 0; i < ours.values.size(); ++i) {
      const double d = std::abs(ours.values[i] - theirs.values[i]);
      difference =
          std::isfinite(d) ? std::max(difference, d) : std::numeric_limits<double>::infinity();
      scale = std::max(scale, std::abs(theirs.values[i]));
    }
    const bool vanishes = scale == 0 || (scale < 1e-13 && name.find("grad") != std::string::npos);
    see_error(name, vanishes || !std::isfinite(difference) ? difference : difference / scale);
  }

 private:
  void see_error(const std::string& name, double error) {
    ++compared;
    if (worst_name.empty() || error > worst) {
      worst = error;
      worst_name = name;
    }
    double& part = name.find(".grad.") == std::string::npos ? worst_value : worst_gradient;
    part = std::max(part, error);
  }
};

/// A parameter takes the recorded numbers, in place: others may share it.
template <class T, class B>
void set_parameter(const GoldenCase& file, const std::string& name, const Recorded& from,
                   Variable<T, B>& to) {
  if (!(from.shape == to.shape()))
    file.fail(name, " is ", from.shape, ", ", to.shape(), " fits the rest of the case");
  to.value().copy_from(from.template tensor<T, B>());
}

}  // namespace infty::tests
