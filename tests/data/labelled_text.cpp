// SPDX-License-Identifier: MIT
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include <infty/data/labelled_text.hpp>

#include "data/refusal.hpp"
#include "support/catch.hpp"

namespace labelled_text {

using Rows = std::vector<std::pair<infty::Index, std::string>>;

/// Labels and texts of a file with these bytes.
Rows read(const std::string& bytes) {
  Rows out;
  for (const auto& row : infty::tests::read_bytes("train.csv", bytes, infty::read_labelled_texts))
    out.emplace_back(row.label, row.text);
  return out;
}

/// What is said of such a file.
std::string refused(const std::string& bytes) {
  return infty::tests::refusal("train.csv", bytes, infty::read_labelled_texts);
}

}  // namespace labelled_text

TEST_CASE("read_labelled_texts: records as the published sets have them") {
  using namespace labelled_text;
  // AGNews and Amazon; DBPedia; Yelp; Yahoo! Answers.
  CHECK(read("\"3\",\"Wall St. Bears\",\"Short-sellers, again.\"\n") ==
        Rows{{2, "Wall St. Bears Short-sellers, again."}});
  CHECK(read("14,\"E. D. Abbott Ltd\",\" A company.\"\n1,\"b\",\"c\"\n") ==
        Rows{{13, "E. D. Abbott Ltd  A company."}, {0, "b c"}});
  CHECK(read("\"5\",\"He said \"\"no\"\".\\nTwice\\n\\n\"") ==
        Rows{{4, "He said \"no\". Twice  "}});
  CHECK(read("\"10\",\"a\",\"\",\"c\"\r\n\"2\",\"\",\"\",\"\"\r\n") == Rows{{9, "a c"}, {1, ""}});
  CHECK(read("").empty());
  CHECK(read("1,a b\n2,c") == Rows{{0, "a b"}, {1, "c"}});
  CHECK(read("1,\"two\nlines\"\n") == Rows{{0, "two\nlines"}});
  CHECK(read("1,\xff\n") == Rows{{0, "\xff"}});  // any bytes are a text
}

TEST_CASE("read_labelled_texts: what is none is refused with the file and the line") {
  using namespace labelled_text;
  for (const auto& [bytes, said] : std::vector<std::pair<std::string, std::string>>{
           {"1,a\nx,b\n", "train.csv: line 2: the label is 'x': an integer from 1 to 1000000"},
           {"\"0\",a\n", "train.csv: line 1: the label is '0'"},
           {"-1,a\n", "line 1: the label is '-1'"},
           {"1.0,a\n", "line 1: the label is '1.0'"},
           {"1000001,a\n", "line 1: the label is '1000001'"},
           {"99999999999999999999999999,a\n", "line 1: the label is '9999"},
           {"1,a\n\n2,b\n", "line 2: the label is ''"},
           {"1,a\n3\n", "line 2: there is no text"},
           {"1,a\n2,\"b\n3,c\n", "line 2: a quotation mark that is not closed"},
           {"1,\"a\nb\nc\"\nx,d\n", "line 4: the label is 'x'"},
           {"1,\"a\"b\n", "line 1: something stands behind a closing quotation mark"},
           {"1,a\"b\"\n", "line 1: a quotation mark inside a field"},
           {"1,a\r\r\n2,\"b\"\rc\n", "line 2: something stands behind"}})
    CHECK_THAT(refused(bytes), Catch::Contains(said));
  const infty::tests::TemporaryFolder folder;
  CHECK_THROWS_AS(infty::read_labelled_texts(folder / "none.csv"), infty::IoError);
}

TEST_CASE("for_each_labelled_text: texts come one at a time, and a caller's error comes through") {
  int seen = 0;
  const auto stop = [&](infty::LabelledText&&) {
    if (++seen == 2) throw std::runtime_error("enough");
  };
  CHECK_THROWS_AS(infty::for_each_labelled_text("1,a\n2,b\nx\n", "here", stop), std::runtime_error);
  CHECK(seen == 2);
}
