// SPDX-License-Identifier: MIT
#pragma once

#include <algorithm>
#include <cstddef>
#include <filesystem>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <infty/core/config.hpp>
#include <infty/core/error.hpp>
#include <infty/core/utf8.hpp>
#include <infty/io/mapped_file.hpp>

namespace infty {

/// A text and the class that it is of.
struct LabelledText {
  Index label = 0;   ///< from 0 on
  std::string text;  ///< title and body
};

namespace detail {

/// Takes records of comma-separated values apart, one at a time: fields that may stand between
/// quotation marks, in which a doubled one is one and a line may end.
class CsvReader {
 public:
  /// @param where  begins every message, such as the file's name
  CsvReader(std::string_view text, std::string_view where) : text_(text), where_(where) {}

  /// Whether there is another record.
  bool more() const { return at_ < text_.size(); }
  /// The line that the last record began in, from 1 on.
  Index line() const { return line_; }

  /// Takes the fields of the next record. @throws infty::IoError that names the line
  void record(std::vector<std::string>& fields) {
    line_ = next_line_;
    fields.clear();
    do {
      fields.emplace_back();
      if (take('"'))
        quoted(fields.back());
      else
        bare(fields.back());
    } while (take(','));
    take('\r');
    if (more() && !take('\n')) fail("something stands behind a closing quotation mark");
    ++next_line_;
  }

  /// Throws infty::IoError with where, the record's line and the parts.
  template <class... Parts>
  [[noreturn]] void fail(const Parts&... parts) const {
    raise<IoError>("csv", where_, ": line ", line_, ": ", parts...);
  }

 private:
  bool take(char c) {
    if (!more() || text_[at_] != c) return false;
    ++at_;
    return true;
  }

  void quoted(std::string& out) {
    for (;;) {
      const std::size_t end = text_.find('"', at_);
      if (end == text_.npos) fail("a quotation mark that is not closed");
      const std::string_view part = text_.substr(at_, end - at_);
      for (const char c : part) next_line_ += c == '\n' ? 1 : 0;
      out += part;
      at_ = end + 1;
      if (!take('"')) return;
      out += '"';
    }
  }

  void bare(std::string& out) {
    const std::size_t end = (std::min)(text_.find_first_of(",\n\"", at_), text_.size());
    out = text_.substr(at_, end - at_);
    at_ = end;
    if (more() && text_[at_] == '"') fail("a quotation mark inside a field that has none");
    if (out.ends_with('\r') && (!more() || text_[at_] == '\n')) out.pop_back();
  }

  std::string_view text_, where_;
  std::size_t at_ = 0;
  Index line_ = 0, next_line_ = 1;
};

}  // namespace detail

/// Calls see(LabelledText) for each record of a text as the sets of [Zhang et al. 2015] come,
/// AGNews, Yelp, Amazon, DBPedia and Yahoo! Answers, `train.csv` and `test.csv`:
/// `label,"title","text"`, in which a label is 1 or more and there may be one field of text or
/// several, which are put together with spaces. A quotation mark in them is doubled, and a line end
/// is written as a backslash and an n, which is a space here.
/// @param where  begins every message, such as the file's name
/// @throws infty::IoError that names the line of a record without a label from 1 to 1,000,000 or
/// without a text, or whose quotation marks do not fit; what `see` throws
template <class See>
void for_each_labelled_text(std::string_view csv, std::string_view where, See&& see) {
  constexpr Index most = 1'000'000;
  detail::CsvReader reader(csv, where);
  std::vector<std::string> fields;
  while (reader.more()) {
    reader.record(fields);
    const std::string& label = fields.front();
    LabelledText out;
    for (const char c : label) {
      const bool digit = c >= '0' && c <= '9';
      out.label = digit && out.label <= most ? 10 * out.label + (c - '0') : most + 1;
    }
    if (out.label < 1 || out.label > most)
      reader.fail("the label is ", detail::printable(label), ": an integer from 1 to ", most,
                  " is needed");
    if (fields.size() < 2) reader.fail("there is no text behind the label");
    --out.label;
    for (std::size_t i = 1; i < fields.size(); ++i) {
      std::string_view rest = fields[i];
      if (!rest.empty() && !out.text.empty()) out.text += ' ';
      for (std::size_t end; (end = rest.find("\\n")) != rest.npos; rest.remove_prefix(end + 2)) {
        out.text += rest.substr(0, end);
        out.text += ' ';
      }
      out.text += rest;
    }
    see(std::move(out));
  }
}

/// Reads all texts of such a file. @throws infty::IoError as `for_each_labelled_text`, and if there
/// is no such file
inline std::vector<LabelledText> read_labelled_texts(const std::filesystem::path& path) {
  const MappedFile file(path);
  std::vector<LabelledText> out;
  for_each_labelled_text(file.text(), path.string(),
                         [&](LabelledText&& text) { out.push_back(std::move(text)); });
  return out;
}

}  // namespace infty
